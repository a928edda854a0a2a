"""How well limits hold: hostile inputs under a limit of memory and one of time.

    python -m benchmarks.limits [--only NAME …] [--memory 256] [--seconds 3]

Each input is opened in a process of its own, forked from one that has everything loaded. Prints a table, and writes
benchmarks/results/limits.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import elastalog
from benchmarks.hostile import CLOSURE, HOSTILE, Hostile

RESULTS = Path(__file__).parent / "results" / "limits.json"
PATIENCE = 20.0
"""After how many times the limit an input is given up."""


@dataclass(frozen=True, slots=True)
class Measured:
    """`code`: of the first diagnostic; `fine` without one. `peak`: MiB of the process, as the limit counts."""

    name: str
    code: str
    peak: float
    seconds: float


def measure(name: str, hostile: Hostile, memory: int, seconds: float) -> Measured:
    """One input in a process of its own."""
    write = hostile.write
    with tempfile.TemporaryDirectory() as folder:
        if write is not None:
            _in_child(lambda: {"written": str(write(Path(folder)))}, 300.0)
        found = _in_child(lambda: _open(hostile, Path(folder), memory, seconds), PATIENCE * seconds + 60)
    if found is None:
        return Measured(name, "did not end", float("nan"), PATIENCE * seconds)
    return Measured(name, str(found["code"]), float(found["peak"]), float(found["seconds"]))


Found: TypeAlias = dict[str, str | float]


def _open(hostile: Hostile, folder: Path, memory: int, seconds: float) -> Found:
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    facts = hostile.facts if hostile.write is None else folder
    began = time.monotonic()
    code = "fine"
    try:
        with elastalog.open(hostile.program, facts, limits=elastalog.Limits(memory=memory, time=seconds)) as db:
            if hostile.update:
                began = time.monotonic()
                db.apply(hostile.update)
    except elastalog.ElastalogError as error:
        code = error.diagnostics[0].code
    except Exception as error:
        code = type(error).__name__
    return {"code": code, "peak": _status("VmHWM") / 1024, "seconds": time.monotonic() - began}


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _in_child(work: Callable[[], Found], patience: float) -> Found | None:
    """What work in a forked process gives; None if it does not end in time, or is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
            os.write(writing, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    is_done = bool(select.select([reading], [], [], patience)[0])
    if not is_done:
        os.kill(child, signal.SIGKILL)
    data = os.read(reading, 1 << 16)
    os.close(reading)
    os.waitpid(child, 0)
    found: Found | None = json.loads(data) if data else None
    return found


def table(found: list[Measured], memory: int, seconds: float) -> str:
    """A row for each input: how far beyond the limits it went."""
    lines = ["| input | ends with | peak, MiB | over memory | seconds | over time |", "|---|---|---:|---:|---:|---:|"]
    for one in found:
        over = max(0.0, one.peak / (memory / (1 << 20)) - 1)
        late = max(0.0, one.seconds - seconds)
        lines.append(f"| {one.name} | {one.code} | {one.peak:.0f} | {over:.0%} | {one.seconds:.1f} | {late:.1f} s |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="names of inputs, or parts of them")
    parser.add_argument("--memory", type=int, default=256, help="MiB")
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    memory = given.memory << 20
    chosen = [name for name in HOSTILE if not given.only or any(part in name for part in given.only)]
    with elastalog.open(CLOSURE, {"e": [(1, 2), (2, 3)]}) as warm:  # operators are loaded
        warm.apply({"e": [(3, 4)]}, {"e": [(1, 2)]})
    found = []
    for name in chosen:
        found.append(measure(name, HOSTILE[name], memory, given.seconds))
        print(found[-1], file=sys.stderr, flush=True)
    print(table(found, memory, given.seconds))
    if not given.only:
        RESULTS.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
