"""The same programs and updates on Spark's tasks, which run in this process: shared out, exchanging, or one for all."""

from __future__ import annotations

from random import Random
from tempfile import TemporaryDirectory

from elastalog.backends.spark import placement
from tests.spark.without_spark import tasks_in_this_process
from tests.torture.comparing import MARKED, Lineup
from tests.torture.computed_heads import computed_heads
from tests.torture.constructs import followed
from tests.torture.evaluation import differential, rule_changes

RECURSIVE = Lineup(
    ({"strategy": "elastic"},),
    (
        {"strategy": "elastic", "levels": "global"},
        {"strategy": "elastic", "budget": None},
        {"strategy": "elastic", "budget": 0.0},
        {"strategy": "recompute"},
        {"strategy": "dredc"},
        {"strategy": "dense"},
        *MARKED,
    ),
    3,
).on(engine="spark")
EVERY = Lineup(RECURSIVE.always, (*RECURSIVE.others, {"strategy": "counting", "engine": "spark"}), 3)


def tasks(seed: int) -> int:
    """One of the attacks that compare epochs, in turn, with another number of tasks and way of exchanging. Counts the
    epochs of sessions of which at least one stratum is in tasks."""
    random = Random(seed)
    shares, way = random.choice((1, 2, 3, 5)), random.choice(("network", "network", "never"))
    kind, inner = seed % 4, seed // 4
    with TemporaryDirectory() as folder, tasks_in_this_process(folder, shares, **{placement.EXCHANGE_SETTING: way}):
        match kind:
            case 0:
                return differential(inner, EVERY)
            case 1:
                return rule_changes(inner, EVERY)
            case 2:
                return followed(inner, EVERY).compared
            case _:
                return computed_heads(inner, RECURSIVE)
