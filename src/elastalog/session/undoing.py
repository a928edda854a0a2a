"""Undoing what a suggestion names: one more update."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastalog.debugging.faults import gone_on
from elastalog.program import shown_rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from elastalog.debugging.answers import Suggestion
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.pending import PendingUpdate
    from elastalog.session.history import History
    from elastalog.session.updating import Updates
    from elastalog.storage.entries import LogEntry

    Log: TypeAlias = Callable[[], tuple[LogEntry, ...]]


def undo(suggestion: Suggestion, updates: Updates, history: History) -> Changes:
    """Applies a suggestion. Raises ElastalogError if the session has gone on since it was made."""
    with updates.begin() as update:
        fill_undoing(update, suggestion, updates.epoch, history.log)
    return update.changes


def fill_undoing(update: PendingUpdate, suggestion: Suggestion, epoch: int, log: Log) -> None:
    """Puts into an update what undoes the elements of a suggestion. Raises ElastalogError if that was made for another
    epoch."""
    if suggestion.epochs[1] != epoch:
        raise gone_on(suggestion.epochs[1], epoch)
    for sign, what in suggestion.elements:
        if isinstance(what, str):
            (update.remove_rules if sign == "+" else update.add_rules)(_as_written(what, log))
        else:
            (update.delete if sign == "+" else update.insert)(what.relation, [what.values])


def _as_written(rule: str, log: Log) -> str:
    """A rule that has been removed, with its plan if it had one."""
    gone = (text for entry in reversed(log()) for text in entry.removed_rules)
    return next((text for text in gone if shown_rule(text) == rule), rule)
