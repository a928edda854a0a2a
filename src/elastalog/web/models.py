"""How requests are read, what answers hold and which refusals calls know, for the description of the interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import Field, create_model

from elastalog.diagnostics.diagnostic import Diagnostic, collecting_warnings, error, render_json
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.relations.faults import Fault
from elastalog.relations.rows import JsonValues
from elastalog.web.problems import PROBLEM


def _told(name: str, about: str, /, **fields: Any) -> Any:
    """A kind of answer, by the kinds of its fields; those of an optional one come with its default."""
    made: dict[str, Any] = {name: kind if isinstance(kind, tuple) else (kind, ...) for name, kind in fields.items()}
    return create_model(name, __doc__=about, **made)


_ROWS: TypeAlias = list[list[Any]]
_WARNINGS: Any = (list[dict[str, Any]], Field(default_factory=list))
_COLUMN: Any = _told("ColumnTold", "A column of a relation.", name=str, type=str)
_RELATION: Any = _told(
    "RelationTold", "A relation at an epoch.", name=str, columns=list[_COLUMN], facts=int, inserted=int | None,
    deleted=int | None, rules=int, is_input=bool, is_output=bool,
)  # fmt: skip
_SIDES: Any = _told(
    "SidesTold", "The facts of a relation that came and went: the first of them, and how many.",
    inserted=_ROWS, inserted_count=int, deleted=_ROWS, deleted_count=int,
)  # fmt: skip
_RULES: Any = _told("RulesTold", "Rules that came and went.", added=list[str], removed=list[str])
_CHANGES: Final = {"impact": int, "relations": dict[str, _SIDES], "is_cut": bool}
"""What changed. `is_cut`: not every fact is named."""
_STRATUM: Any = _told(
    "StratumTold", "What was done to a stratum.", stratum=int, relations=list[str], how=str, why=str, derivations=int,
    seconds=float,
)  # fmt: skip
_BAD_ROW: Any = _told("BadRowTold", "A row that cannot be a fact.", file=str, line=int, code=str, reason=str, text=str)
_REPORT: Any = _told(
    "ReportTold", "What was taken of the rows of a relation: `loaded` of them, and not those that are `bad`, which are "
    "kept in the file `quarantine` if they were set aside.",
    relation=str, loaded=int, bad=int, first_bad=list[_BAD_ROW], quarantine=str | None,
)  # fmt: skip

TOLD: Final[Mapping[str | None, Any]] = {
    None: dict[str, Any],
    "RelationsTold": _told("RelationsTold", "All relations at an epoch.", epoch=int, relations=list[_RELATION]),
    "PageTold": _told(
        "PageTold", "Some rows of a relation, or answers of a query, of `total`.", relation=str, columns=list[_COLUMN],
        epoch=int, offset=int, total=int, rows=_ROWS, warnings=_WARNINGS, levels=(list[int] | None, None),
        counts=(list[int] | None, None),
    ),
    "EventTold": _told(
        "EventTold", "What the epochs after `since` until `epoch` changed together. `is_cut`: not every fact is named.",
        **_CHANGES, since=int, epoch=int, time=float | None, source=str | None, batch=str | int | None, rules=_RULES,
    ),
    "UpdateTold": _told(
        "UpdateTold", "What an update changed or would change, and what it warns of, as `--format json` has it.",
        **_CHANGES, warnings=_WARNINGS,
    ),
    "CommitTold": _told(
        "CommitTold", "What came of an update. `is_repeated`: its key had been seen, nothing was done; `is_unchanged`: "
        "there was nothing to do. `reports`: where bad rows may pass (`bad_rows`, or `--bad-rows` of the service).",
        **_CHANGES, warnings=_WARNINGS, epoch=int, is_repeated=bool, is_unchanged=bool, inserted=int, deleted=int,
        ignored=int, seconds=float, strata=list[_STRATUM], rules=_RULES, reports=list[_REPORT],
    ),
}  # fmt: skip
"""The kinds of answers, for the description."""


PROBLEM_TOLD: Any = _told(
    "Problem", "Why there is no answer: the diagnostics, as `--format json` has them.", type=str, title=str, status=int,
    detail=str, code=str, help=str | None, diagnostics=list[dict[str, Any]],
)  # fmt: skip


bearer = HTTPBearer(auto_error=False, description="the token of the service")


class _ExactRequest(Request):
    async def json(self) -> Any:
        data = await self.body()
        found = JsonValues(data).one(data.decode("utf-8-sig"))
        if isinstance(found, Fault):
            raise HTTPException(400, found.reason)
        return found


WARNINGS: Final = "X-Elastalog-Warnings"
_LONGEST_HEADER: Final = 4_000
"""Characters of the warnings in a header: what stands between programs may refuse longer ones."""


class ExactRoute(APIRoute):
    """A call whose body and parameters are taken as they were written, or refused. What is warned of while it is
    answered stands in its answer: in JSON as `warnings`, otherwise in a header."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()
        known = [parameter.alias for parameter in self.dependant.query_params]

        async def exact(request: Request) -> Response:
            here = [name for name in known if name not in request.path_params]
            for name in request.query_params:
                if name not in here:
                    listed = ", ".join(f"`{one}`" for one in here)
                    raise error("E0926.parameter", name=name, near=did_you_mean(name, here), known=listed or None)
            with collecting_warnings() as found:
                response = await answer(_ExactRequest(request.scope, request.receive))
            if found:
                _tell(response, found)
            return response

        return exact


def _tell(response: Response, found: list[Diagnostic]) -> None:
    """Puts warnings into an answer."""
    told = json.loads(render_json(found))
    if response.media_type == "application/json":
        response.body = json.dumps({**json.loads(bytes(response.body)), "warnings": told}).encode()
        response.headers["Content-Length"] = str(len(response.body))
    else:
        while len(text := json.dumps(told)) > _LONGEST_HEADER:
            told.pop()
        response.headers[WARNINGS] = text


def refusals() -> dict[int | str, dict[str, Any]]:
    """How the description of every call says which refusals there are."""
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {number: {"description": title, "content": content} for number, title in _TITLES.items()}


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
