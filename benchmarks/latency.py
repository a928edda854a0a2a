"""How long single updates take, one by one: medians and tails, and what the longest pauses are made of.

`python -m benchmarks.latency [--facts N] [--updates N] [--no-store] [--readers N]` keeps the closure of chains, a
million facts unless said otherwise, in a store, with readers beside that decide and query all the time, and updates it
one edge at a time. Prints the median, p99, p99.9 and the longest of the time that passed, and of what the updating
thread had of the processor; the longest updates, and how often garbage was collected. On a machine with other work the
time that passed tells of that, too. What was opened is frozen for the collector (`gc.freeze`), as a service should.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import elastalog
from benchmarks.updates import CHAINS


def measure(facts: int, updates: int, store: Path | None, readers: int) -> None:
    chains = facts // 5
    starts = np.arange(chains, dtype=np.int64) * 3
    edges = np.concatenate([np.stack([starts, starts + 1], 1), np.stack([starts + 1, starts + 2], 1)])
    with elastalog.open(CHAINS, {"e": edges}, store=store, engine="local") as db:
        db.engine.warm()
        gc.collect()
        gc.freeze()
        print(f"{sum(len(db[name]) for name in db):,} facts")
        is_over = threading.Event()
        decided = [0] * readers
        threads = [threading.Thread(target=_read, args=(db, is_over, decided, i), daemon=True) for i in range(readers)]
        for thread in threads:
            thread.start()
        collected: list[tuple[float, int]] = []
        gc.callbacks.append(lambda phase, info: collected.append((time.perf_counter(), info["generation"])))
        passed, used = np.empty(updates), np.empty(updates)
        began = time.perf_counter()
        for i in range(updates):
            edge = {"e": [(3 * (i % chains) + 1, 3 * (i % chains) + 2)]}
            before, cpu = time.perf_counter(), time.thread_time()
            if i % 2:
                db.apply({"e": [(3 * ((i - 1) % chains) + 1, 3 * ((i - 1) % chains) + 2)]})
            else:
                db.apply(deleted=edge)
            passed[i], used[i] = time.perf_counter() - before, time.thread_time() - cpu
        seconds = time.perf_counter() - began
        gc.callbacks.pop()
        is_over.set()
        for thread in threads:
            thread.join()
    print(f"{updates:,} updates in {seconds:.1f} s, {sum(decided):,} decisions beside")
    for name, times in (("passed", passed), ("of the processor", used)):
        shown = [float(np.percentile(times, at)) * 1e3 for at in (50, 99, 99.9, 100)]
        print(
            f"{name:18} median {shown[0]:8.3f} ms  p99 {shown[1]:8.3f}  p99.9 {shown[2]:8.3f}  longest {shown[3]:8.3f}"
        )
    for i in np.argsort(passed)[::-1][:8]:
        print(f"  update {i:7,}: {passed[i] * 1e3:8.3f} ms, of the processor {used[i] * 1e3:8.3f}")
    generations = [generation for _, generation in collected[::2]]
    print("collections of garbage by generation:", [generations.count(g) for g in range(3)])


def _read(db: elastalog.Session, is_over: threading.Event, decided: list[int], number: int) -> None:
    is_path, reached = db.prepare("p(?a, ?b)"), db.prepare("p(?a, X)")
    while not is_over.is_set():
        is_path(3 * decided[number], 3 * decided[number] + 2)
        if decided[number] % 100 == 0:
            reached(3)
        decided[number] += 1
        time.sleep(0.001)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--facts", type=int, default=1_000_000)
    arguments.add_argument("--updates", type=int, default=100_000)
    arguments.add_argument("--no-store", action="store_true")
    arguments.add_argument("--readers", type=int, default=2)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given.facts, given.updates, None if given.no_store else Path(folder) / "store", given.readers)


if __name__ == "__main__":
    main()
