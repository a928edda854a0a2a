"""What is kept from question to question is never out of date."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.session import Session
from tests.debugging.propositional import Propositional, random_propositional
from tests.engine.judging import facts_of, levels_of

PROGRAM = """
.decl edge, path, apart(x: number, y: number)
.decl total(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
apart(x, y) :- edge(x, _), edge(_, y), !path(x, y).
total(x + y) :- edge(x, y).
"""


@pytest.fixture
def db() -> Iterator[Session]:
    with elastalog.open(PROGRAM, facts={"edge": [(1, 2), (5, 6)]}) as session:
        session.apply({"edge": [(2, 3), (3, 4)]})
        yield session


def texts(answer: Any) -> list[str]:
    return [str(element) for element in answer.elements]


def test_the_same_question_has_the_same_answer(db: Session) -> None:
    state = facts_of(db), levels_of(db)
    for ask in (db.suggest, db.localise):
        first = ask(unwanted=["path(1, 4)"])
        again = ask(unwanted=["path(1, 4)"])
        assert (again.elements, again.bound) == (first.elements, first.bound)
        assert [str(proof) for proof in again.proofs] == [str(proof) for proof in first.proofs]
    assert (facts_of(db), levels_of(db)) == state


def test_a_new_update_is_asked_about_next(db: Session) -> None:
    assert texts(db.localise(unwanted=["path(1, 4)"])) == ["+edge(2, 3)", "+edge(3, 4)"]
    db.apply(deleted={"edge": [(2, 3)]})
    assert texts(db.localise(missing=["path(1, 4)"])) == ["-edge(2, 3)"]
    with pytest.raises(ElastalogError, match="does not hold"):
        db.localise(unwanted=["path(1, 4)"])
    assert texts(db.localise(unwanted=["path(1, 4)"], epochs=(1, 2))) == ["+edge(2, 3)", "+edge(3, 4)"]


def test_after_a_suggestion_was_applied(db: Session) -> None:
    suggestion = db.suggest(unwanted=["path(1, 4)"])
    suggestion.apply()
    assert (1, 4) not in db["path"]
    undone = texts(db.localise(missing=["path(1, 4)"]))
    assert [text[1:] for text in undone] == [text[1:] for text in texts(suggestion)]
    assert db.verify().is_exact


def test_after_an_update_that_failed(db: Session) -> None:
    before = texts(db.localise(unwanted=["path(1, 4)"]))
    with pytest.raises(ElastalogError):
        db.apply({"edge": [(2**63 - 1, 1), (8, 9)]}, {"edge": [(2, 3)]})
    assert texts(db.localise(unwanted=["path(1, 4)"])) == before
    assert db.verify().is_exact


def test_after_a_forecast(db: Session) -> None:
    before = texts(db.suggest(unwanted=["path(1, 4)"]))
    db.forecast(inserted={"edge": [(9, 9)]}, deleted={"edge": [(1, 2)]})
    assert texts(db.suggest(unwanted=["path(1, 4)"])) == before


def test_rows_that_got_new_numbers() -> None:
    """Most facts go, so that rows are numbered anew; and once more while the question is answered."""
    chain = [(i, i + 1) for i in range(6_000)]
    program = ".decl e(x: number, y: number)\n.decl f(x: number)\nf(x) :- e(x, _), e(y, x), x != y.\n"
    with elastalog.open(program, facts={"e": chain}) as db:
        db.apply(deleted={"e": chain[10:]})
        assert texts(db.localise(missing=["f(5000)", "f(5001)"]))
        assert texts(db.localise(missing=["f(5000)"], epochs=(1, 2)))
        db.apply({"e": [(70, 71), (71, 72)]})
        assert texts(db.suggest(unwanted=["f(71)"])) in (["+e(70, 71)"], ["+e(71, 72)"])
        assert texts(db.localise(missing=["f(5000)"], epochs=(1, 2)))
        assert db.verify().is_exact


def test_equal_values_of_other_types_are_other_facts(db: Session) -> None:
    assert texts(db.suggest(unwanted=[("path", (1, 4))]))
    with pytest.raises(ElastalogError):
        db.suggest(unwanted=[("path", (True, 4))])


@pytest.mark.parametrize("seed", range(12))
def test_a_row_of_updates_and_questions(seed: int) -> None:
    """Three updates of a random program; after each, two questions about it and one about all of them."""
    choice = Random(seed)
    case = random_propositional(seed, negation=seed % 2 == 1, most_inputs=6)
    states = [case.before]
    with elastalog.open(
        case.text, facts={name: [()] for name in case.before}, store=elastalog.Store(heartbeats=True)
    ) as db:
        for _ in range(3):
            after = frozenset(name for name in case.names if name[0] == "e" and choice.random() < 0.5)
            db.apply({n: [()] for n in after - states[-1]}, {n: [()] for n in states[-1] - after})
            states.append(after)
            for first in {len(states) - 1, 1}:
                ask(db, Propositional(case.strata, case.names, states[first - 1], after), first, choice)
            assert {name for name in db if len(db[name])} == case.facts(after)


def ask(db: Session, case: Propositional, first: int, choice: Random) -> None:
    old, new = case.facts(case.before), case.facts(case.after)
    unwanted = set(choice.sample(sorted(new - old), min(len(new - old), 2)))
    missing = set(choice.sample(sorted(old - new), min(len(old - new), 2)))
    if not unwanted and not missing:
        return
    faults = [f"{name}()" for name in sorted(unwanted)], [f"{name}()" for name in sorted(missing)]
    epochs = (first, db.epoch)
    part = db.localise(*faults, epochs=epochs)
    undone = db.suggest(*faults, epochs=epochs)
    assert part.minimum
    assert undone.minimum
    assert len(part.elements) == case.smallest_reproducing(unwanted, missing)
    assert len(undone.elements) == case.smallest_undoing(unwanted, missing)
