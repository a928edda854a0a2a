"""Questions: what is refused, rejection, weights, epochs, blame, and that sessions are left as they were."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.debugging import search, zero_one
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.session import Session
from tests.engine.judging import facts_of, levels_of

PROGRAM = """
.decl edge, path, apart(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
apart(x, y) :- edge(x, _), edge(_, y), !path(x, y).
"""
START = {"edge": [(1, 2), (5, 6)]}


@pytest.fixture
def db() -> Iterator[Session]:
    """Epoch 2 connects 2 to 3 in two ways and to 4, epoch 3 cuts 5 from 6."""
    with elastalog.open(PROGRAM, facts=START) as session:
        session.apply({"edge": [(2, 3), (2, 9), (9, 3), (3, 4)]})
        session.apply(deleted={"edge": [(5, 6)]})
        yield session


def texts(answer: Any) -> list[str]:
    return [str(element) for element in answer.elements]


def refused(question: Callable[[], object], code: str) -> str:
    with pytest.raises(ElastalogError) as caught:
        question()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.help
    return diagnostic.message


def test_the_last_update_is_the_one_that_is_asked_about(db: Session) -> None:
    assert texts(db.suggest(missing=["path(5, 6)"])) == ["-edge(5, 6)"]
    assert texts(db.localise(missing=["path(5, 6)"])) == ["-edge(5, 6)"]


def test_any_two_epochs_can_be_asked_about(db: Session) -> None:
    assert texts(db.suggest(unwanted=["path(1, 4)"], epochs=(1, 2))) == ["+edge(3, 4)"]
    both = db.suggest(unwanted=["path(1, 4)"], missing=["path(5, 6)"], epochs=(1, 3))
    assert texts(both) == ["+edge(3, 4)", "-edge(5, 6)"]
    assert str(both).startswith("undo 2 of 5 elements of epochs 2 to 3 (verified, minimum)")


def test_only_the_net_change_between_epochs_counts(db: Session) -> None:
    db.apply({"edge": [(5, 6)]}, {"edge": [(9, 3)]})
    found = db.suggest(unwanted=["path(1, 3)"], epochs=(1, 4))
    assert found.update_size == 3
    assert texts(found) == ["+edge(2, 3)"]


def test_a_fact_that_is_as_it_should_be_is_refused(db: Session) -> None:
    message = refused(lambda: db.suggest(unwanted=["path(5, 6)"]), "E1001")
    assert message == "path(5, 6) cannot be unwanted: it does not hold in epoch 3"
    message = refused(lambda: db.localise(missing=["path(1, 2)"]), "E1001")
    assert message == "path(1, 2) cannot be missing: it holds in epoch 3"


def test_a_fault_that_existed_before_is_refused(db: Session) -> None:
    assert refused(lambda: db.suggest(["path(1, 2)"], over="update"), "E1002") == "path(1, 2) held already in epoch 2"
    assert refused(lambda: db.localise(missing=["path(7, 7)"]), "E1002") == "path(7, 7) did not hold either in epoch 2"
    assert refused(lambda: db.suggest(unwanted=["path(1, 2)"], epochs=(1, 3)), "E1002")
    found = db.suggest(unwanted=["path(1, 2)"])  # older than the update: so it is looked for among all facts
    assert (found.over, list(map(str, found.delete))) == ("facts", ["edge(1, 2)"])
    refused(lambda: db.suggest(unwanted=["path(1, 2)"], rejected=["edge(1, _)"]), "E0714")


def test_faults_are_needed_and_may_not_contradict_each_other(db: Session) -> None:
    refused(db.suggest, "E1003")
    refused(lambda: db.suggest(unwanted=["path(1, 4)"], missing=["path(1, 4)"], epochs=(1, 2)), "E1003")


@pytest.mark.parametrize("epochs", [(0, 1), (2, 2), (3, 2), (2, 4)])
def test_epochs_that_are_not_there_are_refused(db: Session, epochs: tuple[int, int]) -> None:
    refused(lambda: db.suggest(unwanted=["path(1, 4)"], epochs=epochs), "E1004")


def test_without_an_update_there_is_nothing_to_ask() -> None:
    with elastalog.open(PROGRAM, facts=START) as db:
        assert refused(lambda: db.suggest(unwanted=["path(1, 2)"], over="update"), "E1004").startswith(
            "there is no update"
        )


def test_a_session_of_an_earlier_epoch_knows_its_updates(tmp_path: Path) -> None:
    with elastalog.open(PROGRAM, facts=START, store=tmp_path / "s") as db:
        db.apply({"edge": [(2, 3)]})
        db.apply({"edge": [(8, 9)]})
        earlier = db.at(2)
        assert texts(earlier.suggest(unwanted=["path(2, 3)"])) == ["+edge(2, 3)"]
        assert earlier.blame("path(2, 3)").epoch == 2
        refused(lambda: earlier.suggest(unwanted=["path(2, 3)"]).apply(), "E0814")


@pytest.mark.parametrize("fact", ["path(5, 6)", ("path", (5, 6)), ("path", [5, 6])])
def test_one_fact_may_be_given_alone(db: Session, fact: Any) -> None:
    assert texts(db.suggest(missing=fact)) == ["-edge(5, 6)"]
    assert texts(db.localise(missing=[fact])) == ["-edge(5, 6)"]


@pytest.mark.parametrize(
    "faults",
    [
        ["path(2, 9)", ("path", (3, 4))],
        ("path(2, 9)", ("path", (3, 4))),
        [("path", [2, 9]), "path(3, 4)"],
        (("path", (2, 9)), ("path", [3, 4])),
    ],
)
def test_two_facts_may_be_given_in_different_ways(db: Session, faults: Any) -> None:
    assert texts(db.suggest(unwanted=faults, epochs=(1, 2))) == ["+edge(2, 9)", "+edge(3, 4)"]


# --- negations


NEXT = """
.decl item, taken, late, free, last(x: number)
taken(x) :- late(x).
free(x) :- item(x), !taken(x + 1).
last(x) :- free(x), !free(x * 2), !taken(x - 1).
"""


@pytest.mark.parametrize("levels", ["local", "global"])
def test_negated_atoms_may_have_computed_arguments(levels: str) -> None:
    with elastalog.open(NEXT, {"item": [(1,), (2,)], "taken": [(2,)]}, levels=levels) as db:
        assert (sorted(db["free"]), sorted(db["last"])) == ([(2,)], [(2,)])
        db.apply({"late": [(3,)], "item": [(7,)]}, {"taken": [(2,)]})
        assert (sorted(db["free"]), sorted(db["last"])) == ([(1,), (7,)], [(1,), (7,)])
        assert texts(db.suggest(unwanted=["free(1)"])) == ["-taken(2)"]
        assert texts(db.suggest(missing=["free(2)"])) == ["+late(3)"]
        assert texts(db.localise(unwanted=["last(1)"])) == ["+late(3)", "-taken(2)"]
        assert texts(db.localise(unwanted=["last(1)", "free(7)"])) == ["+item(7)", "+late(3)", "-taken(2)"]
        found = db.suggest(unwanted=["last(1)"], missing=["last(2)"], epochs=(1, 2))
        assert (texts(found), found.verified, found.minimum) == (["+late(3)"], True, True)
        assert "!taken(2)" in "\n".join(map(str, db.localise(unwanted=["free(1)"]).proofs))
        assert (db.blame("last(2)").epoch, db.blame("last(1)").epoch) == (2, 2)


# --- rejection and weights


def test_what_is_rejected_stays(db: Session) -> None:
    found = db.suggest(unwanted=["path(1, 4)"], rejected=["+edge(3, 4)"], epochs=(1, 2))
    assert len(found.elements) == 2
    assert "+edge(3, 4)" not in texts(found)
    assert [str(element) for element in found.rejected] == ["+edge(3, 4)"]
    assert found.minimum


def test_rejection_takes_elements_and_facts(db: Session) -> None:
    first = db.suggest(unwanted=["path(1, 4)"], epochs=(1, 2))
    for rejected in (first.elements, ["edge(3, 4)"], [("edge", (3, 4))], [("+", ("edge", (3, 4)))]):
        assert len(db.suggest(unwanted=["path(1, 4)"], rejected=rejected, epochs=(1, 2)).elements) == 2


def test_when_nothing_is_left_that_is_said(db: Session) -> None:
    question = lambda: db.suggest(missing=["path(5, 6)"], rejected=["-edge(5, 6)"])  # noqa: E731
    message = refused(question, "E1006")
    assert message == "no part of the update can be undone to remove all faults, if -edge(5, 6) must stay"


def test_what_is_no_part_of_the_update_can_not_be_rejected(db: Session) -> None:
    refused(lambda: db.suggest(missing=["path(5, 6)"], rejected=["-edge(1, 2)"]), "E1005")
    refused(lambda: db.suggest(missing=["path(5, 6)"], rejected=["+edge(5, 6)"]), "E1005")


def test_weights_say_what_is_dear(db: Session) -> None:
    found = db.suggest(unwanted=["path(1, 4)"], weights={"+edge(3, 4)": 2.5}, epochs=(1, 2))
    assert len(found.elements) == 2
    assert found.bound == 2
    found = db.suggest(unwanted=["path(1, 4)"], weights={"+edge(3, 4)": 1.5}, epochs=(1, 2))
    assert texts(found) == ["+edge(3, 4)"]
    assert found.minimum
    assert found.bound == 1.5


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), True, "2"])
def test_weights_are_numbers_above_0(db: Session, weight: Any) -> None:
    refused(lambda: db.suggest(missing=["path(5, 6)"], weights={"-edge(5, 6)": weight}), "E1009")


NUMBERED = """
.decl e(x: symbol)
.decl id(x: symbol, n: number)
id(x, autoinc()) :- e(x).
"""


def test_numbers_that_do_not_come_again_are_told() -> None:
    with elastalog.open(NUMBERED, facts={"e": [("a",), ("b",)]}) as db:
        db.apply(deleted={"e": [("a",)]})
        assert texts(db.localise(missing=['id("a", 0)'])) == ['-e("a")']
        refused(lambda: db.suggest(missing=['id("a", 0)']), "E1010")
        db.apply({"e": [("c",), ("d",)]}, {"e": [("b",)]})
        db.apply({"e": [("f",)]}, {"e": [("c",)]})
        refused(lambda: db.localise(unwanted=['id("f", 4)'], epochs=(2, 4)), "E1010")
        assert texts(db.suggest(unwanted=['id("f", 4)'], epochs=(2, 4))) == ['+e("f")']


# --- applying and blaming


def test_a_suggestion_is_applied_only_in_its_epoch(db: Session) -> None:
    found = db.suggest(missing=["path(5, 6)"])
    db.apply({"edge": [(7, 8)]})
    refused(found.apply, "E1007")
    assert db.epoch == 4


def test_blame_finds_epoch_and_elements(db: Session) -> None:
    blame = db.blame("path(1, 4)")
    assert (blame.epoch, blame.what, len(blame.elements)) == (2, "appeared", 2)
    assert str(db.blame("path(5, 6)")) == "path(5, 6) disappeared in epoch 3, because of\n  -edge(5, 6)"
    assert str(db.blame("path(1, 2)")) == "path(1, 2) has held since epoch 1, the earliest that is known"
    db.apply(deleted={"edge": [(3, 4)]})
    assert str(db.blame("path(1, 4)")) == "path(1, 4) disappeared in epoch 4, because of\n  -edge(3, 4)"


def test_nobody_is_to_blame_for_what_never_was(db: Session) -> None:
    refused(lambda: db.blame("path(6, 5)"), "E1008")
    refused(lambda: db.blame("path(77, 78)"), "E1008")


def test_an_answer_as_json(db: Session) -> None:
    written = json.loads(db.suggest(missing=["path(5, 6)"]).to_json())
    assert written["elements"] == [{"sign": "-", "fact": "edge(5, 6)"}]
    assert written["minimum"] is True
    assert written["missing"] == ["path(5, 6)"]
    assert len(written["proofs"]) == 1


# --- sessions are left as they were


def test_nothing_is_left_of_trials(db: Session) -> None:
    state, log = (facts_of(db), levels_of(db)), db.log()
    db.suggest(unwanted=["path(1, 4)"], missing=["path(5, 6)"], epochs=(1, 3))
    db.localise(unwanted=["path(1, 4)"], missing=["path(5, 6)"], epochs=(1, 3))
    assert (facts_of(db), levels_of(db)) == state
    assert db.log() == log
    assert db.verify().is_exact


def test_a_trial_that_is_interrupted_leaves_nothing(db: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    state = facts_of(db), levels_of(db)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search.Search, "_wrong_with", interrupt)
    with pytest.raises(KeyboardInterrupt):
        db.localise(unwanted=["path(1, 4)"], epochs=(1, 3))
    assert (facts_of(db), levels_of(db)) == state


def test_a_limit_leaves_nothing(db: Session) -> None:
    state = facts_of(db), levels_of(db)
    db._materialisation.timeout = 1e-9
    with pytest.raises(LimitReached):
        db.localise(unwanted=["path(1, 4)"], epochs=(1, 3))
    assert (facts_of(db), levels_of(db)) == state


def test_states_without_a_result_are_no_answers() -> None:
    """Undoing the deletion of `guard` alone would make a number overflow."""
    program = """
    .decl big(x: number)
    .decl on()
    .decl guard, bad(x: number)
    .decl f()
    f() :- on(), !guard(_).
    bad(x + y) :- big(x), guard(y).
    """
    with elastalog.open(program, facts={"guard": [(1,)]}) as db:
        db.apply({"big": [(2**63 - 1,)], "on": [()]}, {"guard": [(1,)]})
        found = db.suggest(unwanted=["f()"], rejected=["+on()"])
        assert texts(found) == ["+big(9223372036854775807)", "-guard(1)"]
        assert found.minimum
        assert texts(db.suggest(unwanted=["f()"])) == ["+on()"]


# --- delta debugging as the way out


def test_without_a_solver_delta_debugging_answers(db: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "is_solver_installed", lambda: False)
    found = db.suggest(unwanted=["path(1, 3)"], epochs=(1, 2))
    assert found.verified
    assert len(found.elements) == 2
    assert not found.minimum
    assert found.bound == 1
    assert found.why_not_proven == "highspy is not installed"
    assert "(verified; not proven minimum because highspy is not installed; lower bound 1):" in str(found)
    assert len(found.proofs) == 1


def test_when_the_time_is_over_delta_debugging_answers(db: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(*_: object) -> None:
        raise zero_one.OutOfTime(2.0)

    monkeypatch.setattr(zero_one, "solve", too_late)
    found = db.suggest(unwanted=["path(1, 3)"], epochs=(1, 2))
    assert found.verified
    assert len(found.elements) == 2
    assert found.minimum, "the bound that was reached proves it"


# --- stores


def test_a_store_remembers_its_updates(tmp_path: Path) -> None:
    with elastalog.open(PROGRAM, facts=START, store=tmp_path / "s") as db:
        db.apply({"edge": [(2, 3), (3, 4)]})
        db.apply(deleted={"edge": [(5, 6)]})
        assert texts(db.suggest(unwanted=["path(1, 4)"], epochs=(1, 2))) in (["+edge(2, 3)"], ["+edge(3, 4)"])
    with elastalog.open(store=elastalog.Store(tmp_path / "s", read_only=True)) as db:
        assert texts(db.suggest(missing=["path(5, 6)"])) == ["-edge(5, 6)"]
        assert texts(db.localise(unwanted=["path(1, 4)"], epochs=(1, 3))) == ["+edge(2, 3)", "+edge(3, 4)"]
        assert db.blame("path(1, 4)").epoch == 2
    with elastalog.open(store=tmp_path / "s") as db:
        found = db.suggest(missing=["path(5, 6)"])
        assert db.epoch == 3
        found.apply()
        assert db.epoch == 4
        assert (5, 6) in db["path"]
        assert db.verify().is_exact


# --- states that a `.limitsize` cuts short are no answers, and looking at one leaves the session as it was ------------


PROGRAM_LIMITS = """
.decl edge, path(x: number, y: number)
.limitsize path(n = 10)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def test_a_state_that_is_cut_short_is_no_answer() -> None:
    """With `edge(2, 3)` back there would be a chain of six, and 15 paths."""
    with elastalog.open(PROGRAM_LIMITS, facts={"edge": [(1, 2), (2, 3)]}) as db:
        db.apply({"edge": [(3, 4), (4, 5), (5, 6)]}, {"edge": [(2, 3)]})
        assert len(db["path"]) == 7
        found = db.suggest(missing=["path(2, 3)"])
        assert found.minimum
        assert len(found.elements) == 2
        assert "-edge(2, 3)" in map(str, found.elements)
        assert len(db["path"]) == 7
        assert found.apply()["path"].inserted
        assert len(db["path"]) < 10


def test_the_session_can_still_be_updated() -> None:
    with elastalog.open(PROGRAM_LIMITS, facts={"edge": [(1, 2), (2, 3)]}) as db:
        db.apply({"edge": [(3, 4), (4, 5), (5, 6)]}, {"edge": [(2, 3)]})
        db.suggest(missing=["path(2, 3)"])
        db.apply({"edge": [(8, 9)]})
        assert len(db["path"]) == 8
