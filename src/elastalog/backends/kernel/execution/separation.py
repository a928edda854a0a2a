"""How pairs that went divide classes: searches from their ends, all at once, through the pairs that are left.

The searches of a class that meet become one; one that has seen everything it can reach is a class of its own. When only
one is left, what it would still find need not be known: it is the rest of the class. So a class that is divided costs
what its smaller parts cost, and one that is not costs what it takes until the searches meet. No search goes far beyond
the others: all have the same budget of pairs to look at, and twice as much in the next pass.
"""

from __future__ import annotations

from ctypes import Structure, addressof

import numpy as np

from elastalog.backends.kernel.compile.signatures import INT, MATRIX, WORDS, inlined, int64, operator, record, record_at
from elastalog.backends.kernel.execution.level_views import state_of
from elastalog.backends.kernel.store.annotations import UNTOUCHED, facts_of, rows_of
from elastalog.backends.kernel.store.memory import Matrix, Vector, index_descriptor_at, relation_descriptor_at
from elastalog.backends.kernel.store.postings import LENGTH, find_keys, find_slot_of, postings_of, row_at
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.late import dataclass
from elastalog.settings import SETTINGS

_FIRST_BUDGET = 64
_FIRST_COLUMN: Vector = np.zeros(1, np.int64)

# Columns of a search: the search it has become a part of, the first and the last of those it has still to look at, the
# pairs it has looked at, its class, and whether it has seen everything.
PARENT, FIRST, LAST, WORK, CLASS, IS_DONE = range(6)
SEARCH_WIDTH = 6


@record
class Division(Structure):
    """The descriptors of pairs, of their indexes by each side, of classes, and of their index by member."""

    pairs: int
    left: int
    right: int
    classes: int
    members: int


_division_at = record_at(Division)

# Columns of what is noted of members, each known by its first row: one more than the search that saw it, and the one
# after it in the queue of that search. The last one is not of the member: read downwards, it lists all that were seen.
OWNER, FOLLOWING, SEEN = range(3)


@inlined
def _length(index, slot):
    """How many rows a slot has; 0 if there is no slot."""
    return int64(index.slots[slot, LENGTH]) if slot >= 0 else int64(0)


@inlined
def _enter(known, number, place, search):
    """A search sees a member that no search has seen before."""
    known[place, OWNER] = search + 1
    known[place, FOLLOWING] = -1
    known[number, SEEN] = place


@inlined
def _top(searches, search):
    while searches[search, PARENT] != search:
        search = searches[search, PARENT]
    return int64(search)


