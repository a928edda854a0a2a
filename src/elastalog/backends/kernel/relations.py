"""The facts that the kernel holds, and questions about them outside an update."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.kernel.execution import aggregates
from elastalog.backends.kernel.execution.classes import Equivalence
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.annotations import ABSENT
from elastalog.backends.kernel.store.bookkeeping import are_below
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation, levels_now
from elastalog.backends.kernel.store.snapshot import ResidentRelations, levels_before
from elastalog.backends.kernel.store.transaction import Homes
from elastalog.planning.logical import GIVEN, LogicalProgram
from elastalog.relations.facts import FactWords
from elastalog.relations.pairs import Pairs

T = TypeVar("T")


class KernelFacts:
    """The relations of a program, and their `homes`. What `count` and `level` of a relation hold depends on the
    annotation; `vectors` are those of the dense strategy. Without annotations, the first `explicit[name]` rows of a
    relation are its explicit facts.

    `equivalences`: relations that are kept as classes, each with the relation of its classes. `set_aside`: pairs and
    classes of the equivalences whose pairs have all been written out within an update.

    With `fetch`, relations may be `evicted`: it gets one back when it is looked at."""

    def __init__(
        self,
        program: LogicalProgram,
        annotation: Annotation,
        fetch: Callable[[str], KernelRelation] | None = None,
        crew: Crew = ALONE,
    ) -> None:
        self.annotation = annotation
        self.crew = crew
        self._has_levels = annotation.has_levels
        self.relations = {
            name: KernelRelation(name, stored.width, annotation.is_kept, crew)
            for name, stored in program.relations.items()
        }
        self.evicted: set[str] = set()
        if fetch is not None:
            resident = ResidentRelations(self.relations, fetch)
            self.relations, self.evicted = resident, resident.evicted
        self._program = program
        self.equivalences, self._merged = program.classes, program.merged
        self.set_aside: dict[str, tuple[KernelRelation, KernelRelation]] = {}
        self.vectors: dict[str, Vectors] = {}
        self.explicit: dict[str, int] = {}

    @cached_property
    def homes(self) -> Homes:
        """What updates need to know of where relations are: many a session has none."""
        hidden = frozenset(name for name, stored in self._program.relations.items() if stored.is_hidden)
        return Homes(self.relations, hidden)

    def evict(self, relation: str) -> None:
        """The relation is elsewhere, from now on."""
        assert isinstance(self.relations, ResidentRelations)
        self.relations.evict(relation)

    def load(self, relation: str, words: Matrix) -> None:
        """Adds explicit facts before the first bootstrap."""
        target = self.relations[relation]
        target.load(words)
        self.explicit[relation] = target.used

    def size(self, relation: str) -> int:
        """The number of facts."""
        if relation in self.equivalences:
            return self.equivalence(relation).size()
        return self.relations[relation].present

    def facts(self, relation: str) -> FactWords:
        """All facts of a relation, outside an update."""
        if relation in self.equivalences:
            return self.equivalence(relation).facts()
        stored = self.relations[relation]
        return self._taken(stored, stored.there)

    def _taken(self, stored: KernelRelation, rows: Vector | slice) -> FactWords:
        """Some facts of a relation, with what they are annotated with."""
        if not self._has_levels:
            return FactWords(stored.rows[rows])
        return FactWords(stored.rows[rows], stored.level[rows], stored.count[rows])

    def pairs(self, relation: str) -> Pairs | None:
        """The facts of an equivalence that is kept as classes, outside an update."""
        return self.equivalence(relation).all_pairs() if relation in self.equivalences else None

    def chain(self, relation: str, pair: Sequence[int]) -> Matrix | None:
        """See `backends.protocol.Equivalences`, outside an update."""
        return self.equivalence(relation).chain(*pair) if relation in self.equivalences else None

    def levels_of_chains(self, relation: str, pairs: Matrix) -> Vector:
        """See `backends.protocol.Equivalences`, outside an update."""
        return self.equivalence(relation).levels_of_chains(pairs)

    def equivalence(self, relation: str) -> Equivalence:
        """An equivalence that is kept as classes."""
        classes = self.relations[self.equivalences[relation]]
        has_levels, is_merged = self.annotation.has_levels, relation in self._merged
        return Equivalence(self.relations[relation], classes, has_levels, is_merged)

    def facts_now(self, relation: str) -> Matrix:
        """The facts of a relation in the state under way."""
        stored = self.relations[relation]
        words: Matrix = stored.rows[stored.there]
        return words

    def levels_now(self, relation: str) -> Vector:
        """Their levels, in the same order."""
        stored = self.relations[relation]
        return levels_now(stored, stored.there)

    def contains(self, relation: str, words: Matrix) -> Vector:
        """Which of some facts are present, outside an update."""
        if relation in self.equivalences:
            return self.equivalence(relation).contains(words)
        try:
            return are_below(self.relations[relation], words)
        except TypeError:  # they are not in a row, or others; to ask beforehand takes as long as to look for one
            return are_below(self.relations[relation], np.ascontiguousarray(words, np.int32))

    def is_explicit(self, relation: str, words: Matrix) -> Vector:
        """Which of some facts are explicit, outside an update."""
        stored = self.relations[relation]
        if self._has_levels:
            return are_below(stored, words, 1)
        found = stored.find(words)
        is_explicit: Vector = found >= 0
        if self.annotation.is_kept:
            levels = levels_before(stored, found[is_explicit])
            is_explicit[is_explicit] = self.annotation.are_explicit(levels)
        else:
            is_explicit &= found < self.explicit.get(relation, 0)
        return is_explicit

    def explicit_rows(self, relation: KernelRelation) -> Vector:
        """Which rows of a relation are of explicit facts, outside an update of it."""
        if self._has_levels:
            is_zero: Vector = relation.level[: relation.used] == 0
            return is_zero
        if self.annotation.is_kept:
            return self.annotation.are_explicit(levels_before(relation))
        first: Vector = np.arange(relation.used) < self.explicit.get(relation.name, 0)
        return first

    def select(self, relation: str, columns: tuple[int, ...], key: Vector) -> FactWords:
        """The facts with given words in some columns, outside an update."""
        if relation in self.equivalences:
            return self.equivalence(relation).select(columns, key)
        stored = self.relations[relation]
        if columns in stored.indexed:
            rows = aggregates.rows_of_keys(stored, columns, np.ascontiguousarray(key, np.int32).reshape(1, -1))
        else:
            # Without an index one scan is cheaper than making one.
            mask = np.ones(stored.used, np.bool_)
            for column, word in zip(columns, key, strict=True):
                mask &= stored.rows[: stored.used, column] == word
            if self.annotation.is_kept and not stored.is_settled:
                mask &= stored.level[: stored.used] < ABSENT
            rows = np.flatnonzero(mask)
        return self._taken(stored, rows)

    def follow(self, program: LogicalProgram, renamed: Mapping[str, str], guards: Mapping[str, bool]) -> None:
        """Has the relations of another program: see `Backend.reprogram`."""
        self._write_out(program)
        evicted = {renamed.get(name, name) for name in self.evicted}
        # Their names change without anybody looking at them.
        self.evicted.clear()
        _rename(self.relations, renamed, program.relations)
        _rename(self.explicit, renamed, program.relations)
        _rename(self.vectors, renamed, program.relations)
        for name in renamed.values():
            self.relations[name].name = name
        for name, stored in program.relations.items():
            if name not in self.relations:
                self.relations[name] = KernelRelation(name, stored.width, self.annotation.is_kept, self.crew)
                if self.annotation.support is Support.VECTORS:
                    self.vectors[name] = Vectors()
                if name.startswith(GIVEN):
                    of = self.relations[name.removeprefix(GIVEN)]
                    self._give(name, of.rows[: of.used][self.explicit_rows(of)])
        for name, is_on in guards.items():
            self._set_guard(name, is_on)
        self._program = program
        vars(self).pop("homes", None)
        self.equivalences, self._merged = program.classes, program.merged
        self.evicted.update(evicted.intersection(program.relations))

    def _write_out(self, program: LogicalProgram) -> None:
        """Equivalences that another program keeps by their rules are written out; those that were, and are to be kept
        as classes again since the update is taken back, become what they were."""
        aside = {}
        for name, classes in self.equivalences.items():
            stored = program.relations.get(name)
            if stored is not None and stored.classes is None:
                pairs = self.relations[name]
                written = KernelRelation(name, pairs.width, pairs.is_annotated, self.crew)
                words = self.equivalence(name).all_pairs().words()
                explicit = pairs.rows[: pairs.used][self.explicit_rows(pairs)]
                written.load(explicit)
                written.load(words, 1)
                aside[name] = pairs, self.relations[classes]
                self.relations[name] = written
        for name, (pairs, classes_of_it) in self.set_aside.items():
            stored = program.relations.get(name)
            if stored is not None and stored.classes is not None:
                self.relations[name] = pairs
                self.relations[stored.classes] = classes_of_it
        self.set_aside = aside

    def _give(self, name: str, facts: Matrix) -> None:
        """Explicit facts of a relation that has none."""
        self.load(name, facts)
        if self.annotation.support is Support.VECTORS and len(facts):
            self.vectors[name].change(np.arange(len(facts), dtype=np.int32), 0, 1)
            self.vectors[name].commit()

    def _set_guard(self, name: str, is_on: bool) -> None:
        fact = np.zeros((1, 1), np.int32)
        if is_on:
            self._give(name, fact)
        elif self.annotation.is_kept:
            # A row, though absent, tells the planner how small the relation is.
            transaction.add_rows(self.relations[name], fact)


def _rename(kept: dict[str, T], renamed: Mapping[str, str], names: Container[str]) -> None:
    """What is kept by relation: some have other names, and those that are not among `names` go."""
    moved = {new: kept[old] for old, new in renamed.items() if old in kept}
    for name in [name for name in kept if name in renamed or name not in names]:
        del kept[name]
    kept.update(moved)
