"""A short tour of what works, on the example programs: check them all, show what an error looks like, and show how one
program falls into strata."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FAULTY = """\
.decl edge(from: number, to: number)
.decl reach(from: number, to: number)
.decl ok(node: number)

reach(x, y) :- edge(x, y), ok(y).
reach(x, z) :- reach(x, y), egde(y, z), ok(z).
ok(y) :- edge(_, y), !reach(y, y).
"""


def say(text: str) -> None:
    print(f"\n── {text}", flush=True)


def elastalog(*arguments: str, expected: int = 0) -> None:
    """Run one command, shown as a user would type it; end the tour where its exit code is not the expected one."""
    print(f"$ elastalog {' '.join(arguments)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "elastalog.cli", *arguments], cwd=ROOT, check=False)
    if done.returncode != expected:
        raise SystemExit(f"exit code {done.returncode} where {expected} was expected")


def main() -> None:
    say("The example programs are sound.")
    for program in sorted((ROOT / "examples").glob("*.dl")):
        elastalog("check", str(program.relative_to(ROOT)))
    say("A program that is not: an unknown relation, and a relation that depends on its own negation.")
    with tempfile.TemporaryDirectory() as folder:
        faulty = Path(folder) / "reach.dl"
        faulty.write_text(FAULTY, encoding="utf-8")
        elastalog("check", str(faulty), expected=1)
    say("How a pointer analysis falls into strata.")
    elastalog("show", "examples/pointer_analysis_thesis.dl", "--stage", "strata")


if __name__ == "__main__":
    main()
