"""Texts that were programs before stay programs, whatever later versions refuse."""

from __future__ import annotations

import pytest

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program

TWO_TYPES = ".type A <: number\n.type B <: number\n.decl a(x: A)\n.decl b(x: B)\n.input a, b\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (".type P = [x: number,]\n.decl p(x: P)\np([1]).", "E0129"),
        (".decl p(x: number)\np(1). .plan 0:()", "E0122"),
        (".type p <: number\n.decl p(x: number)\np(1).", "E0249"),
        (".decl p(x: number) magic no_magic\np(1).", "E0250"),
        (".comp A : B { }\n.decl p(x: number)\np(1).", "E0211"),
        (TWO_TYPES + ".decl p(x: number)\np(x) :- a(x), b(x).", "E0312"),
    ],
)
def test_what_was_accepted_before_still_opens(text: str, code: str) -> None:
    with pytest.raises(ElastalogError) as raised:
        Program.parse(text)
    assert {found.code for found in raised.value.diagnostics if found.severity == "error"} == {code}
    assert "p" in Program.reopen(text, "program.dl").checked.relations
