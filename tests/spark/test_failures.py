"""Tasks that die: the result is right all the same, or the evaluation fails as a whole and changes nothing."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

import elastalog
from elastalog.backends.spark import jobs, strata
from tests.engine.judging import levels_of
from tests.spark.exchanging import DOUBLING, LINEAR, without_room

PROGRAMS = {"decomposed": LINEAR, "exchanging": DOUBLING}
LENGTH = 200
CHAIN = {"edge": [(i, i + 1) for i in range(LENGTH)]}


def python_workers() -> list[psutil.Process]:
    """The processes of Spark's Python workers, below the Java that this process started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "pyspark.daemon" in " ".join(process.cmdline()) and process.parent() is not None:
                found.append(process)
        except psutil.Error:
            continue
    # The first is the one that starts the others.
    return [process for process in found if not process.children()]


def dying(kind: str, mark: Path) -> Any:
    """What a task does, but the first one is killed: in the third round of an exchange, or with its results written."""

    # Inside, so that it travels as it is: workers cannot import tests.
    def work(spec: Any, share: int) -> Any:
        import contextlib
        import os
        import signal

        from elastalog.backends.spark import exchange, messages, task

        def die_once() -> None:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)

        if kind == "decomposed":
            result = task.evaluate_alone(spec, share)
            die_once()
            return result
        whole = messages.Messages.exchange

        def exchanged(self: Any, *arguments: Any) -> Any:
            if self.rounds == 2:
                die_once()
            return whole(self, *arguments)

        messages.Messages.exchange = exchanged
        try:
            return exchange.evaluate_together(spec, share)
        finally:
            messages.Messages.exchange = whole

    return work


def test_what_is_told_of_a_task_that_was_killed() -> None:
    said = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
    : org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage 1.0 (TID 8) (host executor driver): org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
    \tat org.apache.spark.api.python.BasePythonRunner"""  # noqa: E501
    told = jobs._failure(RuntimeError(said)).diagnostics[0]
    assert (told.code, told.notes) == ("E1107", ("Python worker exited unexpectedly (crashed)",))


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_worker_killed_during_a_stratum(spark: Any, kind: str, tmp_path: Path) -> None:
    mark = tmp_path / "died"
    patched = {"decomposed": "evaluate_alone", "exchanging": "evaluate_together"}[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strata, patched, dying(kind, mark))
        db = elastalog.open(PROGRAMS[kind], facts=CHAIN, engine="spark", spark=spark)
    assert mark.exists()
    assert len(db["path"]) == LENGTH * (LENGTH + 1) // 2
    assert levels_of(db) == levels_of(elastalog.open(PROGRAMS[kind], facts=CHAIN))


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_worker_killed_during_an_update(spark: Any, kind: str) -> None:
    """The update is repeated by Spark or by us; the files of the dead attempt are nobody's."""
    killed = threading.Event()
    is_over = threading.Event()

    def kill_one() -> None:
        while not is_over.is_set():
            workers = [p for p in python_workers() if p.is_running() and p.cpu_percent(0.05) > 20]
            if workers:
                os.kill(workers[0].pid, signal.SIGKILL)
                killed.set()
                return

    facts = {"edge": [(i, i + 1) for i in range(400)]}
    with (
        without_room(),
        elastalog.open(PROGRAMS[kind], facts=facts, budget=None, engine="spark", spark=spark) as db,
    ):
        thread = threading.Thread(target=kill_one)
        thread.start()
        try:
            changes = db.apply({"edge": [(200, 201), (401, 402)]}, {"edge": [(100, 101), (300, 301)]})
        finally:
            is_over.set()
            thread.join()
        rest = [edge for edge in facts["edge"] if edge not in ((100, 101), (300, 301))]
        local = elastalog.open(PROGRAMS[kind], facts={"edge": [*rest, (401, 402)]})
        assert levels_of(db) == levels_of(local)
        assert set(changes["path"].inserted) == {(401, 402)}
    if not killed.is_set():
        pytest.skip("the update was over before a worker was found")
