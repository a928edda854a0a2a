"""The tables of a ranked stratum in memory: vertices by their keys, nodes, and the links between them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

from elastalog.analysis.program import Base, Constant
from elastalog.backends.kernel.ranks import operators as ops
from elastalog.backends.kernel.store.memory import Matrix, Vector, longer, with_room
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.planning.logical import Link, Part, Ranked
from elastalog.relations.words import Dictionary

_LEAST = np.iinfo(np.int64).min
_LARGEST = np.iinfo(np.int64).max
_SAFE = 1 << 61
"""Numbers up to which a sum of a few cannot run over."""
NO_ROWS = np.empty(0, np.int32)

Numbers = np.ndarray
Records = np.ndarray


class Order:
    """Numbers in whose order the values of a column are, the best first. Those of a float are its bits, of a negative
    one all but the sign turned round. Those of texts are far apart, so that others fit in between. `is_spoilt`: there
    was a value without such a number, and what was made of it is of no use."""

    def __init__(self, ranked: Ranked, dictionary: Dictionary) -> None:
        self.is_spoilt = False
        self.base = ranked.base
        self._sign = 1 if ranked.is_least else -1
        self._dictionary = dictionary
        self._texts: list[str] = []
        self._places: list[int] = []
        self._known: dict[int, int] = {}
        self._words: dict[int, int] = {}

    def numbers(self, words: Vector, sign: int = 1) -> Numbers:
        """The numbers of values, or of what is the opposite of them."""
        words, sign = np.ascontiguousarray(words), sign * self._sign
        found: Numbers
        if self.base is Base.FLOAT:
            floats = sign * self._dictionary.floats(words) + 0.0
            self.is_spoilt |= bool(np.isnan(floats).any())
            found = floats.view(np.int64)
            return np.where(found < 0, found ^ _LARGEST, found)
        if self.base is Base.SYMBOL:
            return sign * self._places_of(words)
        found = self._dictionary.integers(words)
        self.is_spoilt |= bool(len(found)) and bool(found.min() < (0 if self.base is Base.UNSIGNED else _LEAST + 1))
        return sign * found

    def words(self, numbers: Numbers) -> Vector:
        """The values whose numbers these are."""
        dictionary = self._dictionary
        if self.base is Base.FLOAT:
            bits = np.where(numbers < 0, numbers ^ _LARGEST, numbers)
            return dictionary.from_floats(self._sign * bits.view(np.float64))
        numbers = np.ascontiguousarray(self._sign * numbers)
        if self.base is Base.SYMBOL:
            return np.array([self._words[number] for number in numbers.tolist()], np.int32)
        if self.base is Base.UNSIGNED:
            return dictionary.from_unsigned(numbers.view(np.uint64))
        return dictionary.from_integers(numbers)

    def _places_of(self, words: Vector) -> Numbers:
        known = self._known
        fresh = np.array([word for word in dict.fromkeys(words.tolist()) if word not in known], np.int32)
        texts = dict(zip(self._dictionary.symbols.texts(fresh), fresh.tolist(), strict=True))
        if not self._texts:
            self._texts = sorted(texts)
            step = (_LARGEST - 2) // (len(texts) + 1)
            self._places = [step * (i + 1) for i in range(len(texts))]
            self._words = {place: texts[text] for text, place in zip(self._texts, self._places, strict=True)}
        else:
            for text, word in texts.items():
                at = bisect_left(self._texts, text)
                before = self._places[at - 1] if at else 0
                after = self._places[at] if at < len(self._texts) else _LARGEST
                place = (before + after) // 2
                self.is_spoilt |= place == before
                self._texts.insert(at, text)
                self._places.insert(at, place)
                self._words[place] = word
        known.update((word, place) for place, word in self._words.items() if word not in known)
        return np.array([known[word] for word in words.tolist()], np.int64)


class Nodes:
    """Whatever a link is made of has its place here, alive or not. Tables grow; nothing is ever taken out of them. The
    rows of `keys` are the vertices: the number of a relation, then a key of it."""

    def __init__(self, ranked: Ranked, relations: Mapping[str, KernelRelation], dictionary: Dictionary) -> None:
        self.ranked = ranked
        self.is_whole = True
        self.order = Order(ranked, dictionary)
        self._dictionary = dictionary
        self._names = tuple(ranked.columns)
        self._made_of = {link.made_of: relations[link.made_of] for link in ranked.links if link.made_of is not None}
        self._generations = {name: relation.generation for name, relation in self._made_of.items()}
        self._key_columns = {
            name: [c for c in range(relations[name].width) if c != column and c not in ranked.contexts]
            for name, column in ranked.columns.items()
        }
        self._keys = KernelRelation("", 1 + max(map(len, self._key_columns.values())), False)
        self._contexts = KernelRelation("", max(len(ranked.contexts), 1), False)
        self._row_of: list[Vector] = [NO_ROWS for _ in ranked.links]
        state = self.state = np.zeros(ops.STATE_SIZE, np.int64)
        state[ops.IS_PLAIN] = not ranked.contexts
        state[ops.IS_FLOAT] = ranked.base is Base.FLOAT
        state[ops.HAS_SUMS] = any(link.is_sum for link in ranked.links)
        self._links_used = 0
        self._vertices: Records = np.empty(64, ops.VERTEX)
        self._nodes: Records = np.empty(64, ops.NODE)
        self._links: Records = np.empty(64, ops.LINK)
        self._table: Vector = np.zeros(128, np.int32)
        for link in ranked.links:
            if link.made_of is None and not link.sources:
                self._add(link, np.zeros((1, 1), np.int32))

    # --- nodes -----------------------------------------------------------------------------------------------------

    def _reserve_nodes(self, more: int) -> None:
        used = int(self.state[ops.USED_NODES])
        self._nodes = with_room(self._nodes, used + more)
        if not self.state[ops.IS_PLAIN] and 2 * (used + more) > len(self._table):
            self._table = np.zeros(1 << (4 * (used + more)).bit_length(), np.int32)
            ops.fill_table(self._nodes, self._table, self.state)

    def _find_nodes(self, name: str, facts: Matrix) -> Vector:
        """The nodes of facts, made where there are none."""
        vertices = self._find_vertices(name, [facts[:, column] for column in self._key_columns[name]], len(facts))
        if self.state[ops.IS_PLAIN]:
            return vertices
        contexts = self._number(self._contexts, [facts[:, column] for column in self.ranked.contexts], len(facts))
        found = np.empty(len(facts), np.int32)
        done = 0
        while True:
            self._reserve_nodes(min(len(facts) - done, int(self.state[ops.USED_NODES]) + 64) + 64)
            done = ops.find_nodes(found, contexts, vertices, done, self._nodes, self._vertices, self._table, self.state)
            if done == len(facts):
                return found

    def _number(self, numbers: KernelRelation, columns: Sequence[Vector | int], size: int) -> Vector:
        words = np.zeros((size, numbers.width), np.int32)
        for place, column in enumerate(columns):
            words[:, place] = column
        numbers.insert(words, 0, size, numbers.used + size)
        return numbers.find(words)

    def _find_vertices(self, name: str, columns: list[Vector], size: int) -> Vector:
        """The vertices with given keys, made where there are none, with the links that follow from the key alone."""
        keys, used = self._keys, self._keys.used
        found = self._number(keys, [self._names.index(name), *columns], size)
        more = keys.used - used
        if more:
            self._vertices = with_room(self._vertices, used + more)
            own = self._vertices[used : used + more]
            own["out"] = own["into"] = own["node"] = ops.NOTHING
            own["degree"] = 0
            if self.state[ops.IS_PLAIN]:
                self._reserve_nodes(more)
                nodes = self._nodes[used : used + more]
                nodes.view(np.int64)[:] = 0
                nodes["vertex"] = own["node"] = np.arange(used, used + more)
                nodes["given"] = nodes["next"] = ops.NOTHING
                self.state[ops.USED_NODES] += more
            for link in self.ranked.links:
                if link.made_of is None and link.sources and link.sources[0][0] == name:
                    self._add(link, keys.rows[used : used + more, 1:].copy())
        return found

    def _words(self, name: str, nodes: Vector, values: Numbers) -> Matrix:
        """The facts of nodes with some values."""
        contexts, own = self.ranked.contexts, self._key_columns[name]
        facts = np.empty((len(nodes), 1 + len(own) + len(contexts)), np.int32)
        facts[:, own] = self._keys.rows[self._nodes["vertex"][nodes], 1 : 1 + len(own)]
        if contexts:
            facts[:, contexts] = self._contexts.rows[self._nodes["context"][nodes]]
        facts[:, self.ranked.columns[name]] = self.order.words(values)
        return facts

    # --- links -----------------------------------------------------------------------------------------------------

    def _known_rows(self, number: int, relation: KernelRelation) -> Vector:
        """The link that each row of a relation is, NOTHING where it is not made yet."""
        known = self._row_of[number]
        if relation.used > len(known):
            size = relation.used + relation.used // 4 + 64
            known = self._row_of[number] = longer(known, size, ops.NOTHING)
        return known

    def _ensure(self, number: int, link: Link, rows: Vector) -> Vector:
        """The links that rows are, made where there are none, not alive yet."""
        assert link.made_of is not None
        relation = self._made_of[link.made_of]
        known = self._known_rows(number, relation)
        fresh = rows[known[rows] == ops.NOTHING]
        if len(fresh):
            self.is_whole = False  # should Ctrl-C come in between
            known[fresh] = self._add(link, relation.rows[fresh])
            self.is_whole = True
        return known[rows]

    def _add(self, link: Link, facts: Matrix) -> Vector:
        """Links made of facts. They are alive if they follow from a key alone."""
        size = len(facts)
        target = [self._column(part, facts) for part in link.target_key]
        ends = [self._find_vertices(name, [self._column(p, facts) for p in key], size) for name, key in link.sources]
        if link.sources:
            ends.append(self._find_vertices(link.target, target, size))
        else:
            column = self.ranked.columns[link.target]
            heads = np.zeros((size, 1 + len(target)), np.int32)
            for place, words in zip([c for c in range(1 + len(target)) if c != column], target, strict=True):
                heads[:, place] = words
            ends.append(self._find_nodes(link.target, heads))
        first = self._links_used
        self._links = with_room(self._links, first + size)
        self._links_used += size
        floors = np.full(size, _LEAST)
        for part in link.floors:
            np.maximum(floors, self.order.numbers(self._column(part, facts)), out=floors)
        sources, others = ends[0] if link.sources else NO_ROWS, ends[1] if len(ends) == 3 else NO_ROWS
        ops.put_in(
            first, sources, others, ends[-1], self._sum(link, facts), floors, self._nodes, self._vertices, self._links,
            self.state,
        )  # fmt: skip
        if link.is_sum or link.made_of is None:
            self._links["is_sum"][first : first + size] = link.is_sum
            self._links["alive"][first : first + size] = link.made_of is None
        return np.arange(first, first + size, dtype=np.int32)

    def _column(self, part: Part, facts: Matrix) -> Vector:
        if isinstance(part, Constant):
            return np.full(len(facts), self._dictionary.encode_value(part.base, part.value), np.int32)
        return facts[:, part]

    def _sum(self, link: Link, facts: Matrix) -> Numbers:
        """What is added, in the direction of improvement."""
        order, found = self.order, np.zeros(len(facts), np.int64)
        for sign, part in link.weights:
            numbers = order.numbers(self._column(part, facts), sign)
            if len(link.weights) > 1 and len(numbers) and max(abs(int(numbers.min())), abs(int(numbers.max()))) > _SAFE:
                order.is_spoilt = True
            found += numbers
        return found
