"""What requests bring, what answers hold and which refusals calls know, for the description of the interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from elastalog.diagnostics.diagnostic import Diagnostic, collecting_warnings, error, render_json
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.pipeline.files.policy import Mode
from elastalog.relations.faults import Fault
from elastalog.relations.rows import JsonValues
from elastalog.web.auth import may_write
from elastalog.web.problems import PROBLEM
from elastalog.web.service import Service

Name: TypeAlias = Annotated[str, Field(max_length=1000)]
FactText: TypeAlias = Annotated[str, Field(min_length=1, max_length=1 << 20, examples=["path(1, 3)"])]
RowsBy: TypeAlias = Annotated[
    dict[str, list[list[Any]]], Field(examples=[{"edge": [[1, 2], [2, 3]]}], description="facts by relation")
]
ProgramText: TypeAlias = Annotated[str, Field(max_length=1 << 24)]
Rows: TypeAlias = Annotated[int, Field(ge=0)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=86_400)]
Epoch: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 62)]
Moment: TypeAlias = int | datetime | None
"""An epoch by its number, or by a time at which it was in force."""


class Given(BaseModel):
    """What a request brings: nothing beyond what is named."""

    model_config = ConfigDict(extra="forbid")


class QueryGiven(Given):
    """A conjunctive query. `?a` in its text is a parameter, whose value is never pasted into it."""

    query: Annotated[str, Field(max_length=1 << 20, examples=["path(?a, X), edge(X, Y), X > 10"])]
    parameters: dict[str, Any] = Field(default_factory=dict, examples=[{"a": 1}])
    offset: Annotated[int, Field(ge=0, lt=1 << 62)] = 0
    limit: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    order: Annotated[str, Field(max_length=10_000)] = ""
    seconds: Seconds | None = None


class EditsGiven(Given):
    """Explicit facts to insert and delete, and rules to add and remove (by number or text); `rows`: how many changed
    facts to name."""

    inserted: RowsBy = Field(default_factory=dict)
    deleted: RowsBy = Field(default_factory=dict)
    added_rules: ProgramText = ""
    removed_rules: list[int | str] = Field(default_factory=list)
    rows: Rows | None = None


class PreviewGiven(EditsGiven):
    """Explicit facts to insert and delete, and rules to add and remove (by number or text), to be told what that would
    change; `rows`: how many facts to name."""

    seconds: Seconds | None = None


class UpdateGiven(EditsGiven):
    """Explicit facts to insert and delete, and rules to add and remove (by number or text): one epoch. `after`: only if
    this is still the last epoch. `rows`: how many changed facts to name. `bad_rows`: with `skip`, rows that cannot be
    facts are left out and reported, with `fail` they are an error; as the service says unless given."""

    source: Name | None = None
    bad_rows: Mode | None = None
    after: Epoch | None = None


class ProgramGiven(Given):
    """Rules to add and remove, or a whole program in the place of the present one. With `preview`, only what that would
    change is told."""

    added: ProgramText = ""
    removed: list[int | str] = Field(default_factory=list)
    program: ProgramText | None = None
    preview: bool = False
    rows: Rows | None = None
    source: Name | None = None


class UndoGiven(Given):
    """An epoch, the last one unless given. With `preview`, only what taking it back would change is told."""

    epoch: Epoch | None = None
    preview: bool = False
    rows: Rows | None = None
    source: Name | None = None


class TextGiven(Given):
    """A whole program."""

    program: ProgramText


class FaultsGiven(Given):
    """Facts that hold and are unwanted, facts that do not and are missing. `epochs`: between which two it went wrong;
    the last update unless given."""

    unwanted: list[FactText] = Field(default_factory=list)
    missing: list[FactText] = Field(default_factory=list)
    epochs: tuple[Epoch, Epoch] | None = None
    seconds: Seconds | None = None


class SuggestGiven(FaultsGiven):
    """What is `rejected` stays as it is: facts, patterns (`edge(1, _)`), rules; `weights` say how dear it is to change
    each of them; `over`: parts of an `update`, or explicit `facts`, whenever they came. `candidates` bring missing
    facts about: facts to insert, or to delete (`-edge(1, 2)`), or lists of values by relation; unless given, what is
    found by asking why not."""

    rejected: list[FactText] = Field(default_factory=list)
    weights: dict[str, Annotated[float, Field(gt=0, lt=1e9)]] = Field(default_factory=dict)
    over: Literal["update", "facts"] | None = None
    candidates: list[FactText] | dict[str, list[list[Any]]] | None = Field(None, examples=[["edge(1, 2)"]])


class BlameGiven(Given):
    """A fact that appeared or disappeared."""

    fact: FactText
    seconds: Seconds | None = None


class ColumnTold(BaseModel):
    """A column of a relation."""

    name: str
    type: str


class RelationTold(BaseModel):
    """A relation at an epoch."""

    name: str
    columns: list[ColumnTold]
    facts: int
    inserted: int | None
    deleted: int | None
    rules: int
    is_input: bool
    is_output: bool


class RelationsTold(BaseModel):
    """All relations at an epoch."""

    epoch: int
    relations: list[RelationTold]


class PageTold(BaseModel):
    """Some rows of a relation, or answers of a query, of `total`."""

    relation: str
    columns: list[ColumnTold]
    epoch: int
    offset: int
    total: int
    rows: list[list[Any]]
    warnings: list[dict[str, Any]] = Field(default_factory=list)
    levels: list[int] | None = None
    counts: list[int] | None = None


class SidesTold(BaseModel):
    """The facts of a relation that came and went: the first of them, and how many."""

    inserted: list[list[Any]]
    inserted_count: int
    deleted: list[list[Any]]
    deleted_count: int


class RulesTold(BaseModel):
    """Rules that came and went."""

    added: list[str]
    removed: list[str]


class ChangesTold(BaseModel):
    """What changed. `is_cut`: not every fact is named."""

    impact: int
    relations: dict[str, SidesTold]
    is_cut: bool


class EventTold(ChangesTold):
    """What the epochs after `since` until `epoch` changed together."""

    since: int
    epoch: int
    time: float | None
    source: str | None
    batch: str | int | None
    rules: RulesTold


class StratumTold(BaseModel):
    """What was done to a stratum."""

    stratum: int
    relations: list[str]
    how: str
    why: str
    derivations: int
    seconds: float


class BadRowTold(BaseModel):
    """A row that cannot be a fact."""

    file: str
    line: int
    code: str
    reason: str
    text: str


class ReportTold(BaseModel):
    """What was taken of the rows of a relation: `loaded` of them, and not those that are `bad`, which are kept in the
    file `quarantine` if they were set aside."""

    relation: str
    loaded: int
    bad: int
    first_bad: list[BadRowTold]
    quarantine: str | None


class UpdateTold(ChangesTold):
    """What an update changed or would change, and what it warns of, as `--format json` has it."""

    warnings: list[dict[str, Any]] = Field(default_factory=list)


class CommitTold(UpdateTold):
    """What came of an update. `is_repeated`: its key had been seen, nothing was done; `is_unchanged`: there was nothing
    to do. `reports`: where bad rows may pass (`bad_rows`, or `--bad-rows` of the service)."""

    epoch: int
    is_repeated: bool
    is_unchanged: bool
    inserted: int
    deleted: int
    ignored: int
    seconds: float
    strata: list[StratumTold]
    rules: RulesTold
    reports: list[ReportTold]


class Problem(BaseModel):
    """Why there is no answer: the diagnostics, as `--format json` has them."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    help: str | None
    diagnostics: list[dict[str, Any]]


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
