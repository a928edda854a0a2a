"""Other ways from the start of a variant: plans go by what facts meet on the average, but single facts may meet far
more on one way than on another. Whoever can tell at every fact takes the shorter way there."""

from __future__ import annotations

from collections.abc import Iterator

from elastalog.planning.logical import Scan
from elastalog.planning.order import Statistics
from elastalog.planning.steps import Variant
from elastalog.planning.variants import plan_by_way_of
from elastalog.settings import SETTINGS

_HANDICAP = 4
"""How many times less a fact must meet at first on another way that is long, of which only the plan knows the rest."""


def handicap(variant: Variant) -> int:
    """How many times less a fact must meet in the first join of another way than in that of this one. After two joins
    both ways have found the same."""
    return 1 if len(variant.probes) == 2 else _HANDICAP


def first_key(variant: Variant) -> tuple[int, ...] | None:
    """The columns of the fact which a variant starts at that its first join, by an index, looks for; None if it looks
    for anything else."""
    if not variant.probes or variant.probes[0].is_filter:
        return None
    column_of = {slot: column for column, slot in variant.gather.take}
    columns = tuple(column_of.get(slot, -1) for slot in variant.probes[0].key_slots)
    return columns if columns and min(columns) >= 0 and not variant.gather.actions else None


def other_ways(variant: Variant, statistics: Statistics) -> Iterator[Variant]:
    """Variants with the same start and results that join another goal first, the most promising first."""
    clause, start = variant.clause, variant.gather.goal
    if start is None or len(variant.probes) < 2 or first_key(variant) is None:
        return
    if clause.rule is not None and clause.rule.plan:
        return  # the user has said which way
    usual = variant.probes[0]
    if statistics.fanout(usual.relation, usual.key_columns) < SETTINGS.fork_fanout:
        return
    ways = [
        plan_by_way_of(variant, goal, statistics)
        for goal, literal in enumerate(clause.goals)
        if isinstance(literal, Scan) and goal not in (start, usual.goal)
    ]
    found = [way for way in ways if way.probes[0].goal != usual.goal and first_key(way) is not None]
    yield from sorted(found, key=lambda way: statistics.fanout(way.probes[0].relation, way.probes[0].key_columns))
