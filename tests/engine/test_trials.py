"""Trials: what they show, and that nothing of them is left."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.backends.watch import BudgetExceeded
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.evaluation.changes import Update
from elastalog.evaluation.epochs import Epochs, TrialLimits
from elastalog.session import Session
from tests.engine.judging import facts_of, levels_of
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case

PROGRAM = """
.decl edge, path(x: number, y: number)
.decl lonely, seen(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lonely(x) :- edge(x, _), !seen(x).
seen(y) :- path(_, y).
"""


@pytest.fixture
def db() -> Iterator[Session]:
    with elastalog.open(PROGRAM, facts={"edge": [(1, 2), (2, 3), (5, 6)]}) as session:
        session.apply({"edge": [(3, 4)]}, {"edge": [(5, 6)]})
        yield session


def epochs_of(db: Session) -> Epochs:
    return db._answerers.debugger._epochs


def state(db: Session) -> Any:
    return facts_of(db), levels_of(db)


def update(db: Session, inserted: list[tuple[int, int]], deleted: list[tuple[int, int]]) -> Update:
    def words(rows: list[tuple[int, int]]) -> dict[str, Any]:
        return {"edge": db.engine.encode("edge", rows)} if rows else {}

    return Update(words(deleted), words(inserted))


def test_a_trial_can_be_made_again(db: Session) -> None:
    before = state(db)
    trial = epochs_of(db).trial(update(db, [(4, 5)], [(1, 2)]))
    seen = []
    for _ in range(3):
        with trial as changes:
            seen.append((state(db), {name: (len(came), len(went)) for name, (came, went) in changes.items()}))
            assert db._epochs.backend.size("path") == len(list(db["path"]))
        assert state(db) == before
    assert seen[0] == seen[1] == seen[2]
    assert (1, 4) not in seen[0][0][0]["path"]


def test_trials_within_trials(db: Session) -> None:
    before = state(db)
    outer = epochs_of(db).trial(update(db, [(4, 5)], []))
    for _ in range(2):
        with outer:
            between = state(db)
            with epochs_of(db).trial(update(db, [], [(4, 5), (2, 3)])):
                assert (1, 3) not in db["path"]
            assert state(db) == between
        assert state(db) == before


def test_the_previous_epoch_is_at_hand(db: Session) -> None:
    after = state(db)
    for _ in range(2):
        trial = epochs_of(db).trial_of_previous()
        assert trial is not None
        with trial:
            assert sorted(db["edge"]) == [(1, 2), (2, 3), (5, 6)]
            assert (5, 6) in db["path"]
            assert (1, 4) not in db["path"]
        assert state(db) == after
    db.apply({"edge": [(7, 8)]})
    assert (5, 6) not in db["path"]
    assert db.verify().is_exact


def test_the_first_epoch_has_no_previous() -> None:
    with elastalog.open(PROGRAM, facts={"edge": [(1, 2)]}) as db:
        assert epochs_of(db).trial_of_previous() is None


def test_only_some_strata(db: Session) -> None:
    before = state(db)
    backend = epochs_of(db).backend
    strata = {s.number for s in backend.program.strata if {"edge", "path"} & set(s.relations)}
    trial = epochs_of(db).trial(update(db, [(4, 1)], []), TrialLimits(strata, 1000))
    with trial:
        assert (4, 4) in db["path"]
        assert (1,) in db["lonely"], "what is not tried stays"
    assert state(db) == before


def test_what_is_pretended_reaches_rules_above(db: Session) -> None:
    before = state(db)
    strata = {s.number for s in epochs_of(db).backend.program.strata}
    facts = {"seen": db.engine.encode("seen", [(2,), (3,)])}
    with epochs_of(db).trial(Update({}, {}), TrialLimits(strata, 1000, absent=facts)):
        assert sorted(db["lonely"]) == [(1,), (2,), (3,)]
    facts = {"seen": db.engine.encode("seen", [(1,), (2,)])}
    with epochs_of(db).trial(Update({}, {}), TrialLimits(strata, 1000, present=facts)):
        assert sorted(db["lonely"]) == []
    assert state(db) == before
    assert db.verify().is_exact


def test_a_trial_beyond_its_budget_leaves_nothing(db: Session) -> None:
    before = state(db)
    strata = {s.number for s in epochs_of(db).backend.program.strata}
    trial = epochs_of(db).trial(update(db, [(4, 1)], []), TrialLimits(strata, 0))
    with pytest.raises(BudgetExceeded), trial:
        pass
    assert state(db) == before
    assert db.verify().is_exact


def test_rows_keep_their_numbers_during_a_trial() -> None:
    """In the inner trial nearly all facts are gone; if rows were numbered anew there, there would be no way back."""
    chain = [(i, i + 1) for i in range(9_000)]
    program = ".decl edge(x: number, y: number)\n.decl end(x: number)\nend(y) :- edge(_, y).\n"
    with elastalog.open(program, facts={"edge": chain}) as db:
        epochs = epochs_of(db)
        everything = {s.number for s in epochs.backend.program.strata}
        before = facts_of(db)
        with epochs.trial(update(db, [(1, 1)], chain[:10]), TrialLimits(everything, 10**6)):
            between = facts_of(db)
            with epochs.trial(update(db, [], chain[10:]), TrialLimits(everything, 10**6)):
                epochs.forecast(update(db, [(2, 2)], []))
                assert len(db["edge"]) == 1
            assert facts_of(db) == between
        assert facts_of(db) == before
        db.apply(deleted={"edge": chain[:8_999]})
        assert sorted(db["end"]) == [(9_000,)]


def test_a_stratum_that_is_evaluated_anew_within_a_trial() -> None:
    """Then annotations cannot be written back, and the inverse of the outer update is evaluated."""
    chain = [(i, i + 1) for i in range(9_000)]
    program = ".decl edge(x: number, y: number)\n.decl end(x: number)\nend(y) :- edge(_, y).\n"
    with elastalog.open(program, facts={"edge": chain}) as db:
        before = facts_of(db)
        outer, inner = (epochs_of(db).trial(u) for u in (update(db, [(1, 1)], chain[:10]), update(db, [], chain[10:])))
        for _ in range(2):
            with outer, inner:
                assert sorted(db["end"]) == [(1,)]
            assert facts_of(db) == before
        assert db.verify().is_exact


@pytest.mark.parametrize("seed", range(10))
def test_random_trials_leave_nothing(seed: int) -> None:
    choice = Random(seed)
    program, steps = seeded_case(seed, Features())
    with elastalog.open(program.text, facts=program.facts) as db:
        before = state(db)
        trials = []
        for step in steps:
            sides = [
                {name: db.engine.encode(name, sorted(facts)) for name, facts in side.items() if facts}
                for side in (step.deleted, step.inserted)
            ]
            trials.append(epochs_of(db).trial(Update(*sides)))
        shown: dict[int, Any] = {}
        for _ in range(6):
            number = choice.randrange(len(trials))
            with trials[number]:
                assert shown.setdefault(number, state(db)) == state(db)
            assert state(db) == before


def test_what_cannot_be_taken_back_is_said(db: Session) -> None:
    backend = epochs_of(db).backend
    trial = epochs_of(db).trial(update(db, [(4, 1)], []), TrialLimits({s.number for s in backend.program.strata}, 1000))
    trial.__enter__()
    for relation in backend.held.relations.values():
        relation.generation += 1
    with pytest.raises(InternalError, match="taken back"):
        trial.__exit__()
