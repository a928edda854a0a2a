"""What relations with a mind of their own cost: equivalences kept as classes, and shortest paths by subsumption.

    python -m benchmarks.special_relations [equivalences] [congruence] [shortest] [--data DIR] [--members N] [--nodes N]

Equivalences: one class of all members, as a path in a random order and as a random tree, and classes of ten; building,
joining with one side bound, deleting one pair and ten, and the memory of the relation. Congruence: the closure of a
random function and a few equal pairs, as classes that grow in their own recursion and by all pairs (global levels); an
update of ten facts; memory of the relation; one fact among many small classes. Shortest paths: usroads, with lengths of
1 to 9 that its ends determine, from one node, against Dijkstra's algorithm; and updates against evaluation anew.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import elastalog
from benchmarks.workloads import data_folder
from elastalog.session import Session

SAME = """
.decl edge(x: number, y: number)
.decl same(x: number, y: number) eqrel
same(x, y) :- edge(x, y).
.decl asked(x: number)
.decl mate(x: number, y: number)
mate(x, y) :- asked(x), same(x, y).
"""
CONGRUENT = """
.decl edge(x: number, y: number)
.decl next(x: number, y: number)
.decl same(x: number, y: number) eqrel
same(x, y) :- edge(x, y).
same(x, y) :- same(a, b), next(a, x), next(b, y).
"""
SHORTEST = """
.decl road(x: number, y: number, w: number)
.decl source(x: number)
.decl far(x: number, n: number)
far(x, 0) :- source(x).
far(y, n + w) :- far(x, n), road(x, y, w).
far(x, a) <= far(x, b) :- b < a.
"""


def timed(told: str, work: Callable[[], Any]) -> Any:
    """Does some work, and prints how long it took, by the clock and of the processor."""
    began, processor = time.perf_counter(), time.process_time()
    found = work()
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    print(f"{told:<44}{seconds:>10.3f} s{processor:>10.3f} s of the processor", flush=True)
    return found


def equivalences(members: int) -> None:
    """One class of all members, then classes of ten."""
    order = np.random.default_rng(1).permutation(members)
    ten = np.arange(members)
    earlier = (np.random.default_rng(2).random(members - 1) * np.arange(1, members)).astype(np.int64)
    cases = {
        "one class, a path": (order[:-1], order[1:]),
        "one class, a random tree": (order[1:], order[earlier]),
        "classes of ten": (ten, ten - ten % 10),
    }
    elastalog.open(SAME, {"edge": [(1, 2)]}).close()  # operators are loaded
    for name, (left, right) in cases.items():
        print(f"{name}, {members:,} members")
        _equivalence(left, right, members)


def _equivalence(left: np.ndarray, right: np.ndarray, members: int) -> None:
    facts = {"edge": pa.table({"x": left, "y": right})}
    db = timed("  build", lambda: elastalog.open(SAME, facts))
    stored = {name: size for name, size in db._backend.profile().bytes.items() if name.endswith("same")}
    print(f"  {len(db['same']):,} pairs; {sum(stored.values()) / members:.0f} bytes a member")
    timed("  members of one class (`same(7, X)`)", lambda: len(db.query("same(7, X)")))
    timed("  join: `asked(7)` comes", lambda: db.apply({"asked": [(7,)]}))
    db.apply(deleted={"asked": [(7,)]})
    some = [(int(left[i]), int(right[i])) for i in random.Random(1).sample(range(1, len(left)), 11)]
    for told, pairs in (("one pair", some[:1]), ("ten pairs", some[1:])):
        timed(f"  delete {told}", partial(db.apply, deleted={"edge": pairs}))
        timed(f"  insert {told}", partial(db.apply, {"edge": pairs}))
    db.close()


def congruence() -> None:
    """All pairs take too long for more than a few values."""
    ways: dict[str, dict[str, Any]] = {
        "recompute": {"strategy": "recompute"},
        "elastic": {"strategy": "elastic"},
        "all pairs": {"strategy": "elastic", "levels": "global"},
    }
    for values, number in ((300, 3), (1_000, 3), (5_000, 2), (20_000, 2)):
        choice = random.Random(1)
        following = [(i, choice.randrange(values)) for i in range(values)]
        equal = [(choice.randrange(values), choice.randrange(values)) for _ in range(values // 20)]
        print(f"congruence, {values:,} values")
        for way, options in list(ways.items())[:number]:
            elastalog.open(CONGRUENT, {"edge": [(1, 2)], "next": [(1, 1)]}, **options).close()
            facts = {"edge": equal, "next": following}
            db: Session = timed(f"  {way}", partial(elastalog.open, CONGRUENT, facts, **options))
            timed("  ten facts go", partial(db.apply, deleted={"edge": equal[:10]}))
            timed("  ten facts come", partial(db.apply, {"edge": equal[:10]}))
            stored = sum(size for name, size in db._backend.profile().bytes.items() if name.endswith("same"))
            print(f"  {len(db['same']):,} pairs in {stored:,} bytes")
            db.close()


def small_classes(number: int = 20_000) -> None:
    """Functions of four values, two of which are equal, and so the two others: one fact among all goes and comes."""
    edges = [(10 * i, 10 * i + 1) for i in range(number)]
    following = [(10 * i + k, 10 * i + k + 2) for i in range(number) for k in (0, 1)]
    print(f"congruence, {2 * number:,} classes of two")
    for way, levels in (("classes", "local"), ("all pairs", "global")):
        elastalog.open(CONGRUENT, {"edge": [(1, 2)], "next": [(1, 1)]}, levels=levels).close()
        db = timed(f"  {way}", partial(elastalog.open, CONGRUENT, {"edge": edges, "next": following}, levels=levels))
        db.engine.warm()
        spent = []
        for edge in edges[:100]:
            for update in ({"deleted": {"edge": [edge]}}, {"inserted": {"edge": [edge]}}):
                began = time.process_time()
                db.apply(**update)
                spent.append(time.process_time() - began)
        stored = sum(size for name, size in db._backend.profile().bytes.items() if name.endswith("same"))
        print(f"  one fact {statistics.median(spent) * 1e3:.2f} ms of the processor; {stored:,} bytes")
        db.close()


def roads(folder: Path, nodes: int | None) -> tuple[list[tuple[int, int, int]], int]:
    """The roads in both directions with lengths, between the first so many nodes, and a node of the middle."""
    table = pq.read_table(folder / "graphs" / "usroads_165435.parquet")
    one, other = (np.asarray(column.to_numpy(), np.int64) for column in table.columns)
    if nodes is not None:
        is_near = (one < nodes) & (other < nodes)
        one, other = one[is_near], other[is_near]
    lengths = (one * 31 + other * 17) % 9 + 1
    listed = list(zip(one.tolist(), other.tolist(), lengths.tolist(), strict=True))
    values, number = np.unique(np.concatenate((one, other)), return_counts=True)
    return [*listed, *((y, x, w) for x, y, w in listed)], int(values[number.argmax()])


def dijkstra(edges: Sequence[tuple[int, int, int]], source: int) -> dict[int, int]:
    """The least distances from a node."""
    following: dict[int, list[tuple[int, int]]] = {}
    for x, y, w in edges:
        following.setdefault(x, []).append((y, w))
    found: dict[int, int] = {}
    waiting = [(0, source)]
    while waiting:
        distance, x = heapq.heappop(waiting)
        if x not in found:
            found[x] = distance
            for y, w in following.get(x, ()):
                heapq.heappush(waiting, (distance + w, y))
    return found


def check(db: Session, edges: Sequence[tuple[int, int, int]], source: int) -> None:
    """The distances are those of Dijkstra's algorithm."""
    if set(db["far"]) != set(dijkstra(edges, source).items()):
        raise AssertionError("the distances are wrong")


