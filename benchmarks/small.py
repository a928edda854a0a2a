"""Small updates: what one fact, and ten facts, cost from `db.apply` to the changes it returns.

`python -m benchmarks.small [CASE ...] [--data DIR] [--epochs N] [--beside SOURCES] [--turns N]` prints milliseconds of
the processor at the median, and below which nine of ten lie. Cases: `closure` (chains of two edges: an update changes
one derived fact), `doop`, `crdt`. Facts are explicit ones at random, deleted and inserted again by turns, given as
lists of tuples and as Arrow tables. `--beside` names the `src` of another checkout: both are measured by turns, each
time in a process of its own, and the ratio is that of the medians of turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.updates import CHAINS, Cycle
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, Facts, as_tables, data_folder

FORMS: Mapping[str, Callable[[Any], Any]] = {
    "tuples": lambda table: list(zip(*(column.to_pylist() for column in table.columns), strict=True)),
    "tables": lambda table: table,
}
SIZES = (1, 10)
CHAINED = 300_000
"""Chains of the closure."""

Figures = dict[str, tuple[float, float]]
"""The median, and below what nine of ten are, by what was measured."""


def case(name: str, data: str | None) -> tuple[str | Path, Facts]:
    """A program and its facts."""
    if name == "closure":
        starts = np.arange(CHAINED, dtype=np.int64) * 3
        edges = np.concatenate([np.stack([starts, starts + 1], 1), np.stack([starts + 1, starts + 2], 1)])
        return CHAINS, as_tables({"e": edges})
    work = BY_NAME[name]
    return work.program, work.facts(data_folder(data))


def measure(name: str, data: str | None, epochs: int) -> Figures:
    """Every size in every form, as many epochs of each."""
    import elastalog

    program, facts = case(name, data)
    cycle = Cycle(facts)
    found: Figures = {}
    with elastalog.open(program, facts=facts, engine="local") as db:
        db.engine.warm()
        for size in SIZES:
            for form, shaped in FORMS.items():
                cost: list[float] = []
                for seed in range(epochs // 2):
                    chosen = {name: shaped(table) for name, table in cycle.choose(size, seed).items()}
                    cost += _seconds(db, {"deleted": chosen}), _seconds(db, {"inserted": chosen})
                found[f"{name}, {size} as {form}"] = statistics.median(cost) * 1e3, float(np.percentile(cost, 90)) * 1e3
    return found


def _seconds(db: Any, update: Mapping[str, Any]) -> float:
    """Of the processor. Garbage of other epochs is no part of it."""
    gc.disable()
    began = time.process_time()
    changes = db.apply(**update)
    seconds = time.process_time() - began
    gc.enable()
    assert changes.impact >= 0
    return seconds


def measure_in(sources: Path, name: str, given: argparse.Namespace) -> Figures:
    """The same by other sources, in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.small", name, "--epochs", str(given.epochs), "--json"]
    if given.data is not None:
        command += ["--data", given.data]
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    done = subprocess.run(command, cwd=HERE.parent, env=environment, capture_output=True, text=True, check=True)
    figures: dict[str, list[float]] = json.loads(done.stdout)
    return {told: (median, most) for told, (median, most) in figures.items()}


def compare(name: str, given: argparse.Namespace) -> None:
    """This checkout and another, by turns."""
    here: dict[str, list[float]] = {}
    there: dict[str, list[float]] = {}
    for _ in range(given.turns):
        for sources, kept in ((given.beside, there), (HERE.parent / "src", here)):
            for told, (median, _) in measure_in(sources.resolve(), name, given).items():
                kept.setdefault(told, []).append(median)
    for told, medians in here.items():
        before, now = statistics.median(there[told]), statistics.median(medians)
        spread = " ".join(f"{old:.3f}>{new:.3f}" for old, new in zip(there[told], medians, strict=True))
        print(
            f"{told:24s} {before:9.3f} ms there {now:9.3f} ms here   {before / now:5.2f} times   {spread}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="what updates of one and of ten facts cost")
    parser.add_argument("cases", nargs="*", metavar="CASE", default=["closure", "doop", "crdt"])
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--beside", type=Path, metavar="SOURCES", help="the `src` of another checkout")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print figures for a program to read")
    given = parser.parse_args()
    if not given.json:
        print(f"load {os.getloadavg()[0]:.1f}")
    for name in given.cases:
        if given.beside is not None:
            compare(name, given)
            continue
        figures = measure(name, given.data, given.epochs)
        if given.json:
            print(json.dumps(figures))
            continue
        for told, (median, most) in figures.items():
            print(f"{told:24s} {median:9.3f} ms at the median {most:9.3f} ms for nine of ten", flush=True)


if __name__ == "__main__":
    main()
