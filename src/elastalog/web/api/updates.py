"""Updates: facts and rules that come and go, for good or as a preview."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Header

from elastalog.web.answers import Committed
from elastalog.web.api.models import ChangesTold, CommitTold, Moment, PreviewGiven, UpdateGiven
from elastalog.web.api.parts import WRITES, Asked, ExactRoute, refusals
from elastalog.web.service import Service
from elastalog.web.values import changes_as_json, rows_from_json

router = APIRouter(tags=["updates"], route_class=ExactRoute)
previews = APIRouter(tags=["updates"], route_class=ExactRoute)
"""What can be asked of any epoch."""

Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]


@router.post("/updates", dependencies=WRITES, response_model=CommitTold, responses=refusals(404, 409, 422))
async def update(service: Asked, given: UpdateGiven, key: Key = None) -> dict[str, Any]:
    """Makes the next epoch. With an `Idempotency-Key` it is done once however often it is sent, also when the service
    was started again meanwhile, if it has a store."""

    def apply() -> Committed:
        schemas = service.reading.schemas()
        return service.writing.apply(
            rows_from_json(given.inserted, schemas), rows_from_json(given.deleted, schemas), key=key,
            told=(given.inserted, given.deleted), source=given.source, added=given.added_rules,
            removed=given.removed_rules, after=given.after,
        )  # fmt: skip

    return await service.call(commit_as_json, await service.commit(apply), service, given.rows)


@previews.post("/updates/preview", response_model=ChangesTold, responses=refusals(404, 410, 422))
async def preview(service: Asked, given: PreviewGiven, epoch: Moment = None) -> dict[str, Any]:
    """What an update would change, without an epoch; or what it would have changed at an earlier one."""

    def try_out() -> dict[str, Any]:
        schemas = service.reading.schemas(epoch)
        changes = service.writing.preview(
            rows_from_json(given.inserted, schemas), rows_from_json(given.deleted, schemas), given.seconds,
            added=given.added_rules, removed=given.removed_rules, epoch=epoch,
        )  # fmt: skip
        return changes_as_json(changes, most_rows(service, given.rows))

    return await service.ask(try_out)


@router.post("/updates/forecast", responses=refusals(404, 422))
async def forecast(service: Asked, given: PreviewGiven) -> dict[str, Any]:
    """What would be chosen for the strata that an update reaches first: to update them, or to recompute them."""

    def look_ahead() -> list[dict[str, Any]]:
        schemas = service.reading.schemas()
        inserted, deleted = (rows_from_json(side, schemas) for side in (given.inserted, given.deleted))
        found = service.writing.forecast(inserted, deleted, added=given.added_rules, removed=given.removed_rules)
        return [asdict(one) for one in found]

    return {"strata": await service.ask(look_ahead)}


def most_rows(service: Service, rows: int | None) -> int:
    """How many changed facts an answer names."""
    return service.limits.event_rows if rows is None else min(rows, service.limits.export)


def commit_as_json(done: Committed, service: Service, rows: int | None = None) -> dict[str, Any]:
    """What came of an update."""
    record = done.record
    return {
        "epoch": record.epoch,
        "is_repeated": record.is_repeated,
        "is_unchanged": record.is_unchanged,
        "inserted": record.inserted,
        "deleted": record.deleted,
        "ignored": record.ignored,
        "seconds": record.seconds,
        "strata": [
            {
                "stratum": one.stratum, "relations": list(one.relations), "how": one.how, "why": one.why,
                "derivations": one.derivations, "seconds": one.seconds,
            }
            for one in record.work.strata
        ],
        "rules": {"added": list(record.rules.added), "removed": list(record.rules.removed)},
        **changes_as_json(done.changes, most_rows(service, rows)),
    }  # fmt: skip
