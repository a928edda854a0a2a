"""Updates: what elastic maintenance costs beside evaluating anew.

`python -m benchmarks.updates [WORKLOAD ...] --data DIR [--seeds N]` prints, for each workload, four tables: bootstrap
against recompute (time and memory), update cycles (delete random explicit facts, insert them again) by size, the
workload of 13 epochs (initial, six small, large, four small, large) for three strategies, and the latency of one-fact
updates by size of the database. Writes benchmarks/results/updates.json and benchmarks/plots/updates.png. Times are
processor seconds of one thread.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.batch import machine
from benchmarks.keep import keep_results
from benchmarks.plot import draw_bars
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, Facts, Workload, data_folder

SIZES: tuple[tuple[str, Callable[[int], int]], ...] = (
    ("10", lambda total: 10),
    ("100", lambda total: 100),
    ("1000", lambda total: 1000),
    ("1 %", lambda total: total // 100),
)
EPOCH_STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "recompute": {"strategy": "recompute"},
    "update only": {"budget": None},
    "elastic": {},
}
LATENCY_SIZES = (1_000_000, 20_000_000)
CHAINS = """
.decl e(x: number, y: number)
.decl p(x: number, y: number)
p(x, y) :- e(x, y).
p(x, z) :- e(x, y), p(y, z).
"""


def _roads(folder: Path) -> Facts:
    import pyarrow as pa
    import pyarrow.parquet as pq

    roads = pq.read_table(folder / "usroads_165435.parquet")
    one_way, other_way = roads.columns
    edges = pa.table(
        {
            "from": pa.chunked_array([*one_way.chunks, *other_way.chunks]),
            "to": pa.chunked_array([*other_way.chunks, *one_way.chunks]),
        }
    )
    source = _in_largest_component(one_way.to_pylist(), other_way.to_pylist())
    return {"edge": edges, "source": pa.table({"node": pa.array([source], one_way.type)})}


def _in_largest_component(ends: Sequence[Any], others: Sequence[Any]) -> Any:
    """A node from which most of an undirected graph can be reached."""
    neighbours: dict[Any, list[Any]] = {}
    for end, other in zip(ends, others, strict=True):
        neighbours.setdefault(end, []).append(other)
        neighbours.setdefault(other, []).append(end)
    seen: set[Any] = set()
    best, best_size = ends[0], 0
    for node in neighbours:
        if node in seen:
            continue
        before, waiting = len(seen), [node]
        seen.add(node)
        while waiting:
            fresh = [other for other in neighbours[waiting.pop()] if other not in seen]
            seen.update(fresh)
            waiting.extend(fresh)
        if len(seen) - before > best_size:
            best, best_size = node, len(seen) - before
    return best


REACHABILITY = Workload("usroads-reachability", HERE / "programs" / "reachability.dl", _roads, folder="graphs")
_last_collection = 0.0
NAMES = ("doop", "crdt", "usroads-reachability", "galen")


@dataclass(slots=True)
class Timed:
    """Processor seconds of some runs."""

    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        if not self.seconds:
            return "-"
        least, middle, most = min(self.seconds), statistics.median(self.seconds), max(self.seconds)
        return f"{least * 1e3:,.1f} / {middle * 1e3:,.1f} / {most * 1e3:,.1f}"

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of some work, without the garbage of what was before it. Looking for that before each of many
    small updates would empty the caches that updates in a row find filled; hence only now and then."""
    global _last_collection
    if time.monotonic() - _last_collection > 1:
        gc.collect()
        _last_collection = time.monotonic()
    gc.disable()
    began = time.process_time()
    try:
        result = work()
    finally:
        seconds = time.process_time() - began
        gc.enable()
    return seconds, result


def opened(work: Workload, facts: Facts, **options: Any) -> tuple[Any, float]:
    """A session, and the processor seconds that its first epoch took without reading and encoding facts. Strata have
    the clock's; on a busy machine the processor's are the same share of them as of the whole."""
    import elastalog

    clock, processor = time.perf_counter(), time.process_time()
    session = elastalog.open(work.program, facts=facts, engine="local", **options)
    share = (time.process_time() - processor) / (time.perf_counter() - clock)
    return session, min(1.0, share) * sum(stratum.seconds for stratum in session.log()[0].strata)


