from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from elastalog.evaluation.stored import DurableEpochs


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the system has one: these tests flush to the disk thousands of times."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(prefix="elastalog-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(autouse=True)
def snapshots_by_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of these tests count writes, or files: snapshots are written by the commit that they are due after."""
    monkeypatch.setattr(DurableEpochs, "in_background", False)


@pytest.fixture(params=[False, True], ids=["by the commit", "in the background"])
def in_background(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, snapshots_by_the_commit: None
) -> bool:
    """Both ways to write snapshots."""
    monkeypatch.setattr(DurableEpochs, "in_background", request.param)
    return bool(request.param)
