"""What a table or figure came to here, as JSON with the machine, the commit and the date."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.batch import machine
from benchmarks.papers.items import Item, Settings
from benchmarks.papers.tables import Figures, Plot, Table
from benchmarks.workloads import HERE

RESULTS = HERE / "results" / "papers"


@dataclass(frozen=True, slots=True)
class Record:
    """`load` is the number of processes that wanted a processor when it began, `seconds` what it took by the clock."""

    name: str
    mode: str
    machine: Mapping[str, Any]
    commit: str
    load: float
    seconds: float
    figures: Figures


def take(item: Item, settings: Settings) -> Record:
    """Measures an item now."""
    if item.measure is None:
        raise ValueError(f"{item.name} cannot be measured: {item.why}")
    load, began = os.getloadavg()[0], time.perf_counter()
    figures = item.measure(settings)
    seconds = time.perf_counter() - began
    return Record(item.name, settings.mode, machine(), commit(), round(load, 1), round(seconds, 1), figures)


def keep(record: Record, folder: Path = RESULTS) -> Path:
    file = folder / record.mode / f"{record.name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
    return file


def kept(name: str, folder: Path = RESULTS) -> Record | None:
    """The record of an item at the papers' sizes, or else at reduced ones, or None."""
    for mode in ("full", "quick"):
        file = folder / mode / f"{name}.json"
        if file.exists():
            return _read(json.loads(file.read_text(encoding="utf-8")))
    return None


def _read(given: dict[str, Any]) -> Record:
    figures = given.pop("figures")
    tables = [Table(**table) for table in figures["tables"]]
    plots = [Plot(**plot) for plot in figures["plots"]]
    return Record(**given, figures=Figures(tables, plots, figures["values"]))


def commit() -> str:
    command = ["git", "-C", str(HERE), "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
