"""Batch evaluation: every workload, on Elastalog and beside it on the prototype and DuckDB where they can express it.

`python -m benchmarks.batch [WORKLOAD ...] [--data DIR] [--prototype DIR] [--jobs N] [--repeats N]` prints a table,
writes benchmarks/results/batch.json and draws benchmarks/plots/batch.png. Exit code 1 if a count is wrong or an engine
fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from os import cpu_count

from benchmarks.engines.protocol import Options
from benchmarks.measure import ENGINES, Measurement, measure
from benchmarks.plot import draw_bars
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, WORKLOADS, data_folder

# Minutes each: only when named.
LONG = frozenset({"galen", "closure-25M", "el-completion-large"})
MEBIBYTE = 1 << 20


def table(rows: Sequence[Measurement]) -> str:
    """One line a measurement; the ratio is to Elastalog's least time on the same workload, in the same run."""
    ours: Mapping[str, float] = {row.workload: row.least for row in rows if row.engine == "elastalog" and row.seconds}
    head = ("workload", "engine", "jobs", "min s", "median s", "max s", "ratio", "peak MiB", "facts counted")
    lines: list[tuple[str, ...]] = [head]
    for row in rows:
        if not row.seconds:
            lines.append((row.workload, row.engine, str(row.jobs), row.problem or "nothing measured", *[""] * 5))
            continue
        ratio = f"{row.least / ours[row.workload]:.2f}" if row.workload in ours else ""
        times = (f"{row.least:.3f}", f"{row.median:.3f}", f"{row.most:.3f}")
        facts = row.problem or f"{sum((row.counts or {}).values()):,}"
        lines.append((row.workload, row.engine, str(row.jobs), *times, ratio, f"{row.peak / MEBIBYTE:.0f}", facts))
    # A problem takes the place of the times, and need not widen their columns.
    widths = [max(len(line[column]) for line in lines if line[4]) for column in range(len(head))]
    widths[:2] = [max(len(line[column]) for line in lines) for column in range(2)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def machine() -> dict[str, object]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": cpu_count(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="batch evaluation, side by side")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(BY_NAME)}")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument(
        "--data", help=f"folder of the data sets (default: ${DATA_VARIABLE}); without: generated facts only"
    )
    parser.add_argument("--prototype", help="folder of the kernel's prototype")
    parser.add_argument("--jobs", type=int, default=1, help="threads (default 1)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=900, help="seconds a workload and engine may take in all")
    given = parser.parse_args()
    unknown = [name for name in given.workloads if name not in BY_NAME]
    if unknown:
        parser.error(f"no such workload: {', '.join(unknown)}")
    data = data_folder(given.data)
    options = Options(given.jobs, given.prototype)
    names = given.workloads or [work.name for work in WORKLOADS if work.name not in LONG and work.is_available(data)]

    rows: list[Measurement] = []
    for name in names:
        for engine in given.engines:
            if engine == "prototype" and given.prototype is None:
                continue
            print(f"{name} on {engine} ...", file=sys.stderr, flush=True)
            row = measure(engine, name, data=data, options=options, repeats=given.repeats, timeout=given.timeout)
            if row.problem != "not expressible":
                rows.append(row)
    print(table(rows))

    results = HERE / "results" / "batch.json"
    results.parent.mkdir(exist_ok=True)
    record = {
        "machine": machine(),
        "options": asdict(options) | {"prototype": None},
        "rows": [asdict(row) for row in rows],
    }
    results.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    series = {
        engine: {row.workload: row.least for row in rows if row.engine == engine and row.seconds} for engine in ENGINES
    }
    draw_bars(HERE / "plots" / "batch.png", f"batch evaluation, {given.jobs} thread(s)", "seconds", series)
    if any(row.problem for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
