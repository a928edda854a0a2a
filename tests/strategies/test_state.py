"""What strategies keep about facts equals what its definition says, after every epoch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import elastalog
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.settings import SETTINGS
from tests.engine.judging import levels_of, rules_text
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case
from tests.generators.updates import Update
from tests.reference.cases import parse_accepted
from tests.reference.levels import levels
from tests.strategies.running import (
    NO_RECURSION,
    Known,
    backend_of,
    contents,
    counters,
    derivation_counts,
    expectations,
    pending,
    vectors,
)

SEEDS = range(8)


@pytest.mark.parametrize(
    ("strategy", "features"), [("dredc", Features()), ("bfc", Features()), ("counting", NO_RECURSION)]
)
def test_counters_are_numbers_of_derivations(strategy: str, features: Features) -> None:
    for seed in SEEDS:
        program, updates = seeded_case(seed, features)
        tree = parse_accepted(program.text)
        with elastalog.open(program.text, program.facts, strategy=strategy) as db:
            steps: list[tuple[Update | None, Known]] = [(None, program.explicit)]
            steps += [(u, e) for u, (e, _) in zip(updates, expectations(program, updates), strict=True)]
            for update, explicit in steps:
                if update is not None:
                    pending(db, update).commit()
                for name, expected in derivation_counts(tree, explicit).items():
                    found = counters(db, name)
                    if strategy == "dredc":
                        assert found == expected, (seed, name)
                    else:
                        assert {f: nr for f, (nr, _) in found.items()} == {f: nr for f, (nr, _) in expected.items()}


def test_dense_state_is_that_of_a_bootstrap_and_adds_up_to_all_derivations() -> None:
    for seed in SEEDS:
        program, updates = seeded_case(seed)
        tree = parse_accepted(program.text)
        with elastalog.open(program.text, program.facts, strategy="dense") as db:
            for update, (explicit, _) in zip(updates, expectations(program, updates), strict=True):
                pending(db, update).commit()
                with elastalog.open(rules_text(program), explicit, strategy="dense") as fresh:
                    for name in program.schemas:
                        assert vectors(db, name) == vectors(fresh, name), (seed, name)
                sparse, derivations = levels(tree, explicit, with_text_facts=False), derivation_counts(tree, explicit)
                for name in program.schemas:
                    found = vectors(db, name)
                    # The first level with its count is the sparse state; an explicit fact has 1 at level 0.
                    assert {fact: min(counts.items()) for fact, counts in found.items()} == {
                        fact: sparse[name, fact] for fact in found
                    }
                    totals = {fact: sum(counts.values()) for fact, counts in found.items()}
                    assert totals == {fact: nr + r for fact, (nr, r) in derivations[name].items()}, (seed, name)
                assert levels_of(db) == sparse, seed


@pytest.mark.parametrize("strategy", ["dense", "dred", "dredc", "bf", "bfc"])
def test_an_update_that_fails_leaves_the_previous_epoch(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupts updates after every number of blocks, then repeats them: the state must not have noticed."""
    for seed in range(6):
        program, updates = seeded_case(seed)
        expected = expectations(program, updates)
        with elastalog.open(program.text, program.facts, strategy=strategy) as db:
            for update, (_, known) in zip(updates, expected, strict=True):
                before = contents(db, program.schemas)
                for blocks in range(4):
                    with monkeypatch.context() as patch:
                        patch.setattr(Watch, "derived", _interrupting_after(blocks))
                        patch.setattr(SETTINGS, "work_between_checks", 1)  # the machine of dense updates asks rarely
                        try:
                            pending(db, update).commit()
                        except LimitReached:
                            assert contents(db, program.schemas) == before
                        else:
                            break
                else:
                    pending(db, update).commit()
                assert contents(db, program.schemas) == known, seed


def test_vectors_that_were_rolled_back_are_as_before() -> None:
    with elastalog.open(".decl e(x:number)\n.decl p(x:number)\np(x) :- e(x).\np(x) :- p(y), e(x), y < x.\n",
                        {"e": [(n,) for n in range(6)]}, strategy="dense") as db:  # fmt: skip
        before = vectors(db, "p")
        backend = backend_of(db)
        words = backend.held.relations["e"].rows[:2].copy()
        backend.begin({"e": words}, {"e": np.array([[40]], np.int32)})
        db._epochs.strategy.update(backend)
        assert vectors(db, "p") != before
        backend.rollback()
        assert vectors(db, "p") == before


def _interrupting_after(blocks: int) -> Callable[[Watch, int, int], None]:
    left = [blocks]

    def derived(self: Watch, derivations: int, rows: int = 0) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise LimitReached([])
        self.count(derivations, rows)

    return derived


@pytest.mark.parametrize("strategy", ["dense", "dred", "dredc", "bf", "bfc", "counting"])
def test_an_explicit_fact_that_also_follows_stays_when_it_is_deleted(strategy: str) -> None:
    program = ".decl e(x: number)\n.decl p(x: number)\n.decl q(x: number)\np(x) :- e(x).\nq(x) :- p(x).\n"
    with elastalog.open(program, {"e": [(1,)], "p": [(1,), (2,)]}, strategy=strategy) as db:
        db.apply(deleted={"p": [(1,), (2,)]})
        assert set(db["p"]) == set(db["q"]) == {(1,)}
        db.apply(deleted={"e": [(1,)]})
        assert not db["p"]
        assert not db["q"]
