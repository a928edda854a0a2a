"""A drive: from stratum to stratum of an update, or of a first epoch, in compiled code.

Only strata are entered that hear of a change below them. Relations and indexes are where their descriptors say.
"""

from __future__ import annotations

from ctypes import Structure, addressof, memmove, sizeof
from typing import TYPE_CHECKING

from elastalog.backends.kernel.compile.signatures import (
    INT,
    MATRIX,
    np_int32,
    numbers_at,
    operator,
    piece,
    record,
    record_at,
    types,
    words_at,
)
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.inputs import begin_relation
from elastalog.backends.kernel.store.annotations import entry_of
from elastalog.backends.kernel.store.bookkeeping import change_facts
from elastalog.backends.kernel.store.memory import relation_descriptor_at
from elastalog.backends.protocol import DRIVEN
from elastalog.backends.watch import ROWS_A_DERIVATION

if TYPE_CHECKING:
    from elastalog.backends.kernel.machine.plan import MachinePlan

MOVED = 4
"""For each relation that was touched: its number, where its changes are listed, how many they are, rows that it got."""

_NUMBER = 8
"""Bytes of a number."""


@record
class Stratum(layout.Tables):
    """What the machine works on in a stratum. `laid_out`: the stamp at which all this was written, see `Drive`, and
    where the descriptors of its relations and indexes are."""

    laid_out: int


@record
class Drive(Structure):
    """`strata` in their order; `at` is the place of the one that the drive is at. `reached`: a number for each, not 0
    if it is to be entered; `barred`: likewise, if it is to be left to others, as those in `never` always are. Strata
    that were not laid out at `stamp` are to be laid out again. `readers`: first, for each relation and one more, where
    its begin; then the places of strata that read it. `homes`: the descriptors of all relations.

    `changes`: how many there are of what the stratum under way reads. What one may cost before Python is asked:
    `derived_allowed`, `work_allowed`. `lists`: room for what changes in strata. `driven` and `moved`: what was done
    (see `DRIVEN` and `MOVED`), the last four numbers of `driven` together in `derivations` to `touched`; `grown`: how
    many rows relations have got. `is_single`: the drive ends after one stratum. `large`: facts of a delta from which on
    threads may share it, which is said first (LARGE); variants that can be shared start at up to `most_started`."""

    stamp: int
    strata: int
    strata_number: int
    reached: int
    barred: int
    never: int
    at: int
    is_single: int
    readers: int
    readers_size: int
    homes: int
    homes_number: int
    changes: int
    derived_allowed: int
    work_allowed: int
    lists: int
    lists_used: int
    lists_room: int
    driven: int
    driven_number: int
    derivations: int
    rows: int
    effort: int
    touched: int
    moved: int
    moved_number: int
    grown: int
    large: int
    most_started: int


def lay_out(stratum: Stratum, plan: MachinePlan) -> None:
    """Writes down what the machine works on in a stratum."""
    memmove(addressof(stratum), addressof(plan.tables), sizeof(plan.tables))


drive_at = record_at(Drive)
stratum_at = record_at(Stratum)


@operator(types.boolean, INT, INT, INT, types.boolean)
def set_out(address, first, allowed, is_new):
    """Prepares a drive that begins at the place `first` and allows each stratum `allowed` derivations: nothing is known
    to have changed, no stratum is reached or barred for now, and nothing was done. `is_new`: nor was there another in
    this update. Returns whether the machine was left in the midst of a stratum."""
    machine = layout.machine_at(address, 0)
    machine.part = layout.TO_ENTER
    drive = drive_at(machine.drive, 0)
    homes = numbers_at(drive.homes, drive.homes_number)
    for r in range(drive.homes_number):
        home = relation_descriptor_at(homes[r], 0)
        home.changed_number = 0
        home.going = 0
        home.coming = 0
    reached = numbers_at(drive.reached, drive.strata_number)
    barred = numbers_at(drive.barred, drive.strata_number)
    never = numbers_at(drive.never, drive.strata_number)
    for place in range(drive.strata_number):
        reached[place] = 0
        barred[place] = never[place]
    drive.at = first
    drive.derived_allowed = allowed
    drive.driven_number = 0
    drive.derivations = 0
    drive.rows = 0
    drive.effort = 0
    drive.touched = 0
    drive.moved_number = 0
    drive.grown = 0
    if is_new:
        drive.lists_used = 0
    return machine.levels_waiting > 0


