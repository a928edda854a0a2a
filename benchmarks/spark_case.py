"""One way of evaluating one workload, measured in a fresh process: `python -m benchmarks.spark_case WAY WORKLOAD`.

Ways: `loop` (a plain DataFrame loop), `kernel` (in-process), `tasks` (the kernel in Spark tasks). Time runs from facts
in memory (of the loop: cached DataFrames) to all derived facts; starting Spark, the first job, in which its Python
workers start and load the kernel, and what a job costs that has next to nothing to do are told apart. `measure` starts
such a process and gives up on it after a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
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
    way: str, workload: str, *, master: str, repeats: int, timeout: float, data: Path | None = None
) -> Measured:
    """Measures in a process of its own, which gives up `timeout` seconds after it has started; never raises for what
    goes wrong there."""
    command = [sys.executable, "-m", "benchmarks.spark_case", way, workload, "--master", master]
    command += ["--repeats", str(repeats), "--timeout", str(timeout), *(["--data", str(data)] if data else [])]
    nothing = Measured(way, workload, master)
    process = subprocess.Popen(
        command, cwd=HERE.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, errors = process.communicate(timeout=timeout + START_UP)
    except subprocess.TimeoutExpired:
        nothing.problem = f"more than {START_UP} s to start"
        return nothing
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its Java and its workers too
    if process.returncode != 0:
        lines = errors.strip().splitlines()
        nothing.problem = lines[-1][:200] if lines else f"exit code {process.returncode}"
        return nothing
    return Measured(**json.loads(out.strip().splitlines()[-1]))


def measure_here(way: str, workload: str, master: str, repeats: int, timeout: float, data: Path | None) -> Measured:
    """Measures in this process, which ends if that takes too long."""
    from elastalog.program import Program

    found = Measured(way, workload, master)
    case = case_named(workload, data)
    program = Program.parse(case.program) if isinstance(case.program, str) else Program.load(case.program)
    facts = case.facts()
    spark = None if way == "kernel" else _start(found, master)
    _first_job(found, spark)

    def give_up() -> None:
        if not found.seconds:
            found.problem, found.limit = f"more than {timeout:.0f} s", timeout
        print(json.dumps(asdict(found)), flush=True)
        os._exit(0)

    timer = threading.Timer(timeout, give_up)
    timer.start()
    for _ in range(1 if way == "loop" else repeats):
        if way == "loop":
            _loop(found, program, spark, facts)
        else:
            _evaluate(found, program, spark, facts)
    timer.cancel()
    if spark is not None:
        spark.stop()
    return found


def _start(found: Measured, master: str) -> Any:
    import elastalog.spark

    cores = cores_of(master)
    began = time.perf_counter()
    settings = {"spark.master": master, "spark.elastalog.leastRows": str(LEAST_ROWS)}
    spark = elastalog.spark.session(cores, memory="3g", settings=settings)
    found.started = time.perf_counter() - began
    return spark


def _first_job(found: Measured, spark: Any) -> None:
    """Everything that is loaded once; then what the least job costs."""
    began = time.perf_counter()
    if found.way == "loop":
        spark.range(1000).groupBy("id").count().collect()
    else:
        _least_job(CLOSURE, spark)
        _least_job(DOUBLING, spark)
    found.first_job = time.perf_counter() - began
    if found.way == "tasks":
        program = CLOSURE if case_named(found.workload, None).decomposes else DOUBLING
        found.job = min(_least_job(program, spark) for _ in range(3))
        if found.workload in DATA_SETS:
            spark.conf.set("spark.elastalog.leastRows", "100000")


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


def _loop(found: Measured, program: Any, spark: Any, facts: Facts) -> None:
    from benchmarks.spark_frames import NotExpressibleError, evaluate

    frames = {name: spark.createDataFrame(table).cache() for name, table in facts.items()}
    for frame in frames.values():
        frame.count()
    try:
        began = time.perf_counter()
        results = evaluate(program.checked, spark, frames)
        found.facts = sum(results[relation].count() for relation in program.checked.relations)
        found.seconds.append(time.perf_counter() - began)
    except NotExpressibleError as error:
        found.problem = f"no plan for {error}"


def main() -> None:
    parser = argparse.ArgumentParser(description="one way of evaluating one workload")
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("workload")
    parser.add_argument("--master", default="local[2,4]")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    given = parser.parse_args()
    data = data_folder(given.data)
    found = measure_here(given.way, given.workload, given.master, given.repeats, given.timeout, data)
    print(json.dumps(asdict(found)), flush=True)


if __name__ == "__main__":
    main()
