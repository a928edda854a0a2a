"""Tests that share something dear, such as a session of Spark, are run by one process."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("example")
def test_with_several_processes_ids_say_the_group(request: pytest.FixtureRequest) -> None:
    is_shared_out = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@example") == is_shared_out