@operator(types.void, INT, INT, INT, INT)
def tell(address, relation, entries, number):
    """Notes that `number` entries of a relation, listed at the address `entries`, have changed."""
    drive = drive_at(address, 0)
    home = relation_descriptor_at(numbers_at(drive.homes, drive.homes_number)[relation], 0)
    home.changed = entries
    home.changed_number = number
    _reach_readers(drive, relation)


@operator(INT, INT, INT, INT, MATRIX, types.boolean)
def change(address, place, relation, facts, is_present):
    """Explicit facts of a relation without rules come, or go, all that changes in the stratum at a place, as all
    entries of the relation have. Returns 0, or why nothing was done: there is no room (more), or some have come, or
    gone, before (less)."""
    drive = drive_at(address, 0)
    home = relation_descriptor_at(numbers_at(drive.homes, drive.homes_number)[relation], 0)
    entries = home.touched_used + facts.shape[0]
    if drive.lists_used + entries > drive.lists_room:
        return 1
    reason = change_facts(home, facts, is_present)
    if reason != 0:
        return reason
    listed = words_at(drive.lists + 4 * drive.lists_used, home.touched_used)
    for i in range(home.touched_used):
        listed[i] = np_int32(i)
    home.number = relation
    _tell_of_list(drive, home, home.touched_used, 0)
    numbers_at(_done_at(drive, place), DRIVEN)[1] += facts.shape[0]
    return 0


@piece
def _done_at(drive, place):
    """Where it is noted what was done in the stratum at a place (see `DRIVEN`): nothing yet, unless it is the last of
    which something is."""
    last = drive.driven + (drive.driven_number - 1) * DRIVEN * _NUMBER
    if drive.driven_number > 0 and numbers_at(last, DRIVEN)[0] == place:
        return last
    drive.driven_number += 1
    done = numbers_at(last + DRIVEN * _NUMBER, DRIVEN)
    done[0] = place
    for i in range(1, DRIVEN):
        done[i] = 0
    return last + DRIVEN * _NUMBER


@piece
def _reach_readers(drive, relation):
    """The strata that read a relation are to be entered."""
    readers = numbers_at(drive.readers, drive.readers_size)
    reached = numbers_at(drive.reached, drive.strata_number)
    for i in range(readers[relation], readers[relation + 1]):
        reached[readers[i]] = 1


@piece
def enter_next(machine):
    """Goes to the next stratum that was reached: GO_ON, DONE if there is none, or OTHERWISE."""
    drive = drive_at(machine.drive, 0)
    reached = numbers_at(drive.reached, drive.strata_number)
    while drive.at < drive.strata_number and reached[drive.at] == 0:
        drive.at += 1
    if drive.at == drive.strata_number:
        return layout.DONE
    stratum = stratum_at(drive.strata, drive.at)
    if stratum.laid_out != drive.stamp or numbers_at(drive.barred, drive.strata_number)[drive.at]:
        return layout.OTHERWISE
    machine.relations = stratum.relations
    machine.relations_number = stratum.relations_number
    machine.indexes = stratum.indexes
    machine.variants = stratum.variants
    machine.variants_number = stratum.variants_number
    machine.probes = stratum.probes
    machine.actions = stratum.actions
    machine.operands = stratum.operands
    machine.own_variants = stratum.own_variants
    machine.derived = 0
    machine.derived_allowed = drive.derived_allowed
    machine.work = 0
    machine.work_allowed = drive.work_allowed
    machine.nodes_used = 0
    drive.changes = _begin_relations(stratum)
    look_at_indexes(stratum)
    machine.part = layout.TO_LOSE
    return layout.GO_ON


