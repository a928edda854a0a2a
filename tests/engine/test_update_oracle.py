"""The papers' Update, iteration by iteration, as an oracle: it agrees with the engine, and its mutations are caught."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import elastalog
from elastalog.syntax.tree import Tree
from tests.engine.judging import Facts, levels_of
from tests.generators.choices import SeededChoices
from tests.generators.construction import Features, GeneratedProgram, build_fact
from tests.generators.seeded import seeded_case
from tests.generators.updates import Update, build_updates
from tests.reference.cases import parse_accepted
from tests.reference.elastic_update import MUTANTS, update
from tests.reference.levels import Levels, levels

GROUND = Features(aggregates=False, disjunctions=False)
REDISCOVERY = """
.decl a, v(x: number)
.decl f(x: number, y: number)
.decl p(x: number)
p(x) :- a(x).
p(x) :- p(y), f(y, x), !v(x).
"""
SCHEMAS = {"a": ("number",), "v": ("number",), "f": ("number", "number"), "p": ("number",)}


def denying_case(seed: int) -> tuple[GeneratedProgram, list[Update]]:
    """Random facts and updates of a program in which facts are often found again and denied at once."""
    choices = SeededChoices(seed)
    facts = {"a": 2, "v": 2, "f": 9}
    drawn = {name: [build_fact(choices, SCHEMAS[name]) for _ in range(most)] for name, most in facts.items()}
    program = GeneratedProgram(REDISCOVERY, SCHEMAS, ("a", "v", "f"), drawn, {})
    return program, build_updates(choices, program)


def random_case(seed: int) -> tuple[GeneratedProgram, list[Update]]:
    return denying_case(seed) if seed % 2 else seeded_case(seed, GROUND)


def epochs(program: GeneratedProgram, tree: Tree, steps: list[Update]) -> Iterator[tuple[Levels, Facts, Facts, Levels]]:
    """For every update: the state before, the explicit facts before and after, the state after by its definition."""
    explicit = program.explicit
    state = levels(tree, explicit, with_text_facts=False)
    for step in steps:
        before, explicit = explicit, step.apply_to(explicit)
        state_before, state = state, levels(tree, explicit, with_text_facts=False)
        yield state_before, before, explicit, state


def judge_case(seed: int) -> None:
    program, steps = random_case(seed)
    tree = parse_accepted(program.text)
    db = elastalog.open(program.text, facts=program.facts, budget=None)
    for step, (state_before, before, after, wanted) in zip(steps, epochs(program, tree, steps), strict=True):
        found = update(tree, state_before, before, after)
        assert found == wanted
        db.apply(step.inserted, step.deleted)
        assert levels_of(db) == found


def is_caught(mutation: str, seed: int) -> bool:
    """Whether a mutated oracle breaks an invariant, or leaves another state than the definition."""
    program, steps = random_case(seed)
    tree = parse_accepted(program.text)
    try:
        return any(
            update(tree, state, a, b, mutation) != wanted for state, a, b, wanted in epochs(program, tree, steps)
        )
    except AssertionError:
        return True


def test_the_oracle_the_definition_and_the_engine_agree() -> None:
    for seed in range(60):
        judge_case(seed)


@pytest.mark.long
def test_they_agree_on_many_cases() -> None:
    for seed in range(3000, 3400):
        judge_case(seed)


@pytest.mark.parametrize("mutation", MUTANTS)
def test_random_cases_catch_a_mutated_oracle(mutation: str) -> None:
    assert any(is_caught(mutation, seed) for seed in range(400))


@pytest.mark.parametrize(
    ("mutation", "v_before", "v_after"),
    [
        ("rediscovery tests negation only in the old epoch", set(), {(2,)}),
        ("rediscovery tests negation only in what both epochs share", set(), {(2,)}),
        ("rediscovery tests negation only in the new epoch", {(2,)}, set()),
    ],
)
def test_negation_in_rediscovery_must_hold_in_both_epochs(mutation: str, v_before: set, v_after: set) -> None:
    tree = parse_accepted(REDISCOVERY)
    before: Facts = {"a": {(1,), (2,)}, "f": {(1, 2)}, "v": v_before, "p": set()}
    after: Facts = {**before, "a": {(1,)}, "v": v_after}
    state, wanted = levels(tree, before), levels(tree, after)
    assert update(tree, state, before, after) == wanted
    assert update(tree, state, before, after, mutation) != wanted
