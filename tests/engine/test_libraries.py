"""Functors from C libraries, by Soufflé's convention with 64 bits; loaded only when they are named."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from pathlib import Path

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program
from elastalog.provenance.check import check_proof
from elastalog.provenance.ground import Run
from elastalog.relations.functions import library_functions
from tests.commands import run
from tests.spark.without_spark import tasks_in_this_process

CODE = """
#include <stdint.h>
#include <string.h>
#include <stdio.h>
int64_t twice(int64_t x) { return 2 * x; }
uint64_t most(uint64_t x, uint64_t y) { return x > y ? x : y; }
double root(double x) { return x / 2; }
const char *hello(const char *name, int64_t n) {
    static char out[256];
    snprintf(out, sizeof out, "%s/%lld", name, (long long) n);
    return out;
}
int64_t length(const char *text) { return (int64_t) strlen(text); }
"""
PROGRAM = """
.functor twice(x: number): number
.functor most(x: unsigned, y: unsigned): unsigned
.functor root(x: float): float
.functor hello(s: symbol, n: number): symbol
.functor length(s: symbol): number
.decl e(x: number, s: symbol)
.input e
.decl p(x: number, u: unsigned, f: float, s: symbol, n: number)
.output p
p(@twice(x), @most(18446744073709551615, 1), @root(5.0), @hello(s, x), @length(s)) :- e(x, s).
"""
FACTS = {"e": [(5_000_000_000, "é")]}
WANTED = (10_000_000_000, 18446744073709551615, 2.5, "é/5000000000", 2)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to make a library with")
    folder = tmp_path_factory.mktemp("library")
    (folder / "functors.c").write_text(CODE)
    command = [compiler, "-shared", "-fPIC", "-o", "libfunctors.so", "functors.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libfunctors.so"


def code_of(error: pytest.ExceptionInfo[ElastalogError]) -> str:
    return error.value.diagnostics[0].code


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dred"])
def test_values_of_every_type_and_updates(library: Path, strategy: str) -> None:
    with elastalog.open(PROGRAM, facts=FACTS, libraries=[library], strategy=strategy) as db:
        assert list(db["p"]) == [WANTED]
        db.apply({"e": [(-1, "")]}, FACTS)
        assert list(db["p"]) == [(-2, 18446744073709551615, 2.5, "/-1", 0)]


def test_proofs_apply_them_again(library: Path) -> None:
    with elastalog.open(PROGRAM, facts=FACTS, libraries=[library]) as db:
        functions = library_functions(db.program.checked, [library])
        facts = {name: set(db[name]) for name in db}
        proof = db.explain(("p", WANTED))
        assert check_proof(proof, db.program.checked, {"e": set(FACTS["e"])}, facts, Run(lambda _: None, functions))


def test_the_command_line_names_folder_and_library(library: Path, tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "e.facts").write_text("3\tx\n")
    arguments = ["run", str(tmp_path / "p.dl"), "-F", str(tmp_path), "-D", "-"]
    result = run(*arguments, "-L", library.parent, "-l", "functors")
    assert result.exit_code == 0, result.stderr
    assert "6\t18446744073709551615\t2.5\tx/3\t1" in result.stdout
    result = run(*arguments)
    assert result.exit_code == 1
    assert "E0641" in result.stderr
    result = run(*arguments, "-l", "nothing")
    assert "E0670" in result.stderr


def test_a_store_wants_the_same_library(library: Path, tmp_path: Path) -> None:
    with elastalog.open(PROGRAM, facts=FACTS, libraries=[library], store=tmp_path / "store"):
        pass
    with elastalog.open(store=tmp_path / "store", libraries=[library]) as db:
        db.apply({"e": [(1, "a")]})
        assert len(db["p"]) == 2
    with elastalog.open(store=elastalog.Store(tmp_path / "store", read_only=True)) as db:
        assert len(db["p"]) == 2
    other = tmp_path / "libfunctors.so"
    other.write_bytes(library.read_bytes() + b"\0")
    with pytest.raises(ElastalogError) as error:
        elastalog.open(store=tmp_path / "store", libraries=[other])
    assert code_of(error) == "E0840"


def test_python_functions_go_before_and_stateful_ones_are_refused(library: Path) -> None:
    functors = {"hello": lambda s, n: "mine"}
    with elastalog.open(PROGRAM, facts=FACTS, libraries=[library], functors=functors) as db:
        assert next(iter(db["p"]))[3] == "mine"
    with pytest.raises(ElastalogError) as error:
        elastalog.open(
            ".functor twice(x: number): number stateful\n.decl p(x: number)\np(@twice(1)).", libraries=[library]
        )
    assert code_of(error) == "E0642"


def test_a_text_with_a_null_character_is_refused_with_the_rule(library: Path) -> None:
    with pytest.raises(ElastalogError) as error:
        elastalog.open(PROGRAM, facts={"e": [(1, "a\0b")]}, libraries=[library])
    assert code_of(error) == "E0640"


def test_functions_travel_to_other_processes(library: Path) -> None:
    functions = library_functions(Program.parse(PROGRAM).checked, [library])
    assert pickle.loads(pickle.dumps(functions["twice"]))(4) == 8


def test_tasks_of_spark_get_the_library(library: Path, tmp_path: Path) -> None:
    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(PROGRAM, facts=FACTS, libraries=[library], engine="spark", spark=session) as db,
    ):
        assert {placement.where for placement in db._backend.placements.values()} == {"exchanging tasks"}
        assert list(db["p"]) == [WANTED]
        db.apply({"e": [(-1, "")]}, FACTS)
        assert list(db["p"]) == [(-2, 18446744073709551615, 2.5, "/-1", 0)]


@pytest.mark.parametrize("limit", [1 << 30, 10])
def test_one_that_tasks_cannot_load_or_that_is_large_runs_in_the_driver(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """As on executors with other processors."""
    monkeypatch.setattr("elastalog.backends.spark.values._LARGEST_LIBRARY", limit)
    monkeypatch.setattr("elastalog.backends.spark.values._kept", lambda library: str(tmp_path / "other.so"))
    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(PROGRAM, facts=FACTS, libraries=[library], engine="spark", spark=session) as db,
    ):
        assert list(db["p"]) == [WANTED]
        assert {placement.where for placement in db._backend.placements.values()} == {"driver"}
