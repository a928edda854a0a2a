"""How long a small program takes from nothing: the command, a session, and its first update, each in a fresh process.

    python -m benchmarks.startup [--rounds N]

Processor time, user and system together, stands beside the time on the clock: others may be at work. Bytecode of the
modules is written to a folder of its own first, as an installation has it, whatever the environment says.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """.decl edge(x: symbol, y: symbol)
.input edge
.decl path(x: symbol, y: symbol)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

BEGIN = """
import json, resource, sys, time
def used():
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime
def say(*more):
    print(json.dumps([used(), len(sys.modules), *more]))
"""

COMMAND = (
    BEGIN
    + """
from elastalog.cli.main import main
sys.argv = ["elastalog", {arguments}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
say()
"""
)

SESSION = (
    BEGIN
    + """
import elastalog
db = elastalog.open("reach.dl", facts=".")
len(db["path"])
before, began = used(), time.perf_counter()
with db.update() as update:
    update.delete("edge", [("b", "c")])
say(used() - before, time.perf_counter() - began)
"""
)

CASES = {
    "python alone": f"{BEGIN}say()",
    "import numpy, pyarrow, click": f"{BEGIN}import numpy, pyarrow, click\nsay()",
    "elastalog --help": COMMAND.format(arguments='"--help"'),
    "elastalog check": COMMAND.format(arguments='"check", "reach.dl"'),
    "elastalog run": COMMAND.format(arguments='"run", "reach.dl"'),
    "a session and its first update": SESSION,
}


def best(script: str, folder: Path, rounds: int) -> tuple[float, list[float]]:
    """Of several runs, the one that took least processor time: its time on the clock, and what it says."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    runs = []
    for _ in range(rounds + 1):  # the first may have to write bytecode
        began = time.perf_counter()
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        runs.append((time.perf_counter() - began, json.loads(done.stdout.splitlines()[-1])))
    return min(runs, key=lambda run: run[1][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print("| what | processor s | clock s | modules |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "reach.dl").write_text(PROGRAM)
        (folder / "edge.facts").write_text("a\tb\nb\tc\nc\td\n")
        for case, script in CASES.items():
            clock, (used, modules, *more) = best(script, folder, rounds)
            print(f"| {case} | {used:.3f} | {clock:.3f} | {modules:.0f} |")
            if more:
                print(f"| of it the first update | {more[0]:.3f} | {more[1]:.3f} | |")


if __name__ == "__main__":
    main()
