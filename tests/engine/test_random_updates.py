"""Random updates: after every epoch a session is what a fresh one would be, and what the judges say it is."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.session import Session
from tests.engine.judging import (
    BOMB,
    LEVEL_KINDS,
    Kind,
    difference,
    facts_of,
    judge,
    least_budget,
    levels_of,
    rules_text,
    sides_of,
    with_bomb,
)
from tests.generators.choices import SeededChoices, pick
from tests.generators.construction import Features, GeneratedProgram, build_program
from tests.generators.programs import programs, updates
from tests.generators.seeded import seeded_case
from tests.generators.updates import Update, build_stir, build_update
from tests.reference.cases import parse_accepted

STRATEGIES = ["elastic", "elastic", "elastic", "recompute"]
BUDGETS = [None, 0.2, 0.0]
LEAST = [2_000, 0, 5, 25]
"""The derivations that an update may always cost: so few that some are abandoned at once and some half way."""


class Interrupted(Exception):
    """Something went wrong in the middle of an update."""


def play(program: GeneratedProgram, steps: list[Update], choice: Random, kind: Kind = "local") -> set[str]:
    """Applies updates to a session, failing ones among them, and judges every epoch. Returns how strata were done."""
    program = with_bomb(program, choice.randrange(4))
    strategy, budget, least = choice.choice(STRATEGIES), choice.choice(BUDGETS), choice.choice(LEAST)
    options: dict[str, Any] = {"strategy": strategy, "levels": kind}
    tree, explicit, is_annotated = parse_accepted(program.text), program.explicit, strategy == "elastic"
    with (
        least_budget(least),
        elastalog.open(
            program.text, facts=program.facts, budget=budget, store=elastalog.Store(heartbeats=True), **options
        ) as db,
    ):
        for number, update in enumerate(steps, start=2):
            before = facts_of(db)
            if choice.random() < 0.4:
                fail(db, update, choice)
                judge(db, tree, explicit, kind, is_annotated)
                assert db.epoch == number - 1
            changes = apply(db, update, choice)
            explicit = update.apply_to(explicit)
            after = facts_of(db)
            assert db.epoch == number
            assert changes == difference(before, after)
            judge(db, tree, explicit, kind, is_annotated)
            fresh = elastalog.open(rules_text(program), facts=explicit, **options)
            assert facts_of(fresh) == after
            assert not is_annotated or levels_of(fresh) == levels_of(db)
        return {stratum.how for entry in db.log()[1:] for stratum in entry.strata}


def apply(db: Session, update: Update, choice: Random) -> dict[str, tuple[Any, Any]]:
    """Applies an update in one of the ways there are; the facts inserted and deleted, by relation that changed."""
    if choice.random() < 0.5:
        changes = db.apply(update.inserted, update.deleted)
    else:
        with db.update() as pending:
            for name, facts in update.inserted.items():
                pending.insert(name, facts)
            for name, facts in update.deleted.items():
                for fact in facts:
                    pending.delete(name, [fact])
        changes = pending.changes
    assert changes.impact == sum(len(changes[name]) for name in db)
    return sides_of(changes)


def fail(db: Session, update: Update, choice: Random) -> None:
    """An update that does not come about: an exception in its block, or an overflow while it is evaluated."""
    if choice.random() < 0.3:
        with pytest.raises(Interrupted):
            interrupt(db, update)
    else:
        bombs = [(0,), (1,)] if choice.random() < 0.5 else [(1,)]
        with pytest.raises(ElastalogError, match="E06"):
            db.apply({**update.inserted, BOMB: bombs}, update.deleted)


def interrupt(db: Session, update: Update) -> None:
    with db.update() as pending:
        for name, facts in update.deleted.items():
            pending.delete(name, facts)
        raise Interrupted


@pytest.mark.parametrize("kind", LEVEL_KINDS)
@pytest.mark.parametrize(
    "features", [Features(), *(Features(**{name: True}) for name in ("tested_groups", "records", "equivalences"))]
)
def test_seeded_updates(features: Features, kind: Kind) -> None:
    ways = set().union(*(play(*seeded_case(seed, features), Random(seed), kind) for seed in range(16)))
    assert ways >= {"update", "switch", "refold", "recompute"}


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_long_streams_of_updates(kind: Kind) -> None:
    for seed in range(4):
        choices = SeededChoices(seed)
        program = build_program(choices, Features())
        db, explicit = elastalog.open(program.text, facts=program.facts, budget=None, levels=kind), program.explicit
        for _ in range(25):
            update = pick(choices, (build_update, build_stir))(choices, program, explicit)
            explicit = update.apply_to(explicit)
            db.apply(update.inserted, update.deleted)
            assert levels_of(db) == levels_of(elastalog.open(rules_text(program), facts=explicit, levels=kind))
        judge(db, parse_accepted(program.text), explicit, kind)


@settings(max_examples=20)
@given(st.data())
def test_drawn_updates(data: st.DataObject) -> None:
    program = data.draw(programs())
    play(program, data.draw(updates(program)), Random(data.draw(st.integers(0, 99))))


@pytest.mark.long
@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_many_seeded_updates(kind: Kind) -> None:
    for seed in range(20_000, 20_040):
        play(*seeded_case(seed, most_updates=6), Random(seed), kind)
