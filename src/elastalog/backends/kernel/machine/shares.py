"""Work that several machines share, each in a thread: start rows are shared out, and what is derived is inserted
together. In an update these are the rows of a block that one machine has gathered for a variant. In a bootstrap they
are those of all variants of an iteration, and indexes are extended, each by one of them.

Twice in an iteration machines wait for each other: when all shares are done, and when all indexes are extended. The
last that comes does what is for one: it closes an iteration and shares the next one out, unless that is small. A
machine that waits looks again and again for some microseconds, and then sleeps in the system: now and then it leaves
off, so that limits are looked at and Ctrl-C is heard. A relation gets more room when all have left off.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    INT,
    Table,
    address_of,
    inlined,
    int64,
    numbers_at,
    operator,
    piece,
    record,
    record_at,
    table_at,
    types,
    uint32,
)
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.rounds import extend_index, extend_part
from elastalog.backends.kernel.store import inserting
from elastalog.backends.kernel.store.inserting import APART, close_rows, size_of_turns
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.postings import INDEX_STATE_SIZE
from elastalog.jit.atomics import GATE, PASSED, add_unordered, look, sleep, wake_all
from elastalog.jit.operators import view
from elastalog.settings import SETTINGS

_turn_for = piece(inserting.turn_for)
_give_out = piece(inserting.give_out)

SHARES = 32
"""Shares of an iteration or a block per thread, about: the last are small, so that no thread has to wait long for
another, and none is long, though some start rows lead to a hundred times as many as others."""


_LOOKS = 250
"""How often a machine that waits looks for each of them whether all have come, before it sleeps: some microseconds, in
which one that sleeps would be woken."""

_PATIENCE = 50_000_000
"""Nanoseconds after which a machine that sleeps leaves off."""

_NEXT_SHARE, _NEXT_INDEX = 0, 8 * APART
"""Where numbers are that all machines count in (see `Sharing.numbers`), in bytes."""

_NUMBERS = 2 * APART
"""How many numbers these take."""


@record
class Sharing(Structure):
    """What machines share, `threads` of them. `stage`: what all of them are at, or have come from; `reason`: why they
    all leave off, GO_ON as long as they do not.

    `task`: where the number of the iteration and the limits of growth are. `shares` of the iteration, the first
    `ordered` of which only the first machine takes, in their order, `begun` of them so far; `indexes` to be extended,
    by their places; of one that lacks `least_divided` every machine adds the rows of some keys, and has `reached` a row
    with them. `numbers`: the share and the index that no machine has taken, `APART` from each other. `gate`: the
    barrier where all wait, and `patience`, how long one sleeps there. `turns`: of every relation, the rows that threads
    are given (see `store.inserting`).

    In an update, `frame` is where the block is, and `entries` are as `turns`, of the touched entries of the head.

    `codes`: where the variants of each machine are; `bodies`: what is known of each variant, `order`: their numbers,
    those with the most work first. `least_work`: an iteration that is expected to do less is not shared;
    `least_work_of_share` and `least_share`, in start rows, bound how finely one is."""

    threads: int
    stage: int
    reason: int
    task: int
    shares: int
    shares_number: int
    ordered: int
    begun: int
    indexes: int
    indexes_number: int
    reached: int
    least_divided: int
    numbers: int
    gate: int
    patience: int
    turns: int
    frame: int
    entries: int
    codes: int
    bodies: int
    order: int
    least_work: int
    least_work_of_share: int
    least_share: int


@record
class SharedTask(Structure):
    """What a machine shares with others, 0 if it is alone, and the number of its `thread`."""

    sharing: int
    thread: int


@record
class Share(Structure):
    """A variant, and the rows that it is to start at."""

    variant: int
    start: int
    stop: int


@record
class BodyWork(Structure):
    """For a variant: whether several machines may run it at once, how many rules it is run for, what it had done before
    machines noted it (see `VariantCode`), and the work that is expected of it in this iteration."""

    is_shared: int
    heads: int
    started: int
    made: int
    looked: int
    work: int


_SHARE_BYTES = 24
sharing_at = record_at(Sharing)
shared_task_at = record_at(SharedTask)
share_at = record_at(Share)
_body_at = record_at(BodyWork)


class Shared:
    """The record of what machines share, and the tables that it leads to: `bodies`, of each variant, `turns`, of each
    relation, and `entries`. Of iterations, `codes` are the variants of each machine; `indexes`, the places of those
    that are to be extended; `task`, where that of the first machine is."""

    def __init__(
        self,
        threads: int,
        relations: int,
        codes: Sequence[Table[layout.VariantCode]] = (),
        indexes: Sequence[int] = (),
        task: int = 0,
    ) -> None:
        variants = len(codes[0]) if codes else 0
        self.bodies = Table(BodyWork, variants)
        self.entries: Vector = np.zeros(size_of_turns(threads), np.int64)
        self.turns: Vector = np.zeros((relations, size_of_turns(threads)), np.int64)
        self._shares = Table(Share, SHARES * threads + variants)
        self._numbers: Vector = np.zeros(_NUMBERS, np.int64)
        self._gate: Vector = np.zeros(GATE, np.uint32)
        self._patience: Vector = np.array([0, _PATIENCE], np.int64)
        self._indexes: Vector = np.array(indexes, np.int64)
        self._reached: Vector = np.zeros(len(indexes) * threads, np.int64)
        self._codes: Vector = np.array([table.address for table in codes], np.int64)
        self._order: Vector = np.arange(variants)
        self.record = Sharing(
            threads=threads, reason=layout.GO_ON, task=task, shares=self._shares.address,
            indexes=address_of(self._indexes), indexes_number=len(indexes), reached=address_of(self._reached),
            least_divided=SETTINGS.divide_index_from, numbers=address_of(self._numbers),
            gate=address_of(self._gate), patience=address_of(self._patience), turns=address_of(self.turns),
            entries=address_of(self.entries), codes=address_of(self._codes), bodies=self.bodies.address,
            order=address_of(self._order), least_work=SETTINGS.machine_share_from,
            least_work_of_share=SETTINGS.machine_work_of_share, least_share=SETTINGS.machine_least_share,
        )  # fmt: skip
        self.address = addressof(self.record)

    def left(self) -> float:
        """How much of the present iteration is left, in terms of what has been done, while all machines have left off:
        shares should take as long as each other, and each machine is within one."""
        number = self.record.shares_number
        done = min(int(self._numbers[0]), number) - self.record.threads / 2
        return (number - done) / max(done, 1)


@view
def turns_at(sharing, number):
    """The rows of a relation that threads are given."""
    size = APART * (1 + sharing.threads)
    return numbers_at(sharing.turns + 8 * size * number, size)


@view
def entries_at(sharing):
    """The touched entries that they are given."""
    return numbers_at(sharing.entries, APART * (1 + sharing.threads))


@piece
def take_share(address, thread):
    """Where the next share is, 0 if all have been taken."""
    sharing = sharing_at(address, 0)
    if thread == 0 and sharing.begun < sharing.ordered:
        sharing.begun += 1
        return sharing.shares + (sharing.begun - 1) * _SHARE_BYTES
    number = add_unordered(numbers_at(sharing.numbers + _NEXT_SHARE, 1), 0, 1)
    return sharing.shares + number * _SHARE_BYTES if number < sharing.shares_number else int64(0)


@piece
def extend_shared(machine, address):
    """Extends indexes that no other thread extends, or parts of them; says so if one is full that it extends alone."""
    sharing = sharing_at(address, 0)
    counter = numbers_at(sharing.numbers + _NEXT_INDEX, 1)
    places = numbers_at(sharing.indexes, sharing.indexes_number)
    reached = numbers_at(sharing.reached, sharing.indexes_number * sharing.threads)
    while True:
        number = add_unordered(counter, 0, 1)
        if number >= sharing.indexes_number * sharing.threads:
            return layout.DONE
        place = layout.index_at(machine.indexes, places[number // sharing.threads])
        if place.is_missing:
            continue
        part = number % sharing.threads
        index = layout.index_of(place)
        relation = layout.relation_at(machine.relations, place.relation)
        if _is_divided(sharing, index, relation):
            start = max(index.added, reached[number])
            if start < layout.home_of(relation).used:
                reached[number] = extend_part(index, relation, start, part, sharing.threads)
        elif part == 0 and index.added < layout.home_of(relation).used and not extend_index(place, relation):
            machine.full_index = places[number // sharing.threads]
            return layout.NO_INDEX


@inlined
def _is_divided(sharing, index, relation):
    """Whether an index lacks enough rows, and has the state, for every thread to add those of some keys."""
    lacking = layout.home_of(relation).used - index.added
    return lacking >= sharing.least_divided and index.state_size >= sharing.threads * INDEX_STATE_SIZE


@piece
def are_extended(machine, address):
    """All machines have added what they could: whether all indexes are up to date. If not, one (`full_index`) must be
    given room, and extending goes on."""
    sharing = sharing_at(address, 0)
    places = numbers_at(sharing.indexes, sharing.indexes_number)
    reached = numbers_at(sharing.reached, sharing.indexes_number * sharing.threads)
    for i in range(sharing.indexes_number):
        place = layout.index_at(machine.indexes, places[i])
        relation = layout.relation_at(machine.relations, place.relation)
        if place.is_missing or not _is_divided(sharing, layout.index_of(place), relation):
            continue
        used = layout.home_of(relation).used
        least = used
        for part in range(sharing.threads):
            least = min(least, reached[i * sharing.threads + part])
        if least < used:
            machine.full_index = places[i]
            return False
        layout.index_of(place).added = used
    return True


@piece
def extend_again(address):
    """An index has got room: all machines go on to extend what is not up to date."""
    numbers_at(sharing_at(address, 0).numbers + _NEXT_INDEX, 1)[0] = 0


@view
def gate_of(sharing):
    """The barrier where machines wait for each other."""
    return table_at(sharing.gate, GATE)


@piece
def may_pass(machine, sharing, before):
    """Waits until all have come once more than before; False if the machine is to leave off."""
    gate = gate_of(sharing)
    if look(gate, uint32(before), _LOOKS * sharing.threads):
        return True
    return machine.work_allowed >= 0 and sleep(gate, uint32(before), sharing.patience)


@operator(types.void, INT)
def wake(address):
    """Wakes the threads that sleep, whose machines are called back."""
    wake_all(gate_of(sharing_at(address, 0)), PASSED)


@piece
def take_back(machine, address):
    """Makes the rows of relations dense: those that machines were given and have not used are used no longer."""
    sharing = sharing_at(address, 0)
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        if relation.is_own:
            close_rows(layout.home_of(relation), turns_at(sharing, r))


@piece
def share_out(machine, address):
    """Shares the next iteration out; GO_ON, or why it is not: it is small, or an index is missing, which two machines
    would make."""
    sharing = sharing_at(address, 0)
    work = _expect(machine, sharing)
    if work < sharing.least_work:
        return layout.OTHERWISE
    if _lacks_index(machine, sharing):
        return layout.NO_INDEX
    reached = numbers_at(sharing.reached, sharing.indexes_number * sharing.threads)
    for number in range(sharing.indexes_number * sharing.threads):
        reached[number] = 0
    _give_rows(machine, sharing)
    _lay_out(machine, sharing)
    sharing.stage = layout.OPENING if sharing.indexes_number > 0 else layout.RUNNING
    numbers_at(sharing.numbers + _NEXT_SHARE, 1)[0] = sharing.ordered
    numbers_at(sharing.numbers + _NEXT_INDEX, 1)[0] = 0
    return layout.GO_ON


@piece
def _expect(machine, sharing):
    """What all bodies are expected to look at and make, judged by what they have done. Orders them by that."""
    codes = numbers_at(sharing.codes, sharing.threads)
    order = numbers_at(sharing.order, machine.variants_number)
    work = 0
    for b in range(machine.variants_number):
        body = _body_at(sharing.bodies, b)
        started, done = body.started, body.looked + body.made * body.heads
        for thread in range(sharing.threads):
            code = layout.variant_at(codes[thread], b)
            started += code.started
            done += code.looked + code.made * body.heads
        relation = layout.relation_at(machine.relations, layout.variant_at(machine.variants, b).start)
        size = relation.delta_end - relation.delta
        body.work = size + done * size // max(started, 1)
        work += body.work
    # They are nearly in order, as they were in the iteration before.
    for i in range(1, machine.variants_number):
        b, place = order[i], i
        while place > 0 and _body_at(sharing.bodies, order[place - 1]).work < _body_at(sharing.bodies, b).work:
            order[place] = order[place - 1]
            place -= 1
        order[place] = b
    return work


@piece
def _lacks_index(machine, sharing):
    for b in range(machine.variants_number):
        if _body_at(sharing.bodies, b).work > 0:
            code = layout.variant_at(machine.variants, b)
            for number in range(code.first_probe, code.first_probe + code.probes):
                probe = layout.probe_at(machine.probes, number)
                if probe.kind == layout.INDEXED and layout.index_at(machine.indexes, probe.index).is_missing:
                    return True
    return False


@piece
def _give_rows(machine, sharing):
    """From now on threads are given rows behind those that there are."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        if relation.is_own:
            # About as many facts as in the iteration before.
            expected = relation.delta_end - relation.delta
            _give_out(turns_at(sharing, r), layout.home_of(relation).used, _turn_for(expected, sharing.threads))