class Cycle:
    """Random explicit facts of a workload, to be deleted and inserted again."""

    def __init__(self, facts: Facts) -> None:
        self.facts = {name: table for name, table in facts.items() if len(table)}
        self.total = sum(len(table) for table in self.facts.values())

    def choose(self, size: int, seed: int) -> Facts:
        rng = np.random.default_rng(seed)
        picked = np.sort(rng.choice(self.total, min(size, self.total), replace=False))
        chosen: Facts = {}
        first = 0
        for name, table in self.facts.items():
            rows = picked[(picked >= first) & (picked < first + len(table))] - first
            if len(rows):
                chosen[name] = table.take(rows)
            first += len(table)
        return chosen


def compare_bootstrap(work: Workload, facts: Facts, repeats: int) -> dict[str, Any]:
    cost: dict[str, list[float]] = {}
    size: dict[str, int] = {}
    ways = [("recompute", "local"), ("elastic", "local"), ("elastic", "global")]
    for repeat in range(repeats):
        # By turns the first, which pays for memory that the system has not given out yet.
        for strategy, levels in (*ways[repeat % 3 :], *ways[: repeat % 3]):
            name = strategy if levels == "local" else "elastic, global levels"
            gc.collect()
            session, seconds = opened(work, facts, strategy=strategy, levels=levels)
            with session:
                cost.setdefault(name, []).append(seconds)
                size[name] = session.statistics().bytes
                count = sum(len(session[relation]) for relation in session)
    cost = {name: cost[name] for name in ("recompute", "elastic", "elastic, global levels")}
    base, memory = min(cost["recompute"]), size["recompute"]
    rows = {
        name: {
            "seconds": min(spent),
            "ratio": min(spent) / base,
            "bytes": size[name],
            "memory": size[name] / memory,
        }
        for name, spent in cost.items()
    }
    print(f"\n{work.name}: {count:,} facts in all")
    for name, row in rows.items():
        per_fact = row["bytes"] / count
        print(
            f"  bootstrap {name:24s} {row['seconds']:8.3f} s  ×{row['ratio']:.2f}   "
            f"{row['bytes'] / 2**20:8.0f} MiB  ×{row['memory']:.2f}   {per_fact:.0f} B/fact"
        )
    return {"facts": count, "bootstrap": rows}


def measure_cycles(work: Workload, facts: Facts, recompute: float, seeds: int) -> dict[str, Any]:
    import elastalog

    result: dict[str, Any] = {}
    cycle = Cycle(facts)
    with elastalog.open(work.program, facts=facts, engine="local") as session:
        session.engine.warm()
        for label, size_of in SIZES:
            deleting, inserting = Timed(), Timed()
            impact: list[int] = []
            switched = 0
            updates = [cycle.choose(size_of(cycle.total), seed) for seed in range(seeds)]
            for chosen in updates:
                seconds, changes = timed(partial(session.apply, deleted=chosen))
                deleting.seconds.append(seconds)
                impact.append(changes.impact)
                switched += _switches(session)
                seconds, _ = timed(partial(session.apply, inserted=chosen))
                inserting.seconds.append(seconds)
                switched += _switches(session)
            slowest = max(deleting.seconds + inserting.seconds)
            result[label] = {
                "deleting": deleting.seconds, "inserting": inserting.seconds, "impact": impact, "switched": switched,
                "faster": recompute / statistics.median(deleting.seconds + inserting.seconds),
                "slowest": slowest / recompute,
            }  # fmt: skip
            print(
                f"  {label:>5s} facts  delete {deleting!s:>32s}   insert {inserting!s:>32s} ms   impact "
                f"{statistics.median(impact):,.0f}   recompute / median {result[label]['faster']:,.1f}   "
                f"slowest / recompute {result[label]['slowest']:.2f}   strata switched {switched}"
            )
    return result


def _switches(session: Any) -> int:
    return sum(stratum.how in ("switch", "recompute") for stratum in session.log()[-1].strata)


