"""What goals see of their relations in a phase, and of a fact that is seen: its marks and levels, now and before.

The last two words of every row of bindings are the highest level of the body so far, now and before. "Before" is the
previous epoch while losses are propagated; while gains are, it is the moment before the present delta settled. A fact
that was not there has level ABSENT.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.signatures import inlined, int64, np_int32
from elastalog.backends.kernel.execution.join import copy_columns
from elastalog.backends.kernel.store.annotations import (
    ABSENT,
    DELTA,
    IS,
    LOST,
    REFERENCE,
    UNTOUCHED,
    WAS,
    entry_of,
    view,
)
from elastalog.backends.sets import Mark

LEVELS = 2
"""Words that every row of bindings carries behind its slots."""


LOSING, RECOVERING, GAINING, SURVIVING, BEFORE, NOW, OLD, UNEXPLORED, PROVING = range(9)
"""Phases. Of an update: losses see the previous epoch without what has been lost, what is looked for again the present
state, as gains do. SURVIVING: the facts that are in both epochs. BEFORE and NOW: those of the previous epoch, and those
of now, where a derivation may be found twice without harm. Of strategies that maintain sets, beside GAINING and
SURVIVING: OLD is the previous epoch, UNEXPLORED without dead facts that were expected to go, and PROVING is SURVIVING
with facts of the stratum only if they are proved."""

LACKS, OWN = 2, 4
"""Columns of what is seen in a phase: facts, and without the delta, which goals before the start see; from LACKS on
absences, likewise, and from OWN on facts of the stratum."""

_PROVED, _EXPECTED = int(Mark.PROVED), int(Mark.EXPECTED)


def _seen(required: int, excluded: int = 0, delta: int = DELTA) -> list[int]:
    """The facts with some marks and without others: all, and those outside the delta."""
    return [view(required, excluded), view(required, excluded | delta)]


def _phase(facts: list[int], absences: list[int], own: list[int] | None = None) -> list[int]:
    return [*facts, *absences, *(own or facts)]


_OLD, _NEW, _BOTH = _seen(WAS), _seen(IS), _seen(WAS | IS)

VIEWS = np.array(
    [
        _phase(_seen(WAS, LOST), _seen(0, WAS | LOST)),
        _phase(_NEW, _seen(0, IS)),
        _phase(_NEW, _seen(0, IS)),
        _phase(_BOTH, _seen(0, WAS | IS)),
        _phase(_seen(WAS, 0, 0), _seen(0, WAS, 0)),
        _phase(_seen(IS, 0, 0), _seen(0, IS, 0)),
        _phase(_OLD, _seen(0, WAS)),
        _phase([seen & ~view(WAS | _EXPECTED, IS) for seen in _OLD], _seen(0, WAS)),
        _phase(_BOTH, _seen(0, WAS | IS), own=_seen(WAS | IS | _PROVED)),
    ],
    np.int64,
)  # fmt: skip
"""What goals see, by phase."""


@inlined
def state_of(facts, row):
    """The marks of a row."""
    value = facts.level[row]
    if value >= REFERENCE:
        return int64(entry_of(facts.touched, value - REFERENCE).marks)
    return int64(UNTOUCHED) if value < ABSENT else int64(0)


@inlined
def is_seen(view, facts, row):
    """Whether a view sees a row."""
    return (view >> state_of(facts, row)) & 1 != 0


@inlined
def level_now(facts, row, is_loss, is_flat):
    if is_flat:
        return np_int32(0)
    value = facts.level[row]
    if value >= REFERENCE:
        return entry_now(entry_of(facts.touched, value - REFERENCE), is_loss, is_flat)
    return value


@inlined
def level_before(facts, row, is_loss, is_flat):
    value = facts.level[row]
    if value >= REFERENCE:
        return entry_before(entry_of(facts.touched, value - REFERENCE), is_loss, is_flat)
    if is_flat and value < ABSENT:
        return np_int32(0)
    return value


@inlined
def entry_now(fact, is_loss, is_flat):
    if is_flat:
        return np_int32(0)
    return fact.old if is_loss else fact.new


@inlined
def entry_before(fact, is_loss, is_flat):
    if is_loss:
        value = fact.old
    elif fact.marks & DELTA:
        value = fact.other
    else:
        value = fact.new
    if is_flat and value < ABSENT:
        return np_int32(0)
    return value


@inlined
def copy_fact(facts, row, is_loss, is_flat, taken, i):
    """Copies words of a fact, and its levels; column -1 is the row."""
    copy_columns(facts.rows, row, row, taken, i)
    width = taken.out.shape[1]
    taken.out[i, width - 2] = level_now(facts, row, is_loss, is_flat)
    taken.out[i, width - 1] = level_before(facts, row, is_loss, is_flat)


@inlined
def copy_entry(rows, fact, is_loss, is_flat, taken, i):
    """Copies words and levels of a touched fact, whose entry is at hand."""
    copy_columns(rows, int64(fact.row), int64(fact.row), taken, i)
    width = taken.out.shape[1]
    taken.out[i, width - 2] = entry_now(fact, is_loss, is_flat)
    taken.out[i, width - 1] = entry_before(fact, is_loss, is_flat)
