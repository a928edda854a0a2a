"""The machine: the delta-driven update of a stratum in compiled code, from its first delta to its last.

Facts of an update are few and its rounds may be many thousand, so what counts is the cost of a step, not of a row. The
machine therefore runs whole phases (losses, recovery, gains) without returning, on tables of addresses that
`plan` lays out. It leaves off, and is called again to go on, when something must be done in Python: memory to
grow, an expression to evaluate, limits to look at. Every step is resumable, for the state of the run is in `state`,
`frames` (one row for each step of the variant that runs) and the relations' rows of `relations`.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import matrix_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, STATE, WORDS, int64, np_int32, operator
from elastalog.backends.kernel.execution import join_levels as level_operators
from elastalog.backends.kernel.machine.counts import MOST_STEPS, gain_counts, has_counts, lose_counts
from elastalog.backends.kernel.machine.heads import gain, highest, lose, recover
from elastalog.backends.kernel.machine.layout import (
    AT,
    BEGUN,
    BLOCK,
    BLOCK_AT,
    BLOCK_ROWS,
    CHECK,
    CLOSING,
    DEPTH,
    DERIVED,
    DONE,
    END,
    FROM,
    FULL,
    GAINING,
    HEAD,
    HIGHEST,
    INDEXES,
    IS_BACKWARD,
    IS_FLAT,
    IS_NEGATED_START,
    IS_OWN,
    LEVEL,
    LEVELS_WAITING,
    LIST,
    LISTED,
    LISTS,
    LOSING,
    MAY_GAIN,
    MAY_LOSE,
    NO_COUNTS,
    NO_INDEX,
    NO_LEVELS,
    NO_NODES,
    NO_ROOM,
    NODE_ENTRY,
    NODE_NEXT,
    NODE_RELATION,
    NODES,
    PHASE,
    RECOVERING,
    RELATION,
    ROOM,
    ROWS,
    STAGE,
    START,
    START_TAKE,
    START_TAKEN,
    START_WIDTH,
    TABLE,
    TO,
    TOUCHED,
    TOUCHED_ROOM,
    TOUCHED_USED,
    USED,
    USUAL,
    VARIANT,
    VARIANTS,
    VECTORS,
    WIDTH,
    WORK,
    WORK_ALLOWED,
)
from elastalog.backends.kernel.machine.level_probe import VIEWS, probe_levels
from elastalog.backends.kernel.machine.queue import take_lowest
from elastalog.backends.kernel.machine.steps import extend_indexes
from elastalog.backends.kernel.machine.variants import begin_variant, runner
from elastalog.backends.kernel.store.annotations import (
    ABSENT,
    COUNT,
    DELTA,
    DELTAS,
    IS,
    LOSSES,
    LOST,
    MARKS,
    NEW,
    OTHER,
    PENDING,
    ROW,
    TOUCHED_WIDTH,
)


@piece
def _gather(state, relations, variant, code, frames):  # type: ignore[no-untyped-def]
    """Fills the first block with the next facts of the delta that the start sees, or with the next lost heads."""
    phase = state[PHASE]
    relation = relations[code[variant + START]]
    touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
    rows = matrix_at(relation[ROWS], relation[ROOM], relation[WIDTH])
    level = words_at(relation[LEVEL], relation[ROOM])
    width = code[variant + START_WIDTH]
    out = matrix_at(frames[0, USUAL], BLOCK, width)
    take = code[code[variant + START_TAKE] :]
    taken = code[variant + START_TAKEN]
    is_backward = code[variant + IS_BACKWARD]
    is_negated = code[variant + IS_NEGATED_START]
    is_loss = phase == LOSING
    is_flat = relation[IS_FLAT] != 0
    seen = VIEWS[phase, 2 if is_negated else 0]
    at = state[AT]
    column = relation[LIST]
    filled = int64(0)
    while at < relation[TO] and filled < BLOCK:
        entry = touched[at, column]
        at += 1
        row = int64(touched[entry, ROW])
        if is_backward:
            for c in range(taken):
                source = take[c]
                out[filled, take[taken + c]] = rows[row, source] if source >= 0 else entry
            out[filled, width - 2] = 0
            out[filled, width - 1] = 0
        else:
            if not (seen >> int64(touched[entry, MARKS])) & 1:
                continue
            for c in range(taken):
                source = take[c]
                out[filled, take[taken + c]] = rows[row, source] if source >= 0 else row
            if is_negated:
                out[filled, width - 2] = 0
                out[filled, width - 1] = 0 if is_loss else ABSENT
            else:
                out[filled, width - 2] = level_operators.level_now(level, touched, row, is_loss, is_flat)
                out[filled, width - 1] = level_operators.level_before(level, touched, row, is_loss, is_flat)
        filled += 1
    state[AT] = at
    return filled


@piece
def _probe(state, relations, indexes, probe, code, frames, depth, width):  # type: ignore[no-untyped-def]
    """Joins what is left of a step's block with the relation of the next step, until the next block is full."""
    limit = relations[code[probe + RELATION], USED]
    return probe_levels(state, relations, indexes, probe, code, frames, depth, width, state[PHASE], limit)