@operator(INT, INT, WORDS, MATRIX, WORDS, MATRIX, INT)
def separate(address, seeds, searches, active, known, most):
    """Searches from each of the seeds, rows of classes, of which each class, `active` says how many, has some. Returns
    how many members were seen, or -1 once there would be more than `most`."""
    division = _division_at(address, 0)
    facts = facts_of(relation_descriptor_at(division.pairs, 0))
    left = postings_of(index_descriptor_at(division.left, 0))
    right = postings_of(index_descriptor_at(division.right, 0))
    members = rows_of(relation_descriptor_at(division.classes, 0))
    by_member = postings_of(index_descriptor_at(division.members, 0))
    number = int64(0)
    for search in range(seeds.shape[0]):
        searches[search, PARENT] = search
        place = row_at(by_member, find_slot_of(members, seeds[search], by_member.columns, by_member, members), 0)
        _enter(known, number, place, search)
        searches[search, FIRST] = place
        searches[search, LAST] = place
        number += 1
    budget = int64(_FIRST_BUDGET)
    is_left = True
    while is_left:
        is_left = False
        for search in range(seeds.shape[0]):
            group = searches[search, CLASS]
            if searches[search, PARENT] != search or searches[search, IS_DONE] != 0:
                continue
            while active[group] > 1 and searches[search, FIRST] >= 0:
                is_left = True
                place = int64(searches[search, FIRST])
                one = find_slot_of(members, place, by_member.columns, left, facts.rows)
                other = find_slot_of(members, place, by_member.columns, right, facts.rows)
                pairs = _length(left, one) + _length(right, other)
                if searches[search, WORK] + pairs > budget:
                    break
                if number > most:
                    return int64(-1)
                searches[search, WORK] += pairs + 1
                searches[search, FIRST] = known[place, FOLLOWING]
                if searches[search, FIRST] < 0:
                    searches[search, LAST] = -1
                for side in range(2):
                    slot = one if side == 0 else other
                    index = left if side == 0 else right
                    others = right.columns if side == 0 else left.columns
                    for i in range(_length(index, slot)):
                        row = row_at(index, slot, i)
                        if state_of(facts, row) & UNTOUCHED != UNTOUCHED:
                            continue  # it has gone, or has just come
                        next_place = row_at(by_member, find_slot_of(facts.rows, row, others, by_member, members), 0)
                        if known[next_place, OWNER] == 0:
                            _enter(known, number, next_place, search)
                            number += 1
                            if searches[search, FIRST] < 0:
                                searches[search, FIRST] = next_place
                            else:
                                known[searches[search, LAST], FOLLOWING] = next_place
                            searches[search, LAST] = next_place
                            continue
                        met = _top(searches, known[next_place, OWNER] - 1)
                        if met == search:
                            continue
                        searches[met, PARENT] = search
                        active[group] -= 1
                        searches[search, WORK] += searches[met, WORK]
                        if searches[met, FIRST] >= 0:
                            if searches[search, FIRST] < 0:
                                searches[search, FIRST] = searches[met, FIRST]
                            else:
                                known[searches[search, LAST], FOLLOWING] = searches[met, FIRST]
                            searches[search, LAST] = searches[met, LAST]
            if active[group] > 1 and searches[search, FIRST] < 0:
                searches[search, IS_DONE] = 1
                active[group] -= 1
        budget *= 2
    for search in range(seeds.shape[0]):
        searches[search, PARENT] = _top(searches, search)
    return number


@dataclass(frozen=True, slots=True)
class Parts:
    """What was seen of classes that may be divided: words, and the part that each is in. `is_whole`: of a part, whether
    all of it was seen; otherwise it is the rest of its class."""

    words: Vector
    part: Vector
    is_whole: Vector


def parts_of(
    pairs: KernelRelation, classes: KernelRelation, seeds: Vector, class_of: Vector, most: int
) -> Parts | None:
    """The parts into which classes fall, as far as they must be known, seen from some members of each, whose rows are
    `seeds`: parts are numbered as these are, and `class_of` numbers the classes. Only pairs that were there and still
    are join them. None if more than `most` members, or a few, would have to be looked at."""
    left, right, members = pairs.index((0,)), pairs.index((1,)), classes.index((0,))
    searches = np.zeros((len(seeds), SEARCH_WIDTH), np.int32)
    searches[:, CLASS] = class_of
    active = np.bincount(class_of).astype(np.int32)
    known: Matrix = np.zeros((classes.used, 3), np.int32)
    division = Division(pairs.home, left.home, right.home, classes.home, members.home)
    number = separate(addressof(division), seeds, searches, active, known, max(most, SETTINGS.separation_least))
    if number < 0:
        return None
    seen = known[:number, SEEN]
    return Parts(classes.rows[seen, 0], searches[known[seen, OWNER] - 1, PARENT], searches[:, IS_DONE] != 0)


def sizes_of(relation: KernelRelation, column: int, words: Vector) -> Vector:
    """About how many facts have each of some words in a column."""
    index = relation.index((column,))
    slots: Vector = np.empty(len(words), np.int32)
    find_keys(index.home, relation.home, np.ascontiguousarray(words).reshape(-1, 1), _FIRST_COLUMN, slots)
    return np.where(slots >= 0, index.slots[slots, LENGTH], 0)
