"""The changed inputs of a stratum, all of them in one call: the records of relations say where their entries are."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.compile.signatures import INT, operator, types
from elastalog.backends.kernel.machine.arrays import inputs_of, touched_of
from elastalog.backends.kernel.machine.layout import AGAINST, FORWARDS, machine_at, relation_at
from elastalog.backends.kernel.store.annotations import DELTA, DELTA_LIST, IS, LOST, UNTOUCHED, WAS, entry_of

MAY_LOSE, MAY_GAIN = 1, 2


@piece
def begin_relation(relation):  # type: ignore[no-untyped-def]
    """Before an update: it has no losses and no delta, and may do both."""
    relation.may_lose = 1
    relation.may_gain = 1
    relation.losses = 0
    relation.listed_in = DELTA_LIST
    relation.delta = 0
    relation.delta_end = 0


@operator(types.void, INT)
def begin(address):  # type: ignore[no-untyped-def]
    """The same for all relations, none of which has inputs yet."""
    machine = machine_at(address, 0)
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        relation.changed_number = 0
        begin_relation(relation)


@piece
def look_at_inputs(machine):  # type: ignore[no-untyped-def]
    """Notes which inputs take something away (facts gone or raised) and which bring something. Whether a variant can
    start at what was lost (MAY_LOSE), and at what was gained (MAY_GAIN): most changes go one way, and then half of the
    work is not there."""
    concerned = 0
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        if relation.changed_number == 0:
            continue
        touched = touched_of(relation)
        entries = inputs_of(relation)
        ways = 0
        for i in range(entries.shape[0]):
            marks = entry_of(touched, entries[i]).marks & UNTOUCHED
            ways |= 3 if marks == UNTOUCHED else MAY_LOSE if marks == WAS else MAY_GAIN if marks == IS else 0
        relation.may_lose = ways & MAY_LOSE
        relation.may_gain = (ways & MAY_GAIN) >> 1
        if relation.starts & FORWARDS:
            concerned |= ways
        if relation.starts & AGAINST:
            concerned |= (ways & MAY_LOSE) << 1 | (ways & MAY_GAIN) >> 1
    return concerned


@operator(INT, INT)
def look(address):  # type: ignore[no-untyped-def]
    """See `look_at_inputs`."""
    return look_at_inputs(machine_at(address, 0))


@piece
def _set_delta(relation, length):  # type: ignore[no-untyped-def]
    relation.listed_in = DELTA_LIST
    relation.delta = 0
    relation.delta_end = length


@piece
def list_losses(machine):  # type: ignore[no-untyped-def]
    """The inputs are the delta of losses; no other relation has one. A derivation through a fact that is only lower
    than before is not lost: it stays where it is counted, or its head is lowered too (both of which gains see to)."""
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        touched = touched_of(relation)
        entries = inputs_of(relation)
        listed = 0
        for i in range(entries.shape[0]):
            fact = entry_of(touched, entries[i])
            is_lowered = fact.marks & UNTOUCHED == UNTOUCHED and fact.new < fact.old
            if relation.is_flat or not is_lowered:
                fact.marks |= DELTA
                entry_of(touched, listed).deltas = entries[i]
                listed += 1
        _set_delta(relation, listed)


@piece
def list_gains(machine):  # type: ignore[no-untyped-def]
    """The inputs will be the delta of gains, and are marked as such already."""
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        touched = touched_of(relation)
        entries = inputs_of(relation)
        for i in range(entries.shape[0]):
            fact = entry_of(touched, entries[i])
            fact.marks = (fact.marks & ~LOST) | DELTA
            entry_of(touched, i).deltas = entries[i]


@piece
def set_gains(machine):  # type: ignore[no-untyped-def]
    """The inputs, listed before, are the delta of gains; no other relation has one."""
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        _set_delta(relation, relation.changed_number)


@piece
def set_deltas(machine, column):  # type: ignore[no-untyped-def]
    """What is looked for backwards is in a list of the touched table; no relation has anything there yet."""
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        _set_delta(relation, 0)
        relation.listed_in = column


@piece
def take_marks_off(machine):  # type: ignore[no-untyped-def]
    """Takes the marks of an update of this stratum off its inputs."""
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        touched = touched_of(relation)
        entries = inputs_of(relation)
        for i in range(entries.shape[0]):
            entry_of(touched, entries[i]).marks &= ~(DELTA | LOST)


# The same as operators: for a course that is begun in Python, where explicit facts of the stratum change.


@operator(types.void, INT)
def start_losing(address):  # type: ignore[no-untyped-def]
    list_losses(machine_at(address, 0))


@operator(types.void, INT)
def await_gains(address):  # type: ignore[no-untyped-def]
    list_gains(machine_at(address, 0))


@operator(types.void, INT)
def start_gaining(address):  # type: ignore[no-untyped-def]
    set_gains(machine_at(address, 0))


@operator(types.void, INT, INT)
def start_recovering(address, column):  # type: ignore[no-untyped-def]
    set_deltas(machine_at(address, 0), column)


@operator(types.void, INT)
def unmark(address):  # type: ignore[no-untyped-def]
    take_marks_off(machine_at(address, 0))
