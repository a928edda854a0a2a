"""A process that finds object code runs programs and updates without numba, and finds what numba would have found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import elastalog
from elastalog.jit import building, objects
from elastalog.jit.building import build
from elastalog.jit.fingerprint import fingerprint

SCRIPT = """
import json, sys
import elastalog

program = '''
.decl edge(x: number, y: symbol)
.decl next(x: symbol, y: number)
.decl path(x: number, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), next(y, n), path(n, z).
'''
edges = [(i, f"node {i + 1}") for i in range(20)]
follows = [(f"node {i}", i) for i in range(20)]
with elastalog.open(program, facts={"edge": edges, "next": follows}, engine="local") as db:
    before = len(db["path"])
    with db.update() as update:
        update.delete("edge", [(3, "node 4")])
        update.insert("edge", [(19, "node 1")])
    changes = update.changes["path"]
    found = [before, len(db["path"]), len(changes.inserted), len(changes.deleted), sorted(db["path"])]
heavy = sorted({"numba", "pandas", "pyspark", "rich", "highspy"} & set(sys.modules))
print(json.dumps([found, heavy]))
"""


@pytest.fixture(scope="module", autouse=True)
def _operators() -> None:
    build()


def run(**environment: str) -> tuple[list[object], list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    found, heavy = json.loads(done.stdout)
    return found, heavy


def expected() -> list[object]:
    """By hand: a chain 0 … 20 in which edge 3 → 4 gives way to 19 → 1, so that 4 … 19, 1, 2, 3 is the chain."""
    edges = [(i, i + 1) for i in range(20)]

    def closure(given: list[tuple[int, int]]) -> set[tuple[int, int]]:
        reached = set(given)
        while more := {(x, z) for x, y in reached if y < 20 for w, z in given if w == y} - reached:
            reached |= more
        return reached

    before = closure(edges)
    after = closure([*(edge for edge in edges if edge[0] != 3), (19, 1)])
    facts = sorted([x, f"node {y}"] for x, y in after)
    return [len(before), len(after), len(after - before), len(before - after), facts]


def test_a_run_and_an_update_need_no_numba() -> None:
    assert run() == (expected(), [])


def test_every_operator_has_object_code() -> None:
    for operator in building.all_operators():
        code = objects.find(operator.name, fingerprint(operator))
        assert code is not None, operator.name
        assert code.code, code.unfit


def test_operators_are_found_where_spark_is_not_installed() -> None:
    script = (
        "import sys; sys.modules['pyspark'] = sys.modules['pandas'] = None\n"
        "from elastalog.jit.building import all_operators\n"
        "print(*sorted(operator.name for operator in all_operators()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(operator.name for operator in building.all_operators())


@pytest.mark.long
def test_numba_finds_the_same() -> None:
    assert run(ELASTALOG_JIT="numba") == (expected(), ["numba"])


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """The file of an operator in a cache folder of its own, which has all the others too."""
    folder = objects.user_folder()
    other = tmp_path / folder.relative_to(folder.parents[2])
    other.mkdir(parents=True)
    for each in (other, other.parent):
        each.chmod(0o700)
    for path in folder.glob("*.o"):
        (other / path.name).write_bytes(path.read_bytes())

    def file_of(name: str) -> Path:
        operator = next(operator for operator in building.all_operators() if operator.name.endswith(name))
        return other / objects.file_name(operator.name, fingerprint(operator))

    return file_of


def test_a_damaged_file_is_made_again(copied: Callable[[str], Path], tmp_path: Path) -> None:
    """What counts as damage is in `test_objects`."""
    path = copied("inserting.rebuild")
    path.write_bytes(path.read_bytes()[:-100])
    assert run(XDG_CACHE_HOME=str(tmp_path)) == (expected(), [])
    remade = path.read_bytes()
    assert len(remade) > 1000
    assert objects.decode(path.stem.rpartition("-")[2], remade) is not None


def test_without_numba_a_machine_that_lacks_object_code_is_told_what_to_install(tmp_path: Path) -> None:
    script = "import sys; sys.modules['numba'] = None; import elastalog; elastalog.open('.decl p(x: number)\\np(1).')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "E0624" in done.stderr
    assert 'pip install "elastalog[build]"' in done.stderr


def test_windows_is_told_where_it_runs() -> None:
    script = "import sys; sys.platform = 'win32'; import elastalog"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "ImportError: Elastalog runs on Linux and macOS; on Windows, use it in WSL" in done.stderr


def test_an_archive_brings_its_object_code(tmp_path: Path) -> None:
    package = Path(elastalog.__file__).parent
    archive = tmp_path / "elastalog.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for path in (*package.rglob("*.py"), *package.rglob("*.md")):
            out.write(path, Path("elastalog", path.relative_to(package)))
        building.pack(tmp_path / "built", objects.processor().family)
        for path in (tmp_path / "built").rglob("*.o"):
            out.write(path, Path("elastalog", "jit", objects.PACKAGED, path.relative_to(tmp_path / "built")))
    cache = tmp_path / "cache"
    assert run(XDG_CACHE_HOME=str(cache), PYTHONPATH=str(archive)) == (expected(), [])
    assert not cache.exists()
