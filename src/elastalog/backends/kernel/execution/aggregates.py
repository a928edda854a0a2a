"""Aggregates in the kernel: folding all groups at bootstrap, and only the groups with changed members in an update.

The fact of a group has level 1, or with global levels 1 + the highest level of its members (0 if it has none), and
count 1.

The numbers that `autoinc()` gives are kept like aggregates: one for each derivation of a rule, for as long as there is
the derivation. A derivation without a number gets the next one, above all that are in use, in the order of the values
that the rule's variables have in it. So a fresh evaluation numbers from 0, the same in every process, and an update
renumbers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import TypeAlias

import numpy as np

from elastalog.analysis.program import Base
from elastalog.backends.kernel.expressions.folds import fold
from elastalog.backends.kernel.store import postings, transaction
from elastalog.backends.kernel.store.annotations import ABSENT, ROW
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation, levels_now
from elastalog.backends.rows import distinct_in_order
from elastalog.late import dataclass
from elastalog.planning.logical import AggregateRule, LogicalProgram
from elastalog.relations.words import Dictionary, order_of


@dataclass(frozen=True, slots=True)
class Folded:
    """One row `groups..., result` for every group that has members. `levels`: one more than the highest level of its
    members, for each of them; None if these have none."""

    rows: Matrix
    levels: Vector | None


FoldElsewhere: TypeAlias = Callable[[Matrix, Vector | None], Folded | None]
"""See `OtherPlace.fold`."""

_ONE_GROUP: Matrix = np.zeros((1, 1), np.int32)
_NO_GROUPS: Matrix = np.zeros((1, 0), np.int32)


class Folding:
    """An aggregate over relations that the kernel holds. `is_global`: levels are heights of proofs across strata."""

    def __init__(
        self,
        rule: AggregateRule,
        relations: MutableMapping[str, KernelRelation],
        dictionary: Dictionary,
        program: LogicalProgram,
        is_global: bool,
    ) -> None:
        self.rule = rule
        self._relations = relations
        self._dictionary = dictionary
        self._program = program
        self._is_global = is_global

    def evaluate(self, elsewhere: FoldElsewhere | None = None) -> None:
        """Fills its relation, which is empty, but for numbers that were given before. `elsewhere` may fold it in
        another place."""
        rule, relations = self.rule, self._relations
        members, target = relations[rule.members], relations[rule.relation]
        # What a numbering holds already are numbers that were given before.
        results, levels = self._folded(members, members.there, target.rows[: target.used], elsewhere)
        if rule.is_numbering:
            target = relations[rule.relation] = KernelRelation(target.name, target.width, target.is_annotated)
        empty = _NO_GROUPS
        if rule.domain is not None:
            domain = relations[rule.domain]
            empty = domain.rows[domain.there]
        target.load(*self._with_defaults(results, levels, empty))

    def _folded(
        self, members: KernelRelation, rows: Vector | slice, known: Matrix, elsewhere: FoldElsewhere | None = None
    ) -> tuple[Matrix, Vector]:
        """The results of all groups that have members, and their levels; 1 where none are kept. `known`: numbers that
        were given before."""
        if self.rule.is_numbering:
            numbered = self._numbered(members.rows[rows], known)
            return numbered, np.ones(len(numbered), np.int32)
        words, has_levels, found = members.rows[rows], self._is_global and members.is_annotated, None
        if elsewhere is not None:
            found = elsewhere(words, levels_now(members, rows) if has_levels else None)
        if found is None:
            results = fold(self.rule, words, self._dictionary, self._program.checked.source)
            found = Folded(results, self._levels(members, rows, results) if has_levels else None)
        return found.rows, np.ones(len(found.rows), np.int32) if found.levels is None else found.levels

    def refold(self, changed: Mapping[str, Vector]) -> Vector:
        """Folds the groups again of which members, or whether there is such a group, have changed: `changed` are
        entries by relation. Returns the entries of its relation that changed."""
        rule, relations = self.rule, self._relations
        members, target = relations[rule.members], relations[rule.relation]
        columns = tuple(range(rule.groups))
        groups = _ONE_GROUP
        if rule.groups:
            rows_of = ((relations[name], relations[name].touched[entries, ROW]) for name, entries in changed.items())
            all_touched = np.concatenate([relation.rows[rows, : rule.groups] for relation, rows in rows_of])
            groups = np.ascontiguousarray(all_touched[distinct_in_order(all_touched)[0]])
        rows = rows_of_keys(members, columns, groups)
        old_rows = rows_of_keys(target, columns, groups)
        results, levels = self._folded(members, rows, target.rows[old_rows])
        if rule.is_total:
            empty = _NO_GROUPS if rule.domain is None else groups[_are_present(relations[rule.domain], groups)]
            results, levels = self._with_defaults(results, levels, empty)

        new_rows = transaction.add_rows(target, results) if len(results) else NO_WORDS
        transaction.take_away(target, np.setdiff1d(old_rows, new_rows).astype(np.int32))
        is_other = levels_now(target, new_rows) != levels
        transaction.put(target, new_rows[is_other], levels[is_other])
        return transaction.changed_entries(target, self._is_global)

    def _with_defaults(self, results: Matrix, levels: Vector, groups: Matrix) -> tuple[Matrix, Vector]:
        """Results and levels, followed by the facts of those groups that have no result, if it has such facts: these
        rest on nothing."""
        rule = self.rule
        if not rule.is_total:
            return results, levels
        if rule.groups:
            groups = groups[_places(results, rule.groups).find(np.ascontiguousarray(groups)) < 0]
        elif len(results):
            groups = groups[:0]
        found = np.empty((len(groups), rule.groups + 1), np.int32)
        found[:, : rule.groups] = groups
        default = 0.0 if rule.result_base is Base.FLOAT else 0
        found[:, rule.groups] = self._dictionary.encode_value(rule.result_base, default)
        level = np.full(len(found), 0 if self._is_global else 1, np.int32)
        return np.concatenate((results, found)), np.concatenate((levels, level))

    def _levels(self, members: KernelRelation, rows: Vector | slice, results: Matrix) -> Vector:
        """The level of each result: one more than the highest of its members."""
        levels, groups = levels_now(members, rows) + 1, self.rule.groups
        if groups == 0:
            return np.full(len(results), levels.max() if len(levels) else 1, np.int32)
        highest = np.zeros(len(results), np.int32)
        places = _places(results, groups).find(np.ascontiguousarray(members.rows[rows][:, :groups]))
        np.maximum.at(highest, places, levels)
        return highest

    def _numbered(self, members: Matrix, known: Matrix) -> Matrix:
        """The facts that some derivations have: those `known` of them, and for the others new ones."""
        groups, dictionary = self.rule.groups, self._dictionary
        kept = known[_places(members, groups).find(np.ascontiguousarray(known[:, :groups])) >= 0]
        new = members[_places(kept, groups).find(members) < 0]
        bases = self._program.relations[self.rule.members].bases
        order = sorted(range(len(new)), key=lambda i: order_of(new[i].tolist(), bases, dictionary))
        first = self._next_number()
        found = np.empty((len(new), groups + 1), np.int32)
        found[:, :groups] = new[order]
        found[:, groups] = dictionary.from_integers(np.arange(first, first + len(new), dtype=np.int64))
        return np.concatenate((kept, found))

    def _next_number(self) -> int:
        """One above the greatest number in use by any rule."""
        greatest = -1
        for stratum in self._program.strata:
            if (rule := stratum.numbering) is not None:
                relation = self._relations[rule.relation]
                words = relation.rows[relation.there, -1]
                if len(words):
                    greatest = max(greatest, int(self._dictionary.integers(words).max()))
        return greatest + 1


def _places(facts: Matrix, columns: int) -> KernelRelation:
    """The first columns of some facts, each row once, in their order."""
    found = KernelRelation("", columns, is_annotated=False)
    found.load(np.ascontiguousarray(facts[:, :columns]))
    return found


def _are_present(relation: KernelRelation, facts: Matrix) -> Vector:
    rows = relation.find(facts)
    found: Vector = rows >= 0
    found[found] = levels_now(relation, rows[found]) < ABSENT
    return found


def rows_of_keys(relation: KernelRelation, columns: tuple[int, ...], wanted: Matrix) -> Vector:
    """The present rows that have one of some keys (distinct rows of a matrix) in some columns."""
    return rows_by_key(relation, columns, wanted)[1] if columns else relation.present_rows()


def rows_by_key(relation: KernelRelation, columns: tuple[int, ...], wanted: Matrix) -> tuple[Vector, Vector]:
    """The present rows that have one of the wanted keys in some columns, each beside the place of its key among
    them."""
    index, home = relation.index(columns).home, relation.address
    relation.lay_out(with_table=False)
    slots: Vector = np.empty(len(wanted), np.int32)
    most = postings.find_keys(index, home, np.ascontiguousarray(wanted), np.arange(len(columns)), slots)
    found: Matrix = np.empty((2, most), np.int32)
    number = postings.rows_in_slots(index, home, slots, found)
    return found[0, :number], found[1, :number]
