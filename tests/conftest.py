"""Hypothesis profiles: `ci` is the one of every run (see `pyproject.toml`), `long` is for nights. A bucket of a server
that speaks S3, for all tests that meet at an address."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.object_store import Bucket, bucket_on_this_machine

# Tests start hundreds of processes, which would compile our modules anew, one after the other.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, database=None)
settings.register_profile("long", max_examples=5000, deadline=None)


@pytest.fixture(scope="session")
def object_server() -> Iterator[Bucket]:
    with bucket_on_this_machine() as made:
        yield made


@pytest.fixture(scope="module")
def bucket(object_server: Bucket) -> Bucket:
    """An empty bucket."""
    object_server.clear()
    return object_server
