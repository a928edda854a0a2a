"""Calls about the program, updates and epochs, and about the service itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from elastalog.client.encoding import difference_as_json
from elastalog.pipeline.files.policy import Mode
from elastalog.program import rule_texts
from elastalog.session import Session
from elastalog.web import forms, models
from elastalog.web.auth import may_write
from elastalog.web.problems import diagnostics_told
from elastalog.web.routes.context import AtEpoch, AtTheLast, at_any_epoch, at_the_last, malformed
from elastalog.web.routes.kinds import Body, Count, Epoch, FactText, Name, Number, Offset, ProgramText, RowsBy, Seconds
from elastalog.web.service import Service
from elastalog.web.settings import Busy
from elastalog.web.writing import Edit, becoming, edits, undoing

_KEY: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
Key: TypeAlias = Annotated[_KEY | None, Header(alias="Idempotency-Key")]
_LAST: TypeAlias = Annotated[str, Field(max_length=30)]
LastEvent: TypeAlias = Annotated[_LAST | None, Header(alias="Last-Event-ID")]
LONGEST_WAIT = 30.0
STREAM = "text/event-stream"
HEARTBEAT = 15.0
"""Seconds without news after which a comment shows that the connection lives."""
_WRITES: Final = [Depends(may_write)]


# --- program -------------------------------------------------------------------------------------------------------


@at_any_epoch.get("/program", tags=["program"])
async def program(context: AtEpoch) -> dict[str, Any]:
    """The text of the program, and its rules by number, from 1."""
    found = await context.look(lambda session: session.program)
    return {"name": found.tree.source.name, "text": found.tree.source.text, "rules": list(rule_texts(found))}


class CheckRequest(Body):
    program: ProgramText


@at_the_last.post("/program/check", tags=["program"])
async def check(context: AtTheLast, given: CheckRequest) -> dict[str, Any]:
    """The diagnostics of a whole program that might take the place of the present one, as `--format json` has them."""
    found = await context.service.call(context.reading.check_program, given.program)
    return {"is_correct": all(one.severity != "error" for one in found), "diagnostics": diagnostics_told(found)}


class ChangeRequest(Body):
    added: ProgramText = ""
    removed: list[int | str] = []
    program: ProgramText | None = None
    preview: bool = False
    rows: Count | None = None
    source: Name | None = None


@at_the_last.patch("/program", tags=["program"], dependencies=_WRITES)
async def change(context: AtTheLast, given: ChangeRequest, key: Key = None) -> dict[str, Any]:
    """Adds and removes rules, or puts another `program` in the place of this one: the next epoch. With `preview`, only
    what that would change is told."""
    if given.program is not None and (given.added or given.removed):
        raise malformed("give either a whole program or rules to add and remove")
    whole = given.program
    edit = edits(added=given.added, removed=given.removed) if whole is None else becoming(whole)
    return await (
        context.previewed(edit, given.rows) if given.preview else context.committed(edit, given.rows, given.source, key)
    )


# --- updates -------------------------------------------------------------------------------------------------------


class Edits(Body):
    inserted: RowsBy = {}
    deleted: RowsBy = {}
    added_rules: ProgramText = ""
    removed_rules: list[int | str] = []

    def edit(self, after: int | None = None, bad_rows: Mode | None = None) -> Edit:
        return edits(
            self.inserted, self.deleted, added=self.added_rules, removed=self.removed_rules, after=after,
            bad_rows=bad_rows, is_json=True,
        )  # fmt: skip


class UpdateRequest(Edits):
    rows: Count | None = None
    source: Name | None = None
    after: Epoch | None = None
    bad_rows: Mode | None = None


@at_the_last.post("/updates", tags=["updates"], dependencies=_WRITES, response_model=models.COMMIT)
async def update(context: AtTheLast, given: UpdateRequest, key: Key = None) -> Any:
    """Makes the next epoch: explicit facts to insert and delete, and rules to add and remove (by number or text).
    `after`: only if this is still the last epoch. `rows`: how many changed facts to name. `bad_rows`: with `skip`, rows
    that cannot be facts are left out and reported, with `fail` they are an error; as the service says unless given.
    With an `Idempotency-Key` it is done once however often it is sent, also when the service was started again
    meanwhile, if it has a store."""
    if given.bad_rows == "quarantine":
        raise malformed(
            "`bad_rows`: only a service that was started with `--bad-rows quarantine` sets rows aside, those of every "
            "update; send `skip` to leave them out: `reports` of the answer has the first of them"
        )
    return await context.committed(given.edit(given.after, given.bad_rows), given.rows, given.source, key)


class UndoRequest(Body):
    epoch: Epoch | None = None
    preview: bool = False
    rows: Count | None = None
    source: Name | None = None


@at_the_last.post("/undo", tags=["updates"], dependencies=_WRITES)
async def undo(context: AtTheLast, given: UndoRequest = UndoRequest(), key: Key = None) -> dict[str, Any]:  # noqa: B008
    """Takes back what an epoch did to explicit facts and rules, by default the last: the next epoch. Facts that have
    come or gone again since stay as they are, and so do declarations. Undoing an undoing does again what was undone.
    With `preview`, only what that would change is told."""
    edit = undoing(given.epoch)
    return await (
        context.previewed(edit, given.rows) if given.preview else context.committed(edit, given.rows, given.source, key)
    )


class PreviewRequest(Edits):
    rows: Count | None = None
    seconds: Seconds | None = None


@at_any_epoch.post("/updates/preview", tags=["updates"], response_model=models.PREVIEW)
async def preview(context: AtEpoch, given: PreviewRequest) -> Any:
    """What an update, as for `/updates`, would change, without an epoch; or what it would have changed at an earlier
    one."""
    return await context.previewed(given.edit(), given.rows, given.seconds)


class ForecastRequest(Edits):
    rows: Count | None = None
    seconds: Seconds | None = None


@at_the_last.post("/updates/forecast", tags=["updates"])
async def forecast(context: AtTheLast, given: ForecastRequest) -> dict[str, Any]:
    """What would be chosen for the strata that an update, as for `/updates`, reaches first: to update them, or to
    recompute them."""

    def answer(session: Session) -> dict[str, Any]:
        return {"strata": list(map(asdict, session.forecast(given.edit().of(session))))}

    return await context.ask(answer, given.seconds, changes=True)


# --- changes -------------------------------------------------------------------------------------------------------


@at_the_last.get(
    "/changes", tags=["changes"], response_model=models.CHANGE_EVENT,
    responses={200: {"content": {STREAM: {}}}, 204: {"description": "nothing has changed"}},
)  # fmt: skip
async def changes(
    context: AtTheLast,
    since: Epoch | None = None,
    wait: Annotated[float, Field(ge=0, le=LONGEST_WAIT)] = 0,
    relations: Annotated[str, Field(max_length=10_000, examples=["path,edge"])] = "",
    rows: Count | None = None,
    last: LastEvent = None,
) -> Any:
    """What changed after an epoch; without `since`, what the next epoch changes, once it comes. With `Accept:
    text/event-stream`, an event for every epoch from then on, whose id is its number; otherwise one object, waited for
    up to `wait` seconds. `relations`: only these; `rows`: how many facts an event names at most."""
    service, most = context.service, context.changed_rows(rows)
    only = frozenset(name.strip() for name in relations.split(",") if name.strip()) or None
    if last:
        if not last.isdecimal():
            raise malformed("`Last-Event-ID` is not an epoch")
        since = int(last)
    if only is not None:
        await context.look(lambda session: [session[name] for name in only])
    if since is not None and since != service.epoch:
        await asyncio.to_thread(service.feed.since, since)  # says so here if it is not kept
    start = service.epoch if since is None else since
    if STREAM in context.request.headers.get("accept", ""):
        if service.feed.listeners >= context.limits.listeners:
            raise Busy.of("E0922.too_many_listeners", number=service.feed.listeners)
        return StreamingResponse(_stream(service, start, only, most), 200, {"X-Accel-Buffering": "no"}, STREAM)
    event = await service.feed.after(start, wait or 0.001)
    if event is None:
        return Response(status_code=204)
    return Response(forms.event_text(event, most, only), media_type="application/json")


async def _stream(service: Service, start: int, only: frozenset[str] | None, most: int) -> AsyncIterator[str]:
    yield f"retry: 1000\nid: {start}\nevent: epoch\ndata: {json.dumps({'epoch': start})}\n\n"
    async for events in service.feed.listen(start, HEARTBEAT, service.limits.listeners):
        told = (f"id: {one.epoch}\nevent: changes\ndata: {forms.event_text(one, most, only)}\n\n" for one in events)
        yield "".join(told) or ": nothing new\n\n"


# --- history -------------------------------------------------------------------------------------------------------


@at_any_epoch.get("/epochs", tags=["history"])
async def epochs(context: AtEpoch, offset: Offset = 0, limit: Number | None = None) -> dict[str, Any]:
    """What is known of every epoch, or of those until one, the last first."""

    def answer(session: Session) -> dict[str, Any]:
        found = session.log()
        last = found[::-1][offset : offset + context.rows(limit)]
        return {"total": len(found), "epochs": [one.written() for one in last]}

    return await context.look(answer)


@at_the_last.get("/diff", tags=["history"])
async def diff(
    context: AtTheLast, from_: Annotated[Epoch, Query(alias="from")], to: Epoch | None = None, rows: Count | None = None
) -> dict[str, Any]:
    """What the epochs after one until another, by default the latest, did together: facts that came, went, or `moved`
    from the level `was` to another, rules, and declarations. The other way round when `to` is the earlier one."""

    def answer(session: Session) -> dict[str, Any]:
        last = session.epoch if to is None else to
        context.reading.require(from_, last)
        most, found = context.changed_rows(rows), session.diff(from_, last)
        relations = {name: difference_as_json(found[name], most) for name in found}
        numbers = [one[f"{side}_count"] for one in relations.values() for side in ("inserted", "deleted", "moved")]
        return {
            "from": from_, "to": last, "impact": found.impact, "relations": relations,
            "is_cut": max(numbers, default=0) > most, "declarations": list(found.added_declarations),
            "rules": {"added": list(found.added_rules), "removed": list(found.removed_rules)},
        }  # fmt: skip

    return await context.ask(answer)


@at_any_epoch.get("/turns", tags=["history"])
async def turns(context: AtEpoch, fact: FactText) -> dict[str, Any]:
    """The epochs, all or until one, in which a fact appeared, disappeared or changed its level, oldest first."""

    def answer(session: Session) -> dict[str, Any]:
        found = session.history(fact)
        turns = [{"what": one.what, "was": one.was, "level": one.level, "epoch": one.entry.written()} for one in found]
        return {"fact": fact, "turns": turns}

    return await context.ask(answer)


# --- service -------------------------------------------------------------------------------------------------------


class Prometheus(Response):
    media_type = "text/plain; version=0.0.4"


@at_the_last.get("/health", tags=["service"])
async def health(context: AtTheLast) -> dict[str, Any]:
    """Whether the service lives: needs no token, and waits for nothing."""
    return {"status": "ok", "version": context.request.app.version, "epoch": context.service.epoch}


@at_the_last.get("/metrics", tags=["service"], response_model=None, response_class=Prometheus)
async def metrics(context: AtTheLast) -> Any:
    """Epochs, impact, seconds by stratum and choice, facts, memory, readers and requests, as Prometheus reads them."""
    return await context.service.call(context.service.metrics)
