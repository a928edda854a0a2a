"""Spark jobs that can be cancelled: by a limit of the user, by Ctrl-C, or because the budget of a stratum is spent. And
what is told of them: their title, the rounds that they have reached, and a line of the log at their end."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from elastalog.backends.spark.cluster import require_running
from elastalog.backends.spark.messages import rounds_reached
from elastalog.backends.spark.results import Outcome, Result
from elastalog.backends.spark.task import run_shares
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.planning.decompose import SharePlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("elastalog.spark")

GROUP = "elastalog"
"""The group of all our jobs, by which they can be cancelled."""

_ATTEMPTS = 4
_PATIENCE = 0.05


class CannotExchange(Exception):
    """Tasks cannot run at the same time, or cannot reach each other; the message says why."""


Work = Callable[[int], Result]
"""What a task does for a share."""


def run_tasks(
    spark: SparkSession,
    work: Work,
    shares: Sequence[int],
    watch: Watch,
    *,
    are_together: bool,
    check: Callable[[], None] = lambda: None,
    title: str = "",
) -> list[Result]:
    """Runs a task for every share and returns their results. Tasks that exchange run at the same time, or
    CannotExchange is raised if Spark cannot; if one fails all do, and the job is repeated, unless it was cancelled.
    `check` is called while they run: it may raise to give them up. `title`: what Spark's pages call the job."""
    require_running(spark)
    if not shares:  # of which Spark would make a job without partitions, or none
        return []
    task: Callable[[Iterable[int]], Iterator[Result]] = partial(run_shares, work, tuple(shares))

    def job() -> list[Result]:
        # An RDD, since a DataFrame of as few rows takes twice as long to plan as to run.
        positions: Any = spark.sparkContext.parallelize(range(len(shares)), len(shares))
        tasks = positions.barrier() if are_together else positions
        found: list[Result] = tasks.mapPartitions(task).collect()
        return found

    attempts = _ATTEMPTS if are_together else 1
    for attempt in range(1, attempts + 1):
        try:
            found = cancellable(spark, job, watch, check, title)
            assert isinstance(found, list)
            return found
        except Exception as error:
            if not _is_spark_error(error):
                raise
            if are_together and _is_without_barrier(error):
                raise CannotExchange(_reason(error)) from error
            if attempt == attempts or _is_missing_package(error) or _is_cancelled(error):
                raise _failure(error) from error
            log.warning("a task failed, the stratum is evaluated again: %s", _reason(error))
    raise AssertionError("unreachable")


def cancellable(
    spark: SparkSession, job: Callable[[], Any], watch: Watch, check: Callable[[], None] = lambda: None, title: str = ""
) -> Any:
    """Runs jobs in another thread, and cancels them if a limit is reached, an interrupt comes, or `check` raises.
    Spark's pages show them under a title, in the group `elastalog`; or in that of the caller, if there is one, since
    the caller will cancel by it."""
    from pyspark import InheritableThread

    context = spark.sparkContext
    tag = f"elastalog-{uuid.uuid4().hex}"
    outcome: dict[str, Any] = {}

    def body() -> None:
        try:
            context.addJobTag(tag)
            context.setLocalProperty("spark.job.description", title)
            context.setLocalProperty("spark.jobGroup.id", context.getLocalProperty("spark.jobGroup.id") or GROUP)
            outcome["value"] = job()
        except BaseException as error:  # handed to the thread that waits
            outcome["error"] = error

    thread = InheritableThread(target=body)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_PATIENCE)
            watch.check()
            check()
    except BaseException:
        # A cancel between two jobs hits nothing, so it is repeated.
        while thread.is_alive():
            context.cancelJobsWithTag(tag)
            thread.join(_PATIENCE)
        raise
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def _is_spark_error(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in ("py4j", "pyspark")


def _is_cancelled(error: BaseException) -> bool:
    """Whether the job was cancelled: by its group or tag, or on Spark's pages."""
    return re.search(r"Job \d+ cancelled", str(error)) is not None


def _is_without_barrier(error: BaseException) -> bool:
    """Whether Spark refused to start a stage in barrier mode: there are too few slots, or their number changes."""
    return (
        re.search(r"(?i)barrier execution mode does not|barrier stage that requires more slots", str(error)) is not None
    )


def _is_missing_package(error: BaseException) -> bool:
    return "No module named 'elastalog" in str(error)


def _reason(error: BaseException) -> str:
    """The last line of the Python error in what Spark says; otherwise how the last task ended, or the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception): ", line) and not line.startswith("org.")]
    told += [line.rpartition("Exception: ")[2] for line in lines if "most recent failure: " in line]
    return (told[0] if told else lines[0] if lines else type(error).__name__)[:300]


def _failure(error: BaseException) -> ElastalogError:
    if _is_missing_package(error):
        return ElastalogError.of("E1106")
    if _is_cancelled(error):
        return ElastalogError.of("E0874", why=_reason(error))
    return ElastalogError.of("E1107", why=_reason(error))


class StratumNews:
    """News of one job, for its `watch`. `folder`: where its tasks exchange, if they do; `what`: what they do."""

    interval: ClassVar[float] = 1.0
    """Seconds between two looks at the folder, which may be far away."""

    def __init__(self, watch: Watch, plan: SharePlan, folder: str, what: str, tasks: int) -> None:
        names = ", ".join(plan.stratum.relations)
        kind = "tasks" if plan.decomposes else "exchanging tasks"
        self.title = f"stratum {plan.stratum.number} ({names}): {what} by {tasks} {kind}"
        self._watch = watch
        self._stratum = plan.stratum.number
        self._folder = None if plan.decomposes else folder
        self._began = self._looked = time.monotonic()
        self._rounds = 0
        watch.tell(self._stratum, 0, 0)

    def look(self) -> None:
        """Called while tasks run: tells the round that they have reached, if that is new."""
        now = time.monotonic()
        if self._folder is None or now - self._looked < self.interval:
            return
        self._looked = now
        rounds = rounds_reached(self._folder)
        if rounds > self._rounds:
            self._rounds = rounds
            self._watch.tell(self._stratum, rounds, 0)

    @property
    def seconds(self) -> float:
        """How long the job has taken so far."""
        return time.monotonic() - self._began

    def done(self, outcome: Outcome) -> None:
        """Tells what came of the job."""
        found = sum(file.rows for written in outcome.written.values() for file in written.changes or written.states)
        log.info(
            "%s: %d facts written, %d derivations, %.2f s; %s",
            self.title, found, outcome.derivations, self.seconds, outcome.costs,
        )  # fmt: skip
        self._watch.tell(self._stratum, self._rounds, found)
