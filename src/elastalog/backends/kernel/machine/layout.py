"""What machines work on, as records: `plan` and `workspace` fill them in, compiled code finds them all from the record
`Machine`. A field that is named after arrays or tables holds an address."""

from __future__ import annotations

from ctypes import Structure

from elastalog.backends.kernel.compile.signatures import (
    inlined,
    int64,
    keys_at,
    matrix_at,
    numbers_at,
    record,
    record_at,
    record_of_words,
    words_at,
)
from elastalog.backends.kernel.execution.join import BLOCK as BLOCK
from elastalog.backends.kernel.execution.join import Copied, Goal
from elastalog.backends.kernel.execution.join import Frame as Frame
from elastalog.backends.kernel.execution.join import block_of as block_of
from elastalog.backends.kernel.execution.join import frame_at as frame_at
from elastalog.backends.kernel.execution.level_views import GAINING as GAINING
from elastalog.backends.kernel.execution.level_views import LOSING as LOSING
from elastalog.backends.kernel.execution.level_views import RECOVERING as RECOVERING
from elastalog.backends.kernel.store.annotations import facts_of as _facts_at
from elastalog.backends.kernel.store.annotations import rows_of as _rows_at
from elastalog.backends.kernel.store.annotations import touched_of as _touched_at
from elastalog.backends.kernel.store.memory import index_descriptor_at, relation_descriptor_at
from elastalog.backends.kernel.store.postings import SLOT_WIDTH, Postings, postings_of
from elastalog.jit.intrinsics import require
from elastalog.jit.operators import view


@view
def home_of(relation):
    """The descriptor of a relation."""
    return relation_descriptor_at(relation.home, 0)


@view
def facts_of(relation):
    """The arrays of a relation."""
    return _facts_at(home_of(relation))


@view
def rows_of(relation):
    return _rows_at(home_of(relation))


@view
def touched_of(relation):
    return _touched_at(home_of(relation))


@view
def inputs_of(relation):
    """The changed entries of a relation below the stratum."""
    home = home_of(relation)
    return words_at(home.changed, home.changed_number)


@view
def given_of(relation):
    """The entries of explicit facts that go and come in a relation of the stratum."""
    return words_at(home_of(relation).given, relation.going + relation.coming)


@view
def operands(machine, place, length):
    """Some operands of a variant or a probe."""
    return numbers_at(machine.operands + 8 * place, length)


@view
def taken_of(machine, step, frame, most):
    """What a step (the start of a variant, or a probe) takes from facts into a block of at most `most` rows."""
    return Copied(
        operands(machine, step.take, step.taken),
        operands(machine, step.take + step.taken, step.taken),
        matrix_at(frame.usual, most, step.width),
    )


@view
def index_of(place):
    """The descriptor of an index."""
    return index_descriptor_at(place.home, 0)


@inlined
def goal_of(machine, probe, following, limit):
    """What a probe joins with: the rows of its relation below a limit."""
    relation = relation_at(machine.relations, probe.relation)
    taken = taken_of(machine, probe, following, BLOCK)
    keep = operands(machine, probe.keep, probe.kept)
    kept = Copied(keep, operands(machine, probe.keep + probe.kept, probe.kept), taken.out)
    # Without an index these are never read.
    nothing = machine.operands
    index = Postings(
        probe.kind,
        keys_at(nothing, 0),
        int64(0),
        matrix_at(nothing, 0, SLOT_WIDTH),
        words_at(nothing, 0),
        numbers_at(nothing, 0),
    )
    if probe.kind == INDEXED:
        place = index_at(machine.indexes, probe.index)
        require(place.is_missing == 0)
        index = postings_of(index_of(place))
    return Goal(
        operands(machine, probe.key, probe.key_width),
        index,
        facts_of(relation),
        limit,
        home_of(relation).is_settled == 0,
        probe.is_negated != 0,
        relation.is_flat != 0,
        kept,
        taken,
        taken.out,
    )


