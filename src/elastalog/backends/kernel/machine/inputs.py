"""The changed inputs of a stratum, all of them in one call: the table of relations says where their entries are listed
(INPUTS_AT, INPUTS)."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import matrix_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import INT, operator, types
from elastalog.backends.kernel.machine.layout import (
    AGAINST,
    FORWARDS,
    FROM,
    INPUTS,
    INPUTS_AT,
    IS_FLAT,
    LIST,
    MAY_GAIN,
    MAY_LOSE,
    STARTS,
    TABLE,
    TO,
    TOUCHED,
    TOUCHED_ROOM,
)
from elastalog.backends.kernel.store.annotations import (
    DELTA,
    DELTAS,
    IS,
    LOST,
    MARKS,
    NEW,
    OLD,
    TOUCHED_WIDTH,
    UNTOUCHED,
    WAS,
)

LOSES, GAINS = 1, 2


@operator(INT, TABLE)
def look(relations):  # type: ignore[no-untyped-def]
    """Notes which inputs take something away (facts gone or raised) and which bring something. Whether a variant can
    start at what was lost (LOSES), and at what was gained (GAINS): most changes go one way, and then half of the work
    is not there."""
    concerned = 0
    for r in range(relations.shape[0]):
        relation = relations[r]
        if relation[INPUTS] == 0:
            continue
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        entries = words_at(relation[INPUTS_AT], relation[INPUTS])
        ways = 0
        for i in range(entries.shape[0]):
            marks = touched[entries[i], MARKS] & UNTOUCHED
            ways |= 3 if marks == UNTOUCHED else LOSES if marks == WAS else GAINS if marks == IS else 0
        relation[MAY_LOSE] = ways & LOSES
        relation[MAY_GAIN] = (ways & GAINS) >> 1
        if relation[STARTS] & FORWARDS:
            concerned |= ways
        if relation[STARTS] & AGAINST:
            concerned |= (ways & LOSES) << 1 | (ways & GAINS) >> 1
    return concerned


@piece
def _set_delta(relation, length):  # type: ignore[no-untyped-def]
    relation[LIST] = DELTAS
    relation[FROM] = 0
    relation[TO] = length


@operator(types.void, TABLE)
def start_losing(relations):  # type: ignore[no-untyped-def]
    """The inputs are the delta of losses; no other relation has one. A derivation through a fact that is only lower
    than before is not lost: it stays where it is counted, or its head is lowered too (both of which gains see to)."""
    for r in range(relations.shape[0]):
        relation = relations[r]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        entries = words_at(relation[INPUTS_AT], relation[INPUTS])
        listed = 0
        for i in range(entries.shape[0]):
            entry = entries[i]
            marks = touched[entry, MARKS]
            is_lowered = marks & UNTOUCHED == UNTOUCHED and touched[entry, NEW] < touched[entry, OLD]
            if relation[IS_FLAT] or not is_lowered:
                touched[entry, MARKS] = marks | DELTA
                touched[listed, DELTAS] = entry
                listed += 1
        _set_delta(relation, listed)


@operator(types.void, TABLE)
def await_gains(relations):  # type: ignore[no-untyped-def]
    """The inputs will be the delta of gains, and are marked as such already."""
    for r in range(relations.shape[0]):
        relation = relations[r]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        entries = words_at(relation[INPUTS_AT], relation[INPUTS])
        for i in range(entries.shape[0]):
            touched[i, DELTAS] = entries[i]
            touched[entries[i], MARKS] = (touched[entries[i], MARKS] & ~LOST) | DELTA


@operator(types.void, TABLE)
def start_gaining(relations):  # type: ignore[no-untyped-def]
    """The inputs, listed before, are the delta of gains; no other relation has one."""
    for r in range(relations.shape[0]):
        _set_delta(relations[r], relations[r, INPUTS])


@operator(types.void, TABLE)
def unmark(relations):  # type: ignore[no-untyped-def]
    """Takes the marks of an update of this stratum off its inputs."""
    for r in range(relations.shape[0]):
        relation = relations[r]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        entries = words_at(relation[INPUTS_AT], relation[INPUTS])
        for i in range(entries.shape[0]):
            touched[entries[i], MARKS] &= ~(DELTA | LOST)
