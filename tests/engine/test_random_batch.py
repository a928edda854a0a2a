"""Random programs: the engine derives what the naive evaluator derives, at the levels and counts of the definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elastalog
from tests.engine.judging import LEVEL_KINDS, Kind, judge
from tests.generators.construction import Features, GeneratedProgram
from tests.generators.programs import programs
from tests.generators.seeded import seeded_program
from tests.reference.cases import parse_accepted

STRATEGIES = ["elastic", "recompute"]


def judge_bootstrap(program: GeneratedProgram, strategy: str, kind: Kind = "local") -> None:
    db = elastalog.open(program.text, facts=program.facts, strategy=strategy, levels=kind)
    judge(db, parse_accepted(program.text), program.explicit, kind, is_annotated=strategy == "elastic")


@settings(max_examples=50)
@given(programs(), st.sampled_from(STRATEGIES))
def test_drawn_programs(program: GeneratedProgram, strategy: str) -> None:
    judge_bootstrap(program, strategy)


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_seeded_programs(kind: Kind) -> None:
    for seed in range(60):
        judge_bootstrap(seeded_program(seed), STRATEGIES[seed % 2], kind)


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_aggregates_whose_groups_are_only_tested(kind: Kind) -> None:
    for seed in range(1000, 1030):
        judge_bootstrap(seeded_program(seed, Features(tested_groups=True)), STRATEGIES[seed % 2], kind)
