"""Elastalog itself, through its public face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.engines.protocol import Evaluate, Options
from benchmarks.workloads import Facts, Workload

FEW_FACTS = 50


def prepare(workload: Workload, facts: Facts, relations: Sequence[str], options: Options) -> Evaluate:
    import elastalog

    def evaluate(given: Facts) -> Mapping[str, int]:
        with elastalog.open(
            workload.program, facts=given, engine="local", strategy="recompute", jobs=options.jobs
        ) as session:
            return {relation: len(session[relation]) for relation in relations}

    # Compiled operators are loaded from the disk cache, or compiled, on first use.
    evaluate({name: table.slice(0, FEW_FACTS) for name, table in facts.items()})
    return lambda: evaluate(facts)
