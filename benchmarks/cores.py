"""What a session takes with several threads: opening, the first update, and an update of 1 % with its inverse.

`python -m benchmarks.cores [WORK ...] [--data DIR] [--jobs N ...] [--choices C ...] [--strategy S] [--repeats N]`
starts a process for each and takes the least seconds: until the session is open (Parquet read, levels and
counts kept), of an update that deletes one fact, and of deleting one fact in a hundred and inserting them again, as the
log has them. Choices: `elastic` chooses, `update` never evaluates anew, `anew` always. A work is `galen`, or a Parquet
file of edges, of which the closure is evaluated, or `doop-text`: only reading Doop's facts as text, made from Parquet.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

ONE = r"""
import json, sys, time
from pathlib import Path
import elastalog
import pyarrow.parquet as pq
given = json.loads(sys.argv[1])
marks, began = {"how": []}, time.perf_counter()
def mark(what):
    global began
    marks[what], began = round(time.perf_counter() - began, 3), time.perf_counter()
facts = {name: Path(path) for name, path in given["facts"].items()}
began = time.perf_counter()
options = {"strategy": given["strategy"], "jobs": given["jobs"], **given["more"]}
db = elastalog.open(Path(given["program"]), facts, engine="local", **options)
mark("open")
if given["is_read_only"]:
    print(json.dumps(marks))
    sys.exit()
tables = {name: pq.read_table(path) for name, path in facts.items()}
given = {name: sorted(zip(*(column.to_pylist() for column in table.columns))) for name, table in tables.items()}
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
GALEN, TEXT = "galen", "doop-text"
CHOICES: dict[str, dict[str, Any]] = {"elastic": {}, "update": {"budget": None}, "anew": {"budget": 0.0}}


def as_text(data: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """Doop's facts as text, and a program that reads them and does nothing else."""
    import pyarrow as pa

    from benchmarks.workloads import BY_NAME

    declared, files = [], {}
    for name, table in BY_NAME["doop"].facts(data).items():
        files[name] = str(folder / f"{name}.facts")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        Path(files[name]).write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
        kinds = ["symbol" if pa.types.is_string(kind) else "number" for kind in table.schema.types]
        declared.append(f".decl {name}({', '.join(f'c{i}: {kind}' for i, kind in enumerate(kinds))})")
    print(f"{sum(Path(file).stat().st_size for file in files.values()) / 1e6:.0f} MB of text", flush=True)
    program = folder / "read.dl"
    program.write_text("\n".join(declared))
    return program, files


def main() -> None:
    from benchmarks import write_bytecode
    from benchmarks.workloads import BY_NAME, EXAMPLES, data_folder

    parser = argparse.ArgumentParser(description="opening and updates by number of threads")
    parser.add_argument("works", nargs="*", metavar="WORK", default=[GALEN])
    parser.add_argument("--data")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--choices", nargs="+", default=["elastic"], choices=CHOICES)
    parser.add_argument("--strategy", default="elastic")
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    data = data_folder(given.data)
    assert data is not None
    write_bytecode()
    for work in given.works:
        with tempfile.TemporaryDirectory() as folder:
            choices = given.choices
            if work == GALEN:
                program = BY_NAME["galen"].program
                facts = {path.stem: str(path) for path in (data / "galen").glob("*.parquet")}
            elif work == TEXT:
                (program, facts), choices = as_text(data, Path(folder)), ["elastic"]
            else:
                program, facts = EXAMPLES / "transitive_closure.dl", {"edge": str(data / "graphs" / work)}
            for jobs, choice in product(given.jobs, choices):
                about = {
                    "program": str(program), "facts": facts, "jobs": jobs, "strategy": given.strategy,
                    "more": CHOICES[choice], "is_read_only": work == TEXT,
                }  # fmt: skip
                runs = [_run(about) for _ in range(given.repeats)]
                least: dict[str, Any] = {
                    name: min(run[name] for run in runs) if name != "how" else runs[0][name] for name in runs[0]
                }
                print(f"{Path(work).stem:24} {jobs:3} {choice:8} {json.dumps(least)}", flush=True)


def _run(about: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-c", ONE, json.dumps(about)]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


if __name__ == "__main__":
    main()
