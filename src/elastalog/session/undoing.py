"""Undoing what a suggestion names: one more update."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastalog.debugging.faults import gone_on
from elastalog.program import shown_rule

if TYPE_CHECKING:
    from elastalog.debugging.answers import Suggestion
    from elastalog.evaluation.changes import Changes
    from elastalog.session.history import History
    from elastalog.session.updating import Updates


def undo(suggestion: Suggestion, updates: Updates, history: History) -> Changes:
    """Applies a suggestion. Raises ElastalogError if the session has gone on since it was made."""
    if suggestion.epochs[1] != updates.epoch:
        raise gone_on(suggestion.epochs[1], updates.epoch)
    with updates.begin() as update:
        for sign, what in suggestion.elements:
            if isinstance(what, str):
                (update.remove_rules if sign == "+" else update.add_rules)(_as_written(what, history))
            else:
                (update.delete if sign == "+" else update.insert)(what.relation, [what.values])
    return update.changes


def _as_written(rule: str, history: History) -> str:
    """A rule that has been removed, with its plan if it had one."""
    gone = (text for entry in reversed(history.log()) for text in entry.removed_rules)
    return next((text for text in gone if shown_rule(text) == rule), rule)