@piece
def enter_to_grow(machine):
    """Goes to the next stratum of a first epoch, to which all facts are new: GO_ON, or DONE if there is none."""
    reason = enter_next(machine)
    if reason == layout.GO_ON:
        for r in range(machine.relations_number):
            relation = layout.relation_at(machine.relations, r)
            relation.delta_end = layout.home_of(relation).used
        machine.stage = layout.OPENING
        machine.served = 0
    return reason


@piece
def leave_grown(machine):
    """A stratum of a first epoch is done."""
    drive = drive_at(machine.drive, 0)
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        if relation.is_own:
            layout.home_of(relation).present = layout.home_of(relation).used
    drive.derivations += machine.derived
    drive.rows += machine.work
    drive.at += 1
    machine.part = layout.TO_ENTER


@piece
def _begin_relations(stratum):
    """Relations have no delta. Returns how many facts have changed in them."""
    changes = 0
    for r in range(stratum.relations_number):
        relation = layout.relation_at(stratum.relations, r)
        home = layout.home_of(relation)
        relation.used_before = home.used
        begin_relation(relation)
        relation.going = home.going if relation.is_own else 0
        relation.coming = home.coming if relation.is_own else 0
        changes += home.changed_number + relation.going + relation.coming
    return changes


@piece
def look_at_indexes(tables):
    """An index that is not there, or lacks rows, is missing, and caught up with if it is asked for."""
    for i in range(tables.indexes_number):
        place = layout.index_at(tables.indexes, i)
        used = layout.home_of(layout.relation_at(tables.relations, place.relation)).used
        place.is_missing = 1 if place.home == 0 or layout.index_of(place).added < used else 0


@piece
def leave(machine):
    """The stratum is done: notes what changed in it, for those that read it. GO_ON, or NO_LISTS."""
    drive = drive_at(machine.drive, 0)
    changed = 0
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        if relation.is_own:
            changed += relation.delta_end
    if drive.lists_used + changed > drive.lists_room:
        machine.highest = changed
        return layout.NO_LISTS
    touched = 0
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        if relation.is_own and layout.home_of(relation).touched_used > 0:
            touched += layout.home_of(relation).touched_used
            _note_changes(drive, relation)
    numbers_at(drive.reached, drive.strata_number)[drive.at] = 0
    done = numbers_at(_done_at(drive, drive.at), DRIVEN)
    done[1] = drive.changes
    done[2] = machine.derived
    done[3] = machine.work
    done[4] = max(machine.derived, machine.work // ROWS_A_DERIVATION)
    done[5] = touched
    drive.derivations += done[2]
    drive.rows += done[3]
    drive.effort += done[4]
    drive.touched += done[5]
    machine.part = layout.TO_ENTER
    return layout.DONE if drive.is_single else layout.GO_ON


@piece
def _note_changes(drive, relation):
    """Lists what changed in a relation, for the strata that read it."""
    touched = layout.touched_of(relation)
    entries = words_at(drive.lists + 4 * drive.lists_used, relation.delta_end)
    for i in range(relation.delta_end):
        entries[i] = np_int32(entry_of(touched, i).deltas)
    home = layout.home_of(relation)
    _tell_of_list(drive, home, relation.delta_end, home.used - relation.used_before)


@piece
def _tell_of_list(drive, home, listed, grown):
    """Notes that the `listed` entries written last are those of a relation that changed, and its `grown` new rows."""
    home.is_settled = 0
    home.changed = drive.lists + 4 * drive.lists_used
    home.changed_number = listed
    moved = numbers_at(drive.moved + drive.moved_number * MOVED * _NUMBER, MOVED)
    moved[0] = home.number
    moved[1] = drive.lists_used
    moved[2] = listed
    moved[3] = grown
    drive.moved_number += 1
    drive.grown += grown
    drive.lists_used += listed
    if listed > 0:
        _reach_readers(drive, home.number)
