"""Questions: what, why, why not, and what follows."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from elastalog.analysis.listing import json_value
from elastalog.analysis.query import parameter_from_json
from elastalog.provenance.fact import Fact
from elastalog.web.api.forms import JSON, OTHER_FORMS, form_of, page_in
from elastalog.web.api.models import FactText, Moment, PageTold, QueryGiven
from elastalog.web.api.parts import Asked, ExactRoute, refusals
from elastalog.web.values import malformed

router = APIRouter(tags=["questions"], route_class=ExactRoute)
_Fact = Annotated[FactText, Query(examples=["path(1,3)"])]


@router.post("/query", response_model=PageTold, responses={200: {"content": OTHER_FORMS}, **refusals(406, 410, 422)})
async def query(service: Asked, request: Request, given: QueryGiven, epoch: Moment = None) -> Response:
    """The answers to a conjunctive query with parameters, by pages, in the forms that facts have."""
    form = form_of(request)
    parameters = {name: parameter_from_json(value) for name, value in given.parameters.items()}
    page = await service.call(
        service.reading.query, given.query, parameters, given.offset, given.limit, epoch, order=given.order,
        seconds=given.seconds, most=None if form == JSON else service.limits.export,
    )  # fmt: skip
    return await page_in(form, page, service)


@router.get("/proof", responses=refusals(404, 410, 422))
async def proof(
    service: Asked,
    fact: _Fact,
    depth: Annotated[int | None, Query(ge=0, le=1000)] = None,
    epoch: Moment = None,
) -> dict[str, Any]:
    """Why a fact holds: its best proof, to a depth. Facts that are not expanded can be asked for in turn."""
    most = service.limits.depth if depth is None else depth

    def ask() -> dict[str, Any]:
        found, number = service.reading.ask(lambda session: (session.explain(fact, most), session.epoch), epoch)
        return {"epoch": number, **as_object(found.to_json())}

    return await service.ask(ask)


@router.get("/derivations", responses=refusals(404, 410, 422))
async def derivations(service: Asked, fact: _Fact, epoch: Moment = None) -> dict[str, Any]:
    """Every derivation of a fact, as proofs of one level."""

    def ask() -> dict[str, Any]:
        found, number = service.reading.ask(lambda session: (session.derivations(fact), session.epoch), epoch)
        return {"epoch": number, "fact": fact, "derivations": [as_object(one.to_json()) for one in found]}

    return await service.ask(ask)


@router.get("/why-not", responses=refusals(404, 409, 410, 422))
async def why_not(
    service: Asked,
    fact: _Fact,
    limit: Annotated[int, Query(ge=1, le=1000)] = 5,
    rule: Annotated[int | None, Query(ge=1, le=1 << 30)] = None,
    bindings: Annotated[str, Query(max_length=100_000, examples=['{"y": 3}'])] = "{}",
    epoch: Moment = None,
) -> dict[str, Any]:
    """Why a fact does not hold: the derivations of it that fail nearest to success. `rule`, by its number in the
    relation, and `bindings`, a JSON object of values by variable, restrict the search. `fact` may be a pattern, as
    `path(1, X)`: then how many facts fit it (`present`), and the derivations of others that fail nearest to success,
    each with its `conclusion`."""
    try:
        values = json.loads(bindings)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise malformed("`bindings` is no JSON object")

    def ask() -> dict[str, Any]:
        found, number = service.reading.ask(
            lambda session: (session.why_not(fact, limit, rule=rule, bindings=values), session.epoch), epoch
        )
        return {"epoch": number, **as_object(found.to_json())}

    return await service.ask(ask)


@router.get("/uses", responses=refusals(404, 410, 422))
async def uses(
    service: Asked,
    fact: _Fact,
    all: bool = False,  # noqa: A002  # its public name
    limit: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
    epoch: Moment = None,
) -> dict[str, Any]:
    """The facts that follow directly from a fact; with `all`, those that would go if it went. The first of them, and
    how many they are."""
    found = await service.call(service.debugging.uses, fact, all, epoch=epoch)
    most = service.limits.page if limit is None else min(limit, service.limits.rows)
    return {"fact": fact, "total": len(found), "uses": [fact_as_json(one) for one in found[:most]]}


def fact_as_json(fact: Fact) -> dict[str, Any]:
    """A fact as JSON has it."""
    return {"relation": fact.relation, "values": [json_value(value) for value in fact.values], "text": str(fact)}


def as_object(text: str) -> dict[str, Any]:
    """An answer that is a JSON text, to be a part of another one."""
    found: dict[str, Any] = json.loads(text)
    return found
