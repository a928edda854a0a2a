"""History: every epoch, and what lies between two."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from elastalog.storage.entries import LogEntry
from elastalog.web.api.models import Epoch, FactText
from elastalog.web.api.parts import Asked, refusals
from elastalog.web.values import rows_as_json

router = APIRouter(tags=["history"])


@router.get("/epochs", responses=refusals(410))
async def epochs(
    service: Asked,
    offset: Annotated[int, Query(ge=0, lt=1 << 62)] = 0,
    limit: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
) -> dict[str, Any]:
    """What is known of every epoch, the last first."""
    found = await service.call(service.reading.epochs)
    most = service.limits.page if limit is None else min(limit, service.limits.rows)
    return {"total": len(found), "epochs": [entry_as_json(one) for one in found[::-1][offset : offset + most]]}


@router.get("/diff", responses=refusals(410, 422))
async def diff(
    service: Asked,
    first: Annotated[Epoch, Query(alias="from")],
    last: Annotated[Epoch, Query(alias="to")],
    rows: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
) -> dict[str, Any]:
    """What the epochs after one until another did together: facts that came, went, or have another level, and rules.
    The other way round when `to` is the earlier one."""
    most = service.limits.event_rows if rows is None else min(rows, service.limits.rows)

    def told() -> dict[str, Any]:
        found = service.reading.diff(first, last)
        rules = service.reading.changed_rules(first, last)
        relations = {
            name: {
                "inserted": rows_as_json(one.inserted.head(most)),
                "inserted_count": len(one.inserted),
                "deleted": rows_as_json(one.deleted.head(most)),
                "deleted_count": len(one.deleted),
                "moved_count": one.moved.num_rows,
            }
            for name, one in found.items()
        }
        is_cut = any(max(one["inserted_count"], one["deleted_count"]) > most for one in relations.values())
        return {
            "from": first, "to": last, "impact": found.impact, "relations": relations, "is_cut": is_cut,
            "rules": {"added": list(rules.added), "removed": list(rules.removed)},
        }  # fmt: skip

    return await service.ask(told)


@router.get("/turns", responses=refusals(410, 422))
async def turns(service: Asked, fact: Annotated[FactText, Query()]) -> dict[str, Any]:
    """The epochs in which a fact appeared, disappeared or changed its level, oldest first."""
    found = await service.call(service.reading.turns, fact)
    return {
        "fact": fact,
        "turns": [
            {"what": one.what, "was": one.was, "level": one.level, "epoch": entry_as_json(one.entry)} for one in found
        ],
    }


def entry_as_json(entry: LogEntry) -> dict[str, Any]:
    """An epoch as the log has it."""
    return entry.written()
