"""How pairs that went divide classes: searches from their ends, all at once, through the pairs that are left.

The searches of a class that meet become one; one that has seen everything it can reach is a class of its own. When only
one is left nobody needs to know what it would still find: it is the rest of the class. So a class that is divided costs
what its smaller parts cost, and one that is not what it takes until the searches meet. No search goes far beyond the
others: each may look at so many pairs, and then at twice as many.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    INT,
    KEYS,
    MATRIX,
    ONE,
    WORDS,
    inlined,
    int64,
    operator,
    types,
    uint32,
    uint64,
)
from elastalog.backends.kernel.execution.level_views import state_of
from elastalog.backends.kernel.store.annotations import UNTOUCHED
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.postings import DIRECT, LENGTH, PLACE, find_key, first_row, hash_key
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.late import dataclass
from elastalog.settings import SETTINGS

_FIRST_BUDGET = 64

# Columns of a search: the search it has become a part of, the first and the last of those it has still to look at, the
# pairs it has looked at, its class, and whether it has seen everything.
PARENT, FIRST, LAST, WORK, CLASS, IS_DONE = range(6)
SEARCH_WIDTH = 6


@inlined
def _slot_of(word, kind, keys, shift, slots):
    """Where an index of one column has the rows of a word, -1 if it has none."""
    slot = int64(word)
    if kind == DIRECT:
        if word < 0 or word >= slots.shape[0]:
            return int64(-1)
    else:
        key = uint64(uint32(word)) + ONE
        slot = int64(find_key(key, hash_key(key) >> uint64(shift), keys))
    return slot if slots[slot, LENGTH] > 0 else int64(-1)


@inlined
def _top(searches, search):
    while searches[search, PARENT] != search:
        search = searches[search, PARENT]
    return int64(search)


@inlined
def _row_at(slots, slot, pool, number):
    """One of the rows of a slot."""
    place = int64(slots[slot, PLACE])
    return place if slots[slot, LENGTH] == 1 else int64(pool[place + number])


@operator(types.void, WORDS, INT, KEYS, INT, MATRIX, WORDS)
def lengths(words, kind, keys, shift, slots, found):
    """How many rows an index has for each of some words, those that are gone included."""
    for i in range(words.shape[0]):
        slot = _slot_of(words[i], kind, keys, shift, slots)
        found[i] = 0 if slot < 0 else slots[slot, LENGTH]


@operator(
    INT, WORDS, MATRIX, WORDS, MATRIX, WORDS, MATRIX, INT, KEYS, INT, MATRIX, WORDS, INT, KEYS, INT, MATRIX, WORDS,
    MATRIX, INT, KEYS, INT, MATRIX, WORDS, WORDS, WORDS, WORDS, INT,
)  # fmt: skip
def separate(
    seeds, searches, active, rows, level, touched, left_kind, left_keys, left_shift, left_slots, left_pool, right_kind,
    right_keys, right_shift, right_slots, right_pool, members, member_kind, member_keys, member_shift, member_slots,
    member_pool, owner, following, seen, most,
):  # fmt: skip
    """Searches from each of the seeds, of which each class, `active` says how many, has some. A member is known by its
    first row in `members`: its `owner` is one more than the search that saw it, `following` the one after it in its
    queue. `seen` are all that were; returns their number, or -1 once there would be more than `most`."""
    number = int64(0)
    for search in range(seeds.shape[0]):
        searches[search, PARENT] = search
        slot = _slot_of(seeds[search], member_kind, member_keys, member_shift, member_slots)
        place = first_row(member_slots, slot, member_pool)
        owner[place] = search + 1
        following[place] = -1
        searches[search, FIRST] = place
        searches[search, LAST] = place
        seen[number] = place
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
                word = members[place, 0]
                one = _slot_of(word, left_kind, left_keys, left_shift, left_slots)
                other = _slot_of(word, right_kind, right_keys, right_shift, right_slots)
                pairs = int64(0)
                if one >= 0:
                    pairs += left_slots[one, LENGTH]
                if other >= 0:
                    pairs += right_slots[other, LENGTH]
                if searches[search, WORK] + pairs > budget:
                    break
                if number > most:
                    return int64(-1)
                searches[search, WORK] += pairs + 1
                searches[search, FIRST] = following[place]
                if searches[search, FIRST] < 0:
                    searches[search, LAST] = -1
                for side in range(2):
                    slot = one if side == 0 else other
                    if slot < 0:
                        continue
                    length = left_slots[slot, LENGTH] if side == 0 else right_slots[slot, LENGTH]
                    for i in range(length):
                        row = (
                            _row_at(left_slots, slot, left_pool, i)
                            if side == 0
                            else _row_at(right_slots, slot, right_pool, i)
                        )
                        if state_of(level, touched, row) & UNTOUCHED != UNTOUCHED:
                            continue  # it has gone, or has just come
                        found = _slot_of(rows[row, 1 - side], member_kind, member_keys, member_shift, member_slots)
                        next_place = first_row(member_slots, found, member_pool)
                        if owner[next_place] == 0:
                            owner[next_place] = search + 1
                            following[next_place] = -1
                            seen[number] = next_place
                            number += 1
                            if searches[search, FIRST] < 0:
                                searches[search, FIRST] = next_place
                            else:
                                following[searches[search, LAST]] = next_place
                            searches[search, LAST] = next_place
                            continue
                        met = _top(searches, owner[next_place] - 1)
                        if met == search:
                            continue
                        searches[met, PARENT] = search
                        active[group] -= 1
                        searches[search, WORK] += searches[met, WORK]
                        if searches[met, FIRST] >= 0:
                            if searches[search, FIRST] < 0:
                                searches[search, FIRST] = searches[met, FIRST]
                            else:
                                following[searches[search, LAST]] = searches[met, FIRST]
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
    """The parts into which classes fall, as far as they must be known, seen from some members of each: parts are
    numbered as these are, and `class_of` numbers the classes. Only pairs that were there and still are join them. None
    if more than `most` members, or a few, would have to be looked at."""
    left, right, members = pairs.index((0,)), pairs.index((1,)), classes.index((0,))
    searches = np.zeros((len(seeds), SEARCH_WIDTH), np.int32)
    searches[:, CLASS] = class_of
    active = np.bincount(class_of).astype(np.int32)
    owner = np.zeros(classes.used, np.int32)
    following, seen = np.empty(classes.used, np.int32), np.empty(classes.used, np.int32)
    number = separate(
        seeds, searches, active, pairs.rows, pairs.level, pairs.touched, *left.arrays, *right.arrays, classes.rows,
        *members.arrays, owner, following, seen, max(most, SETTINGS.separation_least),
    )  # fmt: skip
    if number < 0:
        return None
    seen = seen[:number]
    return Parts(classes.rows[seen, 0], searches[owner[seen] - 1, PARENT], searches[:, IS_DONE] != 0)


def sizes_of(relation: KernelRelation, column: int, words: Vector) -> Vector:
    """About how many facts have each of some words in a column."""
    index = relation.index((column,))
    found = np.empty(len(words), np.int32)
    lengths(words, index.kind, index.keys, index.shift, index.slots, found)
    return found
