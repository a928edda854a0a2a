"""How the machines find everything: columns of tables, fields of vectors, codes. `plan` lays out, `update` and `growth`
read."""

from __future__ import annotations

from elastalog.jit import types

TABLE = types.Array(types.int64, 2, "C")
BLOCK = 1 << 14
"""Rows of a block."""

LOSING, RECOVERING, GAINING, SURVIVING = range(4)
"""Phases of an update; the last is one of the strategies that maintain sets, as is GAINING."""

DONE, NO_ROOM, NO_NODES, NO_LEVELS, NO_INDEX, ACTIONS, CHECK, LARGE, NO_COUNTS = range(9)
"""Why a machine returns: it is done; a relation (FULL) needs room for the rows of the block, the queue needs room
for them, or for higher levels; an index is full; actions are to run in Python; limits are to be checked; an iteration
has found so much that it is better run outside; the vectors of a relation (FULL) need room."""

# Fields of the state vector, beyond those of the joins (NEXT, WITHIN, FILLED).
(
    PHASE, STAGE, VERSION, DEPTH, AT, STEP, DERIVED, DERIVED_ALLOWED, WORK, WORK_ALLOWED, NODES, LEVELS_WAITING, INDEX,
    ACTION, HIGHEST,
) = range(8, 23)  # fmt: skip
FULL, FREE_NODES, FREE_NODE, MOST_FOUND, CARRIED = range(23, 28)
"""The relation that has no room. Of the calendar: how many nodes are free again, and the last of them, plus 1. Of
growth: a number of facts after which it is left, and how many words rows of bindings carry behind their slots."""
ITERATION = PHASE
"""Growth has no phases, but iterations."""
STATE_SIZE = 28

# Stages of a round: indexes are brought up to date, versions run, the delta is closed and the next one chosen.
INDEXES, VERSIONS, CLOSING = range(3)
CALENDAR = CLOSING
"""In growth the calendar is looked at before versions run; the delta is closed in one go."""

# Steps of a version: a start or a join to make, actions that have run in Python, a block to hand to the head.
GO, ACTED, SINK = range(3)

# Columns of `relations`: what stays as long as nothing grows, then what an update changes.
(
    ROWS, WIDTH, TABLE_AT, TABLE_SIZE, SHIFT, LEVEL, COUNTS, TOUCHED, TOUCHED_ROOM, ROOM, IS_FLAT, IS_OWN, FIRST_INDEX,
    INDEXES_END, USED, TOUCHED_USED, MAY_LOSE, MAY_GAIN, LIST, FROM, TO, LISTED, INPUTS_AT, INPUTS,
    IS_CHECKED, IS_ANNOTATED, STARTS, VECTORS,
) = range(28)  # fmt: skip
RELATION_WIDTH = 28
"""[FIRST_INDEX, INDEXES_END): the indexes of a relation of the stratum, which grow with it. LIST: the column of the
touched table that lists the delta, in its rows [FROM, TO); in growth the rows [FROM, TO) are the delta. LISTED: facts
in the list of losses. INPUTS_AT, INPUTS: the changed entries of a relation below the stratum. STARTS: whether versions
start at facts that come (FORWARDS), and at those that go (AGAINST). IS_CHECKED: some rows hold facts that are not
there. VECTORS: where the vectors of the dense strategy are, 0 if there are none."""
FORWARDS, AGAINST = 1, 2

# Columns of `indexes`.
(
    OWNER, COLUMNS, COLUMNS_NUMBER, KIND, KEYS, KEYS_SIZE, KEYS_SHIFT, SLOTS, SLOTS_SIZE, POOL, POOL_SIZE, STATE_AT,
    STATE_LENGTH, ADDED,
) = range(14)  # fmt: skip
INDEX_WIDTH = 14

# A version in the code: its start, followed by its probes.
(
    START, IS_BACKWARD, IS_NEGATED_START, HEAD, PROBES, START_TAKE, START_TAKEN, START_WIDTH, START_ACTIONS,
    START_ACTIONS_END, LISTS, MADE,
) = range(12)  # fmt: skip
VERSION_WIDTH = 12
"""MADE: how many derivations growth has made by it."""

(
    RELATION, INDEX_OF, HOW, IS_NEGATED, IS_BEFORE, KEY, KEY_WIDTH, KEEP, KEPT, TAKE, TAKEN, OUT_WIDTH, ACTIONS_AT,
    ACTIONS_END,
) = range(14)  # fmt: skip
PROBE_WIDTH = 14

INDEXED = -1
"""HOW a probe finds rows, besides MEMBER and EVERY: by its index, which knows its kind."""

# Actions: a code and two operands.
FILL, COPY, KEEP_EQUAL, KEEP_CONSTANT, IN_PYTHON = range(5)
ACTION_WIDTH = 3

# Columns of `frames`: the block a step made, where it lies if not in its usual place, and how much has been passed on.
USUAL, BLOCK_AT, BLOCK_ROWS, BEGUN, END, INSIDE = range(6)
FRAME_WIDTH = 6

# Columns of the queue's nodes; those of the calendar begin with the words of a fact.
NODE_RELATION, NODE_ENTRY, NODE_NEXT = range(-3, 0)
NODE_WIDTH = 3
