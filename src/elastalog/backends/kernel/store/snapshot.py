"""Relations out of the kernel and back into it, with their annotations: what a store keeps of an epoch.

A relation without annotations is stored with level 0 for explicit facts and level 1 for all others. A backend may keep
relations elsewhere (`ResidentRelations`): they come into memory when they are asked for, so that a result that is only
written out never becomes a relation of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.annotations import ABSENT, COUNT, IS, MARKS, NEW, OLD, REFERENCE, ROW, WAS
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation, levels_now, note_levels
from elastalog.backends.protocol import GONE, StateChanges
from elastalog.late import dataclass
from elastalog.relations.facts import FactWords


def state(relation: KernelRelation, explicit: int) -> FactWords:
    """All facts of a relation with level and count, outside an update."""
    if not relation.is_annotated:
        level = np.ones(relation.used, np.int32)
        level[:explicit] = 0
        return FactWords(relation.rows[: relation.used], level, np.ones(relation.used, np.int32))
    rows = relation.there
    return FactWords(relation.rows[rows], relation.level[rows], relation.count[rows])


def levels_before(relation: KernelRelation, rows: Vector | slice | None = None) -> Vector:
    """The levels of some rows of an annotated relation, by default all, before the update under way; GONE where the
    fact was absent."""
    rows = slice(0, relation.used) if rows is None else rows
    levels = levels_now(relation, rows, OLD)
    levels[levels >= ABSENT] = GONE
    return levels


def state_before(relation: KernelRelation, explicit: int) -> FactWords:
    """All facts of a relation with level and count, before the update under way."""
    if not relation.is_annotated:
        return state(relation, explicit)
    levels = levels_before(relation)
    rows = np.flatnonzero(levels != GONE)
    # Counts of the last epoch stay in place until the update is committed.
    return FactWords(relation.rows[rows], levels[rows], relation.count[rows])


def maintained_changes(relation: KernelRelation) -> StateChanges:
    """What the update under way has changed in a relation that is maintained."""
    touched = relation.touched[: relation.touched_used]
    rows = touched[:, ROW]
    was_there = (touched[:, MARKS] & WAS) != 0
    is_there = (touched[:, MARKS] & IS) != 0
    was = np.where(was_there, touched[:, OLD], GONE)
    old_count = np.where(was_there, relation.count[rows], 0)
    level = np.where(is_there, touched[:, NEW], GONE)
    count = np.where(is_there, touched[:, COUNT], 0)
    return _differing(relation.rows[rows], was, old_count, level, count)


def replaced_changes(new: KernelRelation, old: KernelRelation) -> StateChanges:
    """What the update under way has changed in an annotated relation that it evaluated anew."""
    level, count = levels_now(new, slice(0, new.used)), new.count[: new.used].copy()
    referring = np.flatnonzero(new.level[: new.used] >= REFERENCE)
    count[referring] = new.touched[new.level[referring] - REFERENCE, COUNT]
    rows = np.flatnonzero(level < ABSENT)
    return changes_between(old, FactWords(new.rows[rows], level[rows], count[rows]))


def changes_between(old: KernelRelation, new: FactWords) -> StateChanges:
    """What leads from a relation, outside an update, to a state: facts that came, went, or have another annotation."""
    return all_changes(new, old, FactWords(old.rows[: old.used], levels_before(old), old.count[: old.used]))


def all_changes(new: FactWords, old: KernelRelation, before: FactWords) -> StateChanges:
    """What leads from a relation, whose rows were as given before, to a state."""
    assert new.level is not None
    assert new.count is not None
    assert before.level is not None
    assert before.count is not None
    found, was, old_count = _before(new.words, old, before.level, before.count)
    came = _differing(new.words, was, old_count, new.level, new.count)
    is_lost = before.level != GONE
    is_lost[found[found >= 0]] = False
    lost = np.flatnonzero(is_lost)
    return StateChanges(
        np.concatenate((came.words, before.words[lost])),
        np.concatenate((came.was, before.level[lost])),
        np.concatenate((came.level, np.full(len(lost), GONE, np.int32))),
        np.concatenate((came.count, np.zeros(len(lost), np.int32))),
    )


def _before(words: Matrix, old: KernelRelation, level: Vector, count: Vector) -> tuple[Vector, Vector, Vector]:
    """The rows of facts in an old relation, -1 for none, and the level and count that they had there."""
    found = old.find(words)
    if not old.used:
        return found, np.full(len(words), GONE, np.int32), np.zeros(len(words), np.int32)
    was = np.where(found >= 0, level[found], GONE)
    old_count = np.where(found >= 0, count[found], 0)
    was[was >= ABSENT] = GONE
    old_count[was == GONE] = 0
    return found, was, old_count


def _differing(words: Vector, was: Vector, old_count: Vector, level: Vector, count: Vector) -> StateChanges:
    is_other = (was != level) | (old_count != count)
    return StateChanges(
        words[is_other],
        was[is_other].astype(np.int32),
        level[is_other].astype(np.int32),
        count[is_other].astype(np.int32),
    )


def restored(
    name: str,
    width: int,
    is_annotated: bool,
    facts: FactWords,
    changes: Sequence[StateChanges],
    crew: Crew = ALONE,
) -> tuple[KernelRelation, int]:
    """A relation with given facts, after changes in their order; and the number of its explicit facts."""
    assert facts.level is not None
    assert facts.count is not None
    if not is_annotated and not changes and bool((facts.level[:-1] <= facts.level[1:]).all()):
        return _filled(name, width, facts, False, crew), int(np.searchsorted(facts.level, np.int32(1)))
    relation = _filled(name, width, facts, True, crew)
    if changes:
        # The last of several states of a fact stays: numpy assigns in order.
        rows = transaction.add_rows(relation, np.concatenate([change.words for change in changes]))
        level = np.concatenate([change.level for change in changes])
        relation.level[rows] = np.where(level == GONE, ABSENT, level)
        relation.count[rows] = np.concatenate([change.count for change in changes])
        relation.present = int((relation.level[: relation.used] < ABSENT).sum())
        relation.is_settled = relation.present == relation.used
    if is_annotated:
        note_levels(relation)
        return relation, int((relation.level[: relation.used] == 0).sum())
    rows = relation.present_rows()
    rows = rows[np.argsort(relation.level[rows], kind="stable")]
    plain = KernelRelation(name, width, is_annotated=False, crew=crew)
    plain.load(relation.rows[rows])
    return plain, int((relation.level[rows] == 0).sum())


def _filled(name: str, width: int, facts: FactWords, is_annotated: bool, crew: Crew) -> KernelRelation:
    relation = KernelRelation(name, width, is_annotated, crew)
    if len(facts.words):
        relation.adopt(facts)
    return relation


@dataclass(frozen=True, slots=True)
class Fetched:
    """A relation that was elsewhere: `facts`, after `changes` in their order. `pending`: what the update under way has
    changed in it, if the relation can be told."""

    facts: FactWords
    changes: Sequence[StateChanges]
    pending: StateChanges | None = None


class ResidentRelations(dict[str, KernelRelation]):
    """The relations of a kernel. Those `evicted` are fetched when asked for by name; until then an empty relation,
    which no update has touched, stands for them."""

    def __init__(self, relations: dict[str, KernelRelation], fetch: Callable[[str], KernelRelation]) -> None:
        super().__init__(relations)
        self.evicted: set[str] = set()
        self._fetch = fetch

    def evict(self, name: str) -> None:
        """The relation is elsewhere, from now on."""
        before = super().__getitem__(name)
        super().__setitem__(name, KernelRelation(name, before.width, before.is_annotated))
        self.evicted.add(name)

    def __getitem__(self, name: str) -> KernelRelation:
        if name in self.evicted:
            super().__setitem__(name, self._fetch(name))
            # Only now: if fetching fails, the relation is still elsewhere.
            self.evicted.discard(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, relation: KernelRelation) -> None:
        self.evicted.discard(name)
        super().__setitem__(name, relation)

    def get(self, name: str, default: Any = None) -> Any:
        if name in self:
            return self[name]
        return default