DONE, NO_ROOM, NO_NODES, NO_LEVELS, NO_INDEX, ACTIONS = range(6)
CHECK, LARGE, NO_COUNTS, NO_LISTS, OTHERWISE, HAND_ON = range(6, 12)
"""Why a machine returns: it is done; a relation (`full`) needs room for the rows of the block, the queue needs room
for them, or for levels up to `highest`; an index (`full_index`) is full or missing; actions are to run in Python;
limits are to be checked; a round has found so much that it is better run outside; the vectors of a relation (`full`)
need room. On a drive: there is no room for a list of `highest` changes; the next stratum is not laid out, or is
barred. OTHERWISE is also said of a round that is too small to be shared. Python takes the last block of a variant."""

GO_ON = -1
"""A round is closed and another one follows."""

OPENING, RUNNING, ENTERING, WAITING, REOPENING = range(5)
"""Stages of a round: what it needs is brought up to date; its variants run. Where several machines share rounds: there
is none yet; a machine waits for the others. The last is the first, where only facts of the stratum are in the delta."""

TO_LOSE, LOSES, TO_RECOVER, RECOVERS, TO_REDERIVE, REDERIVES, TO_GAIN, GAINS, TO_END = range(9)
TO_ENTER, TO_LEAVE = 10, 12
"""Parts of the update of a stratum (see `stratum_update`), and before and after it, on a drive. The even ones are
between phases. Deleted explicit facts are recovered, then facts that lost their last derivation are derived again."""

GO, ACTED, SINK = range(3)
"""Steps of a variant: a start or a join to make, actions that have run in Python, a block to hand to the head."""

FORWARDS, AGAINST, SOUGHT, SOUGHT_IF_EXPLICIT = 1, 2, 4, 8
"""Variants start at facts of a relation that come, at those that go, and, backwards, at those that were lost, and at
those that were explicit."""

SOUGHT_BITS = 1 << 21
"""A quarter of a megabyte, which stays near the processor."""

INDEXED = -1
"""How a probe finds rows, besides MEMBER and EVERY: by its index, which knows its kind."""

COPY, KEEP_EQUAL, KEEP_UNEQUAL, IN_PYTHON, IF_NARROW, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER = range(10)
KEEP_LESS, KEEP_AT_MOST, KEEP_MORE, KEEP_AT_LEAST = range(10, 14)
"""Kinds of actions; those from ADD on are on numbers that are their own words, and divisors are positive constants.
IF_NARROW comes before such, and says what is run in Python on a block that has, or would get, other numbers."""


@record
class Tables(Structure):
    """What a machine works on in a stratum: relations, indexes, and the code of variants."""

    relations: int
    relations_number: int
    indexes: int
    indexes_number: int
    variants: int
    variants_number: int
    probes: int
    actions: int
    operands: int
    own_variants: int


@record
class Machine(Tables):
    """Where a run is, where its tables are, and its queue. `drive`: the record of the drive that it is on, 0 if it is
    on none. `part`: how far the course of an update is; `may_gain`: inputs bring something; `is_marked`: they have
    marks, to be taken off in the end. `at`: the next place in the delta that a variant starts at, -1 if it has not
    begun. `work` counts rows that are looked at or made, since limits were last looked at; `work_before` are those that
    were counted before. `served`: heads that have got the last block of a variant already. `task` is the record
    of what the kind of machine needs beyond this one, `sought` the bits of facts that are looked for by enumeration
    (see `rederivation`).

    The queue: `waiting` has the first node of each level, `heap` the levels that have one; `words` are the facts of
    nodes, in the bucket queue, where nodes are used again from `free_node` on and `kept`
    rows of a block are not put off."""

    drive: int
    part: int
    is_global: int
    may_gain: int
    is_marked: int
    phase: int
    stage: int
    variant: int
    variants_end: int
    depth: int
    step: int
    at: int
    derived: int
    derived_allowed: int
    work: int
    work_allowed: int
    work_before: int
    served: int

    full: int
    full_index: int
    action: int
    highest: int

    frames: int
    task: int
    sought: int

    nodes: int
    nodes_room: int
    nodes_used: int
    words: int
    words_width: int
    free_nodes: int
    free_node: int
    kept: int
    waiting: int
    heap: int
    levels_room: int
    levels_waiting: int


