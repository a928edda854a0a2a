"""Where the bytes of an evaluation are: by relation and structure, and the process's peak.

`python -m benchmarks.memory WORK [--data DIR] [--strategy recompute] [--jobs N]` evaluates a workload, or the closure
of the graph in a Parquet file of two columns, in this process, and prints bytes a fact of rows, set tables, annotations
and indexes, the processor time of `elastalog.open`, and the peak of the process beside what it had before facts were
read. One work a process, since a peak does not go down again.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.workloads import BY_NAME, Workload, closure_of, data_folder

if TYPE_CHECKING:
    from elastalog.backends.kernel.store.relation import KernelRelation


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _show(name: str, facts: int, bytes_of: dict[str, int]) -> None:
    total = sum(bytes_of.values())
    shares = "  ".join(f"{part} {size / max(facts, 1):.1f}" for part, size in bytes_of.items() if size)
    print(f"{name:24} {facts:12,} facts {total / 1e6:8.1f} MB {total / max(facts, 1):6.1f} B a fact: {shares}")


def _bytes_of(relation: KernelRelation) -> dict[str, int]:
    parts = {
        "rows": relation.rows.nbytes,
        "table": relation._table.nbytes,  # not by `table`, which would make one that is gone
        "annotations": relation.level.nbytes + relation.count.nbytes,
    }
    for columns in relation.indexed:
        index = relation.index(columns)
        parts[f"index{list(columns)}"] = index.nbytes
    return parts


def measure(workload: Workload, data: Path | None, strategy: str, jobs: int) -> None:
    """Evaluates and prints."""
    import elastalog
    from elastalog.backends.kernel.backend import KernelBackend

    with elastalog.open(workload.program, facts={}, strategy=strategy, jobs=jobs):
        before = _peak()
    facts = workload.facts(data)
    began, began_clock = time.process_time(), time.perf_counter()
    with elastalog.open(workload.program, facts=facts, engine="local", strategy=strategy, jobs=jobs) as session:
        seconds, clock = time.process_time() - began, time.perf_counter() - began_clock
        assert isinstance(session._backend, KernelBackend)
        for name, relation in session._backend.held.relations.items():
            if relation.used >= 10_000:
                _show(name, relation.used, _bytes_of(relation))
        for name, expected in workload.expected.items():
            assert len(session[name]) == expected, f"{name}: {len(session[name])} facts instead of {expected}"
    print(
        f"{workload.name}: {seconds:.2f} processor s ({clock:.2f} s on the clock),"
        f" peak {_peak() / 1e6:.0f} MB, {before / 1e6:.0f} MB of them before facts were read"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="bytes of an evaluation")
    parser.add_argument("work", help=f"a Parquet file of edges, or one of {', '.join(BY_NAME)}")
    parser.add_argument("--data", help="folder of benchmark data")
    parser.add_argument("--strategy", default="recompute")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    workload = BY_NAME[given.work] if given.work in BY_NAME else closure_of(Path(given.work))
    measure(workload, data_folder(given.data), given.strategy, given.jobs)


if __name__ == "__main__":
    main()
