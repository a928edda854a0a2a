"""Ranked strata in the kernel: evaluated in the order of values, and updated along their links.

Nodes and links are kept in memory from epoch to epoch (see `planning.ranked` and `operators`). All of it follows from
the relations: what the links are made of, and the facts of the stratum, whose level and count are the steps and the
count of their node. So it can be made again whenever rows have got other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from elastalog.backends.kernel.execution.aggregates import present_now
from elastalog.backends.kernel.ranks import operators
from elastalog.backends.kernel.ranks import operators as ops
from elastalog.backends.kernel.ranks.nodes import NO_ROWS, Nodes, Numbers, with_room
from elastalog.backends.kernel.store import snapshot, transaction
from elastalog.backends.kernel.store.annotations import IS, MARKS, ROW, WAS
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation, note_levels
from elastalog.backends.kernel.store.transaction import Impulse
from elastalog.backends.protocol import GONE
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.planning.logical import LogicalStratum, Ranked
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
        self._notes: Numbers = np.empty((64, ops.NOTE_WIDTH), np.int64)
        self._lost: Vector = np.empty(64, np.int32)
        self._toggled: tuple[Vector, Vector, Vector, Vector] = (NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)

    # --- from relations --------------------------------------------------------------------------------------------

    def suits(self, relations: Mapping[str, KernelRelation]) -> bool:
        """Whether rows of the relations that links are made of have the numbers that they had."""
        return all(
            relations[name] is relation and relation.generation == self._generations[name]
            for name, relation in self._made_of.items()
        )

    def read_links(self, *, before: bool) -> None:
        """Takes the links from the relations, as they were before the update under way, or as they are."""
        for number, link in enumerate(self.ranked.links):
            if link.made_of is not None:
                relation = self._made_of[link.made_of]
                if before and relation.is_annotated:
                    rows = np.flatnonzero(snapshot.old_levels(relation) != GONE).astype(np.int32)
                else:
                    rows = present_now(relation)
                self._set_alive(link.source is None, self._ensure(number, link, rows), 1)

    def read_ranks(self, relations: Mapping[str, KernelRelation]) -> bool:
        """Takes the ranks from the facts of the stratum. Whether they are what the links say."""
        for name in self._names:
            relation = relations[name]
            rows = np.flatnonzero(snapshot.old_levels(relation) != GONE)
            facts = relation.rows[rows]
            nodes = self._find_nodes(name, facts)
            self._nodes[nodes, ops.PRESENT] = 1
            self._nodes[nodes, ops.STEPS] = relation.level[rows]
            self._nodes[nodes, ops.COUNT] = relation.count[rows]
            self._values[nodes, ops.HELD] = self._sign * self._integers(facts[:, self.ranked.columns[name]])
        return bool(operators.check(*self._tables(), self._table, self.state)) and self.is_in_order

    @property
    def is_in_order(self) -> bool:
        """Whether no link makes a value better."""
        alive = self._edges[: self._edges_used, ops.ALIVE] != 0
        return not (self._weights[: self._edges_used, 0][alive] < 0).any() and not self.state[ops.FAULT]

    # --- evaluation ------------------------------------------------------------------------------------------------

    def evaluate(self, watch: Watch) -> None:
        """Settles all nodes. Raises OutOfOrder if that cannot be done in the order of values."""
        if not self.is_in_order:
            raise OutOfOrder("a rule makes a value better than the one it reads")
        self.state[ops.UPDATE] += 1
        alive = np.flatnonzero(self._bases[: self._bases_used, ops.BASE_ALIVE]).astype(np.int32)
        self._settle(NO_ROWS, alive, watch)

    def update(self, below: Mapping[str, Vector], watch: Watch) -> None:
        """Follows the changes of the relations that links are made of. Raises OutOfOrder; then it is to be undone."""
        gone: tuple[list[Vector], list[Vector]] = ([], [])
        come: tuple[list[Vector], list[Vector]] = ([], [])
        changed = {
            name: changed_rows(relation, below[name]) for name, relation in self._made_of.items() if name in below
        }
        for number, link in enumerate(self.ranked.links):
            if link.made_of in changed:
                is_base = link.source is None
                for rows, parts in zip(changed[link.made_of], (gone, come), strict=True):
                    if len(rows):
                        parts[is_base].append(self._ensure(number, link, rows))
        gone_edges, gone_bases, new_edges, new_bases = (_joined(parts) for parts in (*gone, *come))
        state = self.state
        state[ops.UPDATE] += 1
        state[ops.USED_NOTES] = state[ops.USED_LOST] = 0
        self._toggled = gone_edges, new_edges, gone_bases, new_bases
        if (self._weights[new_edges, 0] < 0).any() or state[ops.FAULT]:
            raise OutOfOrder("a rule makes a value better than the one it reads")
        self._notes = with_room(self._notes, 0, self._nodes_used)
        self._lost = with_room(self._lost, 0, self._nodes_used)
        before = int(state[ops.LOOKED])
        operators.lose(self._notes, self._lost, gone_edges, *self._tables(), gone_bases, self._table, state)
        watch.derived(int(state[ops.LOOKED]) - before)
        self._set_alive(False, new_edges, 1)
        self._set_alive(True, new_bases, 1)
        self._settle(new_edges, new_bases, watch)

    def _settle(self, new_edges: Vector, new_bases: Vector, watch: Watch) -> None:
        state = self.state
        state[ops.USED_HEAP] = state[ops.AT] = 0
        self._heap = with_room(self._heap, 0, int(state[ops.USED_LOST]) + len(new_bases) + 64)
        looked = int(state[ops.LOOKED])
        if state[ops.USED_LOST]:
            operators.seek(self._heap, self._lost, *self._tables(), self._table, state)
        while state[ops.AT] < len(new_bases) + len(new_edges):
            state[ops.AT] = operators.bring(self._heap, new_edges, new_bases, *self._tables(), self._table, state)
            if state[ops.AT] < len(new_bases) + len(new_edges):
                self._make_room()
        while True:
            most = int(state[ops.LOOKED]) + max(watch.allowance(_AT_ONCE), 0)
            how = operators.settle(most, self._heap, self._notes, *self._tables(), self._table, state)
            now = int(state[ops.LOOKED])
            watch.derived(now - looked)
            looked = now
            if how == 1:
                return
            if how == 3:
                raise OutOfOrder("a value does not fit 64 bits")
            if how == 0:
                self._make_room()

    def _make_room(self) -> None:
        state, most = self.state, int(self.state[ops.MOST_EDGES]) + 1
        room = 1 if state[ops.IS_PLAIN] else self._nodes_used
        self._heap = with_room(self._heap, int(state[ops.USED_HEAP]), most + room + 64)
        self._notes = with_room(self._notes, int(state[ops.USED_NOTES]), 64)
        if not state[ops.IS_PLAIN]:
            self._reserve_nodes(most + room + 64)

    # --- the end ---------------------------------------------------------------------------------------------------

    def facts(self, name: str) -> tuple[Matrix, Vector, Vector]:
        """The facts of a relation, with steps and counts."""
        nodes = np.flatnonzero(self._nodes[: self._nodes_used, ops.PRESENT])
        nodes = nodes[self._of[self._nodes[nodes, ops.VERTEX], 0] == self._names.index(name)]
        facts = self._words(name, nodes, self._values[nodes, ops.HELD])
        return facts, self._nodes[nodes, ops.STEPS], self._nodes[nodes, ops.COUNT]

    def changes(self) -> Iterator[tuple[str, Matrix, Matrix, Vector, Vector]]:
        """By relation the facts that went, and those that came or have another rank, with steps and counts."""
        notes = self._notes[: self.state[ops.USED_NOTES]]
        nodes = notes[:, 0]
        now, values = self._nodes[nodes], self._values[nodes, ops.HELD]
        was, present = notes[:, 1] != 0, now[:, ops.PRESENT] != 0
        is_same = was & present & (notes[:, 2] == values)
        is_other = ~is_same | (notes[:, 3] != now[:, ops.STEPS]) | (notes[:, 4] != now[:, ops.COUNT])
        relation = self._of[now[:, ops.VERTEX], 0]
        for number, name in enumerate(self._names):
            own = relation == number
            went, came = own & was & ~is_same, own & present & is_other
            if went.any() or came.any():
                yield (
                    name,
                    self._words(name, nodes[went], notes[went, 2]),
                    self._words(name, nodes[came], values[came]),
                    now[came, ops.STEPS],
                    now[came, ops.COUNT],
                )

    def commit(self) -> None:
        """What the last update has done stands."""
        self.is_new = False
        self.state[ops.USED_NOTES] = 0
        self._toggled = (NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)

    def undo(self) -> None:
        """Everything is as it was before the last update."""
        ops.undo(self._notes, int(self.state[ops.USED_NOTES]), self._nodes, self._values)
        gone_edges, new_edges, gone_bases, new_bases = self._toggled
        self._set_alive(False, new_edges, 0)
        self._set_alive(True, new_bases, 0)
        self._set_alive(False, gone_edges, 1)
        self._set_alive(True, gone_bases, 1)
        self.state[ops.FAULT] = 0
        self.commit()


def changed_rows(relation: KernelRelation, entries: Vector) -> tuple[Vector, Vector]:
    """The rows of the facts that went and that came, among changed entries."""
    touched = relation.touched[entries]
    was, now = touched[:, MARKS] & WAS != 0, touched[:, MARKS] & IS != 0
    return touched[was & ~now, ROW], touched[now & ~was, ROW]


def _joined(parts: list[Vector]) -> Vector:
    return np.ascontiguousarray(np.concatenate(parts)) if parts else NO_ROWS


class RankedStrata:
    """The graphs of ranked strata, by number; those that there are suit the state of the relations."""

    def __init__(self) -> None:
        self._graphs: dict[int, RankedGraph] = {}

    def evaluate(
        self,
        stratum: LogicalStratum,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        watch: Watch,
        *,
        is_kept: bool,
    ) -> bool:
        """Brings the relations of a stratum, which are empty, to the fixpoint, if values come in their order."""
        assert stratum.ranked is not None
        self._graphs.pop(stratum.number, None)
        graph = RankedGraph(stratum.ranked, relations, dictionary)
        graph.read_links(before=False)
        try:
            graph.evaluate(watch)
        except OutOfOrder:
            return False
        found = 0
        for name in stratum.relations:
            relation = relations[name]
            facts, steps, counts = graph.facts(name)
            relation.load(facts)
            found += len(facts)
            if relation.is_annotated:
                relation.level[: relation.used] = steps
                relation.count[: relation.used] = counts
                note_levels(relation)
            relation.extend_indexes()
            relation.trim()
        watch.iteration(stratum.number, 1, found)
        if is_kept:
            graph.is_new = True
            self._graphs[stratum.number] = graph
        return True

    def begin(
        self, stratum: LogicalStratum, relations: Mapping[str, KernelRelation], dictionary: Dictionary
    ) -> RankedGraph:
        """The graph of a stratum as it was before the update under way. Raises BudgetExceeded if there is none."""
        graph = self._graphs.get(stratum.number)
        if graph is None or not graph.suits(relations):
            assert stratum.ranked is not None
            graph = RankedGraph(stratum.ranked, relations, dictionary)
            graph.read_links(before=True)
            if not graph.read_ranks(relations):
                raise BudgetExceeded("its facts have no ranks")
            self._graphs[stratum.number] = graph
        return graph

    def has(self, stratum: LogicalStratum, relations: Mapping[str, KernelRelation], dictionary: Dictionary) -> bool:
        """Whether the facts of a stratum have ranks, outside an update."""
        try:
            self.begin(stratum, relations, dictionary)
        except BudgetExceeded:
            return False
        return True

    def commit(self) -> None:
        """What the update under way has done stands."""
        for graph in self._graphs.values():
            graph.commit()

    def rollback(self) -> None:
        """All is as it was before the update under way."""
        self._graphs = {number: graph for number, graph in self._graphs.items() if not graph.is_new}
        for graph in self._graphs.values():
            graph.undo()

    def forget(self) -> None:
        """Somebody has changed the state of relations, or the program."""
        self._graphs.clear()


class RankedUpdate:
    """An update of such a stratum under way."""

    def __init__(self, strata: RankedStrata, impulse: Impulse, dictionary: Dictionary) -> None:
        self.own = impulse.stratum.relations
        self._strata = strata
        self._impulse = impulse
        self._dictionary = dictionary
        self._graph: RankedGraph | None = None

    def update(self) -> None:
        """Brings the stratum to its new fixpoint."""
        impulse = self._impulse
        graph = self._graph = self._strata.begin(impulse.stratum, impulse.relations, self._dictionary)
        try:
            graph.update(impulse.below, impulse.watch)
        except OutOfOrder as error:
            raise BudgetExceeded(str(error)) from None
        for name, went, came, steps, counts in graph.changes():
            relation = impulse.relations[name]
            gone = np.full(len(went), GONE, np.int32)
            if len(went):
                transaction.annotate_rows(relation, relation.find(went), gone, np.zeros(len(went), np.int32))
            if len(came):
                transaction.set_annotations(relation, came, steps, counts)

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        changed = {}
        for name in self.own:
            entries = transaction.changed_entries(self._impulse.relations[name], is_level_change=False)
            if len(entries):
                changed[name] = entries
        return changed

    def abandon(self) -> None:
        """The graph is what it was."""
        if self._graph is not None:
            self._graph.undo()
