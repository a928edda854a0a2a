"""The bootstrap of every strategy: each stratum is evaluated from the explicit facts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from elastalog.analysis.program import Relation
from elastalog.backends.protocol import Backend
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.evaluation.strategies.protocol import StratumWork, Work
from elastalog.planning.logical import LogicalStratum

Learn = Callable[[LogicalStratum, int, float], None]
"""Takes note of what a stratum cost: derivations and seconds."""


def evaluate_all(backend: Backend, learn: Learn = lambda stratum, derivations, seconds: None) -> Work:
    """Evaluates the strata in order; what each cost is told to `learn`."""
    work = Work()
    for stratum in backend.program.strata:
        began = time.perf_counter()
        try:
            derivations = backend.bootstrap(stratum)
        except LimitReached as error:
            raise _with_growing_rules(error, stratum, backend.program.checked.relations) from None
        seconds = time.perf_counter() - began
        learn(stratum, derivations, seconds)
        work.strata.append(
            StratumWork(stratum.number, stratum.relations, "bootstrap", "first epoch", derivations, seconds)
        )
    return work


def _with_growing_rules(
    error: LimitReached, stratum: LogicalStratum, relations: Mapping[str, Relation]
) -> LimitReached:
    """The limit that ended the evaluation of a stratum, and the rules of it that may grow without end."""
    from elastalog.analysis.growth import growing

    rules = {clause.rule.number: clause.rule for clause in stratum.clauses if clause.rule is not None}
    names = [rule.head.relation for rule in rules.values()]
    found = list(growing(rules.values(), relations, names))[:3]
    if not found or stratum.dominance:
        return error
    notes = [f"this rule may grow without end: {rule.text} ({rule.place}); {advice}" for rule, _, advice in found]
    first, *others = error.diagnostics
    return LimitReached([replace(first, notes=(*first.notes, *notes)), *others])
