"""Ranked strata in the kernel: evaluated in the order of values, and updated along their links.

Nodes and links are kept in memory from epoch to epoch (see `planning.ranked` and `operators`). All of it follows from
the relations: what the links are made of, and the facts of the stratum, whose level and count are the steps and the
count of their node. So it can be made again whenever rows have got other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from elastalog.backends.kernel.execution.aggregates import present_now
from elastalog.backends.kernel.ranks import operators as ops
from elastalog.backends.kernel.ranks.nodes import Nodes, Numbers, Records
from elastalog.backends.kernel.store import snapshot, transaction
from elastalog.backends.kernel.store.annotations import ROW
from elastalog.backends.kernel.store.memory import Matrix, Vector, with_room
from elastalog.backends.kernel.store.relation import KernelRelation, note_levels
from elastalog.backends.kernel.store.transaction import StratumDelta
from elastalog.backends.protocol import GONE
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.planning.logical import Link, LogicalStratum, Ranked
from elastalog.relations.words import Dictionary

_AT_ONCE = 1 << 20


class OutOfOrder(Exception):
    """Values do not come in their order: a rule makes one better than it reads, or it is too large."""


class RankedGraph(Nodes):
    """`is_new`: made in the update under way. Notes say what nodes were before it."""

    def __init__(self, ranked: Ranked, relations: Mapping[str, KernelRelation], dictionary: Dictionary) -> None:
        super().__init__(ranked, relations, dictionary)
        self.is_new = False
        self._heap: Numbers = np.empty((64, 2), np.int64)
        self._notes: Records = np.empty(64, ops.NOTE)
        self._lost: Vector = np.empty(64, np.int32)
        self._gone: Vector = np.empty(64, np.int32)
        self._come: Vector = np.empty(64, np.int32)

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
                    rows = np.flatnonzero(snapshot.old_levels(relation) != GONE).astype(np.int32)
                else:
                    rows = present_now(relation)
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
            rows, levels = relation.find(facts), snapshot.old_levels(relation)
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
            relation.load(facts)
            found += len(facts)
            if relation.is_annotated:
                relation.level[: relation.used] = steps
                relation.count[: relation.used] = counts
                note_levels(relation)
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
