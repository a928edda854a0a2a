"""A service under load: reads during commits, listeners of the change feed, previews and proofs.

`python -m benchmarks.web [--workload doop] --data DIR [--seconds N] [--listeners N]` starts `elastalog serve` in a
process of its own, on a store, and asks it over HTTP: reads a second, and the latency of reads and of commits (median,
99th of a hundred), while a writer commits ten facts ten times a second; listeners, a tenth of which break off and come
back all the time, and what they missed or heard twice; a preview of ten facts; the proof of a row. Without data, a
generated workload: `--workload points-to`. Writes benchmarks/results/web.json.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import elastalog
from benchmarks.keep import keep_results
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, Workload, data_folder
from elastalog.client.transport import Transport

TOKEN = "benchmark"
FACTS_A_COMMIT, COMMITS_A_SECOND = 10, 10


@dataclass(slots=True)
class Latencies:
    """How long something took, in milliseconds."""

    name: str
    taken: list[float] = field(default_factory=list)

    def add(self, seconds: float) -> None:
        self.taken.append(seconds * 1000)

    def row(self, seconds: float) -> dict[str, Any]:
        taken = sorted(self.taken) or [float("nan")]
        return {
            "what": self.name,
            "number": len(self.taken),
            "a second": round(len(self.taken) / seconds, 1),
            "median ms": round(statistics.median(taken), 2),
            "p99 ms": round(taken[min(len(taken) - 1, len(taken) * 99 // 100)], 2),
            "most ms": round(taken[-1], 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default="doop", choices=sorted(BY_NAME))
    parser.add_argument("--data", help=f"folder of the data sets [{DATA_VARIABLE}]")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--listeners", type=int, default=100)
    asked = parser.parse_args()
    workload = BY_NAME[asked.workload]
    with tempfile.TemporaryDirectory() as folder:
        process, url = _start(workload, data_folder(asked.data), Path(folder))
        try:
            rows = _measured(url, asked.seconds, asked.listeners)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    for row in rows:
        print("  ".join(f"{name}: {value}" for name, value in row.items()))
    keep_results(HERE / "results" / "web.json", {workload.name: {"seconds": asked.seconds, "rows": rows}})


def _start(workload: Workload, data: Path | None, folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The service, and its address."""
    store = folder / "store"
    elastalog.open(workload.program, workload.facts(data), store=store).close()
    command = [sys.executable, "-m", "elastalog", "serve", str(store), "--port", "0", "--token", TOKEN]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().rpartition(" at ")[2].strip()


def _measured(url: str, seconds: float, listeners: int) -> list[dict[str, Any]]:
    db = elastalog.connect(url, TOKEN)
    name, rows = _largest_input(db)
    derived = max((n for n in db if n != name), key=lambda n: len(db[n]))
    some = [tuple(row) for row in random.Random(1).sample(rows, 500)]
    found: list[dict[str, Any]] = []
    db.preview(deleted={name: some[:FACTS_A_COMMIT]})
    previews = Latencies("preview of ten facts")
    for i in range(20):
        _timed(previews, lambda i=i: db.preview(deleted={name: some[10 * i : 10 * i + FACTS_A_COMMIT]}))  # type: ignore[misc]
    found.append(previews.row(sum(previews.taken) / 1000))
    facts = [elastalog.Fact(derived, row) for row in db[derived].head(50)]
    proofs = Latencies("proof of a row")
    for fact in facts:
        _timed(proofs, lambda fact=fact: db.explain(fact, 3))  # type: ignore[misc]
    found.append(proofs.row(sum(proofs.taken) / 1000))
    found += _reads_and_commits(url, seconds, name, some, derived, is_writing=False)
    found += _reads_and_commits(url, seconds, name, some, derived, is_writing=True)
    found.append(_listened(url, seconds, listeners, name, some))
    return found


