"""Rule changes of programs whose text has candidates: what it says of a relation with a choice domain or a
subsumption counts as a rule, under the same number everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program, rule_texts
from elastalog.session import Session

PROGRAM = """
.decl item(x: number)
.decl pick(x: number, y: number){choice}
pick(7, 1). pick(7, 2).
.decl copy(x: number)
copy(x) :- item(x).
.decl greatest(x: number)
greatest(max x : {{ item(x) }}).
{rest}
"""
CHOSEN = PROGRAM.format(choice=" choice-domain x", rest="")
SUBSUMED = PROGRAM.format(choice="", rest="pick(x, a) <= pick(x, b) :- b < a.")
GIVEN = PROGRAM.format(choice="", rest="")


def opened(text: str) -> Session:
    return elastalog.open(text, facts={"item": [(1,), (2,)]})


@pytest.mark.parametrize("text", [CHOSEN, SUBSUMED])
def test_candidates_have_the_numbers_of_the_checked_program(text: str) -> None:
    program = Program.parse(text)
    shown = [rule.partition("(")[0] for rule in rule_texts(program)]
    assert shown == [rule.head.relation for rule in program.checked.rules]


@pytest.mark.parametrize("text", [CHOSEN, SUBSUMED])
def test_other_rules_come_and_go_beside_candidates(text: str) -> None:
    db = opened(text)
    db.change_rules("copy(x + 1) :- item(x).", ["copy(x) :- item(x)."])
    assert sorted(db["copy"]) == [(2,), (3,)]
    assert list(db["pick"]) == [(7, 1)]
    assert list(db["greatest"]) == [(2,)]
    assert db.verify().is_exact


@pytest.mark.parametrize("text", [CHOSEN, SUBSUMED])
@pytest.mark.parametrize("named", [1, "pick(7, 1)."])
def test_a_candidate_is_removed_like_a_rule(text: str, named: int | str) -> None:
    db = opened(text)
    changes = db.change_rules(removed=[named])
    assert list(changes["pick"].deleted) == [(7, 1)]
    assert list(db["pick"]) == [(7, 2)]


@pytest.mark.parametrize("text", [CHOSEN, SUBSUMED])
def test_a_candidate_is_added_like_a_rule(text: str, tmp_path: Path) -> None:
    with elastalog.open(text, facts={"item": [(1,)]}, store=tmp_path / "store") as db:
        db.change_rules("pick(7, 0).")
        assert list(db["pick"]) == [(7, 0)]
    with elastalog.open(store=tmp_path / "store") as db:
        db.change_rules(removed=["pick(7, 0)."])
        assert list(db["pick"]) == [(7, 1)]


def test_facts_that_are_there_are_candidates_when_a_subsumption_comes() -> None:
    db = opened(GIVEN)
    db.change_rules("pick(x, a) <= pick(x, b) :- b < a.")
    db.change_rules("copy(x + 1) :- item(x).", ["copy(x) :- item(x)."])
    assert list(db["pick"]) == [(7, 1)]
    assert sorted(db["copy"]) == [(2,), (3,)]
    assert db.verify().is_exact


def test_an_upgrade_makes_facts_of_the_text_candidates() -> None:
    db = opened(GIVEN)
    db.upgrade(SUBSUMED)
    assert list(db["pick"]) == [(7, 1)]


def test_facts_beside_computed_ones_are_no_rules() -> None:
    text = ".decl p(x: number)\n.decl q(x: number)\n.decl r(x: number)\np(1 + 1), q(2).\nr(x) :- q(x).\n"
    db = elastalog.open(text)
    assert rule_texts(db.program) == ("p(1 + 1) :- true.", "r(x) :- q(x).")
    db.change_rules(removed=["p(1 + 1)."])
    assert (list(db["p"]), list(db["q"]), list(db["r"])) == ([], [(2,)], [(2,)])
    assert "q(2)." in db.program.tree.source.text


def test_a_subsumption_is_not_removed() -> None:
    db = opened(SUBSUMED)
    with pytest.raises(ElastalogError, match="is a subsumption, which cannot be removed"):
        db.change_rules(removed=["pick(x, a) <= pick(x, b) :- b < a."])
