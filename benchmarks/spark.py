"""Spark side by side: (a) a plain DataFrame loop, (b) the kernel in this process, (c) the kernel in tasks.

Time runs from facts in memory (a: cached DataFrames) to all derived facts; starting Spark, and the first job that
starts its Python workers, are told apart. `python -m benchmarks.spark [WORKLOAD ...]`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import generate
from benchmarks.plot import draw_bars
from benchmarks.spark_frames import NotExpressibleError, evaluate
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, EXAMPLES, HERE, Facts, as_tables, data_folder

DOUBLING = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
"""


def random_tree(nodes: int) -> Facts:
    """Every node below an earlier one: paths of logarithmic length."""
    import numpy as np

    child = np.arange(1, nodes)
    parent = (np.random.default_rng(1).random(nodes - 1) * child).astype(np.int64)
    return as_tables({"edge": np.stack([parent, child], axis=1).astype(np.int32)})


@dataclass(frozen=True, slots=True)
class Case:
    """`with_loop`: whether the plain loop ends in reasonable time."""

    program: str | Path
    facts: Any
    with_loop: bool = True


def cases(data: Path | None) -> dict[str, Case]:
    closure = EXAMPLES / "transitive_closure.dl"
    found = {
        "closure-1M": Case(closure, lambda: as_tables(generate.components(20))),
        "closure-sparse": Case(closure, lambda: as_tables(generate.sparse_graph())),
        "closure-25M": Case(closure, lambda: as_tables(generate.components(500)), with_loop=False),
        "doubling-1M": Case(DOUBLING, lambda: random_tree(100_000)),
        "doubling-5M": Case(DOUBLING, lambda: random_tree(400_000), with_loop=False),
        "el-completion": Case(EXAMPLES / "galen.dl", lambda: as_tables(generate.ontology())),
    }
    for name in ("galen", "doop"):
        if BY_NAME[name].is_available(data):
            found[name] = Case(EXAMPLES / f"{name}.dl", lambda name=name: BY_NAME[name].facts(data), name == "galen")
    return found


@dataclass(slots=True)
class Row:
    workload: str
    facts: int = 0
    kernel: list[float] = field(default_factory=list)
    tasks: list[float] = field(default_factory=list)
    fetch: list[float] = field(default_factory=list)
    loop: list[float] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    problem: str | None = None


def measure(name: str, case: Case, spark: Any, repeats: int, is_loop_wanted: bool) -> Row:
    import elastalog
    from elastalog.program import Program

    row = Row(name)
    facts = case.facts()
    program = Program.parse(case.program) if isinstance(case.program, str) else Program.load(case.program)
    for _ in range(repeats):
        began = time.perf_counter()
        local = elastalog.open(program, facts=facts)
        row.kernel.append(time.perf_counter() - began)
        sizes = {relation: len(local[relation]) for relation in local}
        row.facts = sum(sizes.values())
        began = time.perf_counter()
        tasked = elastalog.open(program, facts=facts, engine="spark", spark=spark)
        row.tasks.append(time.perf_counter() - began)
        if {relation: len(tasked[relation]) for relation in tasked} != sizes:
            row.problem = "tasks: wrong counts"
            return row
        row.where = sorted({placement.where for placement in tasked._backend.placements.values()})  # type: ignore[attr-defined]
        began = time.perf_counter()
        tasked._backend.relations.fetch_all()  # type: ignore[attr-defined]
        row.fetch.append(time.perf_counter() - began)
        del local, tasked
    if case.with_loop and is_loop_wanted:
        frames = {n: spark.createDataFrame(t).cache() for n, t in facts.items()}
        for frame in frames.values():
            frame.count()
        try:
            began = time.perf_counter()
            results = evaluate(program.checked, spark, frames)
            counts = {relation: results[relation].count() for relation in sizes}
            row.loop.append(time.perf_counter() - began)
            if counts != sizes:
                row.problem = "loop: wrong counts"
        except NotExpressibleError as error:
            row.problem = f"the loop has no plan for {error}"
        finally:
            for frame in frames.values():
                frame.unpersist()
    return row


def table(rows: list[Row]) -> str:
    heads = (("facts", 12), ("loop s", 9), ("kernel s", 9), ("tasks s", 9), ("fetch s", 8), ("loop/tasks", 10))
    shown = " ".join(f"{head:>{width}}" for head, width in heads)
    lines = [f"{'workload':16} {shown} {'tasks/kernel':>12}  where"]
    for row in rows:
        tasks, kernel = min(row.tasks, default=0.0), min(row.kernel, default=0.0)
        loop = f"{row.loop[0]:9.2f}" if row.loop else f"{'–':>9}"
        faster = f"{row.loop[0] / tasks:10.1f}" if row.loop and tasks else f"{'–':>10}"
        slower = f"{tasks / kernel:12.2f}" if kernel else f"{'–':>12}"
        fetch = min(row.fetch, default=0.0)
        lines.append(
            f"{row.workload:16} {row.facts:12,} {loop} {kernel:9.2f} {tasks:9.2f} {fetch:8.2f} {faster} {slower}"
            f"  {', '.join(row.where)} {row.problem or ''}"
        )
    return "\n".join(lines)


def main() -> None:
    import elastalog.spark

    parser = argparse.ArgumentParser(description="evaluation on Spark, side by side")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=None)
    parser.add_argument("--least-rows", type=int, default=2_000, help="input facts below which the driver evaluates")
    parser.add_argument("--no-loop", action="store_true", help="leave out the plain DataFrame loop")
    given = parser.parse_args()
    known = cases(data_folder(given.data))
    if unknown := [name for name in given.workloads if name not in known]:
        parser.error(f"no such workload: {', '.join(unknown)}; there are {', '.join(known)}")
    began = time.perf_counter()
    settings = {"spark.elastalog.leastRows": str(given.least_rows)}
    spark = elastalog.spark.session(given.cores, memory="4g", settings=settings)
    started = time.perf_counter() - began
    began = time.perf_counter()
    elastalog.open(DOUBLING, facts={"edge": [(i, i + 1) for i in range(20_000)][::2]}, engine="spark", spark=spark)
    print(f"Spark started in {started:.1f} s, first job in {time.perf_counter() - began:.1f} s", flush=True)
    rows: list[Row] = []
    for name in given.workloads or known:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows.append(measure(name, known[name], spark, given.repeats, not given.no_loop))
        print(table(rows[-1:]).splitlines()[1], flush=True)
    print(table(rows))
    results = HERE / "results" / "spark.json"
    results.parent.mkdir(exist_ok=True)
    record = {"cores": spark.sparkContext.defaultParallelism, "started": started, "rows": [asdict(row) for row in rows]}
    results.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    series = {
        "DataFrame loop": {row.workload: row.loop[0] for row in rows if row.loop},
        "kernel": {row.workload: min(row.kernel) for row in rows if row.kernel},
        "tasks": {row.workload: min(row.tasks) for row in rows if row.tasks},
    }
    draw_bars(HERE / "plots" / "spark.png", "evaluation on local Spark", "seconds", series)
    if any(row.problem for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
