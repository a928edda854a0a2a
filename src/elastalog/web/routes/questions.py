"""Calls that ask: for relations and answers to queries, why, why not, and what to repair."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from elastalog.analysis.query import parameter_from_json
from elastalog.client.encoding import columns_as_json, rows_from_json, undo_as_json
from elastalog.provenance.rendering.markup import as_json, fact_as_json
from elastalog.session import Session
from elastalog.web import forms, models
from elastalog.web.routes.context import AtEpoch, at_any_epoch, malformed
from elastalog.web.routes.kinds import Body, Epoch, FactText, Number, Offset, Order, Rows, Seconds

_PAGE: Final[Any] = {"response_model": models.PAGE, "responses": {200: {"content": forms.OTHER_FORMS}}}


# --- relations -----------------------------------------------------------------------------------------------------


@at_any_epoch.get("/relations", tags=["relations"], response_model=models.RELATION_LIST)
async def relations(context: AtEpoch) -> Any:
    """Every relation: its columns, how many facts it holds, and what the last epoch changed in it."""
    found, number = await context.service.call(context.reading.relations, context.epoch)
    told = [
        {
            "name": one.name, "columns": columns_as_json(one.schema), "facts": one.facts, "rules": one.rules,
            "inserted": one.inserted, "deleted": one.deleted, "is_input": one.is_input, "is_output": one.is_output,
        }
        for one in found
    ]  # fmt: skip
    return {"epoch": number, "relations": told}


@at_any_epoch.get("/relations/{relation}", tags=["relations"], **_PAGE)
async def relation_page(
    context: AtEpoch,
    relation: str,
    where: Annotated[str, Field(max_length=100_000, examples=["from > 10, !edge(from, to)"])] = "",
    order: Order = "",
    offset: Offset = 0,
    limit: Number | None = None,
    annotations: bool = False,
    explicit: bool = False,
) -> Any:
    """Facts of a relation by pages. `where` holds literals as in the body of a rule, in which the columns are
    variables; `order` names columns, prefix `-` for descending; `annotations` adds levels and counts; with
    `explicit`, only the facts that were given, in any order. By `Accept`: JSON, CSV, Arrow stream or Parquet; the
    latter three hold all facts unless there is a `limit`."""
    if explicit and (where or order or annotations):
        raise malformed("explicit facts come without `where`, `order` and `annotations`")
    find = context.reading.search if where or order else context.reading.page
    return await context.page(
        find, relation, where, annotations=annotations, explicit=explicit, order=order, offset=offset, limit=limit
    )


# --- questions -----------------------------------------------------------------------------------------------------


class QueryRequest(Body):
    query: Annotated[str, Field(max_length=1 << 20, examples=["path(?a, X), edge(X, Y), X > 10"])]
    parameters: Annotated[dict[str, Any], Field(examples=[{"a": 1}])] = {}
    offset: Offset = 0
    limit: Number | None = None
    order: Order = ""
    seconds: Seconds | None = None


@at_any_epoch.post("/query", tags=["questions"], **_PAGE)
async def query(context: AtEpoch, given: QueryRequest) -> Any:
    """The answers to a conjunctive query, by pages, in the forms that facts have. `?a` in its text is a parameter,
    whose value is never pasted into it."""
    values = {name: parameter_from_json(value) for name, value in given.parameters.items()}
    page = {"offset": given.offset, "limit": given.limit, "order": given.order}
    return await context.page(context.reading.query, given.query, values, seconds=given.seconds, **page)


@at_any_epoch.get("/proof", tags=["questions"])
async def proof(
    context: AtEpoch, fact: FactText, depth: Annotated[int, Field(ge=0, le=1000)] | None = None
) -> dict[str, Any]:
    """Why a fact holds: its best proof, to a depth. Facts that are not expanded can be asked for in turn."""
    levels = context.limits.depth if depth is None else depth
    return await context.ask(lambda session: {"epoch": session.epoch, **as_json(session.explain(fact, levels))})


@at_any_epoch.get("/derivations", tags=["questions"])
async def derivations(context: AtEpoch, fact: FactText) -> dict[str, Any]:
    """Every derivation of a fact, as proofs of one level."""

    def answer(session: Session) -> dict[str, Any]:
        found = list(map(as_json, session.derivations(fact)))
        return {"epoch": session.epoch, "fact": fact, "derivations": found}

    return await context.ask(answer)


@at_any_epoch.get("/why-not", tags=["questions"])
async def why_not(
    context: AtEpoch,
    fact: FactText,
    limit: Annotated[int, Field(ge=1, le=1000)] = 5,
    rule: Annotated[int, Field(ge=1, le=1 << 30)] | None = None,
    bindings: Annotated[str, Field(max_length=100_000, examples=['{"y": 3}'])] = "{}",
    depth: Annotated[int, Field(ge=1, le=100)] = 1,
) -> dict[str, Any]:
    """Why a fact does not hold: the derivations of it that fail nearest to success. `rule`, by its number in the
    relation, and `bindings`, a JSON object of values by variable, restrict the search. `fact` may be a pattern, as
    `path(1, X)`: then how many facts fit it (`present`), and the derivations of others that fail nearest to success,
    each with its `conclusion`. With a `depth` of several levels, a literal that fails says `because` of what: why its
    fact does not hold, or, where it is negated, why it does."""
    try:
        values = json.loads(bindings)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise malformed("`bindings` is not a JSON object")

    def answer(session: Session) -> dict[str, Any]:
        found = session.why_not(fact, limit, rule=rule, bindings=values, depth=depth)
        return {"epoch": session.epoch, **as_json(found)}

    return await context.ask(answer)


@at_any_epoch.get("/uses", tags=["questions"])
async def uses(
    context: AtEpoch,
    fact: FactText,
    all: bool = False,  # noqa: A002
    limit: Number | None = None,
) -> dict[str, Any]:
    """The facts that follow directly from a fact; with `all`, those that would go if it went. The first of them, and
    how many they are."""

    def answer(session: Session) -> dict[str, Any]:
        found = session.uses(fact, all=all)
        return {"fact": fact, "total": len(found), "uses": list(map(fact_as_json, found[: context.rows(limit)]))}

    return await context.ask(answer, changes=all)


# --- debugging -----------------------------------------------------------------------------------------------------


class LocaliseRequest(Body):
    unwanted: list[FactText] = []
    missing: list[FactText] = []
    epochs: tuple[Epoch, Epoch] | None = None
    seconds: Seconds | None = None


@at_any_epoch.post("/localise", tags=["debugging"])
async def localise(context: AtEpoch, given: LocaliseRequest) -> dict[str, Any]:
    """A smallest part of the last update, or of what happened between two `epochs`, that alone shows all faults: facts
    that hold and are `unwanted`, facts that do not and are `missing`."""

    def answer(session: Session) -> dict[str, Any]:
        time_limit = context.reading.time_to_search()
        found = session.localise(given.unwanted, given.missing, epochs=given.epochs, time_limit=time_limit)
        return found.as_object()

    return await context.ask(answer, given.seconds, changes=True)


class SuggestRequest(Body):
    unwanted: list[FactText] = []
    missing: list[FactText] = []
    epochs: tuple[Epoch, Epoch] | None = None
    rejected: list[FactText] = []
    weights: dict[str, Annotated[float, Field(gt=0, lt=1e9)]] = {}
    over: Literal["update", "facts"] | None = None
    candidates: Annotated[list[FactText] | dict[str, Rows] | None, Field(examples=[["edge(1, 2)"]])] = None
    seconds: Seconds | None = None


@at_any_epoch.post("/suggest", tags=["debugging"])
async def suggest(context: AtEpoch, given: SuggestRequest) -> dict[str, Any]:
    """A smallest repair: elements of the last update, or explicit facts, whose undoing removes all faults, which are as
    for `/localise`. `sign` says how an element came (`+`: it was inserted), `undoing` what the repair does with it.
    `undo` is the update that does it, to be sent to `/updates`. What is `rejected` stays as it is: facts, patterns
    (`edge(1, _)`), rules; `weights` say how dear it is to change each of them; `over`: parts of an `update`, or
    explicit `facts`, whenever they came. `candidates` bring missing facts about: facts to insert, or to delete
    (`-edge(1, 2)`), or patterns of such, or lists of values by relation; unless given, what is found by asking why
    not."""

    def answer(session: Session) -> dict[str, Any]:
        candidates: Any = given.candidates
        if isinstance(candidates, dict):
            schemas = session.schemas
            candidates = {name: rows_from_json(schemas.get(name), rows) for name, rows in candidates.items()}
        found = session.suggest(
            given.unwanted, given.missing, given.rejected, given.weights or None, context.reading.time_to_search(),
            epochs=given.epochs, over=given.over, candidates=candidates,
        )  # fmt: skip
        told = found.as_object()
        elements = zip(told["elements"], found.elements, strict=True)
        told["elements"] = [{**one, "undoing": element.undoing} for one, element in elements]
        return {**told, "undo": undo_as_json(found)}

    return await context.ask(answer, given.seconds, changes=True)


class BlameRequest(Body):
    fact: FactText
    seconds: Seconds | None = None


@at_any_epoch.post("/blame", tags=["debugging"])
async def blame(context: AtEpoch, given: BlameRequest) -> dict[str, Any]:
    """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""

    def answer(session: Session) -> dict[str, Any]:
        found = session.blame(given.fact)
        return {**found.as_object(), "fact": fact_as_json(found.fact)}

    return await context.ask(answer, given.seconds, changes=True)
