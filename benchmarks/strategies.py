"""The strategies beside each other, on the comparisons of the papers.

`python -m benchmarks.strategies EXPERIMENT ... [--data DIR] [--strategies A,B] [--nodes N --edges N] [--sizes N,N]
[--repeats N]`

- `sspe`: single-source path enumeration on a random weighted acyclic graph; 1000 facts and 2 % of the facts deleted,
  then inserted again.
- `example1`, `example2`: the two examples where evaluating rules backwards is quadratic, by size.
- `lubm`: a university ontology; 0.1 % and 2 % of its facts.
- `path`, `sequence`, `ways`: update streams with and without marks, with the counters of the tables of the marking
  paper.
- `doop`, `crdt`, `galen`: small (10 facts) and large (1 %) updates.

Every strategy runs in a process of its own. Prints a table for each experiment (ratios are to the fastest of the
row's group), writes benchmarks/results/strategies.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import generate
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, Facts, as_tables, data_folder

Step = tuple[str, Facts, Facts]
"""What it is called in the table; the facts deleted; the facts inserted."""

EVERY = ("recompute", "elastic", "dense", "dred", "dredc", "bf", "bfc")
LARGE = ("recompute", "elastic", "dense", "dredc", "bfc")
MARKED = ("dred", "dred+eager", "bf", "bf+eager", "bf+linked", "bfc", "bfc+eager", "bfc+linked")

PATH = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""
SEQUENCE = """
.decl edge(x: number, y: number)
.decl edge1(x: number, y: number)
.decl edge2(x: number, y: number)
.decl edge3(x: number, y: number)
.decl edge4(x: number, y: number)
edge1(x, y) :- edge(x, y).
edge2(x, y) :- edge1(x, y).
edge3(x, y) :- edge2(x, y).
edge4(x, y) :- edge3(x, y).
"""
WAYS = """
.decl nextInWay(node: number, next: number, way: number)
.decl inWay(node: number, way: number)
.decl connected(x: number, y: number)
inWay(n, w) :- nextInWay(n, _, w).
inWay(n, w) :- nextInWay(_, n, w).
connected(x, y) :- inWay(n, x), inWay(n, y), x != y.
connected(x, z) :- connected(x, y), connected(y, z).
"""
EXAMPLE_1 = """
.decl R(x: number, y: number)
.decl S(x: number, y: number)
S(y1, y2) :- R(x, y1), R(x, y2).
"""
EXAMPLE_2 = """
.decl B(x: number, y: number, z: number)
.decl D(y: number, z: number)
D(y, z) :- B(0, y, z).
D(y, z1 + z2) :- D(x, z1), B(x, y, z2).
"""
PAPER = {
    "path": "paper (B/F, 10 a step): deletions 1,603 -> 447 with marks, insertions 545, marks 480/991, time -7.8 %",
    "sequence": "paper (B/F, 10 a step): deletions 1,960 -> 1,480, insertions 2,360, marks 480/480, time -15.4 %",
    "ways": "paper (B/F): deletions 859 -> 754, 684 -> 544, 558 -> 400 on tracks 0, 1, 2; time -7.3, -1.4, -2.2 %",
    "sspe": "paper: DRed^c 160 times faster than DRed on small deletions",
}


@dataclass(frozen=True, slots=True)
class Options:
    data: str | None
    nodes: int
    edges: int
    sizes: tuple[int, ...]
    repeats: int
    timeout: float


@dataclass(frozen=True, slots=True)
class Experiment:
    """`case` picks one of several of the same kind: a size, a track, a configuration."""

    program: str | Path
    facts: Facts
    steps: list[Step]


@dataclass(slots=True)
class Outcome:
    strategy: str
    case: str
    bootstrap: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    memory: int = 0
    problem: str | None = None


# --- the experiments -------------------------------------------------------------------------------------------------


def choose(facts: Facts, number: int, seed: int) -> Facts:
    """Some facts, drawn from all relations alike."""
    total = sum(len(table) for table in facts.values())
    picked = np.sort(np.random.default_rng(seed).choice(total, min(number, total), replace=False))
    chosen: Facts = {}
    first = 0
    for name, table in facts.items():
        rows = picked[(picked >= first) & (picked < first + len(table))] - first
        if len(rows):
            chosen[name] = table.take(rows)
        first += len(table)
    return chosen


def cycles(facts: Facts, sizes: Sequence[tuple[str, int]], repeats: int) -> list[Step]:
    """Deletes and inserts again."""
    steps: list[Step] = []
    for label, number in sizes:
        for seed in range(repeats):
            some = choose(facts, number, seed)
            steps += [(f"-{label}", some, {}), (f"+{label}", {}, some)]
    return steps


def sspe(options: Options, case: str) -> Experiment:
    facts = as_tables(generate.weighted_acyclic_graph(nodes=options.nodes, edges=options.edges))
    changing = {"B": facts["B"]}
    sizes = [("1000", min(1000, options.edges // 10)), ("2 %", len(facts["B"]) // 50)]
    return Experiment(BY_NAME["sspe"].program, facts, cycles(changing, sizes, options.repeats))


def example_1(options: Options, case: str) -> Experiment:
    n = int(case)
    a, c = np.arange(1, n + 1), np.arange(n + 1, 2 * n + 1)
    to_b = pa.table({"x": a, "y": np.zeros(n, np.int64)})
    to_c = pa.table({"x": a, "y": c})
    return Experiment(EXAMPLE_1, {"R": pa.concat_tables([to_b, to_c])}, [("delete R(a, c)", {"R": to_c}, {})])


def example_2(options: Options, case: str) -> Experiment:
    n = int(case)
    b, c, d = np.arange(1, n + 1), np.arange(n + 1, 2 * n + 1), np.arange(2 * n + 1, 3 * n + 1)
    source = np.column_stack([np.zeros(n + 1), np.append(c, 1), np.ones(n + 1)])
    rest = np.column_stack([np.repeat(b, n), np.tile(d, n), np.ones(n * n)])
    rows = np.concatenate([source, rest]).astype(np.int64)
    first = pa.table({"x": [0], "y": [1], "z": [1]})
    return Experiment(EXAMPLE_2, as_tables({"B": rows}), [("delete B(a, b1)", {"B": first}, {})])  # type: ignore[dict-item]


def of_workload(name: str, sizes: Callable[[int], list[tuple[str, int]]]) -> Callable[[Options, str], Experiment]:
    def make(options: Options, case: str) -> Experiment:
        work = BY_NAME[name]
        facts = work.facts(data_folder(options.data))
        total = sum(len(table) for table in facts.values())
        return Experiment(work.program, facts, cycles(facts, sizes(total), options.repeats))

    return make


def of_stream(file: str, program: str) -> Callable[[Options, str], Experiment]:
    """The case is `configuration/run`."""

    def make(options: Options, case: str) -> Experiment:
        rows = stream_rows(options, file)
        config, run = case.rsplit("/", 1)
        mine = [row for row in rows if row["config"] == config and row["run"] == int(run)]
        steps: list[Step] = []
        for number in sorted({row["step"] for row in mine}):
            sides: tuple[Facts, Facts] = ({}, {})
            for side, op in zip(sides, "-+", strict=True):
                for name in {row["pred"] for row in mine}:
                    facts = [row for row in mine if (row["step"], row["op"], row["pred"]) == (number, op, name)]
                    width = sum(1 for column in ("a1", "a2", "a3") if mine[0][column])
                    if facts:
                        side[name] = pa.table({f"c{i}": [int(r[f"a{i}"]) for r in facts] for i in range(1, width + 1)})
            steps.append(("load" if not steps else "update", *sides))
        return Experiment(program, {}, steps)

    return make


def stream_rows(options: Options, file: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    folder = data_folder(options.data)
    if folder is None:
        raise SystemExit(f"this experiment needs the data folder: --data DIR or {DATA_VARIABLE}")
    rows: list[dict[str, Any]] = pq.read_table(folder / "streams" / f"{file}.parquet").to_pylist()
    return rows


def stream_cases(file: str) -> Callable[[Options], list[str]]:
    return lambda options: sorted({f"{row['config']}/{row['run']}" for row in stream_rows(options, file)})


def small_and_large(total: int) -> list[tuple[str, int]]:
    return [("10", 10), ("1 %", total // 100)]


def _one_case(options: Options) -> list[str]:
    return [""]


def _sizes(options: Options) -> list[str]:
    return [str(size) for size in options.sizes]


EXPERIMENTS: dict[str, tuple[Callable[[Options, str], Experiment], Callable[[Options], list[str]], tuple[str, ...]]] = {
    "sspe": (sspe, _one_case, EVERY),
    "example1": (example_1, _sizes, EVERY),
    "example2": (example_2, _sizes, EVERY),
    "lubm": (of_workload("lubm", lambda total: [("0.1 %", total // 1000), ("2 %", total // 50)]), _one_case, EVERY),
    "path": (of_stream("scale-update.path", PATH), stream_cases("scale-update.path"), MARKED),
    "sequence": (of_stream("scale-update.sequence", SEQUENCE), stream_cases("scale-update.sequence"), MARKED),
    "ways": (of_stream("real.ways", WAYS), stream_cases("real.ways"), MARKED),
    "doop": (of_workload("doop", small_and_large), _one_case, LARGE),
    "crdt": (of_workload("crdt", small_and_large), _one_case, LARGE),
    "galen": (of_workload("galen", small_and_large), _one_case, LARGE),
}


# --- measuring -------------------------------------------------------------------------------------------------------


def measure(name: str, case: str, strategy: str, options: Options) -> Outcome:
    """In a fresh process; never raises for what goes wrong there."""
    request = json.dumps({"name": name, "case": case, "strategy": strategy, "options": vars_of(options)})
    command = [sys.executable, "-m", "benchmarks.strategies", "--one", request]
    failed = Outcome(strategy, case)
    try:
        done = subprocess.run(
            command, cwd=HERE.parent, capture_output=True, text=True, timeout=options.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        failed.problem = f"more than {options.timeout:.0f} s"
        return failed
    if done.returncode != 0:
        failed.problem = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return failed
    return Outcome(**json.loads(done.stdout.strip().splitlines()[-1]))


def measure_here(name: str, case: str, strategy: str, options: Options) -> Outcome:
    import elastalog

    experiment = EXPERIMENTS[name][0](options, case)
    outcome = Outcome(strategy, case)
    base, _, marks = strategy.partition("+")
    warm_up(experiment, base)
    began = time.perf_counter()
    with elastalog.open(experiment.program, experiment.facts, strategy=base, budget=None) as db:
        outcome.bootstrap = time.perf_counter() - began
        pending = []
        for _, deleted, inserted in experiment.steps:
            update = db.update()
            for relation, table in deleted.items():
                update.delete(relation, table)
            for relation, table in inserted.items():
                update.insert(relation, table)
            pending.append(update)
        for number, (update, (label, _, _)) in enumerate(zip(pending, experiment.steps, strict=True)):
            began = time.perf_counter()
            # The first update of a stream loads it; the papers complete it before they look ahead.
            if marks and label != "load" and number + 1 < len(pending):
                db.announce(pending[number + 1], marks)
            update.commit()
            outcome.seconds.setdefault(label, []).append(time.perf_counter() - began)
            for counter, value in update.stats.work.counters.as_dict().items():
                outcome.counters[counter] = outcome.counters.get(counter, 0) + value
    outcome.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return outcome


def warm_up(experiment: Experiment, strategy: str) -> None:
    """Loads compiled operators before anything is measured."""
    import elastalog

    with elastalog.open(".decl a(x: number)\n.decl b(x: number)\nb(x) :- a(x).\nb(x) :- b(x).\n", {"a": [(1,)]},
                        strategy=strategy) as db:  # fmt: skip
        db.apply({"a": [(2,)]}, {"a": [(1,)]})


def vars_of(options: Options) -> dict[str, Any]:
    return {name: getattr(options, name) for name in options.__slots__}


# --- showing ---------------------------------------------------------------------------------------------------------


def table(name: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"\n== {name}" + (f"   [{PAPER[name]}]" if name in PAPER else "")
    for case in dict.fromkeys(outcome.case for outcome in outcomes):
        group = [outcome for outcome in outcomes if outcome.case == case]
        labels = list(dict.fromkeys(label for outcome in group for label in outcome.seconds))
        used = [c for c in (group[0].counters or {}) if any(o.counters.get(c) for o in group)]
        best = {
            label: min(statistics.median(o.seconds[label]) for o in group if label in o.seconds) for label in labels
        }
        rows = [["strategy", "bootstrap s", *(f"{label}: ms (ratio)" for label in labels), "MiB", *used]]
        for outcome in group:
            if outcome.problem:
                rows.append([outcome.strategy, outcome.problem, *[""] * (len(labels) + 1 + len(used))])
                continue
            cells = []
            for label in labels:
                times = [1000 * seconds for seconds in outcome.seconds[label]]
                middle = statistics.median(times)
                spread = f" [{min(times):,.1f}..{max(times):,.1f}]" if len(times) > 1 else ""
                cells.append(f"{middle:,.2f}{spread} ({middle / 1000 / best[label]:.1f})")
            counted = [f"{outcome.counters.get(counter, 0):,}" for counter in used]
            rows.append([outcome.strategy, f"{outcome.bootstrap:.3f}", *cells, f"{outcome.memory >> 20:,}", *counted])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        if case:
            yield f"-- {case}"
        for row in rows:
            yield "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
    yield from totals(name, outcomes)


def totals(name: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """For streams: time of all updates of all cases, and what marks gain."""
    if EXPERIMENTS[name][2] is not MARKED:
        return
    time_of = {
        strategy: sum(sum(o.seconds.get("update", [])) for o in outcomes if o.strategy == strategy)
        for strategy in dict.fromkeys(outcome.strategy for outcome in outcomes)
    }
    yield "-- all cases: seconds in updates, against the same strategy without marks; deletions"
    for strategy, seconds in time_of.items():
        plain = time_of.get(strategy.partition("+")[0], seconds)
        deletions = sum(
            o.counters.get("deletions", 0) + o.counters.get("over_deletions", 0)
            for o in outcomes
            if o.strategy == strategy
        )
        yield f"{strategy:12s} {seconds:8.3f}  {seconds / plain if plain else 1:6.3f}  {deletions:,}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="compare the strategies", epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=", ".join(EXPERIMENTS))
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--strategies", help="separated by commas; marks as in bfc+linked")
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--edges", type=int, default=100_000)
    parser.add_argument("--sizes", default="1000", help="of example1 and example2, separated by commas")
    parser.add_argument("--cases", type=int, help="only the first N configurations of a stream")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        request = json.loads(given.one)
        options = Options(**{**request["options"], "sizes": tuple(request["options"]["sizes"])})
        outcome = measure_here(request["name"], request["case"], request["strategy"], options)
        print(json.dumps({name: getattr(outcome, name) for name in outcome.__slots__}))
        return
    unknown = [name for name in given.experiments if name not in EXPERIMENTS]
    if unknown or not given.experiments:
        parser.error(f"name experiments: {', '.join(EXPERIMENTS)}")
    options = Options(
        given.data, given.nodes, given.edges, tuple(map(int, given.sizes.split(","))), given.repeats, given.timeout
    )
    results: dict[str, Any] = {}
    for name in given.experiments:
        _, cases, strategies = EXPERIMENTS[name]
        chosen = given.strategies.split(",") if given.strategies else strategies
        outcomes = [measure(name, c, s, options) for c in cases(options)[: given.cases] for s in chosen]
        print("\n".join(table(name, outcomes)), flush=True)
        results[name] = [{slot: getattr(outcome, slot) for slot in outcome.__slots__} for outcome in outcomes]
    target = HERE / "results" / "strategies.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
