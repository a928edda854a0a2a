"""Texts that grow without end, or are meant for the terminal of whoever looks at them."""

from __future__ import annotations

import io
import time

import pytest

import elastalog
from elastalog.backends.watch import Watch
from elastalog.cli.outputs import fit_for_terminal
from tests.refusals import refused

BIDI = "a\u202eb\u2066c\x1b]0;title\x07"


def test_a_text_that_doubles_without_end_is_a_limit_that_is_reached() -> None:
    began = time.process_time()
    with refused("E0622"):
        elastalog.open('.decl p(x: symbol)\np("ab").\np(cat(x, x)) :- p(x).')
    assert time.process_time() - began < 60


def test_a_text_may_still_be_long() -> None:
    program = '.decl p(x: symbol)\np("ab").\np(cat(x, x)) :- p(x), strlen(x) < 100000.'
    db = elastalog.open(program)
    assert max(len(x) for (x,) in db["p"]) == 2**17


def test_memory_that_the_system_does_not_give_is_a_diagnostic() -> None:
    with refused("E0604"), Watch().within(None):
        raise MemoryError


@pytest.mark.parametrize("form", ["to_text", "to_tree", "to_dot", "to_mermaid", "to_html", "__str__"])
def test_nothing_in_a_proof_or_an_absence_reorders_a_line(form: str) -> None:
    db = elastalog.open(
        ".decl p(x: symbol)\n.decl q(x: symbol)\n.decl r(x: symbol)\nq(x) :- p(x).\nr(x) :- q(x), !p(x).",
        facts={"p": [(BIDI,)]},
    )
    for shown in (db.explain(("q", (BIDI,))), db.why_not(("r", (BIDI,)))):
        text = getattr(shown, form)()
        assert not set(text) & set("\u202e\u2066\x1b\x07")
        assert "202e" in text


def test_facts_are_escaped_for_a_terminal_and_for_nobody_else() -> None:
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), io.BytesIO()
    for out in (terminal, pipe):
        fit_for_terminal(out).write(f"x\t{BIDI}ü\n".encode())
    assert pipe.getvalue().decode() == f"x\t{BIDI}ü\n"
    assert terminal.getvalue().decode() == "x\ta\\u{202e}b\\u{2066}c\\x1b]0;title\\u{7}ü\n"
