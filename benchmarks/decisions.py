"""Decisions: what a small policy costs inside a Python process, in multiples of one insertion into sqlite3 in memory.

`python -m benchmarks.decisions [--rounds N] [--calls] [--profile WHAT]` measures updates, decisions, reasons and
openings of a policy of 30 facts and 4 rules. Each is repeated in short rounds, insertions into sqlite3 among them, and
the best round of each counts: what other processes take is no part of it. `--calls` counts the Python functions that
each calls.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import itertools
import pstats
import sqlite3
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import elastalog
from elastalog import Program

POLICY = """
.decl member(user: symbol, role: symbol)
.decl inherits(role: symbol, other: symbol)
.decl grant(role: symbol, resource: symbol)
.decl denied(user: symbol, resource: symbol)
.decl role(user: symbol, role: symbol)
.decl may(user: symbol, resource: symbol)
.decl ok(user: symbol, resource: symbol)
role(u, r) :- member(u, r).
role(u, s) :- role(u, r), inherits(r, s).
may(u, x) :- role(u, r), grant(r, x).
ok(u, x) :- may(u, x), !denied(u, x).
"""

GOALS = {
    "update": 12.0, "update with changes": 18.0, "membership": 1.5, "prepared decision": 3.0, "query": 25.0,
    "decision with reason": 40.0, "second opening": 60.0,
}  # fmt: skip


def facts() -> dict[str, list[tuple[str, str]]]:
    """30 facts: 12 users in 4 roles, each of which inherits from the one before, 12 grants, 3 denials."""
    return {
        "member": [(f"u{i}", f"r{i % 4}") for i in range(12)],
        "inherits": [(f"r{i}", f"r{i + 1}") for i in range(3)],
        "grant": [(f"r{i % 4}", f"doc{i}") for i in range(12)],
        "denied": [(f"u{i}", f"doc{i}") for i in range(3)],
    }


def operations() -> dict[str, Callable[[], object]]:
    """What is measured, each a function that may be called as often as wanted."""
    program = Program.parse(POLICY)
    given = facts()
    db = elastalog.open(program, given)
    ok = db.prepare("ok(?user, ?resource)")
    relation = db["ok"]
    comes_and_goes = itertools.cycle((True, False))

    def update() -> Any:
        side = "insert" if next(comes_and_goes) else "delete"
        with db.update() as update:
            getattr(update, side)("member", [("guest", "r3")])
        return update

    def update_with_changes() -> object:
        return [list(changed.inserted) + list(changed.deleted) for changed in update().changes.values()]

    return {
        "update": update,
        "update with changes": update_with_changes,
        "membership": lambda: ("u5", "doc7") in relation,
        "prepared decision": lambda: ok("u5", "doc7"),
        "query": lambda: list(db.query('ok("u5", X)')),
        "query with a parameter": lambda: list(db.query("ok(?user, X)", user="u5")),
        "decision with reason": lambda: ok("u5", "doc7", explain=True),
        "decision with reason why not": lambda: ok("u1", "doc1", explain=True),
        "preview": lambda: db.preview({"member": [("guest", "r3")]}),
        "opening": lambda: elastalog.open(POLICY, given).close(),
        "second opening": lambda: elastalog.open(program, given).close(),
    }


def insertion() -> Callable[[], object]:
    """One row into sqlite3 in memory."""
    connection = sqlite3.connect(":memory:")
    connection.execute("create table member (user text, role text)")
    numbers = itertools.count()

    def insert() -> object:
        return connection.execute("insert into member values (?, ?)", (f"u{next(numbers)}", "r1"))

    return insert


def best(operation: Callable[[], object], rounds: int, seconds: float = 0.004) -> float:
    """Seconds of one call, in the best of many short rounds."""
    operation()
    began = time.perf_counter()
    operation()
    calls = max(1, int(seconds / (time.perf_counter() - began)))
    found = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            operation()
        found = min(found, (time.perf_counter() - began) / calls)
    return found


def calls_of(operation: Callable[[], object]) -> int:
    """How many Python functions one call of an operation calls."""
    number = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal number
        number += event == "call"

    operation()
    sys.setprofile(count)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return number - 1


def measure(rounds: int = 60) -> dict[str, tuple[float, float]]:
    """Of each operation its seconds and its multiple of an insertion."""
    found: dict[str, tuple[float, float]] = {}
    gc.collect()
    gc.freeze()
    reference = insertion()
    least = best(reference, rounds)
    taken = {name: best(operation, rounds) for name, operation in operations().items()}
    least = min(least, best(reference, rounds))
    for name, seconds in taken.items():
        found[name] = seconds, seconds / least
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=60)
    arguments.add_argument("--calls", action="store_true")
    arguments.add_argument("--profile")
    given = arguments.parse_args()
    if given.profile:
        operation = operations()[given.profile]
        for _ in range(100):
            operation()
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(1000):
            operation()
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        return
    counted: dict[str, int] = {}
    if given.calls:  # at first things are laid out that stay
        counted = {name: min(calls_of(operation) for _ in range(6)) for name, operation in operations().items()}
    for name, (seconds, multiple) in measure(given.rounds).items():
        goal = f"{GOALS[name]:6.1f}" if name in GOALS else "      "
        calls = f"{counted[name]:8,} calls" if counted else ""
        print(f"{name:30}{seconds * 1e6:10.2f} µs {multiple:9.2f} {goal}{calls}")


if __name__ == "__main__":
    main()
