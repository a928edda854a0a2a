"""Strata that do not depend on each other, evaluated in one round that several threads share: one of few rules over few
facts leaves them little to share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants
from elastalog.backends.kernel.bootstrap.workers import Workers, whole_run
from elastalog.backends.kernel.execution.bound_variant import Bounds
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalStratum

_SPARSE = 8
"""A set table that was made for so many times the facts that came is made anew when it is needed."""


def strata_beside(strata: Sequence[LogicalStratum], is_plain: Callable[[LogicalStratum], bool]) -> list[LogicalStratum]:
    """Of strata in their order the first, and those that can be evaluated together with it: plain ones, which need a
    round and nothing else, that read nothing which is still to be evaluated."""
    found: list[LogicalStratum] = []
    waiting: set[str] = set()
    for stratum in strata:
        if is_plain(stratum) and waiting.isdisjoint(stratum.reads):
            found.append(stratum)
        waiting.update(stratum.relations)
    return found


def evaluate_together(
    strata: Mapping[int, LogicalStratum],
    variants: Mapping[int, StratumVariants],
    relations: Mapping[str, KernelRelation],
    workers: Workers,
    watch: Watch,
) -> dict[int, int]:
    """Brings plain strata, whose relations hold their explicit facts and have no annotations, to their fixpoints.
    Returns the derivations of each, by number."""
    own = [relations[name] for stratum in strata.values() for name in stratum.relations]
    start = {relation.name: 0 for relation in own}
    stop = {relation.name: relation.used for relation in own}
    runs = [whole_run(variant, relations) for number in strata for variant in variants[number].once]
    workers.run_round(runs, Bounds(start, stop), stop)
    for number, stratum in strata.items():
        watch.iteration(number, 1, sum(relations[name].used - stop[name] for name in stratum.relations))
    for relation in own:
        relation.present = relation.used
        relation.trim()
        if _SPARSE * relation.used < relation.full:
            relation.forget_table()
    return {number: sum(variant.derivations for variant in variants[number]) for number in strata}
