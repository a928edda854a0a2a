"""Functors that users implement: values, updates, proofs, stores, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.provenance.check import check_proof
from elastalog.provenance.ground import Run
from tests.commands import run as command
from tests.refusals import refused

PROGRAM = """
.functor half(x: number): number
.functor tag(x: number, s: symbol): symbol
.decl n(x: number)
.input n
.decl h(x: number, y: number)
h(x, @half(x)) :- n(x).
h(x, z) :- h(x, y), y > 1, z = @half(y).
.decl t(s: symbol)
t(@tag(x, "a")) :- n(x), @half(x) != 0.
.output h, t
"""


def half(x: int) -> int | None:
    return None if x == 13 else x // 2


def tag(x: int, text: str) -> str:
    return f"{text}{x}"


FUNCTORS = {"half": half, "tag": tag}
HALVES = {(8, 4), (8, 2), (8, 1), (1, 0), (5, 2), (5, 1)}


def code_of(call: Any) -> str:
    with pytest.raises(ElastalogError) as raised:
        call()
    return raised.value.diagnostics[0].code


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dense", "dred", "dredc", "bf", "bfc"])
def test_functors_are_evaluated_and_maintained(strategy: str) -> None:
    facts = {"n": [(8,), (1,), (13,)]}
    with elastalog.open(PROGRAM, facts=facts, functors=FUNCTORS, strategy=strategy) as db:
        assert set(db["h"]) == {(8, 4), (8, 2), (8, 1), (1, 0)}  # of 13 there is no half
        assert set(db["t"]) == {("a8",)}
        db.apply({"n": [(5,)]})
        assert set(db["h"]) == HALVES
        assert set(db["t"]) == {("a8",), ("a5",)}
        db.apply({}, {"n": [(8,)]})
        assert set(db["h"]) == {(1, 0), (5, 2), (5, 1)}


def test_a_vectorised_functor_takes_and_gives_arrays() -> None:
    calls: list[int] = []

    def halves(x: pa.Array) -> pa.Array:
        calls.append(len(x))
        return pc.divide(x, 2)

    def tags(x: pa.Array, text: pa.Array) -> pa.Array:
        return pc.binary_join_element_wise(text, pc.cast(x, pa.string()), "")

    functors = {"half": elastalog.vectorised(halves), "tag": elastalog.vectorised(tags)}
    with elastalog.open(PROGRAM, facts={"n": [(8,), (1,), (5,)]}, functors=functors) as db:
        assert set(db["h"]) == HALVES
        assert set(db["t"]) == {("a8",), ("a5",)}
    assert max(calls) == 3


def test_proofs_use_functors_and_the_checker_applies_them_itself() -> None:
    with elastalog.open(PROGRAM, facts={"n": [(8,), (5,)]}, functors=FUNCTORS) as db:
        facts = {name: set(db[name]) for name in db}
        run = Run(lambda symbol: None, FUNCTORS)
        for name in ("h", "t"):
            for values in facts[name]:
                proof = db.explain((name, values))
                assert check_proof(proof, db.program.checked, {"n": facts["n"]}, facts, run)
                other = Run(lambda symbol: None, {"half": lambda x: x - 30, "tag": lambda x, s: s})
                assert not check_proof(proof, db.program.checked, {"n": facts["n"]}, facts, other)
        assert "@half(4)" in db.explain("h(8, 2)").to_tree()
        assert db.why_not("h(8, 3)") is not None


def test_an_exception_is_a_diagnostic_with_the_arguments_and_the_place() -> None:
    def broken(x: int) -> int:
        raise ValueError(f"no {x}")

    with refused("E0640") as raised:
        elastalog.open(PROGRAM, facts={"n": [(8,)]}, functors={**FUNCTORS, "half": broken})
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.message == "`@half(8)` raised ValueError: no 8"
    assert "h(x, @half(x)) :- n(x)" in str(raised.value)


@pytest.mark.parametrize("value", ["x", 1.5, 2**63, True])
def test_a_result_of_another_type_is_refused(value: Any) -> None:
    functors = {**FUNCTORS, "half": lambda x: value}
    assert code_of(lambda: elastalog.open(PROGRAM, facts={"n": [(8,)]}, functors=functors)) == "E0640"


def test_what_is_missing_is_refused_when_run_and_not_when_checked() -> None:
    assert code_of(lambda: elastalog.open(PROGRAM)) == "E0641"
    assert code_of(lambda: elastalog.open(PROGRAM, functors={"half": half})) == "E0641"
    assert code_of(lambda: elastalog.open(PROGRAM, functors={"half": 3, "tag": tag})) == "E0617"
    stateful = ".functor f(x: number): number stateful\n.decl p(x: number)\np(@f(1)).\n"
    assert elastalog.Program.parse(stateful).checked.functors["f"].is_stateful
    assert code_of(lambda: elastalog.open(stateful)) == "E0642"


def test_a_stateful_functor_is_a_function_of_its_arguments_in_python() -> None:
    stateful = ".functor f(x: number): number stateful\n.decl p(x: number)\np(@f(8)).\n"
    with elastalog.open(stateful, functors={"f": half}) as db:
        assert set(db["p"]) == {(4,)}


def test_a_functor_that_no_rule_applies_needs_no_function() -> None:
    program = ".functor f(x: number): number\n.functor g(): symbol stateful\n.decl p(x: number)\np(1).\n"
    with elastalog.open(program) as db:
        assert set(db["p"]) == {(1,)}


def test_a_failed_update_leaves_the_epoch_before() -> None:
    def moody(x: int) -> int:
        if x == 9:
            raise ArithmeticError("not nine")
        return x // 2

    with elastalog.open(PROGRAM, facts={"n": [(8,)]}, functors={"half": moody, "tag": tag}) as db:
        assert code_of(lambda: db.apply({"n": [(9,), (4,)]})) == "E0640"
        assert set(db["n"]) == {(8,)}
        assert set(db["h"]) == {(8, 4), (8, 2), (8, 1)}


def test_a_store_refuses_a_changed_or_absent_function(tmp_path: Path) -> None:
    store = tmp_path / "db"
    with elastalog.open(PROGRAM, facts={"n": [(8,)]}, functors=FUNCTORS, store=store) as db:
        kept = set(db["h"])
    assert code_of(lambda: elastalog.open(store=store)) == "E0641"
    assert code_of(lambda: elastalog.open(store=store, functors={**FUNCTORS, "half": abs})) == "E0840"
    with elastalog.open(store=store, functors=FUNCTORS) as db:
        assert set(db["h"]) == kept
        db.apply({"n": [(2,)]})
        assert (2, 1) in db["h"]


def test_the_command_takes_a_file_of_functions(tmp_path: Path) -> None:
    (tmp_path / "program.dl").write_text(PROGRAM)
    (tmp_path / "n.facts").write_text("8\n")
    (tmp_path / "f.py").write_text("def half(x):\n    return x // 2\n\n\ndef tag(x, s):\n    return s + str(x)\n")
    arguments = ["run", str(tmp_path / "program.dl"), "-F", str(tmp_path), "-D", str(tmp_path)]
    done = command(*arguments, "--functors", tmp_path / "f.py")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "t.csv").read_text() == "a8\n"
    (tmp_path / "f.py").write_text("def half(x) return x")
    done = command(*arguments, "--functors", tmp_path / "f.py")
    assert done.exit_code == 1
    assert "E0643" in done.output


def test_the_command_line_gives_functors_to_stores(tmp_path: Path) -> None:
    (tmp_path / "program.dl").write_text(PROGRAM)
    (tmp_path / "n.facts").write_text("8\n1\n5\n")
    (tmp_path / "functions.py").write_text(
        "def half(x):\n    return None if x % 2 else x // 2\n\ndef tag(x, text):\n    return text + str(x)\n"
    )
    (tmp_path / "update.diff").write_text("+n(12).\n")
    store, functors = str(tmp_path / "store"), ["--functors", str(tmp_path / "functions.py")]

    def call(*words: str) -> Any:
        return command(*words)

    made = call("init", store, str(tmp_path / "program.dl"), "-F", str(tmp_path), *functors)
    assert made.exit_code == 0, made.stderr
    assert "E0641" in call("apply", store, str(tmp_path / "update.diff")).stderr
    assert call("apply", store, str(tmp_path / "update.diff"), *functors).exit_code == 0
    assert call("query", store, "h(12, X), X > 4").stdout == "6\n"
    assert call("export", store, "-D", str(tmp_path / "out")).exit_code == 0
    assert "E0641" in call("explain", store, "h(12, 6)").stderr
    assert call("explain", store, "h(12, 6)", *functors).exit_code == 0
    assert "E0641" in call("verify", store, "--recompute").stderr
    assert call("verify", store, "--recompute", *functors).exit_code == 0
    shell = command("shell", store, *functors, text="insert n(14)\ncommit\nquery h(14, X)\n")
    assert shell.exit_code == 0, shell.stderr
    assert "7" in shell.stdout