def epoch_seconds(work: Workload, facts: Facts, options: Mapping[str, Any], small: int, large: int) -> list[float]:
    """The papers' workload: initial, six small, large, four small, large. Small updates are deleted and inserted by
    turns; the first large one is deleted, the second inserts it again."""
    cycle = Cycle(facts)
    session, first = opened(work, facts, **options)
    seconds = [first]
    with session:
        held: dict[str, Facts] = {}
        for number, kind in enumerate(["small"] * 6 + ["large"] + ["small"] * 4 + ["large"]):
            if kind in held:
                cost, _ = timed(partial(session.apply, inserted=held.pop(kind)))
            else:
                held[kind] = cycle.choose(small if kind == "small" else large, 1000 + number)
                cost, _ = timed(partial(session.apply, deleted=held[kind]))
            seconds.append(cost)
    return seconds


def measure_epochs(work: Workload, facts: Facts, with_update_only: bool) -> dict[str, float]:
    """Small updates are 100 facts, large ones 10 % of the explicit facts."""
    totals: dict[str, float] = {}
    for name, options in EPOCH_STRATEGIES.items():
        if name != "update only" or with_update_only:
            totals[name] = sum(epoch_seconds(work, facts, options, 100, Cycle(facts).total // 10))
    print("  13 epochs: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in totals.items()), end="")
    print(f"   elastic is {totals['recompute'] / totals['elastic']:.2f} times faster than recompute")
    return totals


def measure_latency(sizes: Sequence[int]) -> dict[str, Any]:
    """One-fact updates whose impact is one derived fact, through the Python API."""
    import elastalog

    result = {}
    for size in sizes:
        starts = np.arange(size // 3, dtype=np.int64) * 3
        edges = np.concatenate([np.stack([starts, starts + 1], 1), np.stack([starts + 1, starts + 2], 1)])
        with elastalog.open(CHAINS, facts={"e": edges}, engine="local") as session:
            session.engine.warm()
            cost: list[float] = []
            for i in range(200):
                fact = [(size + 2 * i, size + 2 * i + 1)]
                for is_insertion in (True, False):
                    began = time.perf_counter()
                    session.apply(inserted={"e": fact if is_insertion else []}, deleted={"e": fact})
                    cost.append(time.perf_counter() - began)
            facts = sum(len(session[name]) for name in session)
            per_fact = session.statistics().bytes / facts
        result[str(size)] = {"seconds": cost, "median": statistics.median(cost), "bytes_per_fact": per_fact}
        print(
            f"one-fact update at {size:,} derived facts: median {statistics.median(cost) * 1e3:.3f} ms, "
            f"95 % below {np.percentile(cost, 95) * 1e3:.3f} ms; {per_fact:.0f} B a fact, indexes included"
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="updates against recomputation")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(NAMES)}; none: all of them")
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-latency", action="store_true")
    parser.add_argument("--no-update-only", action="store_true", help="leave out updates that never switch")
    given = parser.parse_args()
    data = data_folder(given.data)
    works = {work.name: work for work in (*BY_NAME.values(), REACHABILITY)}
    record: dict[str, Any] = {"machine": machine()}
    for name in given.workloads or NAMES:
        work = works[name]
        if not work.is_available(data):
            print(f"{name}: no data")
            continue
        facts = work.facts(data)
        entry = compare_bootstrap(work, facts, given.repeats)
        recompute = entry["bootstrap"]["recompute"]["seconds"]
        entry["cycles"] = measure_cycles(work, facts, recompute, given.seeds)
        entry["epochs"] = measure_epochs(work, facts, not given.no_update_only)
        record[name] = entry
    if not given.no_latency:
        record["latency"] = measure_latency(LATENCY_SIZES)
    record = keep_results(HERE / "results" / "updates.json", record)
    faster = {
        label: {name: record[name]["cycles"][label]["faster"] for name in NAMES if name in record} for label, _ in SIZES
    }
    draw_bars(HERE / "plots" / "updates.png", "updates: times faster than recompute", "ratio", faster)


if __name__ == "__main__":
    main()
