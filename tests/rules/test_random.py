"""Random updates of rules and facts: after every epoch a session is what a fresh one of the new program would be, and
what the judges say it is."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import rule_texts
from tests.engine.judging import LEVEL_KINDS, Kind, comparable, facts_of, judge, least_budget, levels_of
from tests.generators.construction import Features
from tests.provenance.databases import verdict
from tests.reference.cases import parse_accepted
from tests.rules.playing import UNSTRATIFIED, Case, apply, case_of, is_stratified, opened, step_of
from tests.strategies.running import NO_RECURSION, counters, vectors


def play(
    case: Case, seed: int, strategy: str = "elastic", kind: Kind = "local", steps: int = 4, **engine: Any
) -> set[str]:
    """Changes rules and facts, and judges every epoch. Returns what happened."""
    choice = Random(seed)
    options: dict[str, Any] = {"strategy": strategy, "levels": kind}
    if not is_stratified(case.text):
        return set()
    happened: set[str] = set()
    with (
        least_budget(choice.choice((2_000, 0, 5, 25))),
        elastalog.open(case.text, case.facts, store=elastalog.Store(heartbeats=True), **options, **engine) as db,
    ):
        for number in range(steps):
            step = step_of(case, case.updates[number % len(case.updates)], choice)
            before, epoch, program = facts_of(db), db.epoch, db.program
            rules = [rule for rule in case.current if rule not in step.removed] + step.added
            union = case.header + "".join(f"{rule}\n" for rule in dict.fromkeys((*case.current, *rules)))
            if not is_stratified(union):
                with pytest.raises(ElastalogError) as raised:
                    apply(db, step, choice)
                assert {found.code for found in raised.value.diagnostics} <= UNSTRATIFIED
                assert (facts_of(db), db.epoch, db.program) == (before, epoch, program)
                happened.add("refused")
                continue
            changes = apply(db, step, choice)
            case.current, case.explicit = rules, step.update.apply_to(case.explicit)
            after = facts_of(db)
            assert db.epoch == epoch + 1
            assert {
                n: (set(map(comparable, changes[n].inserted)), set(map(comparable, changes[n].deleted)))
                for n in changes
            } == {n: (after[n] - before[n], before[n] - after[n]) for n in after if after[n] != before[n]}
            assert sorted(t.partition("\n")[0] for t in rule_texts(db.program)) == sorted(rules)
            judge(db, parse_accepted(case.text), case.explicit, kind, strategy == "elastic")
            same_state(db, opened(case, **options), strategy)
        works = [stratum for entry in db.log()[1:] for stratum in entry.strata]
        assert not [stratum for stratum in works if any("@rule" in name for name in stratum.relations)]
        happened |= {stratum.how for stratum in works}
        return happened | {stratum.why for stratum in works if "rules" in stratum.why}


def same_state(db: Any, fresh: Any, strategy: str) -> None:
    """What a strategy keeps is what a bootstrap of the new program keeps, in hidden relations too."""
    assert facts_of(fresh) == facts_of(db)
    relations = db._backend.held.relations if isinstance(db._backend, KernelBackend) else db._backend.program.relations
    assert relations.keys() == set(db._backend.program.relations)
    assert strategy != "elastic" or levels_of(fresh) == levels_of(db)
    for name in db:
        if strategy == "dense":
            assert vectors(db, name) == vectors(fresh, name)
        elif strategy == "dredc":
            assert counters(db, name) == counters(fresh, name)
        elif strategy in ("bfc", "counting"):
            kept, wanted = counters(db, name), counters(fresh, name)
            assert {fact: nr for fact, (nr, _) in kept.items()} == {fact: nr for fact, (nr, _) in wanted.items()}


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_proofs_are_accepted(kind: Kind) -> None:
    checked = 0
    for seed in range(400, 415):
        case, choice = case_of(seed, Features(arithmetic=False)), Random(seed)
        if not is_stratified(case.header + "".join(f"{rule}\n" for rule in case.pool)):
            continue
        with elastalog.open(case.text, case.facts, levels=kind) as db:
            for update in case.updates:
                step = step_of(case, update, choice)
                apply(db, step, choice)
                case.current = [rule for rule in case.current if rule not in step.removed] + step.added
                explicit = {name: set(db.explicit(name)) for name in db}
                for name in db:
                    for fact in list(db[name])[:4]:
                        found = verdict(db.explain((name, fact)), db, explicit)
                        assert found, found.reason
                        checked += 1
    assert checked > 100


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_elastic(kind: Kind) -> None:
    happened = set().union(*(play(case_of(seed), seed, kind=kind) for seed in range(18)))
    assert happened >= {"update", "switch", "refold", "recompute", "refused", "the rules make another stratum of it"}


@pytest.mark.parametrize("strategy", ["recompute", "dense", "dred", "dredc", "bf", "bfc"])
def test_other_strategies(strategy: str) -> None:
    happened = set().union(*(play(case_of(seed), seed, strategy) for seed in range(100, 110)))
    assert "refused" in happened
    assert happened >= ({"recompute"} if strategy == "recompute" else {"update", "refold", "recompute"})


def test_counting() -> None:
    for seed in range(200, 215):
        play(case_of(seed, NO_RECURSION), seed, "counting")


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_arithmetic_and_tested_groups(kind: Kind) -> None:
    for seed in range(300, 312):
        play(case_of(seed, Features(disjunctions=True)), seed, kind=kind)
