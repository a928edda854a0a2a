"""Rule changes on the Spark engine, with tasks that run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.judging import LEVEL_KINDS, Kind
from tests.rules.playing import case_of
from tests.rules.test_random import play
from tests.spark.without_spark import tasks_in_this_process

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_elastic(tmp_path: Path, kind: Kind) -> None:
    with tasks_in_this_process(tmp_path) as spark:
        for seed in range(500, 506):
            play(case_of(seed), seed, kind=kind, engine="spark", spark=spark)
        assert spark.ran


@pytest.mark.parametrize("strategy", ["recompute", "dred", "dense"])
def test_other_strategies(tmp_path: Path, strategy: str) -> None:
    with tasks_in_this_process(tmp_path) as spark:
        for seed in range(600, 606):
            play(case_of(seed), seed, strategy, engine="spark", spark=spark)