@piece
def _lay_out(machine, sharing):
    """Makes shares of bodies, the largest first. Texts get their ids in the order in which one machine finds them."""
    shared = 0
    sharing.shares_number = sharing.begun = 0
    for b in range(machine.variants_number):
        body = _body_at(sharing.bodies, b)
        if body.is_shared:
            shared += body.work
        elif body.work > 0:
            _add_delta(machine, sharing, b, 1)
    sharing.ordered = sharing.shares_number
    of_one = max(shared // (SHARES * sharing.threads) + 1, sharing.least_work_of_share)
    order = numbers_at(sharing.order, machine.variants_number)
    for i in range(machine.variants_number):
        body = _body_at(sharing.bodies, order[i])
        if body.is_shared and body.work > 0:
            _add_delta(machine, sharing, order[i], (body.work + of_one - 1) // of_one)


@piece
def _add_delta(machine, sharing, variant, pieces):
    """Adds `pieces` shares of a variant, or fewer if its start rows are worth fewer."""
    relation = layout.relation_at(machine.relations, layout.variant_at(machine.variants, variant).start)
    pieces = min(pieces, (relation.delta_end - relation.delta) // sharing.least_share + 1)
    _add_shares(sharing, variant, relation.delta, relation.delta_end, pieces)


@piece
def _add_shares(sharing, variant, start, stop, pieces):
    for place in range(pieces):
        share = share_at(sharing.shares, sharing.shares_number)
        share.variant = variant
        share.start = start + (stop - start) * place // pieces
        share.stop = start + (stop - start) * (place + 1) // pieces
        sharing.shares_number += 1


@operator(types.void, INT, INT, INT, INT)
def share_block(address, variant, start, stop):
    """Shares rows of a block out that a variant starts at."""
    sharing = sharing_at(address, 0)
    sharing.shares_number = 0
    numbers_at(sharing.numbers + _NEXT_SHARE, 1)[0] = 0
    _add_shares(sharing, variant, start, stop, min(SHARES * sharing.threads, stop - start))
