"""Update streams with and without marks, beside the tables of the marking paper.

`python -m benchmarks.streams STREAM ... [--data DIR] [--strategies A,B] [--sizes N,N] [--runs N] [--repeats N]`

- `trans`, `seq`: streams generated as the paper says (50 updates, the first adds 100 edges, the others add and delete
  as many as the size says; 20 nodes for `trans`, 100 for `seq`).
- `path`, `sequence`, `ways`: the streams of the data folder; `ways` is real map data along three GPS tracks.

All strategies go through a stream in one process, in turns, so that they meet the same conditions; the time of an
update is the least processor time of all repeats. Rule applications by phase are averages over the runs of a size, the
first update included, as in the paper. Writes benchmarks/results/streams.json and a plot.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.keep import keep_results
from benchmarks.plot import draw_lines
from benchmarks.strategies import aligned
from benchmarks.workloads import DATA_VARIABLE, HERE, Facts, data_folder

STRATEGIES = ("dred", "dred+eager", "dred+linked", "bf", "bf+eager", "bf+linked", "bfc", "bfc+eager", "bfc+linked")
COUNTERS = (
    "over_deletions", "rederivations", "deletions", "backward", "forward", "insertions", "marked_explicit",
    "marked_implicit", "marked_positive",
)  # fmt: skip
_EDGES = ".decl edge(x: number, y: number)\n"
TRANSITIVE = (
    _EDGES
    + """
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""
)
SEQUENCE = _EDGES + "".join(
    f".decl edge{i}(x: number, y: number)\nedge{i}(x, y) :- edge{i - 1 or ''}(x, y).\n" for i in range(1, 5)
)
WAYS = """
.decl nextInWay(node: number, next: number, way: number)
.decl connection(x: number, y: number)
connection(z1, z2) :- nextInWay(x, _, z1), nextInWay(x, _, z2), z1 != z2.
connection(z1, z2) :- nextInWay(x, _, z1), nextInWay(_, x, z2), z1 != z2.
connection(z1, z2) :- nextInWay(_, y, z1), nextInWay(y, _, z2), z1 != z2.
connection(z1, z2) :- nextInWay(_, y, z1), nextInWay(_, y, z2), z1 != z2.
connection(x, z) :- connection(x, y), connection(y, z).
"""

PAPER: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    # By size: less time in %; deletions, backward and forward without and with marks; insertions; marks ex., im.
    "trans": {
        "10": (7.8, 1603, 447, 11253, 14447, 18777, 19001, 545, 480, 991),
        "20": (7.4, 3046, 594, 10468, 13199, 15373, 15516, 2912, 960, 2277),
        "30": (7.9, 5146, 1100, 10206, 11856, 11154, 11224, 7288, 1399, 4153),
        "40": (2.9, 4755, 682, 10834, 13036, 12560, 12612, 6575, 1816, 4069),
        "50": (-3.4, 3778, 360, 11514, 14441, 15060, 15096, 4570, 2215, 3660),
        "60": (-6.0, 3227, 213, 11842, 15254, 16518, 16547, 3327, 2604, 3428),
        "70": (-9.1, 2724, 161, 11919, 16054, 17780, 17796, 2158, 2973, 3085),
        "80": (-11.4, 2584, 126, 11863, 16323, 18169, 18183, 1782, 3293, 3078),
    },
    "seq": {
        "10": (15.4, 1960, 1480, 0, 0, 0, 0, 2360, 480, 480),
        "20": (16.1, 3920, 2960, 0, 0, 0, 0, 4317, 960, 960),
        "30": (18.4, 5880, 4440, 0, 0, 0, 0, 6265, 1440, 1440),
        "40": (19.8, 7827, 5910, 0, 0, 0, 0, 8228, 1917, 1917),
        "50": (18.5, 9709, 7332, 0, 0, 0, 0, 10173, 2377, 2377),
        "60": (19.9, 11588, 8744, 0, 0, 0, 0, 12129, 2844, 2844),
        "70": (20.9, 13457, 10147, 0, 0, 0, 0, 14069, 3311, 3311),
        "80": (19.6, 15283, 11516, 0, 0, 0, 0, 16005, 3767, 3767),
    },
    "ways": {
        "gps-track/0": (7.3, 859, 754, 4329, 4400, 3299, 3299, 4638, 910, 70),
        "gps-track/1": (1.4, 684, 544, 2697, 2733, 2317, 2317, 2653, 1208, 119),
        "gps-track/2": (2.2, 558, 400, 1484, 1479, 1206, 1206, 1704, 1017, 137),
    },
}

Update = tuple[Facts, Facts]
"""The facts deleted, and those inserted."""


@dataclass(frozen=True, slots=True)
class Stream:
    """`case` names a stream of several in the table: its size, or its track."""

    program: str
    case: str
    updates: list[Update]


@dataclass(slots=True)
class Outcome:
    strategy: str
    case: str
    seconds: list[float] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)


# --- the streams -----------------------------------------------------------------------------------------------------


