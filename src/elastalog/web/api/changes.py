"""The change feed: by server-sent events, or by long poll. Who reconnects misses nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from elastalog.web import faults
from elastalog.web.api.models import Epoch, EventTold
from elastalog.web.api.parts import Asked, refusals
from elastalog.web.api.updates import most_rows
from elastalog.web.service import Service
from elastalog.web.values import event_text, malformed

router = APIRouter(tags=["changes"])
STREAM = "text/event-stream"
HEARTBEAT = 15.0
"""Seconds without news after which a comment shows that the connection lives."""
LONGEST_WAIT = 30.0


@router.get(
    "/changes",
    response_model=EventTold,
    responses={200: {"content": {STREAM: {}}}, 204: {"description": "nothing has changed"}, **refusals(404, 410)},
)
async def changes(
    service: Asked,
    request: Request,
    since: Annotated[Epoch | None, Query()] = None,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0,
    relations: Annotated[str, Query(max_length=10_000, examples=["path,edge"])] = "",
    rows: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=30)] = None,
) -> Response:
    """What changed after an epoch. With `Accept: text/event-stream`, an event for every epoch from then on (from now on
    without `since`), whose id is the number of the epoch; otherwise one object, waited for up to `wait` seconds.
    `relations`: only these; `rows`: how many facts an event names at most."""
    known = _known(since, last)
    only = frozenset(name.strip() for name in relations.split(",") if name.strip()) or None
    if only is not None:
        await service.call(service.reading.require_relations, only)
    most = most_rows(service, rows)
    if known is not None and known != service.epoch:
        await asyncio.to_thread(service.feed.since, known)  # says so here if it is not kept
    if STREAM in request.headers.get("accept", ""):
        if service.feed.listeners >= service.limits.listeners:
            raise faults.too_many_listeners(service.feed.listeners)
        start = service.epoch if known is None else known
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(_stream(service, start, only, most), 200, headers, STREAM)
    event = await service.feed.after(service.epoch if known is None else known, wait or 0.001)
    if event is None:
        return Response(status_code=204)
    return Response(event_text(event, most, only), media_type="application/json")


def _known(since: int | None, last: str | None) -> int | None:
    """The epoch that a listener knows: what its last event was, or else what it says."""
    if last is None or not last:
        return since
    if not last.isdecimal():
        raise malformed("`Last-Event-ID` is no epoch")
    return int(last)


async def _stream(service: Service, start: int, only: frozenset[str] | None, most: int) -> AsyncIterator[str]:
    yield f"retry: 1000\nid: {start}\nevent: epoch\ndata: {json.dumps({'epoch': start})}\n\n"
    async for events in service.feed.listen(start, HEARTBEAT, service.limits.listeners):
        told = (f"id: {one.epoch}\nevent: changes\ndata: {event_text(one, most, only)}\n\n" for one in events)
        yield "".join(told) or ": nothing new\n\n"
