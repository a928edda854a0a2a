"""Ranked strata in the kernel: evaluated in the order of values, and updated along their links.

Nodes and links are kept in memory from epoch to epoch (see `planning.ranked` and `operators`): tables of vertices by
their keys, of nodes, and of the links between them. All of it follows from the relations: what the links are made of,
and the facts of the stratum, whose level and count are the steps and the count of their node. So it can be made again
whenever rows have got other numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from elastalog.analysis.program import Base, Constant
from elastalog.backends.kernel.ranks import operators as ops
from elastalog.backends.kernel.store import snapshot, transaction
from elastalog.backends.kernel.store.annotations import ROW
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector, longer, with_room
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import StratumDelta
from elastalog.backends.protocol import GONE
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.planning.logical import Link, LogicalStratum, Part, Ranked
from elastalog.relations.words import Dictionary

_LEAST = np.iinfo(np.int64).min
_LARGEST = np.iinfo(np.int64).max
_SAFE = 1 << 61
"""Numbers up to which a sum of a few cannot run over."""
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
        return dictionary.from_integers(numbers.view(np.uint64) if self.base is Base.UNSIGNED else numbers)

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


_AT_ONCE = 1 << 20


class OutOfOrder(Exception):
    """Values do not come in their order: a rule makes one better than it reads, or it is too large."""


class RankedGraph:
    """Whatever a link is made of has its place here, alive or not. Tables grow; nothing is ever taken out of them. The
    rows of `keys` are the vertices: the number of a relation, then a key of it. `is_new`: made in the update under way.
    Notes say what nodes were before it."""

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
        self._row_of: list[Vector] = [NO_WORDS for _ in ranked.links]
        state = self.state = np.zeros(ops.STATE_SIZE, np.int64)
        state[ops.IS_PLAIN] = not ranked.contexts
        state[ops.IS_FLOAT] = ranked.base is Base.FLOAT
        state[ops.HAS_SUMS] = any(link.is_sum for link in ranked.links)
        self._links_used = 0
        self._vertices: Records = np.empty(64, ops.VERTEX)
        self._nodes: Records = np.empty(64, ops.NODE)
        self._links: Records = np.empty(64, ops.LINK)
        self._table: Vector = np.zeros(128, np.int32)
        self.is_new = False
        self._heap: Numbers = np.empty((64, 2), np.int64)
        self._notes: Records = np.empty(64, ops.NOTE)
        self._lost: Vector = np.empty(64, np.int32)
        self._gone: Vector = np.empty(64, np.int32)
        self._come: Vector = np.empty(64, np.int32)
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
        sources, others = ends[0] if link.sources else NO_WORDS, ends[1] if len(ends) == 3 else NO_WORDS
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

    # --- from relations --------------------------------------------------------------------------------------------

    def suits(self, relations: Mapping[str, KernelRelation]) -> bool:
        """Whether rows of the relations that links are made of have the numbers that they had."""
        return (
            self.is_whole
            and not self.order.is_spoilt
            and all(
                relations[name] is relation and relation.generation == self._generations[name]
                for name, relation in self._made_of.items()
            )
        )

    def read_links(self, *, before: bool) -> None:
        """Takes the links from the relations, as they were before the update under way, or as they are; none of their
        nodes has a rank."""
        self.commit()
        self._nodes["present"] = self.state[ops.FAULT] = 0
        all_links = sum(self._made_of[link.made_of].used for link in self.ranked.links if link.made_of is not None)
        self._links = with_room(self._links, all_links)
        for number, link in enumerate(self.ranked.links):
            if link.made_of is not None:
                relation, known = self._made_of[link.made_of], self._row_of[number]
                if before and relation.is_annotated:
                    rows = np.flatnonzero(snapshot.levels_before(relation) != GONE).astype(np.int32)
                else:
                    rows = relation.present_rows()
                if len(known):
                    self._links["alive"][known[known != ops.NOTHING]] = 0
                present = self._ensure(number, link, rows)  # before: the table of links may have to grow
                self._links["alive"][present] = 1
        self._come = with_room(self._come, self._links_used)
        ops.begin(self._links_used, self._come, self._links, self.state)

    def has_ranks(self, relations: Mapping[str, KernelRelation]) -> bool:
        """Evaluates, after `read_links`. Whether that gives the facts that the stratum had before the update under way,
        with their levels and counts."""
        try:
            self.settle(Watch())
        except OutOfOrder:
            return False
        self.commit()
        for name in self._names:
            relation = relations[name]
            facts, steps, counts = self.facts(name)
            rows, levels = relation.find(facts), snapshot.levels_before(relation)
            if len(rows) != np.count_nonzero(levels != GONE) or (rows < 0).any():
                return False
            if not ((levels[rows] == steps) & (relation.count[rows] == counts)).all():
                return False
        return True

    # --- evaluation ------------------------------------------------------------------------------------------------

    def update(self, below: Mapping[str, Vector], watch: Watch) -> None:
        """Follows the changes of the relations that links are made of. Raises OutOfOrder; then it is to be undone."""
        state = self.state
        for number, link in enumerate(self.ranked.links):
            if link.made_of is not None and link.made_of in below:
                self._collect(number, link, self._made_of[link.made_of], below[link.made_of])
        self._notes = with_room(self._notes, int(state[ops.USED_NODES]))
        self._lost = with_room(self._lost, int(state[ops.USED_NODES]))
        looked = int(state[ops.LOOKED])
        ops.lose(self._notes, self._lost, self._gone, *self._tables(), state)
        watch.derived(int(state[ops.LOOKED]) - looked)
        self.settle(watch)

    def _collect(self, number: int, link: Link, relation: KernelRelation, entries: Vector) -> None:
        state = self.state
        self._gone = with_room(self._gone, int(state[ops.USED_GONE]) + len(entries))
        self._come = with_room(self._come, int(state[ops.USED_COME]) + len(entries))
        while True:
            known = self._known_rows(number, relation)
            if ops.collect(entries, relation.touched, known, self._gone, self._come, self._links, state):
                return
            self._ensure(number, link, relation.touched[entries, ROW])

    def _tables(self) -> tuple[Records, Records, Records, Vector]:
        return self._nodes, self._vertices, self._links, self._table

    def settle(self, watch: Watch) -> None:
        """Settles what is lost or has come; after `read_links`, all nodes. Raises OutOfOrder."""
        state = self.state
        state[ops.USED_HEAP] = state[ops.AT] = 0
        looked = int(state[ops.LOOKED])
        self._require_order()
        while not ops.bring(self._heap, self._lost, self._come, *self._tables(), state):
            self._make_room(0 if state[ops.IS_PLAIN] else int(state[ops.USED_NODES]))
        how = 0
        while how != 1:
            most = int(state[ops.LOOKED]) + max(watch.allowance(_AT_ONCE), 0)
            how = ops.settle(most, self._heap, self._notes, *self._tables(), state)
            now = int(state[ops.LOOKED])
            watch.derived(now - looked)
            looked = now
            if how == 0:
                self._make_room(0)
        self._require_order()

    def _require_order(self) -> None:
        if self.order.is_spoilt or self.state[ops.FAULT]:
            is_better = self.state[ops.FAULT] == ops.BETTER
            why = (
                "a rule makes a value better than the one it reads" if is_better else "a value has no place in an order"
            )
            raise OutOfOrder(why)

    def _make_room(self, nodes: int) -> None:
        state, more = self.state, int(self.state[ops.MOST_LINKS]) + nodes + 64
        self._heap = with_room(self._heap, int(state[ops.USED_HEAP]) + more)
        self._notes = with_room(self._notes, int(state[ops.USED_NOTES]) + 64)
        if not state[ops.IS_PLAIN]:
            self._reserve_nodes(more)

    # --- the end ---------------------------------------------------------------------------------------------------

    def facts(self, name: str) -> tuple[Matrix, Vector, Vector]:
        """The facts of a relation, with steps and counts."""
        nodes = np.flatnonzero(self._nodes["present"][: self.state[ops.USED_NODES]])
        nodes = nodes[self._keys.rows[self._nodes["vertex"][nodes], 0] == self._names.index(name)]
        values, steps, counts = (self._nodes[field][nodes] for field in ("value", "steps", "count"))
        return self._words(name, nodes, values), steps, counts

    def changes(self) -> Iterator[tuple[str, Matrix, Vector, Vector]]:
        """By relation the facts that went, came or have another rank, with counts and steps, GONE if they went."""
        told = np.empty(2 * int(self.state[ops.USED_NOTES]), ops.NOTE)
        for number, name in enumerate(self._names):
            own = told[: ops.tell(number, told, self._notes, self._nodes, self._keys.rows, self.state)]
            if len(own):
                yield name, self._words(name, own["node"], own["value"]), own["steps"], own["count"]

    def commit(self) -> None:
        """Makes the changes of the last update final."""
        self.is_new = False
        self.state[ops.USED_NOTES : ops.USED_COME + 1] = 0
        self.state[ops.UPDATE] += 1

    def undo(self) -> None:
        """Everything is as it was before the last update."""
        state, notes = self.state, self._notes[: self.state[ops.USED_NOTES]]
        for field in ("present", "steps", "count", "value"):
            self._nodes[field][notes["node"]] = notes[field]
        self._links["alive"][self._come[: state[ops.USED_COME]]] = 0
        self._links["alive"][self._gone[: state[ops.USED_GONE]]] = 1
        state[ops.FAULT] = 0
        self.commit()


class RankedStratum:
    """A stratum that is evaluated in the order of values, and its update under way. Its graph, where there is one,
    suits the state of the relations."""

    def __init__(
        self, stratum: LogicalStratum, relations: Mapping[str, KernelRelation], dictionary: Dictionary
    ) -> None:
        self.own = stratum.relations
        self._stratum = stratum
        self._relations = relations
        self._dictionary = dictionary
        self._graph: RankedGraph | None = None
        self._stratum_delta: StratumDelta | None = None

    def _known_graph(self) -> RankedGraph:
        """The graph that there is, or one without links."""
        graph, ranked = self._graph, self._stratum.ranked
        assert ranked is not None
        if graph is None or not graph.suits(self._relations):
            graph = RankedGraph(ranked, self._relations, self._dictionary)
        return graph

    def evaluate(self, watch: Watch, *, is_kept: bool) -> bool:
        """Brings the relations of the stratum, which are empty, to the fixpoint, if values come in their order."""
        graph, self._graph = self._known_graph(), None
        graph.read_links(before=False)
        try:
            graph.settle(watch)
        except OutOfOrder:
            return False
        found = 0
        for name in self.own:
            relation = self._relations[name]
            facts, steps, counts = graph.facts(name)
            relation.load(facts, steps, counts)
            found += len(facts)
            relation.extend_indexes()
            relation.trim()
        watch.iteration(self._stratum.number, 1, found)
        if is_kept:
            graph.is_new = True
            self._graph = graph
        return True

    def has_ranks(self) -> bool:
        """Whether the facts of the stratum have ranks, before the update under way: then there is a graph."""
        graph = self._known_graph()
        if graph is not self._graph:
            self._graph = None
            graph.read_links(before=True)
            if graph.has_ranks(self._relations):
                self._graph = graph
        return self._graph is not None

    def commit(self) -> None:
        """Makes the changes of the update under way final."""
        if self._graph is not None:
            self._graph.commit()

    def rollback(self) -> None:
        """All is as it was before the update under way."""
        if self._graph is not None and self._graph.is_new:
            self._graph = None
        self.abandon()

    def begin(self, stratum_delta: StratumDelta) -> RankedStratum:
        """An update begins."""
        self._stratum_delta = stratum_delta
        return self

    def update(self) -> None:
        """Brings the stratum to its new fixpoint."""
        assert self._stratum_delta is not None
        if not self.has_ranks():
            raise BudgetExceeded("its facts have no ranks")
        assert self._graph is not None
        try:
            self._graph.update(self._stratum_delta.below, self._stratum_delta.watch)
        except OutOfOrder as error:
            raise BudgetExceeded(str(error)) from None
        for name, facts, steps, counts in self._graph.changes():
            transaction.set_annotations(self._relations[name], facts, steps, counts)

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        return transaction.changed_members(self._relations, self.own)

    def abandon(self) -> None:
        """The graph is what it was."""
        if self._graph is not None:
            self._graph.undo()