def generated(program: str, nodes: int, size: int, seed: int, updates: int = 50) -> Stream:
    """As in the paper: edges without loops, updates that delete what is there and add what is not."""
    random = np.random.default_rng([seed, nodes, size])
    present: list[tuple[int, int]] = []

    def fresh(number: int) -> list[tuple[int, int]]:
        absent = sorted({(x, y) for x in range(nodes) for y in range(nodes) if x != y}.difference(present))
        return [absent[i] for i in random.choice(len(absent), min(number, len(absent)), replace=False)]

    first = fresh(100)
    present = list(first)
    steps: list[Update] = [({}, {"edge": _edges(first)})]
    for _ in range(updates - 1):
        going = [present[i] for i in random.choice(len(present), min(size, len(present)), replace=False)]
        coming = fresh(size)
        present = [*(edge for edge in present if edge not in set(going)), *coming]
        steps.append(({"edge": _edges(going)}, {"edge": _edges(coming)}))
    return Stream(program, str(size), steps)


def _edges(edges: Sequence[tuple[int, int]]) -> pa.Table:
    return pa.table({"x": [x for x, _ in edges], "y": [y for _, y in edges]})


def recorded(program: str, file: str, is_by_run: bool) -> Callable[[str | None], list[Stream]]:
    """The streams of a file of the data folder. `is_by_run`: every run is a case of its own."""

    def read(data: str | None) -> list[Stream]:
        import pyarrow.parquet as pq

        folder = data_folder(data)
        if folder is None:
            raise SystemExit(f"this stream needs the data folder: --data DIR or {DATA_VARIABLE}")
        rows: list[dict[str, Any]] = pq.read_table(folder / "streams" / f"{file}.parquet").to_pylist()
        by_stream: dict[tuple[str, int], dict[int, Update]] = {}
        facts: dict[tuple[str, int, int, str, str], list[list[int]]] = {}
        for row in rows:
            key = (row["config"], row["run"], row["step"], row["op"], row["pred"])
            facts.setdefault(key, []).append([int(row[c]) for c in ("a1", "a2", "a3") if row[c]])
        for (config, run, step, op, name), tuples in sorted(facts.items()):
            deleted, inserted = by_stream.setdefault((config, run), {}).setdefault(step, ({}, {}))
            columns = {f"c{i}": list(column) for i, column in enumerate(zip(*tuples, strict=True))}
            (deleted if op == "-" else inserted)[name] = pa.table(columns)
        return [
            Stream(program, f"{config}/{run}" if is_by_run else config, [updates[step] for step in sorted(updates)])
            for (config, run), updates in by_stream.items()
        ]

    return read


RECORDED = {
    "path": recorded(TRANSITIVE, "scale-update.path", is_by_run=False),
    "sequence": recorded(SEQUENCE, "scale-update.sequence", is_by_run=False),
    "ways": recorded(WAYS, "real.ways", is_by_run=True),
}
GENERATED = {"trans": (TRANSITIVE, 20), "seq": (SEQUENCE, 100)}


def streams_of(name: str, data: str | None, sizes: Sequence[int], runs: int) -> list[Stream]:
    if name in RECORDED:
        streams = RECORDED[name](data)
        cases = list(dict.fromkeys(stream.case for stream in streams))
        return [s for case in cases for s in [s for s in streams if s.case == case][:runs]]
    program, nodes = GENERATED[name]
    return [generated(program, nodes, size, run) for size in sizes for run in range(runs)]


# --- measuring -------------------------------------------------------------------------------------------------------


def measure(stream: Stream, strategies: Sequence[str], repeats: int) -> list[Outcome]:
    """All strategies, in turns; the first turn is not measured."""
    least: dict[str, list[float]] = {}
    counted: dict[str, dict[str, int]] = {}
    for turn in range(repeats + 1):
        for strategy in strategies:
            seconds, counters = go_through(stream, strategy)
            if turn:
                least[strategy] = [min(pair) for pair in zip(least.get(strategy, seconds), seconds, strict=True)]
            counted[strategy] = counters
    return [Outcome(strategy, stream.case, least[strategy], counted[strategy]) for strategy in strategies]


def go_through(stream: Stream, strategy: str) -> tuple[list[float], dict[str, int]]:
    """The processor time of every update but the first, and what all did."""
    import elastalog

    base, _, marks = strategy.partition("+")
    seconds: list[float] = []
    counters: dict[str, int] = {}
    with elastalog.open(stream.program, {}, strategy=base) as db:
        pending = []
        for deleted, inserted in stream.updates:
            update = db.update()
            for relation, rows in deleted.items():
                update.delete(relation, rows)
            for relation, rows in inserted.items():
                update.insert(relation, rows)
            pending.append(update)
        gc.collect()
        gc.disable()
        for number, update in enumerate(pending):
            began = time.thread_time()
            # The paper completes the first update, which loads the stream, before it looks ahead.
            if marks and 0 < number < len(pending) - 1:
                db.engine.announce(pending[number + 1], marks)
            update.commit()
            if number:
                seconds.append(time.thread_time() - began)
            for counter, value in update.stats.work.counters.as_dict().items():
                counters[counter] = counters.get(counter, 0) + value
        gc.enable()
    return seconds, counters


