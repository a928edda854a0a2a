"""Every program of `tests/programs` has exactly the expected facts, whichever strategy evaluates it."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from tests.commands import run
from tests.engine.judging import LEVEL_KINDS, Kind, comparable, facts_of, levels_of
from tests.reference.cases import case_names, load_case, read_lines, rows
from tests.reference.evaluator import program_of
from tests.reference.levels import levels

FROM_THE_SHELL = ["transitive_closure", "pointer_analysis_thesis", "aggregate_mean", "nullary_relations", "float_zeros"]


def is_run_a_command() -> bool:
    from elastalog.cli.main import COMMANDS

    return "run" in COMMANDS


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
@pytest.mark.parametrize("name", case_names())
def test_every_program_has_the_expected_facts(name: str, strategy: str) -> None:
    case = load_case(name)
    with elastalog.open(case.folder / "program.dl", facts=case.folder / "facts", strategy=strategy) as db:
        found = facts_of(db)
    expected = {relation: set(map(comparable, facts)) for relation, facts in case.expected.items()}
    assert {relation: found[relation] for relation in expected} == expected


@pytest.mark.parametrize("kind", LEVEL_KINDS)
@pytest.mark.parametrize("name", case_names())
def test_every_program_has_the_levels_and_counts_of_the_definition(name: str, kind: Kind) -> None:
    case = load_case(name)
    with elastalog.open(case.folder / "program.dl", facts=case.folder / "facts", levels=kind) as db:
        found = levels_of(db)
    wanted = levels(case.tree, case.facts, kind)
    assert found == {(relation, comparable(fact)): pair for (relation, fact), pair in wanted.items()}


@pytest.mark.skipif(not is_run_a_command(), reason="there is no command `run` yet")
@pytest.mark.parametrize("name", FROM_THE_SHELL)
def test_the_command_run_writes_the_expected_facts(name: str, tmp_path: Path) -> None:

    case = load_case(name)
    arguments = ["run", case.folder / "program.dl", "-F", case.folder / "facts", "-D", tmp_path]
    outcome = run(*arguments)
    assert outcome.exit_code == 0, outcome.output
    schemas = program_of(case.tree).schemas
    for relation, facts in case.expected.items():
        assert rows(read_lines(tmp_path / f"{relation}.csv"), schemas[relation], "\t") == facts
