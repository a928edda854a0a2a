"""Undoing an epoch that was just made, as a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastalog.relations.facts import Relation
from elastalog.web.calls import commits

if TYPE_CHECKING:
    from elastalog.web.answers import Committed
    from elastalog.web.service import Service


@commits
def undo(service: Service, committed: Committed) -> Committed:
    """The opposite of what an epoch did to explicit facts and rules. Facts that others have changed since are left as
    they are now wanted: what came goes, what went comes."""
    rules, update = committed.record.rules, committed.record.update
    assert update is not None
    with service.reading.at() as session:
        came, went = (
            {
                name: list(Relation.of(session.schemas[name], session[name].dictionary, words))
                for name, words in side.items()
            }
            for side in (update.inserted, update.deleted)
        )
    source = f"undo of epoch {committed.epoch}"
    return service.writing.apply(went, came, added=rules.removed, removed=rules.added, source=source)
