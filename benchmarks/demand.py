"""One question to a large graph: what only its answer needs, against the whole closure.

    python -m benchmarks.demand [EDGES]

The graph is EDGES edges (a million) in trees of 40 edges; the question is `path(1, X)` in its three usual spellings.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import elastalog

SIZE = 40
RECURSIONS = {
    "left": "path(x, y), edge(y, z)",
    "right": "edge(x, y), path(y, z)",
    "both sides": "path(x, y), path(y, z)",
}


def program(recursion: str) -> str:
    return (
        ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\n"
        f"path(x, y) :- edge(x, y).\npath(x, z) :- {recursion}.\n"
    )


def graph(edges: int) -> pa.Table:
    """Trees in which the parent of node i is node (i - 1) / 2 of the tree; node 1 is the root of the first."""
    child = np.arange(1, SIZE + 1)
    base = (np.arange(edges // SIZE) * (SIZE + 1) + 1)[:, None]
    return pa.table({"x": (base + (child - 1) // 2).ravel(), "y": (base + child).ravel()})


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def main(edges: int) -> None:
    facts = {"edge": graph(edges)}
    for name, recursion in RECURSIONS.items():
        text = program(recursion)
        elastalog.query(text, {"edge": [(1, 2)]}, "path(1, X)")  # what is compiled at first use
        asked, answers = timed(partial(elastalog.query, text, facts, "path(1, X)"))
        whole, db = timed(partial(elastalog.open, text, facts=facts, strategy="recompute"))
        assert sorted(db.query("path(1, X)")) == sorted(answers)
        print(
            f"{name:10}  {len(answers)} answers  asked {asked:6.2f} s  whole closure, {len(db['path']):,} facts "
            f"{whole:6.2f} s  ratio {whole / asked:.1f}"
        )
        db.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
