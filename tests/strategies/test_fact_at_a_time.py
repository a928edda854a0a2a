"""Backward/forward checking by sets equals checking a fact at a time."""

from __future__ import annotations

import pytest

import elastalog
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case
from tests.generators.updates import Update
from tests.reference.backward_forward import Derivation, Fact, FactAtATime, Stream, closure
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate, program_of
from tests.strategies.running import Known, contents, pending

POSITIVE = Features(negation=False, aggregates=False)
SEEDS = range(10)


def ground(text: str, explicit: Known) -> tuple[list[set[str]], list[Derivation]]:
    """The strata of a program and its derivations over all facts that explicit facts could lead to."""
    tree = parse_accepted(text)
    db = evaluate(tree, explicit, with_text_facts=False)
    derivations: list[Derivation] = []
    for rule in program_of(tree).rules:
        for head, environment in rule.instances(db):
            body = tuple(v for k, v in environment.items() if isinstance(v, tuple) and not isinstance(k, str))
            derivations.append(((rule.relation, head), body))
    return [set(component) for component in program_of(tree).components], derivations


def flat(known: Known) -> set[Fact]:
    return {(name, fact) for name, facts in known.items() for fact in facts}


def everything(explicit: Known, updates: list[Update]) -> Known:
    """All facts that are ever explicit."""
    known = {name: set(facts) for name, facts in explicit.items()}
    for update in updates:
        for name, facts in update.inserted.items():
            known.setdefault(name, set()).update(facts)
    return known


@pytest.mark.parametrize("strategy", ["bf", "bfc"])
def test_sets_equal_facts(strategy: str) -> None:
    for seed in SEEDS:
        program, updates = seeded_case(seed, POSITIVE)
        components, derivations = ground(program.text, everything(program.explicit, updates))
        one = FactAtATime(components, derivations, flat(program.explicit))
        explicit = program.explicit
        with elastalog.open(program.text, program.facts, strategy=strategy) as db:
            for update in updates:
                before, explicit = explicit, update.apply_to(explicit)
                old = set(one.facts)
                deleted = one.update(flat(before) - flat(explicit), flat(explicit) - flat(before))
                if not flat(explicit) - flat(before):
                    assert deleted == old - one.facts
                pending(db, update).commit()
                assert flat(contents(db, program.schemas)) == one.facts == closure(flat(explicit), derivations), seed


@pytest.mark.parametrize("kind", ["none", "eager", "linked"])
def test_streams_with_marks_equal_closure(kind: str) -> None:
    """The judge itself: whatever is marked, its facts are those that follow."""
    for seed in SEEDS:
        program, updates = seeded_case(seed, POSITIVE)
        inputs = {name: facts for name, facts in program.explicit.items() if name in program.inputs}
        _, derivations = ground(program.text, everything(inputs, updates))
        stream = Stream(derivations, flat(inputs), kind)
        steps, explicit = [], flat(inputs)
        for update in updates:
            gone = {
                f for f in flat({n: set(r) for n, r in update.deleted.items()}) if f[0] in program.inputs
            } & explicit
            come = {f for f in flat({n: set(r) for n, r in update.inserted.items()}) if f[0] in program.inputs}
            gone, come = gone - come, come - explicit
            explicit = (explicit - gone) | come
            steps.append((gone, come, explicit))
        for number, (gone, come, known) in enumerate(steps):
            ahead = steps[number + 1][0] if number + 1 < len(steps) else set()
            stream.update(gone, come, ahead)
            assert stream.facts == closure(known, derivations), seed
