"""Provenance: what global levels cost, and what proofs cost.

`python -m benchmarks.provenance [WORKLOAD ...] --data DIR [--seeds N] [--repeats N] [--proofs N]` prints, for each
workload, bootstrap with local and global levels against recompute (time and memory), cycles of ten-fact updates with
global against local levels, and the expansion of proofs of random derived facts to depth 20. Each proof is found in an
epoch of its own, so that it finds nothing prepared by those before. Writes benchmarks/results/provenance.json,
benchmarks/plots/proof_heights.png (least heights of the proofs of all derived facts) and
benchmarks/plots/proof_expansion.png. Times are processor seconds of one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.batch import machine
from benchmarks.keep import keep_results
from benchmarks.plot import draw_histograms, draw_lines
from benchmarks.updates import Cycle, Timed, compare_bootstrap, timed
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, Facts, Workload, data_folder

NAMES = ("doop", "galen")
CYCLE_SIZE = 10
DEPTH = 20


def compare_updates(work: Workload, facts: Facts, seeds: int) -> dict[str, Any]:
    """Cycles of the same few facts, deleted and inserted again, with local and with global levels."""
    import elastalog

    cycle = Cycle(facts)
    cost = {levels: Timed() for levels in ("local", "global")}
    for levels, spent in cost.items():
        with elastalog.open(work.program, facts=facts, levels=levels, engine="local") as session:
            session.engine.warm()
            for seed in range(-1, seeds):  # the first one is not counted: it compiles what updates need
                chosen = cycle.choose(CYCLE_SIZE, max(seed, 0))
                deleting, _ = timed(partial(session.apply, deleted=chosen))
                inserting, _ = timed(partial(session.apply, inserted=chosen))
                spent.seconds += [deleting, inserting] if seed >= 0 else []
        print(f"  {CYCLE_SIZE}-fact updates, {levels:6s} levels {spent!s:>32s} ms")
    medians = {levels: spent.median for levels, spent in cost.items()}
    totals = {levels: sum(spent.seconds) for levels, spent in cost.items()}
    print(
        f"  global / local: median ×{medians['global'] / medians['local']:.2f}, "
        f"in all ×{totals['global'] / totals['local']:.2f}"
    )
    return {levels: spent.seconds for levels, spent in cost.items()}


def derived_facts(session: Any) -> dict[str, Any]:
    """By relation, the table of its derived facts, with their levels in the last columns."""
    import pyarrow.compute as pc

    tables = {name: session[name].to_arrow(annotations=True) for name in session}
    return {name: table.filter(pc.greater(table.column("@level"), 0)) for name, table in tables.items()}


def proof_heights(derived: dict[str, Any]) -> Counter[int]:
    """How many facts have a proof of which least height, from global levels."""
    found: Counter[int] = Counter()
    for table in derived.values():
        heights, numbers = np.unique(table.column("@level").to_numpy(), return_counts=True)
        found.update(dict(zip(heights.tolist(), numbers.tolist(), strict=True)))
    return found


def random_facts(derived: dict[str, Any], number: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Derived facts, each as likely as any other."""
    for name, table in Cycle(derived).choose(number, seed=0).items():
        plain = table.drop_columns(["@level", "@count"])
        yield from ((name, tuple(row.values())) for row in plain.to_pylist())


def measure_expansion(session: Any, facts: list[tuple[str, tuple[Any, ...]]]) -> dict[str, Any]:
    """Proofs to depth 20. A node is a fact in the proof; one that is shared counts once."""
    from elastalog.provenance.proof import Proof, nodes_of

    session.explain(facts[0], DEPTH)
    nodes, seconds = list[int](), list[float]()
    for fact in facts:
        session.apply()  # an epoch with nothing new: what was found for the last proof is forgotten
        began = time.process_time()
        proof = session.explain(fact, DEPTH)
        seconds.append(time.process_time() - began)
        nodes.append(sum(isinstance(node, Proof) for node in nodes_of(proof)))
    slope, start = np.polyfit(nodes, seconds, 1)
    fit = float(np.corrcoef(nodes, seconds)[0, 1])
    per_node = sum(seconds) / sum(nodes)
    print(
        f"  {len(facts)} proofs to depth {DEPTH}: {sum(nodes):,} nodes (median {statistics.median(nodes):.0f}, most "
        f"{max(nodes):,}), {per_node * 1e3:.3f} ms a node; the best line is {start * 1e3:.2f} ms + "
        f"{slope * 1e3:.3f} ms a node, correlation {fit:.3f}"
    )
    return {
        "nodes": nodes, "seconds": seconds, "per_node": per_node, "slope": float(slope), "correlation": fit,
    }  # fmt: skip


def by_size(nodes: list[int], seconds: list[float]) -> list[tuple[float, float]]:
    """The mean time of proofs of a size, in classes that double."""
    sizes, spent = np.array(nodes), np.array(seconds)
    classes = np.floor(np.log2(sizes)).astype(int)
    return [(float(sizes[classes == c].mean()), float(spent[classes == c].mean() * 1e3)) for c in np.unique(classes)]


def main() -> None:
    parser = argparse.ArgumentParser(description="the cost of global levels and of proofs")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"default: {', '.join(NAMES)}")
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--proofs", type=int, default=1000)
    given = parser.parse_args()
    import elastalog

    data = data_folder(given.data)
    record: dict[str, Any] = {"machine": machine()}
    heights: dict[str, Counter[int]] = {}
    lines: dict[str, list[tuple[float, float]]] = {}
    for name in given.workloads or NAMES:
        work = BY_NAME[name]
        if not work.is_available(data):
            print(f"{name}: no data")
            continue
        facts = work.facts(data)
        entry = compare_bootstrap(work, facts, given.repeats)
        entry["updates"] = compare_updates(work, facts, given.seeds)
        with elastalog.open(work.program, facts=facts, levels="global", engine="local") as session:
            derived = derived_facts(session)
            heights[name] = proof_heights(derived)
            highest, total = max(heights[name]), heights[name].total()
            print(f"  {total:,} derived facts have proofs of heights 1 to {highest}")
            entry["heights"] = sorted(heights[name].items())
            entry["expansion"] = measure_expansion(session, list(random_facts(derived, given.proofs)))
        record[name] = entry
    record = keep_results(HERE / "results" / "provenance.json", record)
    for name in NAMES:
        if name in record:
            heights[name] = Counter(dict(record[name]["heights"]))
            lines[name] = by_size(record[name]["expansion"]["nodes"], record[name]["expansion"]["seconds"])
    plots = HERE / "plots"
    draw_histograms(plots / "proof_heights.png", "least heights of proofs", "height", "derived facts", heights)
    draw_lines(plots / "proof_expansion.png", f"proofs to depth {DEPTH}", "nodes", "ms", lines)


if __name__ == "__main__":
    main()
