"""Generated facts: the same distributions and seeds as the measurements that decided the kernel's data structures.

Every function gives a dictionary from relation name to an int32 array, one row a fact, sorted and without duplicates.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Rows: TypeAlias = npt.NDArray[np.int32]
Arrays: TypeAlias = dict[str, Rows]


def _facts(rows: npt.NDArray[np.int64]) -> Rows:
    return np.unique(rows.astype(np.int32), axis=0)


def random_graph(nodes: int, edges: int, seed: int) -> Arrays:
    """Edges between nodes drawn uniformly."""
    return {"edge": _facts(np.random.default_rng(seed).integers(0, nodes, (edges, 2)))}


def sparse_graph() -> Arrays:
    return random_graph(nodes=4000, edges=6000, seed=1)


def dense_graph() -> Arrays:
    return random_graph(nodes=2500, edges=50_000, seed=2)


def grid(width: int = 500, height: int = 4) -> Arrays:
    """A grid with edges to the right and downwards: many iterations, several derivations a fact."""
    node = np.arange(width * height).reshape(width, height)
    along = np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1)
    across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    return {"edge": _facts(np.concatenate([along, across]))}


def chain(nodes: int = 2000) -> Arrays:
    """One path through all nodes: as many iterations as nodes."""
    start = np.arange(nodes - 1)
    return {"edge": _facts(np.stack([start, start + 1], axis=1))}


def components(number: int, nodes: int = 400, density: float = 1.5, seed: int = 5) -> Arrays:
    """Separate random graphs: derived facts grow linearly with their number."""
    random = np.random.default_rng(seed)
    parts = [random.integers(0, nodes, (int(nodes * density), 2)) + part * nodes for part in range(number)]
    return {"edge": _facts(np.concatenate(parts))}


def points_to(modules: int = 100, seed: int = 7) -> Arrays:
    """Modules of 1000 variables with 400 allocations, 1050 assignments, 200 loads, 200 stores and 120 fields each."""
    variables, heaps, assignments, accesses, fields = 1000, 400, 1050, 200, 120
    random = np.random.default_rng(seed)
    new, assign, load, store = [], [], [], []
    for module in range(modules):
        variable, heap, field = module * variables, module * heaps, module * fields

        def some_variables(number: int, first: int = variable) -> npt.NDArray[np.int64]:
            return random.integers(0, variables, number) + first

        def some_fields(number: int, first: int = field) -> npt.NDArray[np.int64]:
            return random.integers(0, fields, number) + first

        # The order of the draws decides the facts: it is that of the first measurements.
        new.append(np.stack([some_variables(heaps), np.arange(heaps) + heap], axis=1))
        assign.append(random.integers(0, variables, (assignments, 2)) + variable)
        random.random(assignments)  # once chose assignments between modules; there are none
        random.integers(0, variables * modules, 0)
        load.append(np.stack([some_variables(accesses), some_variables(accesses), some_fields(accesses)], axis=1))
        store.append(np.stack([some_variables(accesses), some_fields(accesses), some_variables(accesses)], axis=1))
    parts = {"new": new, "assign": assign, "load": load, "store": store}
    return {name: _facts(np.concatenate(rows)) for name, rows in parts.items()}


def ontology(
    classes: int = 12_000,
    below: int = 13_000,
    edges: int = 8000,
    axioms: int = 1000,
    implications: int = 30,
    seed: int = 11,
) -> Arrays:
    """A random ontology for EL completion: an acyclic hierarchy of classes, edges of 60 roles, axioms, role chains."""
    roles, chains = 60, 10
    random = np.random.default_rng(seed)

    def draw(number: int, *bounds: int) -> npt.NDArray[np.int64]:
        return np.stack([random.integers(0, bound, number) for bound in bounds], axis=1)

    child = random.integers(1, classes, below)
    parent = (child * random.random(below) ** 0.5).astype(np.int64)  # less than the child: no cycles
    itself = np.arange(classes)
    p = np.concatenate([np.stack([child, parent], axis=1), np.stack([itself, itself], axis=1)])
    q = draw(edges, classes, roles, classes)
    u = draw(axioms, classes, roles, classes)
    c = draw(axioms, classes, classes, classes)
    s = np.sort(random.integers(0, roles, (implications, 2)), axis=1)
    r = draw(chains, roles, roles, roles)
    return {"p": _facts(p), "q": _facts(q), "u": _facts(u), "c": _facts(c), "s": _facts(s), "r": _facts(r)}


def large_ontology() -> Arrays:
    return ontology(classes=20_000, below=22_000, edges=12_000, axioms=1500, implications=40)


def weighted_acyclic_graph(nodes: int, edges: int, seed: int = 1, heaviest: int = 10) -> Arrays:
    """Single-source path enumeration: edges B(from, to, length) with from < to, and node 0 as the source."""
    random = np.random.default_rng(seed)
    ends = np.sort(random.integers(0, nodes, (edges, 2)), axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]]
    lengths = random.integers(1, heaviest + 1, len(ends))
    return {"B": _facts(np.column_stack([ends, lengths])), "source": np.zeros((1, 1), np.int32)}
