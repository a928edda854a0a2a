"""Equivalences that are kept as classes: a row a member, with the member that represents its class.

Bootstrap makes all classes of the pairs by union and find. An update forms those classes anew that a pair which came or
went touches; where none went, classes only merge, and no other pair is looked at. The class that most members come from
keeps its representative, so that strata above see few changes. Every row has level 1 and count 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel.compile.signatures import MATRIX, WORDS, inlined, operator, types
from elastalog.backends.kernel.execution.aggregates import present_now, rows_of_keys
from elastalog.backends.kernel.store import bookkeeping, transaction
from elastalog.backends.kernel.store.annotations import IS, MARKS, ROW
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import note_levels
from elastalog.backends.rows import are_in
from elastalog.planning.logical import EquivalenceRule

MEMBER, REPRESENTATIVE = (0,), (1,)
"""The columns by which classes are looked up."""


@inlined
def _root(parent, place):  # type: ignore[no-untyped-def]
    """The root above a place; the way there gets shorter."""
    while parent[place] != place:
        parent[place] = parent[parent[place]]
        place = parent[place]
    return place


@operator(types.void, MATRIX, WORDS)
def unite(pairs, parent):  # type: ignore[no-untyped-def]
    """Joins the trees of places that are paired, then has every place know its root, the first of its tree."""
    for i in range(pairs.shape[0]):
        left = _root(parent, pairs[i, 0])
        right = _root(parent, pairs[i, 1])
        if left < right:
            parent[right] = left
        elif right < left:
            parent[left] = right
    for place in range(parent.shape[0]):
        parent[place] = parent[parent[place]]


def united(pairs: Matrix, members: Vector) -> Vector:
    """For each of some members, in ascending order, the place of the first of its class, which pairs of members
    generate."""
    parent = np.arange(len(members), dtype=np.int32)
    unite(np.searchsorted(members, pairs).astype(np.int32).reshape(len(pairs), 2), parent)
    return parent


def evaluate(rule: EquivalenceRule, relations: Mapping[str, KernelRelation]) -> None:
    """Fills the relation of the classes, which is empty."""
    pairs, target = relations[rule.pairs], relations[rule.relation]
    words = pairs.rows[present_now(pairs)]
    members = np.unique(words)
    target.load(np.stack((members, members[united(words, members)]), axis=1).astype(np.int32))
    if target.is_annotated:
        target.level[: target.used] = 1
        note_levels(target)


def refold(rule: EquivalenceRule, changed: Vector, relations: Mapping[str, KernelRelation]) -> Vector:
    """Forms the classes anew that pairs which came or went touch. Returns the entries of their relation that
    changed."""
    pairs, target = relations[rule.pairs], relations[rule.relation]
    entries = pairs.touched[changed]
    has_come = entries[:, MARKS] & IS != 0
    words = pairs.rows[entries[:, ROW]]
    rows = _rows_of_classes(target, np.unique(words))
    old = target.rows[rows]
    if has_come.all():
        members = np.union1d(old[:, 0], words)
        # That members are in one class already is what their pairs said.
        links = np.concatenate((old, words))
    else:
        members = np.union1d(old[:, 0], words[has_come])
        links = pairs.rows[rows_of_keys(pairs, MEMBER, members.reshape(-1, 1))]
        members = np.intersect1d(members, links)
    new = np.stack((members, _representatives(members, united(links, members), old)), axis=1).astype(np.int32)
    return _replace(target, rows, new)


def changed_classes(classes: KernelRelation, came: Matrix, went: Matrix) -> tuple[Matrix, Matrix]:
    """The classes that rows which came and went belong to, as they were before and are now; the relation is in the state
    now."""
    named = np.unique(np.concatenate((came[:, 1], went[:, 1])))
    now = classes.rows[rows_of_keys(classes, REPRESENTATIVE, named.reshape(-1, 1))]
    return np.concatenate((now[~are_in(now, came)], went)), now


def _rows_of_classes(classes: KernelRelation, members: Vector) -> Vector:
    """The rows of the classes that some members are in."""
    named = classes.rows[rows_of_keys(classes, MEMBER, np.ascontiguousarray(members.reshape(-1, 1)))][:, 1]
    return rows_of_keys(classes, REPRESENTATIVE, np.unique(named).reshape(-1, 1))


def _representatives(members: Vector, roots: Vector, old: Matrix) -> Vector:
    """Who represents the class of each member: of those that represented one and are in it, the one that did so for
    most of its members; otherwise its least member."""
    chosen = members[roots]
    if not len(old) or not len(members):
        return chosen
    places = np.minimum(np.searchsorted(members, old), len(members) - 1)
    is_there = members[places] == old
    # A class may keep a representative that is in it.
    is_kept = is_there.all(axis=1) & (roots[places[:, 0]] == roots[places[:, 1]])
    named, sizes = np.unique(old[is_kept, 1], return_counts=True)
    root = roots[np.searchsorted(members, named)]
    order = np.lexsort((-named.astype(np.int64), sizes))  # the last that is written stays: of most, the least
    of_root = members.copy()
    of_root[root[order]] = named[order]
    return of_root[roots]


def _replace(target: KernelRelation, old_rows: Vector, new: Matrix) -> Vector:
    """Writes other rows in the place of some. Returns the entries that changed."""
    new_rows = transaction.add_rows(target, new) if len(new) else NO_WORDS
    gone = transaction.touch(target, np.setdiff1d(old_rows, new_rows).astype(np.int32))
    transaction.set_annotation(target, gone, 0, is_present=False)
    came = transaction.touch(target, np.setdiff1d(new_rows, old_rows).astype(np.int32))
    transaction.set_annotation(target, came, 1, is_present=True)
    entries = np.empty(target.touched_used, np.int32)
    return entries[: bookkeeping.finish(target.touched, target.touched_used, False, entries)]
