"""Values that improve in recursion: components by least labels, and distances from a node, on roads and social graphs.

    python -m benchmarks.improving [labels] [distances] [--data DIR] [--graph NAME] [--edges N] [--without-duckdb]

Building; single edges deleted and inserted again; ten updates of ±1,000 edges. Beside: union-find and Dijkstra's
algorithm, written in Python with numpy, and DuckDB's recursive queries, which know no update: each computes all anew.
Results are compared after building and at the end. Seconds are those of the processor, with the load of the machine.
"""

from __future__ import annotations

import argparse
import heapq
import os
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

LABELS = """
.decl edge(x: number, y: number, w: number)
.decl best(x: number, c: min number)
best(x, x) :- edge(x, _, _).
best(y, y) :- edge(_, y, _).
best(y, c) :- best(x, c), edge(x, y, _).
best(x, c) :- best(y, c), edge(x, y, _).
"""
DISTANCES = """
.decl edge(x: number, y: number, w: number)
.decl source(x: number)
.decl best(x: number, n: min number)
best(x, 0) :- source(x).
best(y, n + w) :- best(x, n), edge(x, y, w).
best(x, n + w) :- best(y, n), edge(x, y, w).
"""
IN_SQL = {
    "labels": """WITH RECURSIVE best(x, v) USING KEY (x) AS (
        SELECT x, x FROM both_ways UNION
        SELECT e.y, min(b.v) FROM best b JOIN both_ways e ON e.x = b.x JOIN recurring.best k ON k.x = e.y
        WHERE b.v < k.v GROUP BY e.y) SELECT x, v FROM best""",
    "distances": """WITH RECURSIVE best(x, v) USING KEY (x) AS (
        SELECT CAST({source} AS BIGINT), CAST(0 AS BIGINT) UNION
        SELECT e.y, min(b.v + e.w) FROM best b JOIN both_ways e ON e.x = b.x LEFT JOIN recurring.best k ON k.x = e.y
        WHERE k.v IS NULL OR b.v + e.w < k.v GROUP BY e.y) SELECT x, v FROM best""",
}
Edges = list[tuple[int, int, int]]


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what the work gave."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def union_find(edges: Edges) -> dict[int, int]:
    """The least member of the component of every node."""
    pairs = np.array([edge[:2] for edge in edges])
    names, place = np.unique(pairs, return_inverse=True)
    above = list(range(len(names)))
    for x, y in place.reshape(-1, 2).tolist():
        while above[x] != x:
            above[x] = above[above[x]]
            x = above[x]
        while above[y] != y:
            above[y] = above[above[y]]
            y = above[y]
        if x != y:
            above[max(x, y)] = min(x, y)
    for x in range(len(above)):
        above[x] = above[above[x]]
    return dict(zip(names.tolist(), names[above].tolist(), strict=True))


def dijkstra(edges: Edges, source: int) -> dict[int, int]:
    """The least distances from a node."""
    following: dict[int, list[tuple[int, int]]] = {}
    for x, y, w in edges:
        following.setdefault(x, []).append((y, w))
        following.setdefault(y, []).append((x, w))
    found: dict[int, int] = {}
    waiting = [(0, source)]
    while waiting:
        distance, x = heapq.heappop(waiting)
        if x not in found:
            found[x] = distance
            for y, w in following.get(x, ()):
                if y not in found:
                    heapq.heappush(waiting, (distance + w, y))
    return found


def in_duckdb(what: str, edges: Edges, source: int) -> dict[int, int]:
    """The same by a recursive query on one thread."""
    import duckdb

    x, y, w = (pa.array(column) for column in zip(*edges, strict=True))
    both_ways = pa.table([pa.chunked_array(c) for c in ([x, y], [y, x], [w, w])], names=["x", "y", "w"])
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("both_ways", both_ways)
        return dict(connection.execute(IN_SQL[what].format(source=source)).fetchall())


def measure(what: str, edges: Edges, *, with_duckdb: bool) -> None:
    """One program on one graph."""
    values, number = np.unique(np.array([edge[:2] for edge in edges]), return_counts=True)
    source = int(values[number.argmax()])
    facts: dict[str, Any] = {"edge": edges} | ({"source": [(source,)]} if what == "distances" else {})
    text = LABELS if what == "labels" else DISTANCES
    by_hand = union_find if what == "labels" else lambda given: dijkstra(given, source)
    elastalog.open(text, {name: rows[:1] for name, rows in facts.items()}).close()
    taken, db = spent(lambda: elastalog.open(text, facts))
    alone, wanted = spent(lambda: by_hand(edges))
    print(f"{what}: {len(edges):,} edges, {len(wanted):,} nodes; load {os.getloadavg()[0]:.1f}")
    print(f"  built in {taken:.2f} s; by hand {alone:.2f} s", flush=True)
    assert dict(db["best"]) == wanted
    if with_duckdb:
        taken, found = spent(lambda: in_duckdb(what, edges, source))
        assert found == wanted
        print(f"  DuckDB {taken:.2f} s", flush=True)
    choice = random.Random(1)
    follow(db, "one edge", [choice.sample(edges, 1) for _ in range(300)])
    follow(db, "1,000 edges", [choice.sample(edges, min(1_000, len(edges) // 2)) for _ in range(10)])
    assert dict(db["best"]) == wanted
    db.close()


def follow(db: elastalog.Session, told: str, parts: Sequence[Edges]) -> None:
    """Edges go and come back."""
    times, hows = [], set()
    for part in parts:
        for come, go in (({}, {"edge": part}), ({"edge": part}, {})):
            times.append(spent(partial(db.apply, come, go))[0])
            hows |= {stratum.how for stratum in db.log()[-1].strata if "best" in stratum.relations}
    times.sort()
    in_ms = [1000 * each for each in (statistics.median(times), times[int(0.95 * len(times))], times[-1])]
    listed = f"median {in_ms[0]:.2f} ms, 95 of 100 within {in_ms[1]:.2f}, at most {in_ms[2]:.1f}"
    print(f"  {told}: {listed}; {', '.join(sorted(hows))}", flush=True)


def read(path: Path, most: int | None) -> Edges:
    """The edges of a graph, with weights of 1 to 9 that their ends determine."""
    one, other = (np.asarray(column.to_numpy(), np.int64) for column in pq.read_table(path).columns[:2])
    weights = (one * 31 + other * 17) % 9 + 1
    return sorted(set(zip(one.tolist(), other.tolist(), weights.tolist(), strict=True)))[:most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("part", nargs="*", help="`labels`, `distances`; both unless given")
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument(
        "--graph", action="append", help="the beginning of a name; usroads and ego-Facebook unless given"
    )
    parser.add_argument("--edges", type=int, help="only the first so many edges")
    parser.add_argument("--without-duckdb", action="store_true")
    options = parser.parse_args()
    folder = data_folder(options.data)
    if folder is None:
        raise SystemExit("the graphs need --data")
    for name in options.graph or ["usroads", "ego-Facebook"]:
        path = next((folder / "graphs").glob(f"{name}*.parquet"))
        print(path.stem)
        edges = read(path, options.edges)
        for what in options.part or ["labels", "distances"]:
            measure(what, edges, with_duckdb=not options.without_duckdb)


if __name__ == "__main__":
    main()
