"""Running a variant of a clause in the machines, from where it is to its end."""

from __future__ import annotations

from typing import Any

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.machine.layout import (
    ACTED,
    ACTIONS_AT,
    ACTIONS_END,
    AT,
    BEGUN,
    CHECK,
    DEPTH,
    DERIVED,
    DERIVED_ALLOWED,
    DONE,
    END,
    FROM,
    GO,
    OUT_WIDTH,
    PROBE_WIDTH,
    PROBES,
    SINK,
    START,
    START_ACTIONS,
    START_ACTIONS_END,
    START_WIDTH,
    STEP,
    VARIANT_WIDTH,
    WORK,
    WORK_ALLOWED,
)
from elastalog.backends.kernel.machine.steps import finish_block


@piece
def begin_variant(state, relations, variant, code, frames):  # type: ignore[no-untyped-def]
    """Goes to the first row of the delta that a variant starts at."""
    state[AT] = relations[code[variant + START], FROM]
    state[DEPTH] = 0
    state[STEP] = GO
    frames[0, BEGUN] = 0
    frames[0, END] = 0


def runner(gather: Any, probe_next: Any, sink: Any) -> Any:
    """A piece that runs one variant, depth first, one block a step; returns DONE, or what is missing.

    What differs between machines are its parts: `gather` fills the first block with rows that the variant starts at,
    `probe_next` the block of the next step, and `sink` hands what is left of the last block to the head, or says what
    is missing for that. Work is counted in rows that are looked at or made: limits must be checked though nothing is
    derived."""

    @piece
    def run(state, relations, indexes, variant, code, frames, nodes, waiting, heap):  # type: ignore[no-untyped-def]
        probes = code[variant + PROBES]
        first_probe = variant + VARIANT_WIDTH
        while True:
            if state[WORK] > state[WORK_ALLOWED] or state[DERIVED] > state[DERIVED_ALLOWED]:
                return CHECK
            depth = state[DEPTH]
            probe = first_probe + (depth - 1) * PROBE_WIDTH
            width = code[variant + START_WIDTH] if depth == 0 else code[probe + OUT_WIDTH]
            if state[STEP] == SINK:
                reason = sink(state, relations, variant, code, frames, width, nodes, waiting, heap)
                if reason != DONE:
                    return reason
                state[STEP] = GO
            elif state[STEP] == ACTED:
                # A block is ready: it goes to the head, or to the next step.
                state[STEP] = SINK if depth == probes and frames[depth, END] > 0 else GO
            elif frames[depth, BEGUN] < frames[depth, END]:
                probe += PROBE_WIDTH
                begun = frames[depth, BEGUN]
                filled = probe_next(state, relations, indexes, probe, code, frames, depth, width)
                state[WORK] += filled + frames[depth, BEGUN] - begun
                if filled > 0:
                    state[DEPTH] = depth + 1
                    reason = finish_block(
                        state, frames, code, depth + 1, code[probe + OUT_WIDTH], filled, code[probe + ACTIONS_AT],
                        code[probe + ACTIONS_END],
                    )  # fmt: skip
                    if reason != DONE:
                        return reason
            elif depth > 0:
                state[DEPTH] = depth - 1
            else:
                filled = gather(state, relations, variant, code, frames)
                if filled == 0:
                    return DONE
                state[WORK] += filled
                reason = finish_block(
                    state, frames, code, 0, width, filled, code[variant + START_ACTIONS],
                    code[variant + START_ACTIONS_END],
                )  # fmt: skip
                if reason != DONE:
                    return reason

    return run
