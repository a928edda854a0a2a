"""Undoing an epoch that was just made, as a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastalog.relations.facts import Relation

if TYPE_CHECKING:
    from elastalog.web.answers import Committed
    from elastalog.web.service import Service


def undo(service: Service, committed: Committed) -> Committed:
    """The opposite of what an epoch did to explicit facts and rules. Facts that others have changed since are left as
    they are now wanted: what came goes, what went comes."""
    rules, update = committed.record.rules, committed.record.update
    source = f"undo of epoch {committed.epoch}"
    if rules:
        return service.change_rules(rules.removed, rules.added, source=source)
    assert update is not None
    with service.at() as session:
        came, went = (
            {
                name: list(Relation.of(session.schemas[name], session[name].dictionary, words))
                for name, words in side.items()
            }
            for side in (update.inserted, update.deleted)
        )
    return service.apply(went, came, source=source)