@record
class Relation(Structure):
    """A relation that variants read or derive, whose descriptor is at `home`.

    [first_index, indexes_end): the indexes of a relation of the stratum, which grow with it. The delta is
    [delta, delta_end) of the touched table's column `listed_in`; in growth, of rows. `losses`: facts in the list of
    losses. `going` and `coming`: explicit facts of a relation of the stratum. `starts`: FORWARDS and its like.
    `vectors`: those of the dense strategy, 0 if there are none. `used_before`: the rows it had when a drive came to the
    stratum. [ahead, ahead_end): in the operands, probes that a fact of it will need if it gets into the delta, as far
    as they are known: of each its number, how many columns it looks for, and which."""

    home: int
    is_flat: int
    is_own: int
    first_index: int
    indexes_end: int
    starts: int
    vectors: int
    used_before: int
    ahead: int
    ahead_end: int

    going: int
    coming: int
    may_lose: int
    may_gain: int
    listed_in: int
    delta: int
    delta_end: int
    losses: int


@record
class IndexPlace(Structure):
    """An index of a `relation`. `is_missing`: it is to be made, or brought up to date, before it is used. `home`: its
    descriptor, which alone says where it is and how far it goes; 0 where there is none, or that is not known."""

    relation: int
    is_missing: int
    home: int


@record
class VariantCode(Structure):
    """A variant of a clause: its start, followed by its probes. `take`: in the operands, sources of columns and then
    their places. `lists`: a bit for each list of the touched table that a backward variant starts at. `made`, `looked`,
    `started`: how many derivations growth has made by it, from how many rows that it looked at or made, and how many
    that it started at.

    `is_shared`: several threads may run it in an update: it has one head, and nothing is done in Python.
    `heads`: how many heads the variant has if it is run for several rules at once, else 0; the operands from
    `first_head` on say of each, in `head_size` numbers, its relation, its width, and the places of its words.

    A backward variant may leave the heads from place `left` on, 0 if none, to a variant that enumerates its clause,
    which `seeks` it (its number + 1, 0 for all others) and goes through `whole` rows or so, 0 if there is none.
    `spent`: all work when it began. `grouped`: the number + 1 of an index by which the facts that such a variant starts
    at lie together if its first probe looks for the same, 0 if there is none.

    `fork`: the number + 1 of the variant that takes some of the facts of the same start, 0 if there is none;
    `is_other_way`: this is the one that was not planned first, and takes facts that meet that many times less on its
    way, `handicap`. `first_key`: in the operands, the columns of the start that the first probe looks for."""

    start: int
    is_backward: int
    is_negated: int
    head: int
    first_probe: int
    probes: int
    take: int
    taken: int
    width: int
    first_action: int
    actions_end: int
    lists: int
    made: int
    looked: int
    started: int
    is_shared: int
    heads: int
    first_head: int
    head_size: int
    seeks: int
    left: int
    whole: int
    spent: int
    grouped: int
    fork: int
    is_other_way: int
    handicap: int
    first_key: int
    first_key_width: int


@record
class ProbeCode(Structure):
    """A join of a variant; `key`, `keep` and `take` are in the operands."""

    relation: int
    index: int
    kind: int
    is_negated: int
    is_before: int
    key: int
    key_width: int
    keep: int
    kept: int
    take: int
    taken: int
    width: int
    first_action: int
    actions_end: int


@record
class ActionCode(Structure):
    """An action: the slot of its first operand, the second one, which is a slot or a constant, and the slot that its
    result goes to, -1 if it has none."""

    kind: int
    first: int
    second: int
    is_constant: int
    result: int


@record_of_words
class Node(Structure):
    """What waits in the queue for a level: a touched entry or, in the bucket queue, a derivation; and the next node."""

    relation: int
    entry: int
    next: int


machine_at = record_at(Machine)
relation_at = record_at(Relation)
index_at = record_at(IndexPlace)
variant_at = record_at(VariantCode)
probe_at = record_at(ProbeCode)
action_at = record_at(ActionCode)
node_at = record_at(Node)
