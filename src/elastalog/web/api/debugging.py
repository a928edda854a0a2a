"""What broke it, and what to mend."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from elastalog.analysis.listing import json_value
from elastalog.debugging.answers import Suggestion
from elastalog.web.api.models import BlameGiven, FaultsGiven, Moment, SuggestGiven
from elastalog.web.api.parts import Asked, ExactRoute, refusals
from elastalog.web.api.questions import as_object, fact_as_json

router = APIRouter(tags=["debugging"], route_class=ExactRoute)


@router.post("/localise", responses=refusals(404, 409, 410, 422))
async def localise(service: Asked, given: FaultsGiven, epoch: Moment = None) -> dict[str, Any]:
    """A smallest part of the last update, or of what happened between two epochs, that alone shows all faults."""

    def ask() -> dict[str, Any]:
        found = service.debugging.localise(
            given.unwanted, given.missing, epochs=given.epochs, seconds=given.seconds, epoch=epoch
        )
        return as_object(found.to_json())

    return await service.ask(ask)


@router.post("/suggest", responses=refusals(404, 409, 410, 422))
async def suggest(service: Asked, given: SuggestGiven, epoch: Moment = None) -> dict[str, Any]:
    """A smallest repair: elements of the last update, or explicit facts, whose undoing removes all faults. `undo` is
    the update that does it, to be sent to `/updates`."""

    def ask() -> dict[str, Any]:
        found = service.debugging.suggest(
            given.unwanted, given.missing, given.rejected, given.weights or None, epochs=given.epochs, over=given.over,
            seconds=given.seconds, epoch=epoch,
        )  # fmt: skip
        return {**as_object(found.to_json()), "undo": undoing(found)}

    return await service.ask(ask)


@router.post("/blame", responses=refusals(404, 409, 410, 422))
async def blame(service: Asked, given: BlameGiven, epoch: Moment = None) -> dict[str, Any]:
    """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""

    def ask() -> dict[str, Any]:
        found = service.debugging.blame(given.fact, given.seconds, epoch)
        return {**as_object(found.to_json()), "fact": fact_as_json(found.fact)}

    return await service.ask(ask)


def undoing(found: Suggestion) -> dict[str, Any]:
    """The update that does what a suggestion says."""
    sides: dict[str, dict[str, list[Any]]] = {"inserted": {}, "deleted": {}}
    for side, facts in (("inserted", found.insert), ("deleted", found.delete)):
        for fact in facts:
            sides[side].setdefault(fact.relation, []).append([json_value(value) for value in fact.values])
    added = "".join(f"{rule}\n" for rule in found.rules_to_add)
    return {**sides, "added_rules": added, "removed_rules": list(found.rules_to_remove), "after": found.epochs[1]}