def _largest_input(db: elastalog.Client) -> tuple[str, list[Any]]:
    told = db._calls.ask("GET /relations")["relations"]
    name = max((one for one in told if one["is_input"]), key=lambda one: one["facts"])["name"]
    return name, list(db[name])


def _timed(latencies: Latencies, call: Callable[[], object]) -> None:
    began = time.perf_counter()
    call()
    latencies.add(time.perf_counter() - began)


def _reads_and_commits(
    url: str, seconds: float, name: str, some: Sequence[Any], derived: str, *, is_writing: bool
) -> list[dict[str, Any]]:
    """Two readers, as fast as they get answers; the writer in steps, deleting facts and inserting them again."""
    when = "during commits" if is_writing else "alone"
    reads, commits = Latencies(f"reads {when}"), Latencies("commits")
    until = time.perf_counter() + seconds

    def read() -> None:
        # What is measured is the service, not how Python here makes values of JSON.
        transport = Transport(url, TOKEN, 60)
        chance = random.Random(threading.get_ident())
        while time.perf_counter() < until:
            offset = chance.randrange(10_000)
            _timed(reads, lambda offset=offset: transport.fetch("GET", f"/relations/{derived}", {"offset": offset}))  # type: ignore[misc]

    def write() -> None:
        db = elastalog.connect(url, TOKEN)
        step = 0
        while (began := time.perf_counter()) < until:
            rows = {name: some[step // 2 % 40 * 10 : step // 2 % 40 * 10 + FACTS_A_COMMIT]}
            _timed(commits, lambda rows=rows, step=step: db.apply(*((None, rows) if step % 2 == 0 else (rows, None))))  # type: ignore[misc]
            step += 1
            time.sleep(max(0.0, 1 / COMMITS_A_SECOND - (time.perf_counter() - began)))

    threads = [threading.Thread(target=read) for _ in range(2)]
    threads += [threading.Thread(target=write)] if is_writing else []
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [one.row(seconds) for one in (reads, *((commits,) if is_writing else ()))]


def _listened(url: str, seconds: float, number: int, name: str, some: Sequence[Any]) -> dict[str, Any]:
    """Listeners check that every event begins where the one before ended."""
    faults: list[str] = []
    heard = [0] * number
    last: list[int] = [0] * number
    db = elastalog.connect(url, TOKEN)
    first = db.epoch
    until = time.perf_counter() + seconds

    def listen(who: int) -> None:
        transport = Transport(url, TOKEN, 60)
        last[who] = first
        breaks_off = who % 10 == 0
        while time.perf_counter() < until + 5 and last[who] < goal[0]:
            for line in transport.lines("/changes", {"rows": 0}, last[who]):
                if line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    if "since" not in event:
                        continue
                    if event["since"] != last[who]:
                        faults.append(f"listener {who}: {event['since']} after {last[who]}")
                    last[who] = event["epoch"]
                    heard[who] += 1
                    if breaks_off or last[who] >= goal[0]:
                        break

    goal = [1 << 60]
    threads = [threading.Thread(target=listen, args=(who,), daemon=True) for who in range(number)]
    for thread in threads:
        thread.start()
    step = 0
    while (began := time.perf_counter()) < until:
        rows = {name: some[step // 2 % 40 * 10 : step // 2 % 40 * 10 + FACTS_A_COMMIT]}
        db.apply(*((None, rows) if step % 2 == 0 else (rows, None)))
        step += 1
        time.sleep(max(0.0, 1 / COMMITS_A_SECOND - (time.perf_counter() - began)))
    goal[0] = db.epoch
    db.apply({name: some[490:]}, {name: some[480:490]})  # wakes those that wait
    for thread in threads:
        thread.join(15)
    behind = sum(one < goal[0] for one in last)
    return {
        "what": f"{number} listeners", "epochs": goal[0] - first, "events heard": sum(heard), "faults": len(faults),
        "behind at the end": behind,
    }  # fmt: skip


if __name__ == "__main__":
    main()
