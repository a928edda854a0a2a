"""What an update brings to a stratum: changed facts of relations below it, its inputs, and explicit facts of its own
that go and come. The records of relations say where their entries are."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import INT, operator, piece, types
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.store.annotations import (
    DELTA,
    DELTA_LIST,
    FIXED,
    IS,
    LOSS_LIST,
    LOST,
    UNTOUCHED,
    WAS,
    entry_of,
)
from elastalog.backends.kernel.store.bookkeeping import insert_explicit, lose_fact

MAY_LOSE, MAY_GAIN = 1, 2


@piece
def begin_relation(relation):
    """Before an update: it has no losses and no delta, and may do both."""
    relation.may_lose = 1
    relation.may_gain = 1
    relation.losses = 0
    relation.listed_in = DELTA_LIST
    relation.delta = 0
    relation.delta_end = 0


@piece
def look_at_changes(machine):
    """Notes which inputs take something away (facts gone or raised) and which bring something. Whether a variant can
    start at what was lost (MAY_LOSE), and at what was gained (MAY_GAIN), explicit facts of the stratum that go and come
    among it: most changes go one way, and then half of the work is not there. What comes stays, whatever rules say."""
    concerned = 0
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        entries = layout.inputs_of(relation)
        ways = 0
        for i in range(entries.shape[0]):
            marks = entry_of(touched, entries[i]).marks & UNTOUCHED
            ways |= 3 if marks == UNTOUCHED else MAY_LOSE if marks == WAS else MAY_GAIN if marks == IS else 0
        if entries.shape[0] > 0:
            relation.may_lose = ways & MAY_LOSE
            relation.may_gain = (ways & MAY_GAIN) >> 1
        given = layout.given_of(relation)
        for i in range(relation.going, given.shape[0]):
            entry_of(touched, given[i]).marks |= FIXED
        ways |= (MAY_LOSE if relation.going > 0 else 0) | (MAY_GAIN if relation.coming > 0 else 0)
        if relation.starts & layout.FORWARDS:
            concerned |= ways
        if relation.starts & layout.AGAINST:
            concerned |= (ways & MAY_LOSE) << 1 | (ways & MAY_GAIN) >> 1
    return concerned


@piece
def _set_delta(relation, length):
    relation.listed_in = DELTA_LIST
    relation.delta = 0
    relation.delta_end = length


@piece
def list_losses(machine):
    """The inputs, and explicit facts that go, are the delta of losses. A derivation through a fact that is only lower
    than before is not lost: it stays where it is counted, or its head is lowered too (both of which gains see to)."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        entries = layout.inputs_of(relation)
        listed = 0
        for i in range(entries.shape[0]):
            fact = entry_of(touched, entries[i])
            is_lowered = fact.marks & UNTOUCHED == UNTOUCHED and fact.new < fact.old
            if relation.is_flat or not is_lowered:
                fact.marks |= DELTA
                entry_of(touched, listed).deltas = entries[i]
                listed += 1
        given = layout.given_of(relation)
        for i in range(relation.going):
            entry_of(touched, given[i]).marks |= DELTA
            entry_of(touched, i).deltas = given[i]
        _set_delta(relation, listed + relation.going)


@piece
def lose_given(machine):
    """Explicit facts go from which nothing follows in the stratum."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        given = layout.given_of(relation)
        for i in range(relation.going):
            lose_fact(entry_of(touched, given[i]))
            entry_of(touched, i).deltas = given[i]


@piece
def list_gains(machine):
    """The inputs, and explicit facts that come, will be the delta of gains, and are marked as such already."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        entries = layout.inputs_of(relation)
        for i in range(entries.shape[0]):
            fact = entry_of(touched, entries[i])
            fact.marks = (fact.marks & ~LOST) | DELTA
            entry_of(touched, i).deltas = entries[i]
        given = layout.given_of(relation)
        for i in range(relation.going, given.shape[0]):
            insert_explicit(entry_of(touched, given[i]))


@piece
def set_gains(machine):
    """The inputs, listed before, and explicit facts that come are the delta of gains."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        given = layout.given_of(relation)
        for i in range(relation.coming):
            entry_of(touched, i).deltas = given[relation.going + i]
        _set_delta(relation, layout.home_of(relation).changed_number + relation.coming)


@piece
def seek(machine, listed_in):
    """Facts of the stratum that lost their last derivation are looked for backwards, or explicit ones that go, which
    are in the list of the delta."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        _set_delta(relation, relation.losses if listed_in == LOSS_LIST else relation.going)
        relation.listed_in = listed_in


@piece
def take_marks_off(machine):
    """Takes the marks of an update of this stratum off its inputs."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        entries = layout.inputs_of(relation)
        for i in range(entries.shape[0]):
            entry_of(touched, entries[i]).marks &= ~(DELTA | LOST)


@operator(types.void, INT)
def unmark(address):
    """Takes the marks of an update that is abandoned off the inputs of its stratum."""
    take_marks_off(layout.machine_at(address, 0))
