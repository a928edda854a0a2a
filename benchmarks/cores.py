"""What a session takes with several threads: opening, the first update, and an update of 1 % with its inverse.

`python -m benchmarks.cores [WORK ...] [--data DIR] [--jobs N ...] [--strategy S] [--repeats N]` starts a process for
every number of threads and takes the least seconds: until the session is open (Parquet read, levels and counts kept),
of an update that deletes one fact, and of deleting one fact in a hundred and inserting them again, as the log has
them. A work is `galen` or a Parquet file of edges, of which the closure is evaluated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ONE = r"""
import json, sys, time
from pathlib import Path
import elastalog
given = json.loads(sys.argv[1])
marks, began = {"how": []}, time.perf_counter()
def mark(what):
    global began
    marks[what], began = round(time.perf_counter() - began, 3), time.perf_counter()
facts = {name: Path(path) for name, path in given["facts"].items()}
began = time.perf_counter()
db = elastalog.open(Path(given["program"]), facts, engine="local", strategy=given["strategy"], jobs=given["jobs"])
mark("open")
given = {name: sorted(map(tuple, db[name])) for name in facts}
def update(what, deleted, inserted):
    global began
    began = time.perf_counter()
    db.apply(inserted=inserted, deleted=deleted)
    mark(what)
    marks["how"].append("; ".join(f"{one.how} {one.derivations:,}" for one in db.log()[-1].strata if one.derivations))
largest = max(given, key=lambda name: len(given[name]))
update("first", {largest: given[largest][:1]}, {})
update("back", {}, {largest: given[largest][:1]})
some = {name: rows[7::100] for name, rows in given.items()}
update("deleted", some, {})
update("inserted", {}, some)
print(json.dumps(marks))
"""
GALEN = "galen"


def main() -> None:
    from benchmarks.workloads import BY_NAME, EXAMPLES, data_folder

    parser = argparse.ArgumentParser(description="opening and updates by number of threads")
    parser.add_argument("works", nargs="*", metavar="WORK", default=[GALEN])
    parser.add_argument("--data")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--strategy", default="elastic")
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    data = data_folder(given.data)
    assert data is not None
    for work in given.works:
        if work == GALEN:
            program = BY_NAME["galen"].program
            facts = {path.stem: str(path) for path in (data / "galen").glob("*.parquet")}
        else:
            program, facts = EXAMPLES / "transitive_closure.dl", {"edge": str(data / "graphs" / work)}
        for jobs in given.jobs:
            about = {
                "program": str(program),
                "facts": facts,
                "jobs": jobs,
                "strategy": given.strategy,
            }
            runs = [_run(about) for _ in range(given.repeats)]
            least: dict[str, Any] = {
                name: min(run[name] for run in runs) if name != "how" else runs[0][name] for name in runs[0]
            }
            print(f"{Path(work).stem:24} {jobs:3} {json.dumps(least)}", flush=True)


def _run(about: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-c", ONE, json.dumps(about)]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


if __name__ == "__main__":
    main()
