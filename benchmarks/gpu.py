"""Strata on a GPU, beside the kernel on the same machine.

`python -m benchmarks.gpu [WORKLOAD ...] [--repeats N] [--jobs N] [--data DIR] [--arrays]` measures, in one process,

- the largest stratum on the device, from words in memory to words, levels and counts in memory (`arrays`): least
  seconds, those of them in which nothing but copies went on, rounds, the most device memory; where what it reads is
  derived, too, that is computed before, and the kernel evaluates the same stratum alone beside it (`kernel alone`);
- opening a session from tables in memory, and from Parquet, with the GPU and with the kernel on all processors;
- updates of ten facts in this process after a bootstrap on the device.

Sessions of more than 200 million facts are not opened. What the kernel does, and what is only a variation, is run once;
all else `--repeats` times. After every workload it writes benchmarks/results/gpu.json with the machine, the day and a
digest of the code that was measured; figures of other code are dropped. Without a GPU it measures NumPy in its place,
says so, and writes nothing. Exit code 1 if a count is wrong.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import gc
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import elastalog
from benchmarks.workloads import BY_NAME, EXAMPLES, HERE, Facts, data_folder
from elastalog.backends.annotation import Annotation
from elastalog.backends.gpu.arrays import Arrays, on_device, on_numpy
from elastalog.backends.gpu.place import DevicePlace
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.planning.lower import lower
from elastalog.program import Program
from elastalog.relations.words import Dictionary

RESULTS = HERE / "results" / "gpu.json"
MEASURED = HERE.parent / "src" / "elastalog" / "backends" / "gpu"
CLOSURE = EXAMPLES / "transitive_closure.dl"
MOST_OPENED = 200_000_000
"""Facts of a session that is opened."""


@dataclass(frozen=True, slots=True)
class Case:
    """`facts` are read from the data folder. `sizes`: what its relations hold in the end. `before`: seconds of the
    prototype and of GPUlog, as printed. `is_given`: what its largest stratum reads are the facts that are given, and
    these are numbers. `parquet`: the facts as files, by the data folder; None if they are generated."""

    name: str
    program: Path
    facts: Callable[[Path | None], Facts]
    sizes: dict[str, int]
    before: tuple[float | None, float | None] = (None, None)
    is_given: bool = False
    parquet: Callable[[Path], Any] | None = None

    @property
    def is_opened(self) -> bool:
        """Whether a session of it is opened."""
        return sum(self.sizes.values()) <= MOST_OPENED


def _graph(name: str, file: str, size: int, prototype: float | None = None, gpulog: float | None = None) -> Case:
    def facts(data: Path | None) -> Facts:
        import pyarrow.parquet as pq

        assert data is not None
        return {"edge": pq.read_table(data / "graphs" / file)}

    return Case(f"closure-{name}", CLOSURE, facts, {"path": size}, (prototype, gpulog), True, facts)


def _known(name: str, prototype: float | None = None, folder: str | None = None, is_given: bool = False) -> Case:
    workload = BY_NAME[name]
    parquet = None if folder is None else lambda data: data / folder
    return Case(name, workload.program, workload.facts, dict(workload.expected), (prototype, None), is_given, parquet)


CASES = (
    _known("galen", 0.61, "galen", is_given=True),
    _known("doop", folder="doop"),
    _known("crdt", folder="crdt"),
    _known("el-completion-large", is_given=True),
    _known("points-to"),
    _known("same-generation-OL"),
    _graph("OL", "OL.cedge_7035.parquet", 146_120),
    _graph("TG", "TG.cedge_23874.parquet", 481_121),
    _graph("cal", "cal.cedge_21693.parquet", 501_755),
    _graph("Facebook", "ego-Facebook_88234.parquet", 2_508_102),
    _graph("CA-HepTh", "CA-HepTh_51971.parquet", 74_619_885, 0.10, 0.33),
    _graph("SF", "SF.cedge_223001.parquet", 80_498_014, 0.53, 0.79),
    _graph("Gnutella", "p2p-Gnutella04_39994.parquet", 47_059_527, 0.08, 0.18),
    _graph("wiki", "wiki-Vote_103689.parquet", 11_947_132, 0.05, 0.14),
    _graph("luxembourg", "luxembourg_osm_119666.parquet", 5_022_084, 0.47),
    _graph("usroads", "usroads_165435.parquet", 871_365_688, 7.5, 9.8),
)


@dataclass(frozen=True, slots=True)
class Alone:
    """A stratum by itself: what it reads, and the explicit facts of its own, as words. `sizes`: what its relations
    hold in the end, as far as that is known."""

    stratum: LogicalStratum
    program: LogicalProgram
    words: dict[str, npt.NDArray[np.int32]]
    dictionary: Dictionary
    sizes: dict[str, int]


CHOOSING = ("place.py", "starting.py")
"""Files that decide what goes to the device, and when: no figure of a stratum on the device depends on them."""


def digest(folder: Path = MEASURED) -> str:
    """Of the code that evaluates strata on a device, whatever its layout, comments, imports and annotations."""
    found = blake2b(digest_size=12)
    for file in sorted((*folder.glob("*.py"), *folder.glob("*.cu"))):
        if file.name in CHOOSING:
            continue
        text = file.read_text(encoding="utf-8")
        code = text if file.suffix == ".cu" else repr(_plain(ast.parse(text)))
        found.update(f"{file.name} {code}".encode())
    return found.hexdigest()


def _plain(part: object) -> object:
    """A syntax tree without what does not run, in the same words in all versions of Python."""
    if isinstance(part, list):
        kept = [one for one in part if not isinstance(one, ast.Import | ast.ImportFrom)]
        return [_plain(one) for one in kept if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    if not isinstance(part, ast.AST):
        return part
    fields = {name: value for name, value in ast.iter_fields(part) if name not in _NOT_RUN and value not in (None, [])}
    return type(part).__name__, *((name, _plain(value)) for name, value in fields.items())


_NOT_RUN = ("annotation", "returns", "type_params", "type_comment", "kind")


def from_given(case: Case, facts: Facts) -> Alone:
    """The recursive stratum of a case whose facts are numbers, and all that it reads."""
    program = lower(Program.load(case.program).checked)
    (stratum,) = (one for one in program.strata if set(case.sizes) & set(one.relations) and one.is_recursive)
    words: dict[str, Any] = {
        name: np.empty((0, program.relations[name].width), np.int32) for name in (*stratum.reads, *stratum.relations)
    }
    for name, table in facts.items():
        columns = [column.to_numpy().astype(np.int32) for column in table.columns]
        words[name] = np.unique(np.column_stack(columns), axis=0)
    return Alone(stratum, program, words, Dictionary(), case.sizes)


def from_derived(case: Case, facts: Facts, jobs: int) -> Alone:
    """The recursive stratum of a case that holds most facts, and all that it reads, as the kernel computes it."""
    with elastalog.open(case.program, facts, engine="local", jobs=jobs) as db:
        backend = db._backend
        strata = [stratum for stratum in backend.program.strata if stratum.is_recursive]
        sizes = {one.number: {name: backend.size(name) for name in one.relations} for one in strata}
        stratum = max(strata, key=lambda one: sum(sizes[one.number].values()))
        words = {name: backend.facts(name).words.copy() for name in stratum.reads}
        for name in stratum.relations:
            there = backend.facts(name)
            words[name] = there.words[there.level == 0]
        return Alone(stratum, backend.program, words, db._dictionary, sizes[stratum.number])


def on_arrays(case: Case, alone: Alone, arrays: Arrays, repeats: int) -> dict[str, Any]:
    """A stratum on the device, from words in memory to words in memory."""
    stratum = alone.stratum
    seconds: list[float] = []
    cost: Any = None
    for _ in range(repeats):
        gc.collect()
        source = alone.program.checked.source
        place = DevicePlace(arrays, alone.dictionary, source, Watch(), is_asked=True, goes_to_the_end=True)
        began = time.perf_counter()
        begun = place.evaluate(stratum, alone.words, {})
        seconds.append(time.perf_counter() - began)
        if begun is None:
            return {"seconds": None}  # the log says why
        _require(case, {name: len(found.words) for name, found in begun.relations.items()}, alone.sizes)
        del begun
        if cost is None or seconds[-1] == min(seconds):
            cost = place.costs[stratum.number]
    return {
        "seconds": min(seconds), "transfer": cost.transfer, "rounds": cost.rounds, "derivations": cost.derivations,
        "peak_gib": round(cost.peak / 2**30, 2), "first": seconds[0], "relations": len(stratum.relations),
    }  # fmt: skip


def in_kernel(case: Case, alone: Alone, jobs: int) -> dict[str, Any]:
    """The same in the kernel."""
    backend = KernelBackend(alone.program, alone.dictionary, annotation=Annotation(), jobs=jobs)
    backend.load(dict(alone.words))
    began = time.perf_counter()
    backend.bootstrap(alone.stratum)
    seconds = time.perf_counter() - began
    _require(case, {name: backend.size(name) for name in alone.stratum.relations}, alone.sizes)
    return {"seconds": seconds}


def opened(
    case: Case, facts: Callable[[], Any], engine: str, jobs: int, repeats: int = 1, **options: Any
) -> dict[str, Any]:
    """Opening a session, from tables in memory or from files."""
    seconds = []
    device = 0.0
    for _ in range(repeats):
        gc.collect()
        began = time.perf_counter()
        with elastalog.open(case.program, facts(), engine=engine, jobs=jobs, **options) as db:
            seconds.append(time.perf_counter() - began)
            _require(case, {name: len(db[name]) for name in case.sizes}, case.sizes)
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
        _require(case, {name: len(db[name]) for name in case.sizes}, case.sizes)
    return statistics.median(took) * 1e3


def _require(case: Case, counts: dict[str, int], sizes: dict[str, int]) -> None:
    for name, size in counts.items():
        if sizes.get(name, size) != size:
            sys.exit(f"{case.name}: {name} has {size:,} facts, not {sizes[name]:,}")


def measured(case: Case, given: argparse.Namespace, data: Path | None, arrays: Arrays) -> Iterator[tuple[str, Any]]:
    facts = case.facts(data)
    jobs, repeats = given.jobs, given.repeats
    alone = from_given(case, facts) if case.is_given else from_derived(case, facts, jobs)
    yield "arrays", on_arrays(case, alone, arrays, repeats)
    if not case.is_given:
        yield "kernel alone", in_kernel(case, alone, jobs)
    del alone
    if not case.is_opened or given.arrays:
        return
    yield "open gpu elastic", opened(case, lambda: facts, "gpu", jobs, repeats)
    yield "open gpu recompute", opened(case, lambda: facts, "gpu", jobs, strategy="recompute")
    yield "open auto", opened(case, lambda: facts, "auto", jobs)
    if case.name == "galen":
        yield "open gpu global", opened(case, lambda: facts, "gpu", jobs, levels="global")
    yield "open kernel elastic", opened(case, lambda: facts, "local", jobs)
    if case.parquet is not None and data is not None:
        files = partial(case.parquet, data)
        yield "open gpu Parquet", opened(case, files, "gpu", jobs)
        yield "open kernel Parquet", opened(case, files, "local", jobs)
    if case.name == "galen":
        yield "ten facts ms", updated(case, facts, jobs)


def _known_figures(machine: str) -> dict[str, Any]:
    """The figures of this code on such a machine that are there, and what they were taken with."""
    about = {"machine": machine, "day": datetime.date.today().isoformat(), "digest": digest()}
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    is_same = all(kept.get(what) == about[what] for what in ("machine", "digest"))
    return {**(kept if is_same else {}), **about}


def main() -> None:
    parser = argparse.ArgumentParser(description="strata on a GPU, beside the kernel")
    parser.add_argument("cases", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(case.name for case in CASES)}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--arrays", action="store_true", help="open no sessions")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="threads of the kernel")
    parser.add_argument("--data", help="folder of benchmark data")
    given = parser.parse_args()
    data = data_folder(given.data)
    device = on_device()
    arrays = device or on_numpy()
    print(f"{arrays.name}; kernel on {given.jobs} threads; code {digest()}", flush=True)
    machine = f"{arrays.name}, {platform.processor() or platform.machine()}, {os.cpu_count()} processors"
    results = _known_figures(machine)
    began = time.perf_counter()
    for case in CASES:
        if given.cases and case.name not in given.cases:
            continue
        prototype, gpulog = case.before
        print(f"{case.name}: prototype {prototype}, GPUlog {gpulog}", flush=True)
        figures = results[case.name] = {}
        for what, figure in measured(case, given, data, arrays):
            figures[what] = figure
            print(f"  {what:22} {figure}", flush=True)
        print(f"  {time.perf_counter() - began:.0f} s so far", flush=True)
        if device is not None:
            RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
