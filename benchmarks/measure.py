"""Time and peak memory of one engine on one workload, in a fresh process.

`python -m benchmarks.measure ENGINE WORKLOAD` measures in this process and prints one line of JSON; `measure` starts
that. Time runs from facts in memory to all derived facts, without output. Peak memory is that of the process after the
first evaluation; `before` is what it was just before, with facts and libraries loaded.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from benchmarks.engines.protocol import Engine, NotExpressibleError, Options
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, data_folder

ENGINES = {"elastalog": "product", "prototype": "prototype", "duckdb": "duck"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """`problem` says why there is nothing to report: not expressible, a wrong count, a failure, or out of time."""

    engine: str
    workload: str
    jobs: int
    seconds: tuple[float, ...] = ()
    counts: Mapping[str, int] | None = None
    before: int = 0
    peak: int = 0
    problem: str | None = None

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def most(self) -> float:
        return max(self.seconds)


def measure(
    engine: str, workload: str, *, data: Path | None, options: Options, repeats: int, timeout: float = 1800
) -> Measurement:
    """Measure in a fresh process; never raises for what goes wrong there."""
    command = [sys.executable, "-m", "benchmarks.measure", engine, workload]
    command += ["--jobs", str(options.jobs), "--repeats", str(repeats)]
    command += ["--data", str(data)] if data else []
    command += ["--prototype", options.prototype] if options.prototype else []
    failed = Measurement(engine, workload, options.jobs)
    try:
        done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return _with_problem(failed, f"more than {timeout:.0f} s")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return _with_problem(failed, lines[-1] if lines else f"exit code {done.returncode}")
    result = json.loads(done.stdout.strip().splitlines()[-1])
    return Measurement(**{**result, "seconds": tuple(result["seconds"])})


def measure_here(engine: str, workload: str, *, data: Path | None, options: Options, repeats: int) -> Measurement:
    """Measure in this process."""
    work = BY_NAME[workload]
    relations = sorted(work.expected) or _outputs(work.program)
    module = cast(Engine, importlib.import_module(f"benchmarks.engines.{ENGINES[engine]}"))
    nothing = Measurement(engine, workload, options.jobs)
    facts = work.facts(data)
    try:
        evaluate = module.prepare(work, facts, relations, options)
    except NotExpressibleError:
        return _with_problem(nothing, "not expressible")
    before = _peak_memory()
    peak, seconds, counts = 0, [], dict[str, int]()
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        counts = dict(evaluate())
        seconds.append(time.perf_counter() - start)
        peak = peak or _peak_memory()
    wrong = {name: count for name, count in counts.items() if work.expected.get(name, count) != count}
    problem = f"wrong counts: {wrong}" if wrong else None
    return Measurement(engine, workload, options.jobs, tuple(seconds), counts, before, peak, problem)


def _outputs(program: Path) -> list[str]:
    lines = program.read_text(encoding="utf-8").splitlines()
    names = [line.removeprefix(".output ") for line in lines if line.startswith(".output ")]
    return [name.strip() for line in names for name in line.split(",")]


def _with_problem(measurement: Measurement, problem: str) -> Measurement:
    return Measurement(measurement.engine, measurement.workload, measurement.jobs, problem=problem)


def _peak_memory() -> int:
    """Bytes. Linux counts in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="measure one engine on one workload, in this process")
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("workload", choices=BY_NAME)
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--prototype", help="folder of the kernel's prototype")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    options = Options(given.jobs, given.prototype)
    data = data_folder(given.data)
    result = measure_here(given.engine, given.workload, data=data, options=options, repeats=given.repeats)
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main()
