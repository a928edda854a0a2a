"""Programs evaluated by tasks: the facts that are expected, at the levels and counts of the definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import elastalog
from tests.engine.judging import LEVEL_KINDS, Kind, comparable, facts_of, judge, levels_of
from tests.generators.seeded import seeded_program
from tests.reference.cases import case_names, load_case, parse_accepted
from tests.reference.levels import levels
from tests.spark.following import both
from tests.spark.without_spark import tasks_in_this_process

ON_SPARK = [
    "arithmetic_of_floats", "class_hierarchy", "comparisons_of_symbols", "constants_and_repeated_variables",
    "empty_inputs", "mutual_recursion_of_three", "negation_in_layers", "nullary_relations", "number_limits",
    "pointer_analysis_thesis", "same_generation", "string_functors", "transitive_closure",
    "transitive_closure_doubling",
]  # fmt: skip


def check_case(name: str, spark: Any, kind: Kind = "local") -> None:
    """The facts are those expected, their levels and counts those of the definition."""
    case = load_case(name)
    options: dict[str, Any] = {"levels": kind, "engine": "spark", "spark": spark}
    with elastalog.open(case.folder / "program.dl", facts=case.facts, **options) as db:
        found, annotated = facts_of(db), levels_of(db)
    expected = {relation: set(map(comparable, facts)) for relation, facts in case.expected.items()}
    assert {relation: found[relation] for relation in expected} == expected
    wanted = levels(case.tree, case.facts, kind, classes=())
    assert annotated == {(relation, comparable(fact)): pair for (relation, fact), pair in wanted.items()}


@pytest.mark.parametrize("name", ON_SPARK)
def test_programs_on_spark(spark: Any, name: str) -> None:
    check_case(name, spark)


def _mark(number: int, kind: Kind) -> tuple[pytest.MarkDecorator, ...]:
    """Tasks do the same for both kinds, but for where levels begin: every third program has both in `make test`."""
    return () if kind == "local" or number % 3 == 0 else (pytest.mark.long,)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=_mark(number, kind))
        for number, name in enumerate(case_names())
        for kind in LEVEL_KINDS
    ],
)
def test_every_program_with_tasks_in_this_process(name: str, kind: Kind, tmp_path: Path) -> None:
    with tasks_in_this_process(tmp_path, shares=2) as session:
        check_case(name, session, kind)


@pytest.mark.parametrize("name", ["transitive_closure", "class_hierarchy"])
def test_global_levels_on_spark_are_heights(spark: Any, name: str) -> None:
    check_case(name, spark, "global")


@pytest.mark.parametrize("strategy", ["recompute", "dredc"])
def test_other_strategies_have_the_same_facts(spark: Any, strategy: str) -> None:
    case = load_case("same_generation")
    with both(case.folder / "program.dl", case.facts, spark, strategy=strategy):
        pass


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(spark: Any, seed: int) -> None:
    program = seeded_program(seed)
    with elastalog.open(program.text, facts=program.facts, engine="spark", spark=spark) as db:
        judge(db, parse_accepted(program.text), program.explicit)
