"""Whole processes beside each other: what a user waits for, from the start of the interpreter, with each engine.

`python -m benchmarks.gpu_processes [WORKLOAD ...] --data DIR [--engines auto local gpu] [--jobs N] [--repeats N]` runs
a new process for each, the engines by turns, and takes the least seconds: until the package is imported, until the
session is open (from Parquet), until a first fact is explained, and until a first update is done. With `--first` the
caches of the user are empty before the first of them, as after an installation. A process is ended after `--limit`
seconds; one with a wrong count fails. With `--program FILE` that program is run over the facts of the workloads, and
all its counts are printed. On a machine with a GPU it writes benchmarks/results/gpu_processes.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

ONE = r"""
import json, sys, time
began, given = float(sys.argv[1]), json.loads(sys.argv[2])
marks = {}
def mark(what):
    marks[what] = round(time.time() - began, 3)
import logging
import elastalog
from pathlib import Path
mark("imported")
if given["log"]:
    logging.basicConfig(filename=given["log"], level=logging.WARNING)
    logging.getLogger("elastalog.placement").setLevel(logging.DEBUG)
db = elastalog.open(Path(given["program"]), Path(given["facts"]), engine=given["engine"], jobs=given["jobs"])
for name, size in given["sizes"].items():
    if len(db[name]) != size:
        sys.exit(f"{name} has {len(db[name]):,} facts, not {size:,}")
mark("opened")
if not given["sizes"]:
    marks["facts"] = {name: len(db[name]) for name in db}
marks["places"] = [one.why for one in db.statistics().places if one.where == "gpu"]
marks["device"] = round(sum(one.seconds for one in db.statistics().elsewhere), 3)
if given["relation"]:
    name = given["relation"]
    words = db._backend.facts(name).words
    db.explain(f"{name}({', '.join(map(str, words[-1].tolist()))})", 3)
    mark("explained")
    base = db._backend.facts(given["changed"]).words
    db.apply({}, {given["changed"]: [tuple(base[0].tolist())]})
    mark("updated")
print(json.dumps(marks))
"""
UPDATED = {"galen": ("p", "c")}
"""What is explained and updated where relations are not `path` and `edge`; nothing where values are no numbers."""


def main() -> None:
    from benchmarks import write_bytecode
    from benchmarks.gpu import CASES
    from benchmarks.workloads import HERE, data_folder

    parser = argparse.ArgumentParser(description="whole processes with a GPU, and without")
    parser.add_argument("cases", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--data")
    parser.add_argument("--engines", nargs="*", default=["auto", "local", "gpu"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--program", type=Path)
    given = parser.parse_args()
    data = data_folder(given.data)
    write_bytecode()
    results: dict[str, Any] = {}
    file = HERE / "results" / "gpu_processes.json"
    for case in CASES:
        if given.cases and case.name not in given.cases:
            continue
        with tempfile.TemporaryDirectory() as folder:
            facts = _files(case, data, Path(folder))
            relation, changed = UPDATED.get(case.name, ("path", "edge") if "closure" in case.name else ("", ""))
            if given.program:
                case = replace(case, name=f"{given.program.stem} {case.name}", program=given.program, sizes={})
                relation = ""
            runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in given.engines}
            for number, engine in product(range(given.repeats), given.engines):
                log = "" if given.logs is None else str(given.logs / f"{case.name}-{engine}.log")
                about = {
                    "program": str(case.program), "facts": str(facts), "engine": engine, "jobs": given.jobs,
                    "sizes": case.sizes, "relation": relation, "changed": changed, "log": log,
                }  # fmt: skip
                runs[engine].append(_run(about, given.limit, given.first and not number))
            for engine, of_engine in runs.items():
                least = min(of_engine, key=lambda run: run.get("opened", 1e9))
                results[f"{case.name} {engine}"] = {**least, "first": of_engine[0]}
                print(f"{case.name:22} {engine:6} {json.dumps(least)}  first {of_engine[0].get('opened')}", flush=True)
    if os.path.exists("/dev/nvidiactl"):
        kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        file.write_text(json.dumps({**kept, **results}, indent=1) + "\n", encoding="utf-8")


def _files(case: Any, data: Path | None, folder: Path) -> Path:
    """The folder of a case's facts, as files that are named after the relations."""
    import pyarrow.parquet as pq

    if case.parquet is not None and data is not None and isinstance(found := case.parquet(data), Path):
        return found
    for name, table in case.facts(data).items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def _run(about: dict[str, Any], limit: float, is_first: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, **({"XDG_CACHE_HOME": empty, "CUDA_CACHE_PATH": empty} if is_first else {})}
        command = [sys.executable, "-c", ONE, str(time.time()), json.dumps(about)]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return {"over": limit}
    if done.returncode:
        print(done.stderr[-2000:], flush=True)
        return {"failed": done.returncode}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
