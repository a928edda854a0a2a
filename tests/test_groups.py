"""Tests that share something dear, such as a session of Spark, are run by one process."""

from __future__ import annotations

import pytest

from tests.conftest import DEAR


@pytest.mark.xdist_group("example")
def test_with_several_processes_ids_say_the_group(request: pytest.FixtureRequest) -> None:
    is_shared_out = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@example") == is_shared_out


def test_so_do_those_of_tests_that_share_a_dear_fixture(request: pytest.FixtureRequest) -> None:
    is_shared_out = getattr(request.config.option, "loadgroup", False)
    ids = [one.nodeid for one in request.session.items if {*DEAR}.intersection(getattr(one, "fixturenames", ()))]
    assert {"@" in name.rpartition("]")[2] or "@" in name.rpartition("::")[2] for name in ids} <= {is_shared_out}
