"""The thesis, chapter 4: Tables 4.2 to 4.5, Figure 4.16, and metrics other than height."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence

from benchmarks.papers.items import Settings, leaves_out, reproduces
from benchmarks.papers.tables import Cell, Figures, Plot, Table
from benchmarks.provenance import by_size, derived_facts, measure_expansion, proof_heights, random_facts
from benchmarks.updates import compare_bootstrap
from benchmarks.workloads import BY_NAME

DOUBLING = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
"""


@reproduces("Table 4.2: what annotations cost", "doop", "crdt")
def table4_2(settings: Settings) -> Figures:
    rows: list[Sequence[Cell]] = []
    ratios: list[tuple[float, float]] = []
    for name in ("doop", "crdt") if settings.is_quick else ("doop", "crdt", "galen"):
        work = BY_NAME[name]
        found = compare_bootstrap(work, work.facts(settings.data), 3)["bootstrap"]
        plain, annotated = found["recompute"], found["elastic, global levels"]
        ratios.append((annotated["ratio"], annotated["memory"]))
        seconds = (plain["seconds"], annotated["seconds"], annotated["ratio"])
        rows.append((name, *seconds, plain["bytes"] / 1e6, annotated["bytes"] / 1e6, annotated["memory"]))
    time_ratio, memory_ratio = (
        math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios, strict=True)
    )
    rows.append(("geometric mean", None, None, time_ratio, None, None, memory_ratio))
    head = ("workload", "without, s", "with, s", "ratio", "without, MB", "with, MB", "ratio")
    return Figures([Table("", head, rows)], values={"time": time_ratio, "memory": memory_ratio})


leaves_out("provenance.table4_3", "Table 4.3: the DDISASM benchmarks")
leaves_out("provenance.table4_4", "Table 4.4: what annotations cost DDISASM")
leaves_out("provenance.table4_5", "Table 4.5: against top-k")


@reproduces("Figure 4.16: time of proof fragments, heights of proofs", "doop")
def figure4_16(settings: Settings) -> Figures:
    import elastalog

    work = BY_NAME["doop"]
    facts = work.facts(settings.data)
    with elastalog.open(work.program, facts=facts, levels="global", engine="local") as session:
        derived = derived_facts(session)
        heights = proof_heights(derived)
        found = measure_expansion(session, list(random_facts(derived, 200 if settings.is_quick else 1000)))
    values = {
        "highest": max(heights),
        "ms a node": 1000 * found["per_node"],
        "correlation": found["correlation"],
        "most nodes": max(found["nodes"]),
    }
    rows = [tuple(values.values())]
    head = ("highest proof", "ms a node", "correlation of nodes and time", "most nodes")
    plots = [
        Plot("(a) proof fragments to depth 20", "nodes", "ms", {"doop": by_size(found["nodes"], found["seconds"])}),
        Plot("(b) heights of lowest proofs", "height", "derived facts", {"doop": sorted(heights.items())}, "steps"),
    ]
    return Figures([Table("", head, rows)], plots, values)


@reproduces("Section 4.3.5: metrics other than height")
def metrics(settings: Settings) -> Figures:
    import elastalog
    from benchmarks import generate
    from benchmarks.workloads import as_tables

    facts = as_tables(generate.random_graph(60, 100, seed=3))
    rows: list[Sequence[Cell]] = []
    found: dict[str, tuple[list[int], list[int], float]] = {}
    for metric in ("height", "size"):
        with elastalog.open(DOUBLING, facts=facts, levels="global", metric=metric, engine="local") as session:
            chosen = list(random_facts(derived_facts(session), 50 if settings.is_quick else 500))
            session.explain(chosen[0])
            began = time.process_time()
            proofs = [session.explain(fact) for fact in chosen]
            spent = time.process_time() - began
        heights, sizes = [proof.height or 0 for proof in proofs], [proof.size for proof in proofs]
        found[metric] = (heights, sizes, spent)
        means = (statistics.fmean(heights), statistics.fmean(sizes))
        rows.append((metric, *means, 1000 * spent / len(proofs)))
    lower = sum(a > b for a, b in zip(found["height"][0], found["size"][0], strict=True))
    smaller = sum(a < b for a, b in zip(found["height"][1], found["size"][1], strict=True))
    values = {"lower under size": lower, "smaller under height": smaller}
    head = ("metric", "mean height", "mean size", "ms a proof")
    return Figures([Table("", head, rows)], values=values)