def shortest(folder: Path, nodes: int | None) -> None:
    """Distances by subsumption."""
    edges, source = roads(folder, nodes)
    table = pa.table([pa.array(column) for column in zip(*edges, strict=True)], names=["x", "y", "w"])
    elastalog.open(SHORTEST, {"road": [(1, 2, 1)], "source": [(1,)]}).close()
    facts = {"road": table, "source": [(source,)]}
    found = timed("  Dijkstra, in Python", lambda: dijkstra(edges, source))
    print(f"shortest paths: {len(edges):,} roads, {len(found):,} nodes reached, the farthest {max(found.values()):,}")
    db = timed("  evaluation", lambda: elastalog.open(SHORTEST, facts))
    check(db, edges, source)
    for number in (1, 10, 100):
        _updates(db, edges, source, number)
    with elastalog.open(SHORTEST, facts, strategy="recompute") as anew:
        gone = random.Random(1).sample(edges, 10)
        timed("  delete ten roads, evaluated anew", lambda: anew.apply(deleted={"road": gone}))
        timed("  insert ten roads, evaluated anew", lambda: anew.apply({"road": gone}))
    db.close()


def _updates(db: Session, edges: Sequence[tuple[int, int, int]], source: int, number: int, times: int = 7) -> None:
    """So many roads are deleted, and inserted again, some times; the last is compared with Dijkstra's result."""
    choice = random.Random(number)
    spent: dict[str, list[float]] = {"delete": [], "insert": []}
    impact = []
    for time_of in range(times):
        gone = choice.sample(edges, number)
        for what, change in (("delete", ({}, {"road": gone})), ("insert", ({"road": gone}, {}))):
            began = time.process_time()
            done = db.apply(*change)
            spent[what].append(time.process_time() - began)
            impact.append(done.impact - number)
            if time_of == times - 1:
                check(db, edges if what == "insert" else sorted(set(edges) - set(gone)), source)
    hows = {stratum.how for entry in db.log()[-2 * times :] for stratum in entry.strata if "far" in stratum.relations}
    medians = ", ".join(f"{what} {1000 * statistics.median(some):.1f} ms" for what, some in spent.items())
    what = f"  {number} roads, of the processor, medians of {times}: {medians}"
    print(f"{what}; {statistics.median(impact):.0f} distances change; {', '.join(sorted(hows))}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("part", nargs="*", help="`equivalences`, `congruence`, `shortest`; all unless given")
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument("--members", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, help="only roads between the first so many nodes")
    options = parser.parse_args()
    parts = options.part or ["equivalences", "congruence", "shortest"]
    if "equivalences" in parts:
        equivalences(options.members)
    if "congruence" in parts:
        congruence()
        small_classes()
    if "shortest" in parts:
        folder = data_folder(options.data)
        if folder is None:
            raise SystemExit("shortest paths need --data")
        shortest(folder, options.nodes)


if __name__ == "__main__":
    main()
