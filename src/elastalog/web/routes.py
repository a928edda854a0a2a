"""The calls as routes of FastAPI, with the context that each call is given.

The OpenAPI description and the page `/api/docs` are made from these routes. Calls that can be asked of any epoch are
also found below `/at/{epoch}`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, create_model

from elastalog.client.calls import CALLS, Call, Moment, malformed
from elastalog.client.encoding import changes_as_json, commit_as_json
from elastalog.session import Session
from elastalog.web import forms, models, writing
from elastalog.web.auth import may_write
from elastalog.web.paging import Page
from elastalog.web.problems import diagnostics_told
from elastalog.web.reading import Reading
from elastalog.web.service import Service
from elastalog.web.settings import Busy, Limits

STREAM = "text/event-stream"
HEARTBEAT = 15.0
"""Seconds without news after which a comment shows that the connection lives."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a call works with: the service, and the options that all requests share. `session`: the session at the
    requested epoch, for calls that run in a thread."""

    service: Service
    request: Request
    epoch: Moment
    seconds: float | None
    session: Session | None = None

    becoming = staticmethod(writing.becoming)
    undoing = staticmethod(writing.undoing)
    diagnostics = staticmethod(diagnostics_told)

    @staticmethod
    def edits(added_rules: str = "", removed_rules: Sequence[int | str] = (), **facts: Any) -> writing.Edit:
        """An edit from facts in JSON and from rules, inserted and deleted."""
        return writing.edits(added=added_rules, removed=removed_rules, is_json=True, **facts)

    @property
    def reading(self) -> Reading:
        return self.service.reading

    @property
    def limits(self) -> Limits:
        return self.service.limits

    def rows(self, limit: int | None) -> int:
        """How many rows an answer may have."""
        return self.limits.page if limit is None else min(limit, self.limits.rows)

    def changed_rows(self, rows: int | None) -> int:
        """How many changed facts an answer may list."""
        return self.limits.event_rows if rows is None else min(rows, self.limits.export)

    async def answer(self, call: Call, given: Mapping[str, Any]) -> Any:
        """Runs a call, in the event loop or in a worker thread, and returns its answer."""
        if inspect.iscoroutinefunction(call.handler):
            return await call.handler(self, **given)

        def ask(session: Session) -> Any:
            return call.handler(replace(self, session=session), **given)

        if call.is_brief:
            return await self.service.call(self.reading.look, ask, self.epoch)
        changes = bool(given[call.changes]) if isinstance(call.changes, str) else call.changes
        return await self.service.call(self.reading.ask, ask, self.epoch, self.seconds, changes=changes)

    async def page(self, find: Callable[..., Page], *given: Any, **options: Any) -> Response:
        """A page in the requested media type. All but JSON return every row unless there is a limit."""
        form = forms.form_of(self.request)
        most = None if form == forms.JSON else self.limits.export
        return await forms.page_in(
            form, await self.service.call(find, *given, epoch=self.epoch, most=most, **options), self.service
        )

    async def previewed(self, edit: writing.Edit, rows: int | None) -> dict[str, Any]:
        """Previews an edit."""
        found = await self.service.call(self.service.writing.preview_of, edit, self.epoch, self.seconds)
        return await self.service.call(changes_as_json, found, self.changed_rows(rows))

    async def committed(self, edit: writing.Edit, rows: int | None, source: str | None) -> dict[str, Any]:
        """Commits an edit as the next epoch."""
        key = self.request.headers.get("Idempotency-Key")
        done = await self.service.call(self.service.writing.commit, edit, key, source)
        return await self.service.call(commit_as_json, done.record, done.changes, self.changed_rows(rows))

    async def listened(self, since: int | None, wait: float, only: frozenset[str] | None, rows: int | None) -> Response:
        """What changed since an epoch, or since the last event that the client received: one event, or a stream of
        them."""
        service, headers, most = self.service, self.request.headers, self.changed_rows(rows)
        if last := headers.get("Last-Event-ID"):
            if not last.isdecimal():
                raise malformed("`Last-Event-ID` is not an epoch")
            since = int(last)
        if only is not None:
            await service.call(self.reading.look, lambda session: [session[name] for name in only])
        if since is not None and since != service.epoch:
            await asyncio.to_thread(service.feed.since, since)  # says so here if it is not kept
        start = service.epoch if since is None else since
        if STREAM in headers.get("accept", ""):
            if service.feed.listeners >= self.limits.listeners:
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


# --- routes --------------------------------------------------------------------------------------------------------


class _Prometheus(Response):
    media_type = "text/plain; version=0.0.4"


_MORE: dict[str | None, dict[str, Any]] = {
    "Page": {"responses": {200: {"content": forms.OTHER_FORMS}}},
    "ChangeEvent": {"responses": {200: {"content": {STREAM: {}}}, 204: {"description": "nothing has changed"}}},
    "text/plain": {"response_class": _Prometheus},
}
at_any_epoch = APIRouter(route_class=models.ExactRoute, responses=models.refusals())
at_the_last = APIRouter(route_class=models.ExactRoute, responses=models.refusals())


def _endpoint(call: Call) -> Callable[..., Any]:
    """The endpoint of a call, with the signature by which FastAPI parses and describes requests."""

    async def answer(request: Request, given: BaseModel | None = None, epoch: Moment = None, **more: Any) -> Any:
        values = more if given is None else dict(given)
        context = Context(request.app.state.service, request, epoch, values.pop("seconds", None))
        return await context.answer(call, {name: values[name] for name in call.parameters.keys() & values.keys()})

    found: dict[str, tuple[Any, Any]] = {"request": (Request, _NEEDED)}
    if call.method == "GET":
        for name, (kind, default) in call.parameters.items():
            place = Path() if f"{{{name}}}" in call.path else Query(alias=name.rstrip("_"))
            found[name] = Annotated[kind, place], default
    else:
        fields: dict[str, Any] = {
            name: (kind, ... if default is _NEEDED else default) for name, (kind, default) in call.parameters.items()
        }
        model = create_model(f"{call.name.title()}Request", __config__=ConfigDict(extra="forbid"), **fields)
        found["given"] = model, model() if call.may_lack_body else _NEEDED
    if call.at_any_epoch:
        found["epoch"] = Moment, None
    for number, (header, kind) in enumerate(call.headers.items()):
        found[f"header_{number}"] = Annotated[kind | None, Header(alias=header)], None
    named = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, named, default=d, annotation=kind) for name, (kind, d) in found.items()]
    answer.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    answer.__name__, answer.__doc__ = call.name, call.handler.__doc__
    return answer


_NEEDED = inspect.Parameter.empty

for _call in CALLS:
    (at_any_epoch if _call.at_any_epoch else at_the_last).add_api_route(
        _call.path, _endpoint(_call), methods=[_call.method], tags=[_call.tag],
        dependencies=[Depends(may_write)] if _call.writes else [],
        response_model=models.RESPONSES.get(_call.response), **_MORE.get(_call.response, {}),
    )  # fmt: skip
