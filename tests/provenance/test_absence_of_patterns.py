"""Why nothing else fits a pattern: what holds is counted, what nearly does is told with where it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import elastalog
from elastalog import ElastalogError, Session
from elastalog.cli.main import cli
from elastalog.provenance.absence import PatternAbsence

PROGRAM = """
.decl edge(a: number, b: number)
.decl path(a: number, b: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl may(who: symbol, what: symbol)
.decl secret(what: symbol)
.decl sees(who: symbol, what: symbol)
sees(u, d) :- may(u, d), !secret(d).
.decl twice(a: number, b: number)
twice(x, x + x) :- edge(x, _).
"""
FACTS = {
    "edge": [(1, 2), (2, 3), (7, 7)],
    "may": [("ann", "plan"), ("ann", "keys"), ("bob", "plan")],
    "secret": [("keys",)],
}


@pytest.fixture
def db() -> Session:
    return elastalog.open(PROGRAM, FACTS)


def near(found: object) -> list[tuple[str, list[str]]]:
    assert isinstance(found, PatternAbsence)
    return [(found.conclusion(one), [literal.text for literal in one.failing]) for one in found.instantiations]


def test_what_stands_in_the_way_of_one_that_does_not_hold(db: Session) -> None:
    found = db.why_not('sees("ann", X)')
    assert isinstance(found, PatternAbsence)
    assert (found.pattern, found.present) == ('sees("ann", X)', 1)
    assert near(found) == [('sees("ann", "keys")', ['!secret("keys")'])]
    assert str(found.expand()) == str(db.explain('secret("keys")'))


def test_where_no_value_at_all_would_do_it_is_left_open(db: Session) -> None:
    """From 1 one comes to 2 and 3, and from 3 nowhere."""
    found = db.why_not("path(1, X).")
    assert isinstance(found, PatternAbsence)
    assert (found.pattern, found.present) == ("path(1, X)", 2)
    assert ("path(1, z)", ["edge(3, z)"]) in near(found)
    assert all(conclusion not in ("path(1, 2)", "path(1, 3)") for conclusion, _ in near(found))


def test_the_same_variable_is_the_same_value(db: Session) -> None:
    found = db.why_not("path(X, X)")
    assert isinstance(found, PatternAbsence)
    assert found.present == 1  # 7
    assert all(_arguments(text)[0] == _arguments(text)[1] or "z" in text or "y" in text for text, _ in near(found))
    assert db.why_not("path(X, Y)").present == len(db["path"])  # type: ignore[attr-defined]


def _arguments(text: str) -> list[str]:
    return text[text.index("(") + 1 : -1].split(", ")


def test_values_that_are_computed_are_those_that_would_be(db: Session) -> None:
    found = db.why_not("twice(X, 9)")
    assert isinstance(found, PatternAbsence)
    assert found.present == 0
    assert sorted(near(found)) == [
        ("twice(1, 9)", ["9 = 1 + 1"]), ("twice(2, 9)", ["9 = 2 + 2"]), ("twice(7, 9)", ["9 = 7 + 7"]),
    ]  # fmt: skip


def test_what_only_is_given_says_so(db: Session) -> None:
    found = db.why_not("edge(5, X)")
    assert str(found) == (
        "edge(5, X): no fact fits; no derivation of another comes near, so others hold only if they are given"
    )


def test_a_rule_and_values_restrict_the_search(db: Session) -> None:
    found = db.why_not("path(1, X)", rule=2, bindings={"y": 3})
    assert near(found) == [("path(1, z)", ["edge(3, z)"])]
    with pytest.raises(ElastalogError, match="E0710"):
        db.why_not("path(1, X)", rule=9)
    with pytest.raises(ElastalogError, match="E0606"):
        db.why_not("nowhere(1, X)")


def test_every_form_tells_it(db: Session) -> None:
    found = db.why_not('sees("ann", _)')
    told = json.loads(found.to_json())
    assert (told["present"], told["fact"]["text"]) == (1, 'sees("ann", _)')
    assert told["instantiations"][0]["conclusion"] == 'sees("ann", "keys")'
    for text in (found.to_text(), found.to_tree(), found.to_html(page=True), found.to_dot(), found.to_mermaid()):
        assert "keys" in text


def test_the_command_takes_patterns_and_epochs(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with elastalog.open(PROGRAM, FACTS, store=store) as db:
        db.apply({"secret": [("plan",)]})
    runner = CliRunner()
    now = runner.invoke(cli, ["whynot", store, 'sees("bob", X)', "--format", "tree"])
    assert now.exit_code == 0, now.output
    assert "no fact fits" in now.output
    assert '!secret("plan")' in now.output
    before = runner.invoke(cli, ["whynot", store, 'sees("bob", X)', "--at", "1"])
    assert "1 fact fits" in before.output
    gone = runner.invoke(cli, ["whynot", store, 'sees("bob", X)', "--at", "9"])
    assert (gone.exit_code, "E0813" in gone.output) == (1, True)