@piece
def _sink(state, relations, variant, code, frames, width, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Hands the last block to the head, or says what is missing for that."""
    phase = state[PHASE]
    depth = state[DEPTH]
    used = frames[depth, END]
    block = matrix_at(frames[depth, BLOCK_AT], frames[depth, BLOCK_ROWS], width)
    relation = code[variant + HEAD]
    head = relations[relation]
    state[FULL] = relation
    if head[TOUCHED_USED] + used > head[TOUCHED_ROOM]:
        return NO_ROOM
    is_dense = head[VECTORS] != 0
    if is_dense and not has_counts(head, head[USED] + used, MOST_STEPS * used):
        return NO_COUNTS
    if phase == LOSING:
        if is_dense:
            lose_counts(block, used, head)
        else:
            lose(block, used, head)
    else:
        if phase == GAINING and head[USED] + used > head[ROOM]:
            return NO_ROOM
        if state[NODES] + used > nodes.shape[0]:
            return NO_NODES
        state[HIGHEST] = highest(block, used)
        if state[HIGHEST] >= waiting.shape[0]:
            return NO_LEVELS
        if phase == GAINING:
            if is_dense:
                gain_counts(block, used, relation, head, state, nodes, waiting, heap)
            else:
                gain(block, used, relation, head, state, nodes, waiting, heap)
        else:
            recover(block, used, relation, head, state, nodes, waiting, heap)
    state[DERIVED] += used
    frames[depth, BEGUN] = used
    return DONE


_run = runner(_gather, _probe, _sink)


@piece
def _starts(relation, variant, code, phase):  # type: ignore[no-untyped-def]
    """Whether a variant has something to start from."""
    if relation[FROM] >= relation[TO]:
        return False
    if phase == RECOVERING:
        return code[variant + LISTS] & (1 << relation[LIST]) != 0
    if code[variant + IS_BACKWARD]:
        return False
    if (phase == LOSING) != (code[variant + IS_NEGATED_START] != 0):
        return relation[MAY_LOSE] != 0
    return relation[MAY_GAIN] != 0


@piece
def _close_losses(relations):  # type: ignore[no-untyped-def]
    """The delta has been propagated: its facts are lost. Heads that lost their last derivation are the next delta."""
    is_more = False
    for r in range(relations.shape[0]):
        relation = relations[r]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        for at in range(relation[FROM], relation[TO]):
            entry = touched[at, relation[LIST]]
            marks = touched[entry, MARKS] & ~DELTA
            if relation[IS_OWN]:
                touched[entry, MARKS] = (marks & ~IS) | LOST
                touched[entry, NEW] = ABSENT
                touched[entry, OTHER] = ABSENT
                touched[entry, COUNT] = 0
            else:
                touched[entry, MARKS] = marks | LOST
        if relation[IS_OWN]:
            relation[FROM] = relation[TO] if relation[LIST] == LOSSES else 0
            relation[LIST] = LOSSES
            relation[TO] = relation[LISTED]
            for at in range(relation[FROM], relation[TO]):
                touched[touched[at, LOSSES], MARKS] |= DELTA
                is_more = True
        else:
            relation[FROM] = relation[TO]
    return is_more


@piece
def _close_gains(state, relations, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """The delta has been propagated. The facts that wait for the lowest level settle at it and are the next delta."""
    for r in range(relations.shape[0]):
        relation = relations[r]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        for at in range(relation[FROM], relation[TO]):
            touched[touched[at, relation[LIST]], MARKS] &= ~DELTA
        relation[LIST] = DELTAS
        relation[FROM] = 0
        relation[TO] = 0
    while state[LEVELS_WAITING] > 0:
        level = take_lowest(state, heap)
        node = waiting[level]
        waiting[level] = -1
        is_more = False
        while node >= 0:
            relation = relations[nodes[node, NODE_RELATION]]
            entry = nodes[node, NODE_ENTRY]
            node = int64(nodes[node, NODE_NEXT])
            touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
            marks = touched[entry, MARKS]
            if marks & PENDING and touched[entry, OTHER] == level:
                touched[entry, OTHER] = touched[entry, NEW] if marks & IS else np_int32(ABSENT)
                touched[entry, NEW] = level
                touched[entry, MARKS] = (marks & ~PENDING) | IS | DELTA
                touched[relation[TO], DELTAS] = entry
                relation[TO] += 1
                is_more = True
        if state[LEVELS_WAITING] == 0:
            state[NODES] = 0
        if is_more:
            return True
    return False


@operator(INT, STATE, TABLE, TABLE, STATE, STATE, TABLE, MATRIX, WORDS, WORDS)
def advance(state, relations, indexes, variants, code, frames, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Runs a phase on, round after round; returns why it stops (see DONE). `variants` are places in the code."""
    phase = state[PHASE]
    while True:
        if state[STAGE] == INDEXES:
            if phase == GAINING and not extend_indexes(state, relations, indexes):
                return NO_INDEX
            state[STAGE] = VARIANTS
            state[VARIANT] = 0
            state[AT] = -1
        if state[STAGE] == VARIANTS:
            while state[VARIANT] < variants.shape[0]:
                variant = variants[state[VARIANT]]
                if state[AT] < 0:
                    if not _starts(relations[code[variant + START]], variant, code, phase):
                        state[VARIANT] += 1
                        continue
                    begin_variant(state, relations, variant, code, frames)
                reason = _run(state, relations, indexes, variant, code, frames, nodes, waiting, heap)
                if reason != DONE:
                    return reason
                state[VARIANT] += 1
                state[AT] = -1
            state[STAGE] = CLOSING
        if phase == RECOVERING:
            return DONE
        state[STAGE] = INDEXES
        state[WORK] += 1
        is_more = _close_losses(relations) if phase == LOSING else _close_gains(state, relations, nodes, waiting, heap)
        if not is_more:
            return DONE
        if state[WORK] > state[WORK_ALLOWED]:
            return CHECK
