"""Strata on a GPU, beside the kernel on the same machine.

`python -m benchmarks.gpu [WORKLOAD ...] [--repeats N] [--jobs N] [--data DIR]` measures, in one process,

- the largest stratum on the device, from words in memory to words, levels and counts in memory (`arrays`): least
  seconds, those of them in which facts moved, rounds, the most device memory;
- opening a session from tables in memory, and from Parquet, with the GPU and with the kernel on all processors;
- updates of ten facts in this process after a bootstrap on the device.

It writes benchmarks/results/gpu.json with the machine, the day and a digest of the code that was measured. Without a
GPU it measures NumPy in its place, says so, and writes nothing. Exit code 1 if a count is wrong.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import elastalog
from benchmarks.keep import keep_results
from benchmarks.workloads import BY_NAME, EXAMPLES, HERE, Facts, data_folder
from elastalog.backends.gpu.arrays import Arrays, on_device, on_numpy
from elastalog.backends.gpu.place import DevicePlace
from elastalog.backends.watch import Watch
from elastalog.planning.lower import lower
from elastalog.program import Program
from elastalog.relations.words import Dictionary

RESULTS = HERE / "results" / "gpu.json"
MEASURED = HERE.parent / "src" / "elastalog" / "backends" / "gpu"
CLOSURE = EXAMPLES / "transitive_closure.dl"


@dataclass(frozen=True, slots=True)
class Case:
    """`facts` are read from the data folder. `sizes`: what its relations hold in the end. `before`: seconds of the
    prototype and of GPUlog, as printed. `is_opened`: a session of it fits."""

    name: str
    program: Path
    facts: Callable[[Path | None], Facts]
    sizes: dict[str, int]
    before: tuple[float | None, float | None] = (None, None)
    is_opened: bool = True
    files: str | None = None


def _graph(name: str, file: str, size: int, before: tuple[float, float | None], is_opened: bool = True) -> Case:
    def facts(data: Path | None) -> Facts:
        import pyarrow.parquet as pq

        assert data is not None
        return {"edge": pq.read_table(data / "graphs" / file)}

    return Case(name, CLOSURE, facts, {"path": size}, before, is_opened)


def _known(name: str, before: float | None = None, files: str | None = None) -> Case:
    workload = BY_NAME[name]
    return Case(name, workload.program, workload.facts, dict(workload.expected), (before, None), True, files)


CASES = (
    _known("galen", 0.61, "galen"),
    _known("doop", files="doop"),
    _known("crdt", files="crdt"),
    _known("el-completion-large"),
    _known("points-to"),
    _known("same-generation-OL"),
    _graph("closure-CA-HepTh", "CA-HepTh_51971.parquet", 74_619_885, (0.10, 0.33)),
    _graph("closure-SF", "SF.cedge_223001.parquet", 80_498_014, (0.53, 0.79)),
    _graph("closure-Gnutella", "p2p-Gnutella04_39994.parquet", 47_059_527, (0.08, 0.18)),
    _graph("closure-wiki", "wiki-Vote_103689.parquet", 11_947_132, (0.05, 0.14)),
    _graph("closure-luxembourg", "luxembourg_osm_119666.parquet", 5_022_084, (0.47, None)),
    _graph("closure-usroads", "usroads_165435.parquet", 871_365_688, (7.5, 9.8), is_opened=False),
)


def digest(folder: Path = MEASURED) -> str:
    """Of the code of a package, whatever its blank lines, comments and imports."""
    found = blake2b(digest_size=12)
    for file in sorted(folder.glob("*.py")):
        lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
        code = [line for line in lines if line and not line.startswith(("#", "from ", "import "))]
        found.update("\n".join([file.name, *code]).encode())
    return found.hexdigest()


def on_arrays(case: Case, facts: Facts, arrays: Arrays, repeats: int) -> dict[str, Any]:
    """The largest stratum, from words in memory to words in memory."""
    checked = Program.load(case.program).checked
    (stratum,) = (one for one in lower(checked).strata if set(case.sizes) & set(one.relations) and one.is_recursive)
    words: dict[str, Any] = {
        name: np.empty((0, len(checked.relations[name].attributes)), np.int32)
        for name in (*stratum.reads, *stratum.relations)
    }
    for name, table in facts.items():
        columns = [column.to_numpy().astype(np.int32) for column in table.columns]
        words[name] = np.unique(np.column_stack(columns), axis=0)
    seconds: list[float] = []
    cost: Any = None
    for _ in range(repeats):
        gc.collect()
        place = DevicePlace(arrays, Dictionary(), checked.source, Watch(), is_asked=True)
        began = time.perf_counter()
        begun = place.evaluate(stratum, words, {})
        seconds.append(time.perf_counter() - began)
        assert begun is not None, "the device had no room"
        if begun.is_done:
            _require(case, {name: len(found.words) for name, found in begun.relations.items()})
        elif cost is None:
            print(f"  {case.name}: rounds got small; the kernel goes on from round {begun.rounds}")
        del begun
        if cost is None or seconds[-1] == min(seconds):
            cost = place.costs[stratum.number]
    return {
        "seconds": min(seconds), "transfer": cost.transfer, "rounds": cost.rounds, "derivations": cost.derivations,
        "peak_gib": round(cost.peak / 2**30, 2), "first": seconds[0],
    }  # fmt: skip


def opened(
    case: Case, facts: Any, engine: str, jobs: int, repeats: int, strategy: str, levels: str = "local"
) -> dict[str, Any]:
    """Opening a session, from tables in memory or from a folder."""
    seconds = []
    device = 0.0
    for _ in range(repeats):
        gc.collect()
        began = time.perf_counter()
        with elastalog.open(case.program, facts, engine=engine, jobs=jobs, strategy=strategy, levels=levels) as db:
            seconds.append(time.perf_counter() - began)
            _require(case, {name: len(db[name]) for name in case.sizes})
            device = sum(stratum.seconds for stratum in db.statistics().elsewhere)
    return {"seconds": min(seconds), "device": device}


def updated(case: Case, facts: Facts, jobs: int) -> float:
    """The median milliseconds of ten facts deleted and inserted again, after a bootstrap on the device."""
    choice = random.Random(1)
    name = max(facts, key=lambda one: facts[one].num_rows)
    rows = [tuple(row.values()) for row in facts[name].to_pylist()]
    took = []
    with elastalog.open(case.program, facts, engine="gpu", jobs=jobs) as db:
        for number in range(22):
            few = choice.sample(rows, 10)
            for inserted, deleted in (({}, {name: few}), ({name: few}, {})):
                began = time.perf_counter()
                db.apply(inserted, deleted)
                if number > 1:
                    took.append(time.perf_counter() - began)
        _require(case, {name: len(db[name]) for name in case.sizes})
    return statistics.median(took) * 1e3


def _require(case: Case, counts: dict[str, int]) -> None:
    for name, size in counts.items():
        if case.sizes.get(name, size) != size:
            sys.exit(f"{case.name}: {name} has {size:,} facts, not {case.sizes[name]:,}")


def measured(case: Case, given: argparse.Namespace, data: Path | None, arrays: Arrays) -> Iterator[tuple[str, Any]]:
    facts = case.facts(data)
    if case.program in (CLOSURE, EXAMPLES / "galen.dl"):
        yield "arrays", on_arrays(case, facts, arrays, given.repeats)
    if not case.is_opened:
        return
    for strategy in ("elastic", "recompute"):
        yield f"open gpu {strategy}", opened(case, facts, "gpu", given.jobs, given.repeats, strategy)
    if case.name == "galen":
        yield "open gpu global", opened(case, facts, "gpu", given.jobs, given.repeats, "elastic", "global")
    yield "open kernel elastic", opened(case, facts, "local", given.jobs, 1, "elastic")
    if case.files is not None and data is not None:
        folder = data / case.files
        yield "open gpu Parquet", opened(case, folder, "gpu", given.jobs, 1, "elastic")
        yield "open kernel Parquet", opened(case, folder, "local", given.jobs, 1, "elastic")
    if case.name == "galen":
        yield "ten facts ms", updated(case, facts, given.jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description="strata on a GPU, beside the kernel")
    parser.add_argument("cases", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(case.name for case in CASES)}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="threads of the kernel")
    parser.add_argument("--data", help="folder of benchmark data")
    given = parser.parse_args()
    data = data_folder(given.data)
    device = on_device()
    arrays = device or on_numpy()
    print(f"{arrays.name}; kernel on {given.jobs} threads; code {digest()}", flush=True)
    results = {}
    for case in CASES:
        if given.cases and case.name not in given.cases:
            continue
        results[case.name] = found = dict(measured(case, given, data, arrays))
        prototype, gpulog = case.before
        print(f"{case.name}: prototype {prototype}, GPUlog {gpulog}", flush=True)
        for what, figure in found.items():
            print(f"  {what:22} {figure}", flush=True)
    if device is None:
        return
    keep_results(
        RESULTS,
        {
            "machine": f"{arrays.name}, {platform.processor() or platform.machine()}, {os.cpu_count()} processors",
            "day": datetime.date.today().isoformat(),
            "digest": digest(),
            **results,
        },
    )


if __name__ == "__main__":
    main()
