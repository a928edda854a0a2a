"""One wheel answers on every version of Python, without numba and without compiling anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from elastalog.jit import building, objects
from tests.jit.pythons import other_python

ROOT = Path(__file__).parent.parent.parent
SCRIPT = """
import resource, sys
import elastalog
program = '''
.decl edge(x: number, y: symbol)
.decl path(x: number, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(to_number(y), z).
'''
with elastalog.open(program, facts={"edge": [(1, "2"), (2, "3"), (3, "4")]}) as db:
    db.apply({"edge": [(4, "5")]}, {"edge": [(1, "2")]})
    assert sorted(db["path"]) == [(2, "3"), (2, "4"), (2, "5"), (3, "4"), (3, "5"), (4, "5")]
    assert db.explain('path(2, "5")').height == 3
assert "numba" not in sys.modules
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
"""


def test_what_a_wheel_carries_is_all_it_needs(tmp_path: Path) -> None:
    family = objects.processor().family
    building.build()
    building.pack(tmp_path, family)
    names = {path.name.rpartition("-")[0] for path in (tmp_path / family).iterdir()}
    operators = {operator.name.removeprefix("elastalog.") for operator in building.all_operators()}
    assert operators == names


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "built"))
    (copy / "scripts").mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "scripts/wheel.py"):
        shutil.copy(ROOT / name, copy / name)
    building.build()
    building.pack(copy / "src" / "elastalog" / "jit" / "built", objects.processor().family)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(copy)]
    subprocess.run(command, check=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.long
def test_the_wheel_says_what_it_is_for(wheel: Path) -> None:
    machine = {"x86-64-v3": "x86_64", "aarch64": "aarch64"}[objects.processor().family]
    assert wheel.name.endswith(f"-py3-none-manylinux_2_17_{machine}.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "elastalog/diagnostics/errors/syntax.md" in archive.namelist()
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        always = [line for line in archive.read(name).decode().splitlines() if line.startswith("Requires-Dist")]
    assert not any("numba" in line for line in always if "extra ==" not in line)


@pytest.mark.long
@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_the_wheel_answers_at_once(wheel: Path, minor: int, tmp_path: Path) -> None:
    python = other_python(minor)
    if python is None:
        pytest.skip(f"Python 3.{minor} is not installed")
    place = tmp_path / "environment"
    if sys.version_info[1] == minor:
        venv.create(place, with_pip=True)
    else:
        subprocess.run([python, "-m", "venv", str(place)], check=True)
    subprocess.run([place / "bin" / "pip", "install", "--quiet", f"{wheel}[web,debug]"], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    cache = tmp_path / "cache"
    for attempt in range(2):  # the first writes bytecode
        done = subprocess.run(
            [place / "bin" / "python", "-c", SCRIPT],
            env={**environment, "XDG_CACHE_HOME": str(cache)}, capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) < (4.0, 1.5)[attempt]  # seconds of the processor, with an update and a proof
    assert not cache.exists()
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    assert size < 420e6  # 170 of it are pyarrow's
