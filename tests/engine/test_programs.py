"""Every program of `tests/programs` has exactly the expected facts, whichever strategy evaluates it."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from tests.engine.judging import Kind, comparable, facts_of, levels_of
from tests.reference.cases import case_names, load_case, read_lines, rows
from tests.reference.evaluator import schemas_of
from tests.reference.levels import levels

FROM_THE_SHELL = ["transitive_closure", "pointer_analysis_thesis", "aggregate_mean", "nullary_relations", "float_zeros"]


# An aggregate's group that is only tested: the engine counts the fact of its domain, the definition does not.
DOMAINS_COUNT = pytest.mark.xfail(reason="the height of a tested group is not decided")
LEVEL_CASES = [
    pytest.param(name, kind, marks=DOMAINS_COUNT)
    if kind == "global" and name in ("aggregate_bodies", "aggregate_of_nothing")
    else (name, kind)
    for name in case_names()
    for kind in ("local", "global")
]


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


@pytest.mark.parametrize(("name", "kind"), LEVEL_CASES)
def test_every_program_has_the_levels_and_counts_of_the_definition(name: str, kind: Kind) -> None:
    case = load_case(name)
    with elastalog.open(case.folder / "program.dl", facts=case.folder / "facts", levels=kind) as db:
        found = levels_of(db)
    wanted = levels(case.tree, case.facts, kind)
    assert found == {(relation, comparable(fact)): pair for (relation, fact), pair in wanted.items()}


@pytest.mark.skipif(not is_run_a_command(), reason="there is no command `run` yet")
@pytest.mark.parametrize("name", FROM_THE_SHELL)
def test_the_command_run_writes_the_expected_facts(name: str, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from elastalog.cli.main import cli

    case = load_case(name)
    arguments = ["run", case.folder / "program.dl", "-F", case.folder / "facts", "-D", tmp_path]
    outcome = CliRunner().invoke(cli, list(map(str, arguments)))
    assert outcome.exit_code == 0, outcome.output
    schemas = schemas_of(case.tree)
    for relation, facts in case.expected.items():
        assert rows(read_lines(tmp_path / f"{relation}.csv"), schemas[relation], "\t") == facts
