"""Heavy words: found by counting, and kept from giving one task most of the work."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from elastalog.backends.spark.filed import FiledRelation
from elastalog.backends.spark.routing import Routing, Treatment, hashed
from elastalog.folders.files import files_at
from elastalog.planning.decompose import SharedClause, SharePlan
from elastalog.planning.logical import Scan, Test
from elastalog.settings import SETTINGS

log = logging.getLogger("elastalog.placement")


_BUCKETS = 1 << 14
_MOST_WORDS = 64
_MOST_COPIES = 12


@dataclass(frozen=True, slots=True)
class Heavy:
    """Heavy words, the heaviest first, and which part of a column each makes up at most."""

    words: tuple[int, ...] = ()
    parts: Mapping[int, float] = field(default_factory=dict)

    @property
    def greatest(self) -> float:
        return max(self.parts.values(), default=0.0)

    def tell(self, plan: SharePlan) -> None:
        if self.words:
            how = "dealt out" if treatments(plan) is None else "spread over all tasks"
            names = ", ".join(plan.stratum.relations)
            log.info(
                "stratum %d (%s): %d heavy values (one in up to %.0f%% of the facts of an input) are %s",
                plan.stratum.number, names, len(self.words), 100 * self.greatest, how,
            )  # fmt: skip


def heavy_words(read: Mapping[str, FiledRelation], shares: int) -> Heavy:
    """The words that make up so much of a column that the task which gets them has half as much again to do as
    others."""
    if shares < 2:
        return Heavy()
    counts: dict[int, float] = {}
    for filed in read.values():
        if filed.size < SETTINGS.spark_skew_from:
            continue
        for word, part in _parts(filed, shares).items():
            counts[word] = max(part, counts.get(word, 0.0))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[:_MOST_WORDS]
    return Heavy(tuple(ranked), {word: counts[word] for word in ranked})


def _parts(filed: FiledRelation, shares: int) -> dict[int, float]:
    """Of every heavy word of a relation, the part of a column that it makes up. Changes since the state was written are
    left out: they are a small part of it."""
    total = sum(file.rows for file in filed.base)
    least = max(SETTINGS.spark_skew_from, total / (2 * shares))
    with ExitStack() as opened:
        files = [opened.enter_context(files_at(f.path).parquet(f.path)) for f in filed.base if f.rows]
        return _parts_of_columns(files, total, least)


def _parts_of_columns(files: Sequence[Any], total: int, least: float) -> dict[int, float]:
    names = [
        name for name in (files[0].schema_arrow.names if files else ()) if name.startswith("c") and name[1:].isdigit()
    ]
    found: dict[int, float] = {}
    for name in names:
        buckets = np.zeros(_BUCKETS, np.int64)
        for file in files:
            buckets += np.bincount(hashed(_column(file, name), _BUCKETS), minlength=_BUCKETS)
        full = np.flatnonzero(buckets >= least)
        if not len(full):
            continue
        counts: dict[int, int] = {}
        for file in files:
            words = _column(file, name)
            kept, times = np.unique(words[np.isin(hashed(words, _BUCKETS), full)], return_counts=True)
            for word, count in zip(kept.tolist(), times.tolist(), strict=True):
                counts[word] = counts.get(word, 0) + count
        for word, count in counts.items():
            if count >= least:
                found[word] = max(count / total, found.get(word, 0.0))
    return found


def _column(file: Any, name: str) -> np.ndarray:
    words: np.ndarray = file.read([name]).column(0).to_numpy()
    return words


def routings(plan: SharePlan, shares: int, heavy: tuple[int, ...]) -> dict[str, Routing]:
    """How tasks share every copy of a plan."""
    chosen = treatments(plan) if heavy else None
    if chosen is None:
        return {
            copy.name: Routing(copy.column, shares, heavy if copy.column is not None else ()) for copy in plan.copies
        }
    return {
        copy.name: Routing(copy.column, shares, heavy, chosen[copy.name])
        if copy.column is not None
        else Routing(None, shares)
        for copy in plan.copies
    }


def treatments(plan: SharePlan) -> dict[str, Treatment] | None:
    """For every shared copy, whether facts with a heavy word are spread or everywhere: of the atoms of a clause that
    hold its pivot exactly one is spread, and none that is negated. None if there is no such choice, or if the stratum
    decomposes and facts must stay together."""
    copies = [copy.name for copy in plan.copies if copy.column is not None]
    if plan.decomposes or len(copies) > _MOST_COPIES:
        return None
    for choice in product((True, False), repeat=len(copies)):
        spread = {name for name, is_spread in zip(copies, choice, strict=True) if is_spread}
        if all(_finds_each_once(shared, spread, set(copies)) for shared in plan.clauses):
            return {name: "spread" if name in spread else "everywhere" for name in copies}
    return None


def _finds_each_once(shared: SharedClause, spread: set[str], copies: set[str]) -> bool:
    if not isinstance(shared.pivot, str):
        return True
    goals = [goal for goal in shared.clause.goals if not isinstance(goal, Test) and goal.relation in copies]
    held = [goal for goal in goals if goal.relation in spread]
    return len(held) == 1 and isinstance(held[0], Scan)