# --- showing ---------------------------------------------------------------------------------------------------------


def table(name: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"\n== {name}: milliseconds an update, ratio to the same strategy without marks, rule applications by phase"
    for case in dict.fromkeys(outcome.case for outcome in outcomes):
        group = [outcome for outcome in outcomes if outcome.case == case]
        strategies = list(dict.fromkeys(outcome.strategy for outcome in group))
        used = [counter for counter in COUNTERS if any(outcome.counters.get(counter) for outcome in group)]
        rows = [[case, "ms", "ratio", *used]]
        plain = {strategy: _seconds(group, strategy) for strategy in strategies}
        for strategy in strategies:
            runs = [outcome for outcome in group if outcome.strategy == strategy]
            updates = sum(len(outcome.seconds) for outcome in runs)
            ratio = plain[strategy] / plain.get(strategy.partition("+")[0], plain[strategy])
            averages = [sum(outcome.counters.get(counter, 0) for outcome in runs) / len(runs) for counter in used]
            numbers = [f"{average:,.0f}" for average in averages]
            rows.append([strategy, f"{1000 * plain[strategy] / updates:.3f}", f"{ratio:.3f}", *numbers])
        if case in PAPER.get(name, {}):
            rows += _paper_rows(PAPER[name][case], used)
        yield from aligned(rows)
    yield "-- all cases: seconds, ratio to the same strategy without marks"
    total = {strategy: _seconds(outcomes, strategy) for strategy in dict.fromkeys(o.strategy for o in outcomes)}
    for strategy, seconds in total.items():
        yield f"{strategy:12s} {seconds:8.3f}  {seconds / total.get(strategy.partition('+')[0], seconds):6.3f}"


def _seconds(outcomes: Sequence[Outcome], strategy: str) -> float:
    return sum(sum(outcome.seconds) for outcome in outcomes if outcome.strategy == strategy)


def _paper_rows(figures: tuple[float, ...], used: Sequence[str]) -> list[list[str]]:
    less, deletions, less_deletions, backward, more_backward, forward, more_forward, insertions, ex, im = figures
    old = {"deletions": deletions, "backward": backward, "forward": forward, "insertions": insertions}
    new = {
        "deletions": less_deletions, "backward": more_backward, "forward": more_forward, "insertions": insertions,
        "marked_explicit": ex, "marked_implicit": im,
    }  # fmt: skip
    rows = []
    for label, ratio, known in (("paper: B/F", 1.0, old), ("  with marks", 1 - less / 100, new)):
        rows.append([label, "", f"{ratio:.3f}", *(f"{known[c]:,.0f}" if c in known else "" for c in used)])
    return rows


def draw(name: str, outcomes: Sequence[Outcome]) -> None:
    if name not in GENERATED:
        return
    lines: dict[str, list[tuple[float, float]]] = {}
    for case in dict.fromkeys(outcome.case for outcome in outcomes):
        group = [outcome for outcome in outcomes if outcome.case == case]
        for strategy in dict.fromkeys(outcome.strategy for outcome in group):
            updates = sum(len(outcome.seconds) for outcome in group if outcome.strategy == strategy)
            lines.setdefault(strategy, []).append((float(case), 1000 * _seconds(group, strategy) / updates))
    draw_lines(HERE / "plots" / f"streams_{name}.png", f"{name}: time of an update", "size of updates", "ms", lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="measure marks on update streams", epilog=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=", ".join((*GENERATED, *RECORDED)))
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="separated by commas")
    parser.add_argument("--sizes", default="10,20,40,80", help="of generated streams")
    parser.add_argument("--runs", type=int, default=3, help="streams of each size")
    parser.add_argument("--repeats", type=int, help="(default: 5, of recorded streams 3)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    strategies, sizes = given.strategies.split(","), tuple(map(int, given.sizes.split(",")))
    if given.one:
        streams = streams_of(given.one, given.data, sizes, given.runs)
        repeats = given.repeats or (3 if given.one in RECORDED else 5)
        print(json.dumps([asdict(o) for stream in streams for o in measure(stream, strategies, repeats)]))
        return
    unknown = [name for name in given.streams if name not in (*GENERATED, *RECORDED)]
    if unknown or not given.streams:
        parser.error(f"name streams: {', '.join((*GENERATED, *RECORDED))}")
    for name in given.streams:
        command = [sys.executable, "-m", "benchmarks.streams", "--one", name, *sys.argv[1:]]
        done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        outcomes = [Outcome(**outcome) for outcome in json.loads(done.stdout.strip().splitlines()[-1])]
        print("\n".join(table(name, outcomes)), flush=True)
        draw(name, outcomes)
        keep_results(HERE / "results" / "streams.json", {name: [asdict(outcome) for outcome in outcomes]})


if __name__ == "__main__":
    main()
