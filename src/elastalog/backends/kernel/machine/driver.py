"""The loop of all machines: round after round, variant after variant, block after block.

Facts are few and rounds may be many thousand, so what counts is the cost of a step, not of a row. A machine therefore
runs without returning until something must be done in Python: memory to grow, an expression to evaluate, limits to look
at. Then it leaves off, and is called again to go on: where it is stands in the records (see `layout`).
"""

from __future__ import annotations

from typing import Any

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.compile.signatures import inlined, int64
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.forks import can_fork
from elastalog.backends.kernel.machine.layout import frame_at, index_at, probe_at, relation_at, variant_at
from elastalog.backends.kernel.machine.steps import catch_up, finish_block


def driver(open_round: Any, starts: Any, run: Any, close_round: Any) -> Any:
    """A piece that drives a machine; returns why it leaves off.

    `open_round` brings what a round needs up to date, `starts` says whether a variant has something to start from,
    `run` runs it (see `runner`): each DONE, or what is missing. `close_round` chooses the next delta and says GO_ON, or
    why there is no further round now."""

    @piece
    def drive(machine):  # type: ignore[no-untyped-def]
        while True:
            if machine.stage == layout.OPENING or machine.stage == layout.REOPENING:
                machine.variant = 0
                machine.variants_end = machine.variants_number
                reason = open_round(machine)
                if reason != layout.DONE:
                    return reason
                machine.stage = layout.RUNNING
                machine.at = -1
            while machine.variant < machine.variants_end:
                variant = variant_at(machine.variants, machine.variant)
                if machine.at < 0:
                    if not starts(machine, variant):
                        machine.variant += 1
                        continue
                    begin(machine, variant)
                reason = run(machine, variant)
                if reason != layout.DONE:
                    return reason
                machine.variant += 1
                machine.at = -1
            machine.stage = layout.OPENING
            reason = close_round(machine)
            if reason != layout.GO_ON:
                return reason

    return drive


@piece
def begin(machine, variant):  # type: ignore[no-untyped-def]
    """Goes to the first place of the delta that a variant starts at."""
    machine.at = relation_at(machine.relations, variant.start).delta
    machine.depth = 0
    machine.step = layout.GO
    frame = frame_at(machine.frames, 0)
    frame.begun = 0
    frame.end = 0


@inlined
def has_delta(machine, variant):  # type: ignore[no-untyped-def]
    """Whether there are facts that a variant starts at."""
    relation = relation_at(machine.relations, variant.start)
    return relation.delta < relation.delta_end


@inlined
def has_more(machine, variant):  # type: ignore[no-untyped-def]
    """Whether there are facts left that a variant starts at."""
    return machine.at < relation_at(machine.relations, variant.start).delta_end


def runner(has_more: Any, gather: Any, probe_next: Any, sink: Any) -> Any:
    """A piece that runs one variant, depth first, one block a step; returns DONE, or what is missing.

    What differs between machines are its parts: `has_more` says whether the variant may have more to start at, `gather`
    fills the first block with that, `probe_next` the block of the next step, and `sink` hands what is left of the last
    block to the head, or says what is missing for that. Work is counted in rows that are looked at or made: limits must
    be checked though nothing is derived."""

    @piece
    def run(machine, variant):  # type: ignore[no-untyped-def]
        depth = machine.depth
        step = machine.step
        frame = frame_at(machine.frames, depth)
        if step == layout.ACTED:
            # Python has made a block ready: it goes to the head, or to the next step.
            step = layout.SINK if depth == variant.probes and frame.end > 0 else layout.GO
        while True:
            if machine.work > machine.work_allowed or machine.derived > machine.derived_allowed:
                reason = layout.CHECK
                break
            if step == layout.SINK:
                reason = sink(machine, variant, frame)
                if reason != layout.DONE:
                    break
                step = layout.GO
                continue
            while depth > 0 and frame.begun >= frame.end:
                depth -= 1
                frame = frame_at(machine.frames, depth)
            if frame.begun < frame.end:
                probe = probe_at(machine.probes, variant.first_probe + depth)
                is_missing = probe.kind == layout.INDEXED and index_at(machine.indexes, probe.index).is_missing
                if is_missing and not catch_up(machine, probe.index):
                    reason = layout.NO_INDEX
                    break
                following = frame_at(machine.frames, depth + 1)
                begun = frame.begun
                filled = probe_next(machine, probe, frame, following)
                machine.work += filled + frame.begun - begun
                if filled == 0:
                    continue
                depth += 1
                frame = following
                reason = finish_block(machine, probe, frame, filled)
            else:
                if variant.fork > 0 and not can_fork(machine, variant):
                    reason = layout.NO_INDEX
                    break
                filled = gather(machine, variant, frame) if has_more(machine, variant) else int64(0)
                reason = layout.DONE
                if filled == 0:
                    break
                machine.work += filled
                reason = finish_block(machine, variant, frame, filled)
            if reason != layout.DONE:
                step = layout.ACTED
                break
            if depth == variant.probes and frame.end > 0:
                step = layout.SINK
        machine.depth = depth
        machine.step = step
        return reason

    return run
