"""The tables of a ranked stratum in memory: vertices by their keys, nodes, and the links between them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.analysis.program import Base, Constant
from elastalog.backends.kernel.ranks import operators as ops
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.planning.logical import Link, Part, Ranked
from elastalog.relations.words import Dictionary

_NO_FLOOR = np.iinfo(np.int64).min
_SAFE = 1 << 61
"""Numbers up to which a sum of a few cannot run over."""
NO_ROWS = np.empty(0, np.int32)

Numbers = np.ndarray


class Nodes:
    """Whatever a link is made of has its place here, alive or not. Tables grow; nothing is ever taken out of them."""

    def __init__(self, ranked: Ranked, relations: Mapping[str, KernelRelation], dictionary: Dictionary) -> None:
        self.ranked = ranked
        self._dictionary = dictionary
        self._sign = 1 if ranked.is_least else -1
        self._names = tuple(ranked.columns)
        self._made_of = {link.made_of: relations[link.made_of] for link in ranked.links if link.made_of is not None}
        self._generations = {name: relation.generation for name, relation in self._made_of.items()}
        self._key_columns = {
            name: [c for c in range(relations[name].width) if c != column and c not in ranked.contexts]
            for name, column in ranked.columns.items()
        }
        self._keys = {n: KernelRelation(n, max(len(own), 1), False) for n, own in self._key_columns.items()}
        self._numbers: dict[str, Vector] = dict.fromkeys(self._names, NO_ROWS)
        self._of: Matrix = np.empty((64, 2), np.int32)
        self._contexts = KernelRelation("", max(len(ranked.contexts), 1), False)
        self._row_of: list[Vector] = [NO_ROWS for _ in ranked.links]
        state = self.state = np.zeros(ops.STATE_SIZE, np.int64)
        state[ops.IS_PLAIN] = not ranked.contexts
        self._vertices_used = self._edges_used = self._bases_used = 0
        self._vertices: Matrix = np.empty((64, 3), np.int32)
        self._degrees: Matrix = np.zeros((64, 1), np.int32)
        self._nodes: Matrix = np.empty((64, ops.NODE_WIDTH), np.int32)
        self._values: Numbers = np.empty((64, 2), np.int64)
        self._edges: Matrix = np.empty((64, ops.EDGE_WIDTH), np.int32)
        self._weights: Numbers = np.empty((64, 2), np.int64)
        self._bases: Matrix = np.empty((64, 3), np.int32)
        self._given: Numbers = np.empty((64, 1), np.int64)
        self._table: Vector = np.zeros(1 if state[ops.IS_PLAIN] else 128, np.int32)
        for number, link in enumerate(ranked.links):
            if link.made_of is None and link.source is None:
                self._add(number, link, np.zeros((1, 1), np.int32), NO_ROWS)

    # --- nodes -----------------------------------------------------------------------------------------------------

    @property
    def _nodes_used(self) -> int:
        return self._vertices_used if self.state[ops.IS_PLAIN] else int(self.state[ops.USED_NODES])

    def _tables(self) -> tuple[Matrix, Numbers, Matrix, Matrix, Numbers, Matrix, Numbers]:
        self.state[ops.USED_NODES] = self._nodes_used
        return self._nodes, self._values, self._vertices, self._edges, self._weights, self._bases, self._given

    def _reserve_nodes(self, more: int) -> None:
        used = self._nodes_used
        self._nodes = with_room(self._nodes, used, more)
        self._values = with_room(self._values, used, more)
        if not self.state[ops.IS_PLAIN] and 2 * (used + more) > len(self._table):
            self._table = np.zeros(1 << (4 * (used + more)).bit_length(), np.int32)
            ops.fill_table(self._nodes, used, self._table)

    def _find_nodes(self, name: str, facts: Matrix) -> Vector:
        """The nodes of facts, made where there are none."""
        vertices = self._find_vertices(name, [facts[:, column] for column in self._key_columns[name]], len(facts))
        if self.state[ops.IS_PLAIN]:
            return vertices
        contexts = self._number(self._contexts, [facts[:, column] for column in self.ranked.contexts], len(facts))
        found = np.empty(len(facts), np.int32)
        done = 0
        while True:
            self._reserve_nodes(min(len(facts) - done, self._nodes_used + 64) + 64)
            done = ops.find_nodes(found, contexts, vertices, done, self._nodes, self._vertices, self._table, self.state)
            if done == len(facts):
                return found

    def _number(self, numbers: KernelRelation, columns: list[Vector], size: int) -> Vector:
        words = np.zeros((size, numbers.width), np.int32)
        for place, column in enumerate(columns):
            words[:, place] = column
        numbers.insert(words, 0, size, numbers.used + size)
        return numbers.find(words)

    def _find_vertices(self, name: str, columns: list[Vector], size: int) -> Vector:
        """The vertices with given keys, made where there are none, with the links that follow from the key alone."""
        keys, before = self._keys[name], self._keys[name].used
        rows = self._number(keys, columns, size)
        if keys.used > before:
            fresh = self._make_vertices(name, before, keys.used)
            for number, link in enumerate(self.ranked.links):
                if link.made_of is None and link.source == name:
                    self._add(number, link, keys.rows[before : before + len(fresh)].copy(), fresh)
        return self._numbers[name][rows]

    def _make_vertices(self, name: str, first: int, end: int) -> Vector:
        used, more = self._vertices_used, end - first
        fresh = np.arange(used, used + more, dtype=np.int32)
        self._numbers[name] = with_room(self._numbers[name], first, more)
        self._numbers[name][first:end] = fresh
        self._of = with_room(self._of, used, more)
        self._of[fresh, 0], self._of[fresh, 1] = self._names.index(name), np.arange(first, end)
        self._vertices = with_room(self._vertices, used, more)
        self._vertices[fresh] = ops.NOTHING
        self._degrees = with_room(self._degrees, used, more)
        self._degrees[fresh] = 0
        if self.state[ops.IS_PLAIN]:
            self._reserve_nodes(more)
            self._nodes[fresh] = 0
            self._nodes[fresh, ops.VERTEX] = fresh
            self._nodes[fresh, ops.BASE] = self._nodes[fresh, ops.NEXT] = ops.NOTHING
        self._vertices_used += more
        return fresh

    def _words(self, name: str, nodes: Vector, values: Numbers) -> Matrix:
        """The facts of nodes with some values."""
        column, contexts = self.ranked.columns[name], self.ranked.contexts
        facts = np.empty((len(nodes), 1 + len(self._key_columns[name]) + len(contexts)), np.int32)
        keys = self._keys[name].rows[self._of[self._nodes[nodes, ops.VERTEX], 1]]
        for place, own in enumerate(self._key_columns[name]):
            facts[:, own] = keys[:, place]
        if contexts:
            words = self._contexts.rows[self._nodes[nodes, ops.CONTEXT]]
            for place, own in enumerate(contexts):
                facts[:, own] = words[:, place]
        numbers = np.ascontiguousarray(self._sign * values)
        is_unsigned = self.ranked.base is Base.UNSIGNED
        dictionary = self._dictionary
        facts[:, column] = (
            dictionary.from_unsigned(numbers.view(np.uint64)) if is_unsigned else dictionary.from_integers(numbers)
        )
        return facts

    # --- links -----------------------------------------------------------------------------------------------------

    def _ensure(self, number: int, link: Link, rows: Vector) -> Vector:
        """The edges, or bases, that rows are, made where there are none, not alive yet."""
        assert link.made_of is not None
        known = self._row_of[number]
        relation = self._made_of[link.made_of]
        if relation.used > len(known):
            longer = np.full(relation.used + relation.used // 4 + 64, -1, np.int32)
            longer[: len(known)] = known
            known = self._row_of[number] = longer
        fresh = rows[known[rows] < 0]
        if len(fresh):
            known[fresh] = self._add(number, link, relation.rows[fresh], NO_ROWS)
        return known[rows]

    def _add(self, number: int, link: Link, facts: Matrix, sources: Vector) -> Vector:
        """Edges, or bases, made of facts. They are alive if they follow from a key, given by the vertices, alone."""
        size, is_base = len(facts), link.source is None
        weights = self._sum(link, facts)
        target = [self._column(part, facts) for part in link.target_key]
        if is_base:
            return self._add_bases(link, facts, target, weights)
        floors = np.full(size, _NO_FLOOR, np.int64)
        for part in link.floors:
            np.maximum(floors, self._sign * self._integers(self._column(part, facts)), out=floors)
        assert link.source is not None
        if not len(sources):
            sources = self._find_vertices(link.source, [self._column(p, facts) for p in link.source_key], size)
        targets = self._find_vertices(link.target, target, size)
        first = self._edges_used
        self._edges = with_room(self._edges, first, size)
        self._weights = with_room(self._weights, first, size)
        self._edges_used += size
        fresh = np.arange(first, first + size, dtype=np.int32)
        self._edges[fresh] = 0
        self._edges[fresh, ops.SOURCE], self._edges[fresh, ops.TARGET] = sources, targets
        self._edges[fresh, ops.ALIVE] = link.made_of is None
        self._weights[fresh, 0], self._weights[fresh, 1] = weights, floors
        most = ops.link(fresh, self._vertices, self._edges, self._degrees)
        self.state[ops.MOST_EDGES] = max(int(self.state[ops.MOST_EDGES]), most)
        return fresh

    def _add_bases(self, link: Link, facts: Matrix, target: list[Vector], weights: Numbers) -> Vector:
        size, first = len(facts), self._bases_used
        heads = np.zeros((size, 1 + len(target)), np.int32)
        column = self.ranked.columns[link.target]
        for place, words in zip([c for c in range(1 + len(target)) if c != column], target, strict=True):
            heads[:, place] = words
        nodes = self._find_nodes(link.target, heads)
        self._bases = with_room(self._bases, first, size)
        self._given = with_room(self._given, first, size)
        self._bases_used += size
        fresh = np.arange(first, first + size, dtype=np.int32)
        self._bases[fresh, ops.BASE_NODE], self._bases[fresh, ops.BASE_ALIVE] = nodes, link.made_of is None
        self._given[fresh, 0] = weights
        ops.link_bases(fresh, self._bases, self._nodes)
        return fresh

    def _set_alive(self, is_base: bool, numbers: Vector, alive: int) -> None:
        if is_base:
            self._bases[numbers, ops.BASE_ALIVE] = alive
        else:
            self._edges[numbers, ops.ALIVE] = alive

    def _column(self, part: Part, facts: Matrix) -> Vector:
        if isinstance(part, Constant):
            return np.full(len(facts), self._dictionary.encode_value(part.base, part.value), np.int32)
        return facts[:, part]

    def _sum(self, link: Link, facts: Matrix) -> Numbers:
        """What is added, in the direction of improvement."""
        found = np.zeros(len(facts), np.int64)
        for sign, part in link.weights:
            numbers = self._integers(self._column(part, facts))
            if len(link.weights) > 1 and len(numbers) and max(abs(int(numbers.min())), abs(int(numbers.max()))) > _SAFE:
                self.state[ops.FAULT] = 1
            found += self._sign * sign * numbers
        return found

    def _integers(self, words: Vector) -> Numbers:
        numbers: Numbers = self._dictionary.integers(np.ascontiguousarray(words))
        least = 0 if self.ranked.base is Base.UNSIGNED else _NO_FLOOR + 1
        if len(numbers) and numbers.min() < least:
            self.state[ops.FAULT] = 1
        return numbers


def with_room(array: np.ndarray, used: int, more: int) -> np.ndarray:
    """An array with room for so many more rows."""
    if used + more <= len(array):
        return array
    longer = np.empty((used + more + used // 2 + 64, *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer
