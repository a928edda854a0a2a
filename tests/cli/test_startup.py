"""A small program is answered at once: few modules are imported, and none of the large ones; little time is used."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import elastalog

pytestmark = pytest.mark.usefixtures("compiled")

HEAVY = {
    "highspy", "llvmlite.binding", "numba", "numpy.testing", "pandas", "prompt_toolkit", "pyarrow.compute",
    "pyarrow.parquet", "pygments", "pyspark", "rich", "sqlite3", "subprocess",
    "elastalog.debugging", "elastalog.provenance.explain", "elastalog.storage.store",
}  # fmt: skip

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.input edge
.decl path(x: symbol, y: symbol)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

RUN = """
import json, resource, sys
from elastalog.cli.main import main

sys.argv = ["elastalog", "run", "reach.dl"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, sorted(sys.modules)]))
"""

SESSION = """
import json, resource, sys
import elastalog

def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

db = elastalog.open("reach.dl", facts=".")
assert len(db["path"]) == 6
opened, known = seconds(), sorted(sys.modules)
with db.update() as update:
    update.delete("edge", [("b", "c")])
assert len(db["path"]) == 2
print(json.dumps([opened, seconds() - opened, known, sorted(sys.modules)]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """An interpreter that keeps the bytecode of what it imports in a folder of these tests, and finds it there: others
    may have it nowhere."""
    return [sys.executable, "-X", f"pycache_prefix={tmp_path_factory.mktemp('bytecode')}", "-c"]


@pytest.fixture(autouse=True)
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("a\tb\nb\tc\nc\td\n")
    monkeypatch.chdir(tmp_path)


def best_of(python: list[str], script: str, times: int = 2) -> list[object]:
    """What a process prints last, of the run that took least: others may be busy, and the first one may have to compile
    modules to bytecode."""
    # Tests may run where bytecode is not to be written.
    command = [*python, f"import sys; sys.dont_write_bytecode = False\n{script}"]
    runs = []
    for _ in range(times):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return min(runs, key=lambda run: run[0])


def ours(modules: list[str]) -> int:
    return sum(name.startswith("elastalog") for name in modules)


def test_a_run_imports_little_and_takes_little(tmp_path: Path, python: list[str]) -> None:
    seconds, modules = best_of(python, RUN)
    assert (tmp_path / "path.csv").read_text().splitlines()[:3] == ["a\tb", "b\tc", "c\td"]
    assert HEAVY.isdisjoint(modules)
    assert ours(modules) < 316
    assert len(modules) < 580
    assert seconds < 1.0  # 0.4 where nobody else is at work


def test_opening_a_session_imports_little_and_an_update_little_more(python: list[str]) -> None:
    opened, update, before, after = best_of(python, SESSION)
    assert HEAVY.isdisjoint(after)
    assert "click" not in after
    assert ours(before) < 300
    assert ours(after) < 332
    assert opened < 1.0
    assert update < 0.3


def test_a_store_is_opened_and_updated_without_what_pyarrow_would_import(python: list[str]) -> None:
    elastalog.open("reach.dl", facts=".", store="store").close()
    Path("1.diff").write_text('-edge("b", "c").\n')
    script = RUN.replace('"run", "reach.dl"', '"apply", "store", "1.diff"')
    (_, modules) = best_of(python, script, times=1)
    assert {"numba", "pandas", "pyspark", "rich"}.isdisjoint(modules)
    assert set(elastalog.open(store="store")["path"]) == {("a", "b"), ("c", "d")}


def test_integers_of_a_parquet_file_are_read_without_what_computes(python: list[str]) -> None:
    parquet.write_table(pa.table({"x": pa.array([1, 2]), "y": pa.array([2, 3])}), "edge.parquet")
    Path("reach.dl").write_text(PROGRAM.replace("symbol", "number"))
    script = """
import json, sys
import elastalog

assert len(elastalog.open("reach.dl", {"edge": "edge.parquet"})["path"]) == 3
print(json.dumps([0, "pyarrow.compute" in sys.modules]))
"""
    assert best_of(python, script, times=1) == [0, False]


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"),
    reason="no free-threaded interpreter: nothing could take a lock back",
)
def test_a_free_threaded_interpreter_stays_so() -> None:
    script = """
import sys, elastalog
program = ".decl e(x: number, y: number) .decl p(x: number, y: number) p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."
with elastalog.open(program, {"e": [(i, i + 1) for i in range(300)]}, jobs=2) as db:
    db.apply(deleted={"e": [(7, 8)]})
print(sys._is_gil_enabled())
"""
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\n"
    )
