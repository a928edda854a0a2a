"""What a newcomer meets: memory of a long-lived session, what-if questions, repairs without an update, a cold start.

`python -m benchmarks.front_door memory [--updates N]`: resident memory while the same facts come and go, without and
with a store. `… questions --data DIR`: `preview`, `uses` and `suggest(over="facts")` on Doop. `… brute`: repairs beside
trying all sets of facts, on small programs. `… cold WHEEL`: a new environment, `pip install` of the wheel, the first
answer and the first update, with empty caches. Prints lines for benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import elastalog
from benchmarks.workloads import BY_NAME, data_folder

PROGRAM = """
.decl edge(from: number, to: number)
.input edge
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""
FIRST = f"""
import time
started = time.perf_counter()
import elastalog
db = elastalog.open({PROGRAM!r}, facts={{"edge": [(1, 2), (2, 3)]}})
assert len(db.query("path(1, X)")) == 2
print(f"first answer {{time.perf_counter() - started:.2f}} s")
started = time.perf_counter()
db.apply({{"edge": [(3, 4)]}})
print(f"first update {{time.perf_counter() - started:.2f}} s")
"""


def resident() -> float:
    """Memory of this process in MB."""
    import psutil

    return float(psutil.Process().memory_info().rss) / 1e6


def memory(updates: int, kinds: Sequence[bool]) -> None:
    """The same ten edges come and go, over and over."""
    edges = [(i, i + 1) for i in range(100)]
    changed = {"edge": [(1000 + i, 1001 + i) for i in range(10)]}
    for has_store in kinds:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store" if has_store else None
            with elastalog.open(PROGRAM, {"edge": edges}, store=elastalog.Store(store, retention=1000)) as db:
                seen = []
                started = time.perf_counter()
                for number in range(updates):
                    db.apply(changed if number % 2 == 0 else None, None if number % 2 == 0 else changed)
                    if (number + 1) % (updates // 10) == 0:
                        seen.append(resident())
                spent = (time.perf_counter() - started) / updates
        where = "with a store" if has_store else "without a store"
        print(f"{where}: {', '.join(f'{mb:.0f}' for mb in seen)} MB; {spent * 1e6:.0f} µs an update", flush=True)


def questions(data: Path, number: int) -> None:
    """What-if questions and repairs on Doop."""
    workload = BY_NAME["doop"]
    chosen = random.Random(17)
    with elastalog.open(workload.program, workload.facts(data)) as db:
        db.engine.warm()
        given = [name for name in db if len(db.explicit(name))]
        some = {name: db.explicit(name).head(2000) for name in given}
        picked = []
        for _ in range(number):
            name = chosen.choice(given)
            picked.append((name, chosen.choice(list(some[name]))))
        asked: dict[str, Callable[[Any], object]] = {
            "preview of a deletion": lambda fact: db.preview(deleted={fact[0]: [fact[1]]}),
            "uses, in one step": lambda fact: list(db.uses(fact)),
            "uses, all": lambda fact: list(db.uses(fact, all=True)),
        }
        for what, ask in asked.items():
            _report(what, [_timed(partial(ask, fact)) for fact in picked])
        derived = sorted(db["VarPointsTo"].head(20000)) if "VarPointsTo" in db else []
        relation = "VarPointsTo"
        if not derived:
            relation = max((name for name in db if name not in given), key=lambda name: len(db[name]))
            derived = sorted(db[relation].head(20000))
        times, proven = [], 0
        for fact in chosen.sample(derived, number):
            started = time.perf_counter()
            found = db.suggest(unwanted=[(relation, fact)], over="facts", time_limit=20)
            times.append(time.perf_counter() - started)
            proven += found.minimum
            print(f"  {relation}: {len(found.elements)} elements, {times[-1]:.2f} s", flush=True)
        _report(f"repair without an update, {proven} of {number} proven minimum", times)


def _timed(ask: Callable[[], object]) -> float:
    started = time.perf_counter()
    ask()
    return time.perf_counter() - started


def _report(what: str, times: Sequence[float]) -> None:
    ordered = sorted(times)
    last = ordered[int(0.95 * (len(ordered) - 1))]
    middle = statistics.median(ordered)
    print(
        f"{what}: median {middle * 1e3:.1f} ms, 95 % {last * 1e3:.1f} ms, most {ordered[-1] * 1e3:.1f} ms", flush=True
    )


def brute(number: int) -> None:
    """Repairs of paths in random graphs of 12 edges, beside trying all sets of edges."""
    ours, theirs = [], []
    for seed in range(number):
        chosen = random.Random(seed)
        pairs = [(a, b) for a in range(7) for b in range(7) if a != b]
        edges = chosen.sample(pairs, 12)
        with elastalog.open(PROGRAM, {"edge": edges}) as db:
            fact: Any = chosen.choice(sorted(db["path"]))
            started = time.perf_counter()
            found = db.suggest(unwanted=[("path", fact)])
            ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        least = next(
            size for size in range(13) if any(_is_cut(edges, gone, fact) for gone in combinations(edges, size))
        )
        theirs.append(time.perf_counter() - started)
        assert (found.minimum, len(found.elements)) == (True, least)
    _report(f"suggest, {number} graphs, sizes equal", ours)
    _report("all sets, in plain Python", theirs)


def _is_cut(edges: Sequence[tuple[int, int]], gone: Sequence[tuple[int, int]], pair: tuple[int, int]) -> bool:
    pending, seen = [pair[0]], set()
    while pending:
        here = pending.pop()
        for a, b in edges:
            if a == here and (a, b) not in gone and b not in seen:
                seen.add(b)
                pending.append(b)
    return pair[1] not in seen


def cold(wheel: str) -> None:
    """From `pip install` to the first update, in a new environment."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= {"XDG_CACHE_HOME": f"{folder}/cache", "HOME": folder}
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
        python = f"{folder}/venv/bin/python"
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
        print(f"pip install {_timed(lambda: subprocess.run(command, check=True, env=environment)):.1f} s", flush=True)
        for when in ("cold", "again"):
            done = subprocess.run([python, "-c", FIRST], env=environment, cwd=folder, capture_output=True, text=True)
            print(f"{when}: {done.stdout.strip().replace(chr(10), ', ')}{done.stderr[-500:]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["memory", "questions", "brute", "cold"])
    parser.add_argument("wheel", nargs="?")
    parser.add_argument("--updates", type=int, default=100_000)
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--data")
    parser.add_argument("--store", choices=["both", "without", "with"], default="both")
    options = parser.parse_args()
    match options.what:
        case "memory":
            kinds = {"both": (False, True), "without": (False,), "with": (True,)}
            memory(options.updates, kinds[options.store])
        case "questions":
            data = data_folder(options.data)
            assert data is not None, "give --data"
            questions(data, options.number)
        case "brute":
            brute(options.number)
        case _:
            cold(options.wheel)


if __name__ == "__main__":
    main()
