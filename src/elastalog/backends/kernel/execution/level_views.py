"""What goals see of their relations in a phase, and of a fact that is seen: its marks and levels, now and before.

The last two words of every row of bindings are the highest level of the body so far, now and before. "Before" is the
previous epoch while losses are propagated; while gains are, it is the moment before the present delta settled. A fact
that was not there has level ABSENT.
"""

from __future__ import annotations

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
from elastalog.late import dataclass

LEVELS = 2
"""Words that every row of bindings carries behind its slots."""


@dataclass(frozen=True, slots=True)
class Phase:
    """What atoms see: facts (`sees`) and absences (`lacks`), and the same without the delta, for goals before the
    start. `own`: what they see of facts of the stratum's relations, likewise, where these are seen otherwise."""

    is_loss: bool
    sees: int
    sees_before: int
    lacks: int
    lacks_before: int
    own: tuple[int, int] | None = None


LOSSES = Phase(True, view(WAS, LOST), view(WAS, LOST | DELTA), view(0, WAS | LOST), view(0, WAS | LOST | DELTA))
"""The previous epoch, without what has already been lost."""

GAINS = Phase(False, view(IS, 0), view(IS, DELTA), view(0, IS), view(0, IS | DELTA))
"""The present state."""

BOTH_EPOCHS = Phase(False, view(WAS | IS, 0), view(WAS | IS, DELTA), view(0, WAS | IS), view(0, WAS | IS | DELTA))
"""The facts present in both epochs."""

BEFORE = Phase(False, view(WAS, 0), view(WAS, 0), view(0, WAS), view(0, WAS))
NOW = Phase(False, view(IS, 0), view(IS, 0), view(0, IS), view(0, IS))
"""The facts of the previous epoch, and those of now, where a derivation may be found twice without harm."""


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
