"""Ranked strata in the kernel: evaluated in the order of values, and updated along their links."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel.ranks.graph import OutOfOrder, RankedGraph
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.impulse import Impulse
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import note_levels
from elastalog.backends.protocol import GONE
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.planning.logical import LogicalStratum
from elastalog.relations.words import Dictionary


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
