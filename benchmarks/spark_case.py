"""One way of evaluating workloads, measured in a fresh process: `python -m benchmarks.spark_case WAY WORKLOAD ...`.

Ways: `loop` (a plain DataFrame loop), `kernel` (in-process), `tasks` (the kernel in Spark tasks). Time runs from facts
in memory (of the loop: cached DataFrames) to all derived facts; starting Spark, the first job, in which its Python
workers start and load the kernel, and what a job costs that has next to nothing to do are told apart. Workloads share a
process, and so its start; each is given up after a time of its own (`WORKLOAD=SECONDS`). Every result is a line on
standard output. `measure` starts such processes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import generate
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, EXAMPLES, HERE, Facts, as_tables, data_folder

WAYS = ("loop", "kernel", "tasks")
CLOSURE = EXAMPLES / "transitive_closure.dl"
DOUBLING = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
"""
DATA_SETS = ("galen", "doop")
START_UP = 120
ENOUGH = 10.0
"""Seconds of measuring after which nothing is repeated."""

_RESULT = "result: "
_OUT_OF_TIME = 3
LEAST_ROWS_SETTING = "spark.elastalog.leastRows"
LEAST_ROWS = 2_000
"""Input facts below which the driver evaluates a stratum: few, so that generated facts are enough for tasks. Data sets
are left to the default, since most of their strata are small."""


@dataclass(frozen=True, slots=True)
class Case:
    """`decomposes`: which of the two goals holds for it."""

    program: str | Path
    facts: Callable[[], Facts]
    decomposes: bool


def random_tree(nodes: int) -> Facts:
    """Every node below an earlier one: paths of logarithmic length."""
    import numpy as np

    child = np.arange(1, nodes)
    parent = (np.random.default_rng(1).random(nodes - 1) * child).astype(np.int64)
    return as_tables({"edge": np.stack([parent, child], axis=1).astype(np.int32)})


def roads(counties: int, width: int = 40, height: int = 10) -> Facts:
    """Like a network of roads: planar, two or three roads a crossing, long ways (some fifty iterations); in separate
    counties, so that the facts grow with their number."""
    import numpy as np

    random = np.random.default_rng(3)
    node = np.arange(counties * width * height).reshape(counties, width, height)
    along = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    across = np.stack([node[:, :, :-1].ravel(), node[:, :, 1:].ravel()], axis=1)
    both = np.concatenate([along[random.random(len(along)) < 0.9], across[random.random(len(across)) < 0.5]])
    return as_tables({"edge": both.astype(np.int32)})


def case_named(name: str, data: Path | None) -> Case:
    """`closure-roads`, `closure-random` and `doubling` take a size, as in `closure-roads:50`."""
    kind, _, size = name.partition(":")
    match kind:
        case "closure-roads":
            return Case(CLOSURE, lambda: roads(int(size or 20)), True)
        case "closure-random":
            return Case(CLOSURE, lambda: as_tables(generate.components(int(size or 20))), True)
        case "doubling":
            return Case(DOUBLING, lambda: random_tree(int(size or 100) * 1000), False)
        case "el-completion":
            return Case(EXAMPLES / "galen.dl", lambda: as_tables(generate.ontology()), False)
        case "galen" | "doop":
            return Case(EXAMPLES / f"{kind}.dl", lambda: BY_NAME[kind].facts(data), False)
        case _:
            raise ValueError(f"no such workload: {name}")


@dataclass(slots=True)
class Measured:
    """`seconds` of every repetition; `problem` says why there are none, and `limit`, that it was out of time."""

    way: str
    workload: str
    master: str
    seconds: list[float] = field(default_factory=list)
    facts: int = 0
    started: float = 0.0
    first_job: float = 0.0
    job: float = 0.0
    where: list[str] = field(default_factory=list)
    problem: str | None = None
    limit: float | None = None

    @property
    def least(self) -> float | None:
        return min(self.seconds, default=None)


def measure(
    way: str, limits: Mapping[str, float], *, master: str, repeats: int, data: Path | None = None
) -> Iterator[Measured]:
    """Measures workloads, each given up after so many seconds, in a process of their own, or in several if one has to
    be ended; never raises for what goes wrong there."""
    waiting = dict(limits)
    while waiting:
        problem = ""
        for found in _in_one_process(way, waiting, master, repeats, data):
            if isinstance(found, Measured):
                del waiting[found.workload]
                yield found
            else:
                problem = found
        if waiting and problem:
            name = next(iter(waiting))
            del waiting[name]
            yield Measured(way, name, master, problem=problem)


def _in_one_process(
    way: str, limits: Mapping[str, float], master: str, repeats: int, data: Path | None
) -> Iterator[Measured | str]:
    """What a process finds, and in the end, unless all is well, why it ended."""
    command = [sys.executable, "-m", "benchmarks.spark_case", way, *(f"{n}={s:g}" for n, s in limits.items())]
    command += ["--master", master, "--repeats", str(repeats), *(["--data", str(data)] if data else [])]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=HERE.parent, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )

        def end() -> None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its Java and its workers too

        assert process.stdout is not None
        watchdog = _Watchdog(end, START_UP + max(limits.values()))
        try:
            for line in process.stdout:
                if line.startswith(_RESULT):
                    watchdog.restart()
                    yield Measured(**json.loads(line.removeprefix(_RESULT)))
            process.wait()
        finally:
            watchdog.stop()
            end()
        if watchdog.has_bitten:
            yield f"no answer for {watchdog.seconds:.0f} s"
        elif process.returncode == _OUT_OF_TIME:
            return
        else:
            errors.seek(0)
            lines = errors.read().strip().splitlines()
            yield lines[-1][:200] if lines else f"exit code {process.returncode}"


