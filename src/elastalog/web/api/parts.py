"""What the calls have in common."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from elastalog.relations.faults import Fault
from elastalog.relations.rows import JsonValues
from elastalog.web.api.models import Problem
from elastalog.web.auth import may_write
from elastalog.web.problems import PROBLEM
from elastalog.web.service import Service

bearer = HTTPBearer(auto_error=False, description="the token of the service")


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Asked: TypeAlias = Annotated[Service, Depends(_service)]
"""The service that is asked."""

WRITES = [Depends(may_write)]


class _ExactRequest(Request):
    async def json(self) -> Any:
        data = await self.body()
        found = JsonValues(data).one(data.decode("utf-8-sig"))
        if isinstance(found, Fault):
            raise HTTPException(400, found.reason)
        return found


class ExactRoute(APIRoute):
    """A call whose body is taken as it was written, or refused."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def exact(request: Request) -> Response:
            return await answer(_ExactRequest(request.scope, request.receive))

        return exact


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How the description of a call says which refusals it knows."""
    always = (400, 401, 403, 413, 421, 503, 504, 507)
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        number: {"description": _TITLES.get(number, "refused"), "content": content}
        for number in sorted({*always, *statuses})
    }


_TITLES = {
    400: "malformed",
    401: "no token, or a wrong one",
    403: "may not",
    404: "not there",
    406: "no such form",
    409: "not as things are",
    410: "an epoch that is not kept",
    413: "too large",
    421: "another host",
    422: "an error in a program, a query or a fact",
    503: "too many at once",
    504: "too slow",
    507: "needs too much memory",
}
__all__ = ["WRITES", "Asked", "ExactRoute", "Problem", "bearer", "refusals"]
