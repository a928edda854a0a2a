"""The comparisons of the papers: a program, its facts, and updates to measure, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from benchmarks import generate
from benchmarks.workloads import BY_NAME, HERE, Facts, as_tables, data_folder

Step = tuple[str, Facts, Facts]
"""What it is called in the table; the facts deleted; the facts inserted."""

EVERY = ("recompute", "elastic", "elastic!", "dense", "dred", "dredc", "bf", "bfc")
LARGE = ("recompute", "elastic", "elastic!", "dense", "dredc", "bfc")

EXAMPLE_1 = """
.decl R(x: number, y: number)
.decl S(x: number, y: number)
S(y1, y2) :- R(x, y1), R(x, y2).
"""
EXAMPLE_2 = """
.decl B(x: number, y: number, z: number)
.decl D(y: number, z: number)
D(y, z) :- B(0, y, z).
D(y, z1 + z2) :- D(x, z1), B(x, y, z2).
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; `repeats` of None leaves it to the experiment. `is_unbounded`: the search for other
    derivations is not given up for an enumeration of the rule."""

    data: str | None
    nodes: int
    edges: int
    sizes: tuple[int, ...] | None
    repeats: int | None
    timeout: float
    is_unbounded: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration of an experiment, ready to be measured."""

    program: str | Path
    facts: Facts
    steps: list[Step]


@dataclass(frozen=True, slots=True)
class Experiment:
    """`make` takes the options, a size (of those in `sizes`; 0 if there are none) and a number of repeats."""

    make: Callable[[Options, int, int], Case]
    strategies: tuple[str, ...]
    repeats: int
    sizes: tuple[int, ...] = (0,)
    paper: str = ""

    def sizes_with(self, options: Options) -> tuple[int, ...]:
        return options.sizes if options.sizes and self.sizes != (0,) else self.sizes


def choose(facts: Facts, number: int, seed: int) -> Facts:
    """Some facts, drawn from all relations alike."""
    total = sum(len(table) for table in facts.values())
    picked = np.sort(np.random.default_rng(seed).choice(total, min(number, total), replace=False))
    chosen: Facts = {}
    first = 0
    for name, table in facts.items():
        rows = picked[(picked >= first) & (picked < first + len(table))] - first
        if len(rows):
            chosen[name] = table.take(rows)
        first += len(table)
    return chosen


def cycles(facts: Facts, sizes: Sequence[tuple[str, int]], repeats: int) -> list[Step]:
    """Deletes and inserts again."""
    steps: list[Step] = []
    for label, number in sizes:
        for seed in range(repeats):
            some = choose(facts, number, seed)
            steps += [(f"-{label}", some, {}), (f"+{label}", {}, some)]
    return steps


def sspe(options: Options, size: int, repeats: int) -> Case:
    facts = as_tables(generate.weighted_acyclic_graph(nodes=options.nodes, edges=options.edges))
    sizes = [("1000", min(1000, options.edges // 10)), ("2 %", len(facts["B"]) // 50)]
    return Case(BY_NAME["sspe"].program, facts, cycles({"B": facts["B"]}, sizes, repeats))


def example_1(options: Options, n: int, repeats: int) -> Case:
    a, c = np.arange(1, n + 1), np.arange(n + 1, 2 * n + 1)
    to_b = pa.table({"x": a, "y": np.zeros(n, np.int64)})
    to_c = pa.table({"x": a, "y": c})
    return Case(EXAMPLE_1, {"R": pa.concat_tables([to_b, to_c])}, [("delete R(a, c)", {"R": to_c}, {})])


def example_2(options: Options, n: int, repeats: int) -> Case:
    b, c, d = np.arange(1, n + 1), np.arange(n + 1, 2 * n + 1), np.arange(2 * n + 1, 3 * n + 1)
    source = np.column_stack([np.zeros(n + 1), np.append(c, 1), np.ones(n + 1)])
    rest = np.column_stack([np.repeat(b, n), np.tile(d, n), np.ones(n * n)])
    rows = np.concatenate([source, rest]).astype(np.int32)
    first = pa.table({"x": [0], "y": [1], "z": [1]})
    return Case(EXAMPLE_2, as_tables({"B": rows}), [("delete B(a, b1)", {"B": first}, {})])


def of_workload(name: str, sizes: Callable[[int], list[tuple[str, int]]]) -> Callable[[Options, int, int], Case]:
    def make(options: Options, size: int, repeats: int) -> Case:
        work = BY_NAME[name]
        facts = work.facts(data_folder(options.data))
        total = sum(len(table) for table in facts.values())
        return Case(work.program, facts, cycles(facts, sizes(total), repeats))

    return make


def lubm_of_ontology(options: Options, size: int, repeats: int) -> Case:
    """A university of our own, by the rules that are made of the ontology instead of the program written by hand."""
    from benchmarks.rdf.generate import write
    from elastalog.rdf import translate

    with TemporaryDirectory() as folder:
        path = Path(folder) / "lubm-1.nt"
        write(1, path)
        made = translate(HERE / "rdf" / "univ-bench.ttl", path)
    facts = {name: plain(table) for name, table in made.facts.items() if name != "axiom"}
    total = sum(len(table) for table in facts.values())
    return Case(made.text, facts, cycles(facts, [("1000", 1000), ("2 %", total // 50)], repeats))


def plain(table: pa.Table) -> pa.Table:
    """A table without dictionaries."""
    return table.cast(pa.schema([field.with_type(pa.string()) for field in table.schema]))


def small_and_large(total: int) -> list[tuple[str, int]]:
    return [("10", 10), ("1 %", total // 100)]


EXPERIMENTS: Mapping[str, Experiment] = {
    "sspe": Experiment(sspe, EVERY, 1, paper="DRed^c 160 times faster than DRed on small deletions, 97 times on 2 %"),
    "example1": Experiment(example_1, EVERY, 1, (1000, 3000, 10_000), "quadratic for DRed, linear for DRed^c"),
    "example2": Experiment(example_2, EVERY, 1, (300, 1000, 3000), "quadratic for DRed and B/F, linear for DRed^c"),
    "lubm": Experiment(
        of_workload("lubm", lambda total: [("0.1 %", total // 1000), ("1000", 1000), ("2 %", total // 50)]), EVERY, 3
    ),
    "lubm-owl": Experiment(lubm_of_ontology, EVERY, 3),
    "doop": Experiment(of_workload("doop", small_and_large), LARGE, 3),
    "crdt": Experiment(of_workload("crdt", small_and_large), LARGE, 3),
    "galen": Experiment(of_workload("galen", small_and_large), LARGE, 1),
}
