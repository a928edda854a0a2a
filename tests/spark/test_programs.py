"""Programs evaluated by tasks: the facts that are expected, at the levels and counts of the definition."""

from __future__ import annotations

from typing import Any

import pytest

import elastalog
from tests.engine.judging import comparable, facts_of, judge, levels_of
from tests.generators.seeded import seeded_case, seeded_program
from tests.reference.cases import load_case, parse_accepted
from tests.reference.levels import levels

CASES = [
    "aggregate_of_recursion",
    "arithmetic_of_floats",
    "bounded_counting",
    "class_hierarchy",
    "comparisons_of_symbols",
    "constants_and_repeated_variables",
    "disjunction",
    "empty_inputs",
    "float_zeros",
    "mutual_recursion_of_three",
    "negation_in_layers",
    "negation_with_wildcards",
    "nullary_relations",
    "number_limits",
    "pointer_analysis_thesis",
    "rules_without_atoms",
    "same_generation",
    "sequence",
    "several_heads",
    "string_functors",
    "symbols_of_many_scripts",
    "text_facts_of_derived_relations",
    "transitive_closure",
    "transitive_closure_doubling",
]


@pytest.mark.parametrize("name", CASES)
def test_the_facts_are_the_expected_ones(spark: Any, name: str) -> None:
    case = load_case(name)
    with elastalog.open(case.folder / "program.dl", facts=case.facts, engine="spark", spark=spark) as db:
        found, annotated = facts_of(db), levels_of(db)
    expected = {relation: set(map(comparable, facts)) for relation, facts in case.expected.items()}
    assert {relation: found[relation] for relation in expected} == expected
    wanted = levels(case.tree, case.facts, "local")
    assert annotated == {(relation, comparable(fact)): pair for (relation, fact), pair in wanted.items()}


@pytest.mark.parametrize("name", ["transitive_closure", "negation_in_layers", "class_hierarchy"])
def test_global_levels_are_heights(spark: Any, name: str) -> None:
    case = load_case(name)
    with elastalog.open(
        case.folder / "program.dl", facts=case.facts, levels="global", engine="spark", spark=spark
    ) as db:
        annotated = levels_of(db)
    wanted = levels(case.tree, case.facts, "global")
    assert annotated == {(relation, comparable(fact)): pair for (relation, fact), pair in wanted.items()}


@pytest.mark.parametrize("strategy", ["recompute", "dredc"])
def test_other_strategies_have_the_same_facts(spark: Any, strategy: str) -> None:
    case = load_case("same_generation")
    options: dict[str, Any] = {"facts": case.facts, "strategy": strategy}
    with (
        elastalog.open(case.folder / "program.dl", **options, engine="spark", spark=spark) as db,
        elastalog.open(case.folder / "program.dl", **options) as local,
    ):
        assert facts_of(db) == facts_of(local)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(spark: Any, seed: int) -> None:
    program = seeded_program(seed)
    with elastalog.open(program.text, facts=program.facts, engine="spark", spark=spark) as db:
        judge(db, parse_accepted(program.text), program.explicit)


@pytest.mark.parametrize("seed", range(40, 44))
def test_random_updates(spark: Any, seed: int) -> None:
    program, updates = seeded_case(seed, most_updates=3)
    explicit = program.explicit
    with elastalog.open(program.text, facts=program.facts, engine="spark", spark=spark) as db:
        for number, update in enumerate(updates):
            # Every second update is evaluated anew, by tasks.
            db._epochs.strategy.costs.budget = 0.0 if number % 2 else None  # type: ignore[attr-defined]
            db.apply(update.inserted, update.deleted)
            explicit = update.apply_to(explicit)
            judge(db, parse_accepted(program.text), explicit)