class _Watchdog:
    """Ends what says nothing for so many seconds."""

    def __init__(self, end: Callable[[], None], seconds: float) -> None:
        self.seconds = seconds
        self.has_bitten = False
        self._end = end
        self.restart()

    def restart(self) -> None:
        if hasattr(self, "_timer"):
            self.stop()
        self._timer = threading.Timer(self.seconds, self._bite)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()

    def _bite(self) -> None:
        self.has_bitten = True
        self._end()


def measure_here(way: str, limits: Mapping[str, float], master: str, repeats: int, data: Path | None) -> None:
    """Measures in this process and prints the results. It ends early if a workload takes too long that cannot be
    cancelled."""
    from elastalog.program import Program

    started = Measured(way, "", master)
    spark = None if way == "kernel" else _start(started, master)
    _first_job(started, spark)
    for name, seconds in limits.items():
        found = replace(started, workload=name, seconds=[], where=[])
        case = case_named(name, data)
        program = Program.parse(case.program) if isinstance(case.program, str) else Program.load(case.program)
        facts = case.facts()
        if way == "loop":
            _loop(found, program, spark, facts, seconds)
        else:
            if spark is not None:
                _settle(found, spark, case.decomposes)
            with _ended_after(found, seconds):
                while len(found.seconds) < repeats and sum(found.seconds) < ENOUGH:
                    _evaluate(found, program, spark, facts)
        _tell(found)
    if spark is not None:
        spark.stop()


@contextlib.contextmanager
def _ended_after(found: Measured, seconds: float) -> Iterator[None]:
    """Ends this process, with what is known, if the block takes longer."""

    def give_up() -> None:
        if not found.seconds:
            found.problem, found.limit = f"more than {seconds:.0f} s", seconds
        _tell(found)
        os._exit(_OUT_OF_TIME)

    timer = threading.Timer(seconds, give_up)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tell(found: Measured) -> None:
    print(_RESULT + json.dumps(asdict(found)), flush=True)


def _start(found: Measured, master: str) -> Any:
    import elastalog.spark

    cores = cores_of(master)
    began = time.perf_counter()
    settings = {"spark.master": master}
    spark = elastalog.spark.session(cores, memory="3g", settings=settings)
    found.started = time.perf_counter() - began
    spark.conf.set(LEAST_ROWS_SETTING, str(LEAST_ROWS))
    return spark


def _first_job(found: Measured, spark: Any) -> None:
    """Everything that is loaded once."""
    began = time.perf_counter()
    if found.way == "loop":
        spark.range(1000).groupBy("id").count().collect()
    else:
        _least_job(CLOSURE, spark)
        _least_job(DOUBLING, spark)
    found.first_job = time.perf_counter() - began


def _settle(found: Measured, spark: Any, decomposes: bool) -> None:
    """What the least job costs; then the session is as the workload wants it."""
    spark.conf.set(LEAST_ROWS_SETTING, str(LEAST_ROWS))
    found.job = min(_least_job(CLOSURE if decomposes else DOUBLING, spark) for _ in range(3))
    if found.workload in DATA_SETS:
        spark.conf.unset(LEAST_ROWS_SETTING)


def _least_job(program: str | Path, spark: Any) -> float:
    import elastalog

    pairs = [(i, i + 1) for i in range(0, 2 * LEAST_ROWS, 2)]
    began = time.perf_counter()
    elastalog.open(program, facts={"edge": pairs}, engine="local" if spark is None else "spark", spark=spark)
    return time.perf_counter() - began


def cores_of(master: str) -> int:
    """The slots of `local[2,4]` or of `local-cluster[2,1,1024]`."""
    numbers = [int(n) for n in master.partition("[")[2].rstrip("]").split(",")]
    return numbers[0] * numbers[1] if master.startswith("local-cluster") else numbers[0]


def _evaluate(found: Measured, program: Any, spark: Any, facts: Facts) -> None:
    import elastalog

    began = time.perf_counter()
    engine = "local" if spark is None else "spark"
    with elastalog.open(program, facts=facts, engine=engine, spark=spark) as db:
        found.seconds.append(time.perf_counter() - began)
        found.facts = sum(len(db[relation]) for relation in db)
        if spark is not None:
            found.where = sorted({p.where for p in db._backend.placements.values()})  # type: ignore[attr-defined]


def _loop(found: Measured, program: Any, spark: Any, facts: Facts, seconds: float) -> None:
    from benchmarks.spark_frames import NotExpressibleError, evaluate
    from elastalog.backends.spark.jobs import cancellable
    from elastalog.backends.watch import Watch

    frames = {name: spark.createDataFrame(table).cache() for name, table in facts.items()}
    for frame in frames.values():
        frame.count()
    began = time.perf_counter()

    def job() -> int:
        results = evaluate(program.checked, spark, frames)
        return sum(results[relation].count() for relation in program.checked.relations)

    def check() -> None:
        if time.perf_counter() - began > seconds:
            raise TimeoutError

    try:
        found.facts = cancellable(spark, job, Watch(), check)
        found.seconds.append(time.perf_counter() - began)
    except TimeoutError:
        found.problem, found.limit = f"more than {seconds:.0f} s", seconds
    except NotExpressibleError as error:
        found.problem = f"no plan for {error}"
    spark.catalog.clearCache()


def main() -> None:
    parser = argparse.ArgumentParser(description="one way of evaluating workloads")
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("workloads", nargs="+", metavar="WORKLOAD[=SECONDS]")
    parser.add_argument("--master", default="local[2,4]")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    given = parser.parse_args()
    pairs = (workload.partition("=") for workload in given.workloads)
    limits = {name: float(seconds or 600) for name, _, seconds in pairs}
    measure_here(given.way, limits, given.master, given.repeats, data_folder(given.data))


if __name__ == "__main__":
    main()
