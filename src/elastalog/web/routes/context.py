"""What all calls share: the context of a request, and the two routers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Request, Response

from elastalog.client.encoding import changes_as_json, commit_as_json
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.session import Session
from elastalog.web import forms, models
from elastalog.web.calls import T
from elastalog.web.paging import Page
from elastalog.web.reading import Moment, Reading
from elastalog.web.service import Service
from elastalog.web.settings import Limits
from elastalog.web.writing import Edit


@dataclass(frozen=True, slots=True)
class Context:
    """The service, a request to it, and the epoch that this asks about."""

    service: Service
    request: Request
    epoch: Moment = None

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

    async def look(self, question: Callable[[Session], T]) -> T:
        """Answers a brief question by the session at the epoch, in another thread."""
        return await self.service.call(self.reading.look, question, self.epoch)

    async def ask(self, question: Callable[[Session], T], seconds: float | None = None, *, changes: bool = False) -> T:
        """Answers a question that may take long; see `Reading.ask`."""
        return await self.service.call(self.reading.ask, question, self.epoch, seconds, changes=changes)

    async def page(self, find: Callable[..., Page], *given: Any, **options: Any) -> Response:
        """A page in the requested media type. All but JSON return every row unless there is a limit."""
        form = forms.form_of(self.request)
        most = None if form == forms.JSON else self.limits.export
        page = await self.service.call(find, *given, epoch=self.epoch, most=most, **options)
        return await forms.page_in(form, page, self.service)

    async def previewed(self, edit: Edit, rows: int | None, seconds: float | None = None) -> dict[str, Any]:
        """Previews an edit."""
        found = await self.service.call(self.service.writing.preview, edit, self.epoch, seconds)
        return await self.service.call(changes_as_json, found, self.changed_rows(rows))

    async def committed(self, edit: Edit, rows: int | None, source: str | None, key: str | None) -> dict[str, Any]:
        """Commits an edit as the next epoch."""
        done = await self.service.call(self.service.writing.commit, edit, key, source)
        return await self.service.call(commit_as_json, done.record, done.changes, self.changed_rows(rows))


async def _at_epoch(request: Request, epoch: Moment = None) -> Context:
    return Context(request.app.state.service, request, epoch)


async def _at_the_last(request: Request) -> Context:
    return Context(request.app.state.service, request)


AtEpoch: TypeAlias = Annotated[Context, Depends(_at_epoch)]
"""The context of a call that can be asked of any epoch."""
AtTheLast: TypeAlias = Annotated[Context, Depends(_at_the_last)]
"""The context of a call about the last epoch."""


def malformed(reason: str) -> ElastalogError:
    """The error for a request whose parts contradict each other."""
    return error("E0926", reason=reason)


at_any_epoch = APIRouter(route_class=models.ExactRoute, responses=models.refusals())
at_the_last = APIRouter(route_class=models.ExactRoute, responses=models.refusals())
