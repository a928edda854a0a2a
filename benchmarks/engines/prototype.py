"""The prototype whose measurements decided the kernel's data structures: the product should not be slower.

It is not part of this repository; `--prototype DIR` says where it is. It takes integers only.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence

from benchmarks.engines.protocol import Evaluate, NotExpressibleError, Options
from benchmarks.workloads import Facts, Workload, as_arrays

FEW_FACTS = 50


def prepare(workload: Workload, facts: Facts, relations: Sequence[str], options: Options) -> Evaluate:
    if workload.rules is None or options.prototype is None:
        raise NotExpressibleError(workload.name)
    if options.prototype not in sys.path:
        sys.path.insert(0, options.prototype)
    # A module of the prototype still asks for the second version of its operators; the third has the same names.
    sys.modules["kernels2"] = importlib.import_module("kernels3")
    engine = importlib.import_module("eng3").Engine
    rules = getattr(importlib.import_module("prog"), workload.rules)
    arrays = as_arrays(facts)

    def evaluate(limit: int | None = None) -> Mapping[str, int]:
        given = {name: rows[:limit] for name, rows in arrays.items()}
        run = engine(rules, given, threads=options.jobs)
        run.run()
        return {relation: int(run.rels[relation].n) for relation in relations if relation in run.rels}

    evaluate(FEW_FACTS)
    return evaluate
