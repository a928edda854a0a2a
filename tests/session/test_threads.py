"""How many threads a session has unless somebody says so."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest

import elastalog
from elastalog.session.settings import processors

PROGRAM = ".decl e, p(x: number)\np(x) :- e(x)."


def test_as_many_as_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(5)))
    for text, expected in {"max 100000\n": 5, "300000 100000\n": 3, "50000 100000\n": 1, "nothing": 5}.items():
        monkeypatch.setattr(Path, "read_text", lambda path, encoding, text=text: text)
        assert processors() == expected
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))
    assert processors() == 16


def test_one_in_a_process_of_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(processors).result() == 1
    monkeypatch.setitem(sys.modules, "pyspark.worker", SimpleNamespace())  # type: ignore[arg-type]
    assert processors() == 1


@pytest.mark.parametrize("jobs", ["auto", 1, 3])
def test_sessions_take_it(jobs: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastalog.session.opening.processors", lambda: 7)
    with elastalog.open(PROGRAM, facts={"e": [(1,)]}, jobs=jobs, engine="local") as db:  # type: ignore[arg-type]
        assert set(db["p"]) == {(1,)}
        assert db._now.settings.jobs == (7 if jobs == "auto" else jobs) if hasattr(db, "_now") else True


def test_no_threads_are_refused() -> None:
    with pytest.raises(elastalog.ElastalogError, match="jobs"):
        elastalog.open(PROGRAM, jobs=0)
    with pytest.raises(elastalog.ElastalogError, match="jobs"):
        elastalog.open(PROGRAM, jobs="many")  # type: ignore[arg-type]
