"""What evaluating one version of a rule on a delta of ten rows costs, by size of the database.

`python -m benchmarks.small_deltas` prints microseconds for a join through an index, at one and at ten million facts:
the cost must not depend on the size. It looks below the public face, at the kernel's variants, because that is what it
measures.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import elastalog
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.watch import Watch
from elastalog.planning.variants import plan_from_goal

SIZES = (1_000_000, 10_000_000)
ROWS = 10
REPEATS = 2000
PROGRAM = """
.decl e(x: number, y: number)
.decl p(x: number, y: number)
.decl q(x: number, z: number)
p(x, y) :- e(x, y).
q(x, z) :- e(x, y), p(y, z), x != z.
"""


def microseconds(size: int) -> list[float]:
    """Of runs over ten rows each, at random places."""
    starts = np.arange(size // 2, dtype=np.int64)
    edges = np.concatenate([np.stack([starts, starts + size], 1), np.stack([starts + size, starts], 1)])
    with elastalog.open(PROGRAM, facts={"e": edges}, engine="local") as session:
        backend = session._backend
        assert isinstance(backend, KernelBackend)
        clause = backend.program.strata[-1].clauses[0]
        planned = plan_from_goal(clause, 0, KernelStatistics(backend.held.relations))
        variant = BoundVariant(planned, session._dictionary, session.program.checked.source)
        variant.prepare(backend.held.relations)
        enumerator = Enumerator(variant, carried=0)
        setting = Setting(backend.held.relations, frozenset(), Workspace(), Watch())
        rng = np.random.default_rng(1)
        cost = []
        for _ in range(REPEATS):
            first = int(rng.integers(0, size - ROWS))
            began = time.perf_counter()
            enumerator.of_rows(setting, (first, first + ROWS), lambda block, used: None)
            cost.append((time.perf_counter() - began) * 1e6)
        return cost[REPEATS // 10 :]


def main() -> None:
    for size in SIZES:
        cost = microseconds(size)
        print(
            f"{size:>12,} facts: median {statistics.median(cost):.1f} µs, 95 % below {np.percentile(cost, 95):.1f} µs"
        )


if __name__ == "__main__":
    main()
