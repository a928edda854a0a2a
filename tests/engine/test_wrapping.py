"""Integers modulo 2^64, where the program asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from elastalog.provenance.check import check_proof
from elastalog.provenance.ground import Run
from tests.refusals import refused

MOST, LEAST = 2**63 - 1, -(2**63)
PROGRAM = f"""
.decl n(x: number)
n({MOST}). n({LEAST}).
.decl u(x: unsigned)
u(0). u(3).
.decl out(what: symbol, x: number)
out("plus", x + 1) :- n(x), x > 0.
out("minus", x - 1) :- n(x), x < 0.
out("times", x * 3) :- n(x), x > 0.
out("power", 3 ^ 200) :- n(_).
out("negative", -x) :- n(x), x < 0.
out("divided", x / -1) :- n(x), x < 0.
out("sum", s) :- s = sum x : {{ n(x), x > 0 ; n(y), y > 0, x = y - 1 }}.
.decl less(x: unsigned)
less(x - 1u) :- u(x).
.output out, less
"""


def signed(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


EXPECTED = {
    ("plus", LEAST), ("minus", MOST), ("times", signed(3 * MOST)), ("power", signed(3**200)), ("negative", LEAST),
    ("divided", LEAST), ("sum", signed(2 * MOST - 1)),
}  # fmt: skip


def test_without_being_asked_for_overflow_is_an_error() -> None:
    with refused("E0601"):
        elastalog.open(PROGRAM)


@pytest.mark.parametrize("is_pragma", [True, False])
def test_integers_wrap(is_pragma: bool) -> None:
    text = PROGRAM + ('.pragma "arithmetic" "wrap"\n' if is_pragma else "")
    with elastalog.open(elastalog.Program.parse(text, arithmetic=None if is_pragma else "wrap")) as db:
        assert set(db["out"]) == EXPECTED
        assert set(db["less"]) == {(2**64 - 1,), (2,)}
        facts = {name: set(db[name]) for name in db}
        run = Run(lambda symbol: None, {}, wraps=True)
        explicit = {"n": facts["n"], "u": facts["u"]}
        for values in facts["out"]:
            assert check_proof(db.explain(("out", values)), db.program.checked, explicit, facts, run)
        db.apply({"n": [(MOST - 1,)]})
        assert ("times", signed(3 * (MOST - 1))) in db["out"]


def test_a_store_keeps_how_integers_are_taken(tmp_path: Path) -> None:
    with elastalog.open(elastalog.Program.parse(PROGRAM, arithmetic="wrap"), store=tmp_path / "db"):
        pass
    with elastalog.open(store=tmp_path / "db") as db:
        assert set(db["out"]) == EXPECTED
        db.apply({"u": [(7,)]})
        assert (6,) in db["less"]
