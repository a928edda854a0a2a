"""What a store costs: commits of ten facts, opening, and room on the disk.

    python -m benchmarks.store [WORKLOAD] [--data DIR] [--folder DIR] [--rounds N]

The price of durability is what a commit takes beyond the update in memory, which the epoch's record times on its own.
Opening is compared with reading the same Parquet files, in one thread, into Arrow tables. Files are in the cache of the
system in both cases. The table that finds symbols is made when the first one is looked for, which is timed apart.
"""

from __future__ import annotations

import argparse
import gc
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import elastalog
from benchmarks.workloads import BY_NAME, data_folder
from elastalog.analysis.program import Value
from elastalog.session import Session
from elastalog.storage.manifest import Manifest, read_manifest

FACTS_IN_UPDATE = 10


def commit_times(
    session: Session, relation: str, facts: list[tuple[Value, ...]], rounds: int
) -> tuple[list[float], list[float], list[int]]:
    """Seconds in memory, seconds beyond that, and impact, of updates that take facts out and put them back."""
    chosen = random.Random(1)
    inside, beyond, impacts = [], [], []
    for _ in range(rounds):
        some = chosen.sample(facts, FACTS_IN_UPDATE)
        for inserted, deleted in (([], some), (some, [])):
            update = session.update()
            update.delete(relation, deleted)
            update.insert(relation, inserted)
            began = time.perf_counter()
            update.commit()
            total = time.perf_counter() - began
            inside.append(update.stats.seconds)
            beyond.append(total - update.stats.seconds)
            impacts.append(update.stats.impact)
    return inside, beyond, impacts


def commits_beside_a_snapshot(
    session: Session, relation: str, facts: list[tuple[Value, ...]]
) -> tuple[list[float], float]:
    """Seconds of commits, beyond the update in memory, while a snapshot is written and until it is in force; and how
    long that took."""
    assert session._history.durable is not None
    store = session._history.durable.store
    snapshots = len(store.manifest.snapshots)
    coming = store.begin_snapshot(session._dictionary)
    assert coming is not None
    began = time.perf_counter()
    coming.start()
    beyond = []
    while len(store.manifest.snapshots) == snapshots:
        beyond += commit_times(session, relation, facts, 1)[1]
    return beyond, time.perf_counter() - began


def first_lookup_time(store: Path) -> float:
    """The time to look for a symbol in a store just opened."""
    with elastalog.open(store=elastalog.Store(store, read_only=True)) as session:
        began = time.perf_counter()
        session._dictionary.symbols.find("no such symbol")
        return time.perf_counter() - began


def opening_time(store: Path, repeats: int = 3) -> float:
    """The least time to open a store."""
    times = []
    for _ in range(repeats):
        gc.collect()
        began = time.perf_counter()
        session = elastalog.open(store=store)
        times.append(time.perf_counter() - began)
        session.close()
        del session
    return min(times)


def reading_time(store: Path, manifest: Manifest, repeats: int = 3) -> float:
    """The least time to read the Parquet files that opening needs."""
    import pyarrow.parquet as pq

    latest = manifest.snapshots[-1].relations.values()
    files = [*latest, *(segment.file for segment in (*manifest.symbols, *manifest.patterns))]
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        tables = [pq.read_table(store / file.name, use_threads=False) for file in files]
        times.append(time.perf_counter() - began)
        del tables
    return min(times)


def measure(name: str, data: Path | None, store: Path, rounds: int) -> list[tuple[str, str]]:
    """The figures of one workload, as a table."""
    workload = BY_NAME[name]
    facts = workload.facts(data)
    began = time.perf_counter()
    session = elastalog.open(workload.program, facts=facts, store=store)
    making = time.perf_counter() - began
    bootstrap = session._history.records[-1].seconds
    number = sum(len(session[relation]) for relation in session)
    largest = max(facts, key=lambda relation: len(session.explicit(relation)))
    manifest = read_manifest(store)
    fresh = opening_time_of_closed(session, store)
    reading = reading_time(store, manifest)
    session = elastalog.open(store=store)
    candidates = sorted(session.explicit(largest))
    commit_times(session, largest, candidates, 2)  # the first updates make indexes
    inside, beyond, impacts = commit_times(session, largest, candidates, rounds)
    beside, writing = commits_beside_a_snapshot(session, largest, candidates)
    journal = sum(file.stat().st_size for file in store.glob("journal-*"))
    after = opening_time_of_closed(session, store)
    symbols = sum(segment.file.bytes for segment in (*manifest.symbols, *manifest.patterns))
    snapshot = manifest.snapshots[0].bytes
    return [
        ("facts", f"{number:,}"),
        ("bootstrap", f"{bootstrap:.2f} s"),
        ("making the store, reading facts included", f"{making:.2f} s"),
        ("relations on disk", f"{snapshot:,} bytes, {snapshot / number:.2f} a fact"),
        ("dictionary on disk", f"{symbols:,} bytes, {symbols / number:.2f} a fact"),
        ("update of ten facts in memory, median", f"{1000 * statistics.median(inside):.1f} ms"),
        ("impact of such an update, median", f"{statistics.median(impacts):,.0f} facts"),
        ("commit beyond that, median", f"{1000 * statistics.median(beyond):.1f} ms"),
        ("commit beyond that, worst", f"{1000 * max(beyond):.1f} ms"),
        ("commit while a snapshot is written, worst", f"{1000 * max(beside):.1f} ms of {len(beside)}"),
        ("snapshot, beside the commits", f"{writing:.2f} s"),
        ("journals", f"{journal:,} bytes after {2 * (rounds + 2) + len(beside)} epochs"),
        ("opening, without a journal", f"{fresh:.2f} s"),
        ("opening, with the journal", f"{after:.2f} s"),
        ("first symbol looked for", f"{1000 * first_lookup_time(store):.0f} ms"),
        ("reading the Parquet files", f"{reading:.2f} s"),
        ("ratio", f"{fresh / reading:.2f}"),
    ]


def opening_time_of_closed(session: Session, store: Path) -> float:
    """Closes a session and times opening its store."""
    session.close()
    return opening_time(store)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="?", default="closure-1M", choices=sorted(BY_NAME))
    parser.add_argument("--data", help="folder of benchmark data")
    parser.add_argument("--folder", type=Path, help="where to make the store; a temporary folder by default")
    parser.add_argument("--rounds", type=int, default=25)
    given = parser.parse_args(arguments)
    if given.folder is not None:
        Path(given.folder).mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="elastalog-store-", dir=given.folder))
    try:
        for label, value in measure(given.workload, data_folder(given.data), root / "store", given.rounds):
            print(f"{label:<45}{value}")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
