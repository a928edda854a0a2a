"""How requests are parsed, and the response and error models of the OpenAPI description."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import Field, create_model

from elastalog.diagnostics.diagnostic import Diagnostic, collecting_warnings, error
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.relations.faults import Fault
from elastalog.relations.rows import JsonValues
from elastalog.web.problems import PROBLEM, diagnostics_told


def _model(name: str, about: str, /, **fields: Any) -> Any:
    """A response model, from the types of its fields; an optional field is a pair of type and default."""
    made: dict[str, Any] = {name: kind if isinstance(kind, tuple) else (kind, ...) for name, kind in fields.items()}
    return create_model(name, __doc__=about, **made)


_ROWS: TypeAlias = list[list[Any]]
_WARNINGS: Any = (list[dict[str, Any]], Field(default_factory=list))
_COLUMN: Any = _model("Column", "A column of a relation.", name=str, type=str)
_RELATION: Any = _model(
    "Relation", "A relation at an epoch.", name=str, columns=list[_COLUMN], facts=int, inserted=int | None,
    deleted=int | None, rules=int, is_input=bool, is_output=bool,
)  # fmt: skip
_RELATION_CHANGES: Any = _model(
    "RelationChanges", "The first facts inserted into and deleted from a relation, and how many there are.",
    inserted=_ROWS, inserted_count=int, deleted=_ROWS, deleted_count=int,
)  # fmt: skip
_RULE_CHANGES: Any = _model("RuleChanges", "Rules added and removed.", added=list[str], removed=list[str])
_CHANGES: Final = {"impact": int, "ignored": int, "relations": dict[str, _RELATION_CHANGES], "is_cut": bool}
"""Changes. `ignored`: facts of the update without effect. `is_cut`: not every fact is listed."""
_STRATUM: Any = _model(
    "Stratum", "What was done to a stratum.", stratum=int, relations=list[str], how=str, why=str, derivations=int,
    seconds=float,
)  # fmt: skip
_BAD_ROW: Any = _model("BadRow", "A row that cannot be a fact.", file=str, line=int, code=str, reason=str, text=str)
_REPORT: Any = _model(
    "LoadReport", "How many rows of a relation were `loaded`, how many are `bad`; if set aside, these are in the file "
    "`quarantine`.",
    relation=str, loaded=int, bad=int, first_bad=list[_BAD_ROW], quarantine=str | None,
)  # fmt: skip

RELATION_LIST: Any = _model("RelationList", "All relations at an epoch.", epoch=int, relations=list[_RELATION])
PAGE: Any = _model(
    "Page", "Some rows of a relation, or answers of a query, of `total`.", relation=str, columns=list[_COLUMN],
    epoch=int, offset=int, total=int, rows=_ROWS, warnings=_WARNINGS, levels=(list[int] | None, None),
    counts=(list[int] | None, None),
)  # fmt: skip
CHANGE_EVENT: Any = _model(
    "ChangeEvent", "What the epochs after `since` up to `epoch` changed. `is_cut`: not every fact is listed.",
    **_CHANGES, since=int, epoch=int, time=float | None, source=str | None, batch=str | int | None,
    rules=_RULE_CHANGES,
)  # fmt: skip
PREVIEW: Any = _model(
    "Preview", "What an update changed or would change, and its warnings, in the form of `--format json`.",
    **_CHANGES, warnings=_WARNINGS,
)  # fmt: skip
COMMIT: Any = _model(
    "Commit", "The result of an update. `is_repeated`: its key was known, so nothing was done; `is_unchanged`: "
    "there was nothing to do. `reports`: of invalid rows, where they may be skipped (`bad_rows`, or `--bad-rows`).",
    **_CHANGES, warnings=_WARNINGS, epoch=int, is_repeated=bool, is_unchanged=bool, inserted=int, deleted=int,
    seconds=float, strata=list[_STRATUM], rules=_RULE_CHANGES, reports=list[_REPORT],
)  # fmt: skip
PROBLEM_MODEL: Any = _model(
    "Problem", "Why there is no answer: the diagnostics, in the form of `--format json`.", type=str, title=str,
    status=int, detail=str, code=str, help=str | None, diagnostics=list[dict[str, Any]],
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
"""Characters of warnings in a header: proxies may refuse longer ones."""


class ExactRoute(APIRoute):
    """A route that takes bodies and parameters exactly as written, or refuses them. Warnings raised while it answers
    are part of the answer: `warnings` in JSON, otherwise a header."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()
        parts = (self.dependant, *self.dependant.dependencies)
        known = [parameter.alias for part in parts for parameter in part.query_params]

        async def exact(request: Request) -> Response:
            here = [name for name in known if name not in request.path_params]
            for name, number in Counter(name for name, _ in request.query_params.multi_items()).items():
                if name not in here:
                    listed = ", ".join(f"`{one}`" for one in here)
                    raise error("E0926.parameter", name=name, near=did_you_mean(name, here), known=listed or None)
                if number > 1:
                    several = "commas part several conditions of `where`" if name == "where" else None
                    raise error("E0926.repeated", name=name, number=number, several=several)
            with collecting_warnings() as found:
                response = await answer(_ExactRequest(request.scope, request.receive))
            if found:
                _add_warnings(response, found)
            return response

        return exact


def _add_warnings(response: Response, found: list[Diagnostic]) -> None:
    """Adds warnings to an answer."""
    told = diagnostics_told(found)
    if response.media_type == "application/json":
        response.body = json.dumps({**json.loads(bytes(response.body)), "warnings": told}).encode()
        response.headers["Content-Length"] = str(len(response.body))
    else:
        while len(text := json.dumps(told)) > _LONGEST_HEADER:
            told.pop()
        response.headers[WARNINGS] = text


def refusals() -> dict[int | str, dict[str, Any]]:
    """The error responses in the description of every call."""
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
