"""What is seen of our jobs on a cluster: titles, groups, progress; and a job that is cancelled stays so."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.backends.spark import jobs, messages
from elastalog.backends.spark.jobs import GROUP, StratumNews, run_tasks
from elastalog.backends.watch import Progress, Watch
from elastalog.cli.reports import profile_lines
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.spark.without_spark import tasks_in_this_process

EDGES = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\npath(x, y) :- edge(x, y).\n"
LINEAR = EDGES + "path(x, z) :- path(x, y), edge(y, z).\n"
DOUBLING = EDGES + "path(x, z) :- path(x, y), path(y, z).\n"
CHAIN = [(i, i + 1) for i in range(8)]


def test_every_job_of_a_stratum_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Progress] = []
    with (
        tasks_in_this_process(tmp_path) as session,
        caplog.at_level(logging.INFO, "elastalog.spark"),
        elastalog.open(LINEAR, {"edge": CHAIN}, engine="spark", spark=session, on_progress=seen.append) as db,
    ):
        db.apply({"edge": [(8, 9)]})
    assert seen[:2] == [Progress(1, 0, 0), Progress(1, 0, 36)]  # 8 + 7 + … + 1 paths
    titles = [message.rpartition(": ")[0] for message in caplog.messages]
    assert titles[0] == "stratum 1 (path): evaluation by 3 tasks"
    assert titles[1].startswith("stratum 1 (path): update by ")
    assert caplog.messages[0].startswith(f"{titles[0]}: 36 facts written, 36 derivations, ")


def test_what_tasks_took_is_in_the_statistics(tmp_path: Path) -> None:
    with (
        tasks_in_this_process(tmp_path, 2) as session,
        elastalog.open(DOUBLING, {"edge": CHAIN}, engine="spark", spark=session) as db,
    ):
        (part,) = db.statistics().elsewhere
        assert part.place == "2 exchanging tasks"
        # 36 paths of two words, a level and a count each; those of 2 or more steps are found in each of their places.
        assert part.bytes == {"path": 36 * 4 * 4}
        assert part.derivations == 8 + sum((8 + 1 - n) * (n - 1) for n in range(2, 9))
        assert part.rounds >= 4
        assert 0 <= part.transfer < part.seconds
        assert part.peak > 1 << 20
        assert any("2 exchanging tasks: path 576" in line for line in profile_lines(db.statistics()))


def test_rounds_of_tasks_that_exchange_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Progress] = []
    monkeypatch.setattr(StratumNews, "interval", 0.0)
    monkeypatch.setattr(messages, "_SECONDS_BETWEEN_NEWS", 0.0)
    with tasks_in_this_process(tmp_path) as session:
        elastalog.open(DOUBLING, {"edge": CHAIN}, engine="spark", spark=session, on_progress=seen.append).close()
    # Paths of length 1; up to 2, 4, 8; nothing more: and each time tasks gave each other what they had.
    reached = seen[1].iteration
    assert reached >= 4
    assert seen == [Progress(1, 0, 0), Progress(1, reached, 0), Progress(1, reached, 36)]


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        (
            "[SPARK-24819]: Barrier execution mode does not allow run a barrier stage that requires more slots than",
            True,
        ),
        ("[SPARK-24942]: Barrier execution mode does not support dynamic resource allocation for now.", True),
        ("Job aborted due to stage failure: Could not recover from a failed barrier ResultStage.", False),
    ],
)
def test_what_spark_says_where_it_cannot_run_tasks_together(text: str, is_meant: bool) -> None:
    assert jobs._is_without_barrier(Exception(text)) is is_meant


@pytest.mark.parametrize("group", [None, "nightly"])
def test_a_job_has_a_title_and_is_cancelled_by_its_group(spark: Any, group: str | None) -> None:
    context = spark.sparkContext
    raised: list[ElastalogError] = []

    def work() -> None:
        if group is not None:
            context.setJobGroup(group, "what the caller does")
        shares: Any = (60.0, 60.0)

        def sleeping(seconds: Any) -> Any:
            time.sleep(seconds)

        try:
            # Tasks that run together, which would be started again had they failed by themselves.
            run_tasks(spark, sleeping, shares, Watch(), are_together=True, title="stratum 7 (p): evaluation")
        except ElastalogError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    tracker, wanted = context.statusTracker(), group or GROUP
    for _ in range(600):
        running = [job for job in tracker.getJobIdsForGroup(wanted) if job in tracker.getActiveJobsIds()]
        if running:
            break
        time.sleep(0.05)
    assert context._jsc.sc().statusStore().job(running[0]).description().get() == "stratum 7 (p): evaluation"
    context.cancelJobGroup(wanted)
    thread.join(30)
    assert [error.diagnostics[0].code for error in raised] == ["E0874"]
