"""Every call of the interface over HTTP: its path, what it takes and what it answers.

The description in OpenAPI and the page `/api/docs` follow from here. What can be asked of any epoch is also below
`/at/{epoch}`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from elastalog import __version__
from elastalog.analysis.query import parameter_from_json
from elastalog.diagnostics.diagnostic import render_json
from elastalog.evaluation.changes import Changes
from elastalog.program import rule_texts
from elastalog.session import Session
from elastalog.web import forms, models
from elastalog.web.models import WRITES, Asked, ExactRoute, FactText, Moment, refusals
from elastalog.web.reading import Committed
from elastalog.web.service import Service
from elastalog.web.settings import Busy

at_any_epoch = APIRouter(route_class=ExactRoute, responses=refusals())
at_the_last = APIRouter(route_class=ExactRoute, responses=refusals())

# --- relations -----------------------------------------------------------------------------------------------------


@at_any_epoch.get("/relations", tags=["relations"], response_model=models.RelationsTold)
async def relations(service: Asked, epoch: Moment = None) -> dict[str, Any]:
    """Every relation: its columns, how many facts it holds, and what the last epoch changed in it."""
    found, number = await service.call(service.reading.relations, epoch)
    told = [
        {
            "name": one.name, "columns": forms.columns_as_json(one.schema), "facts": one.facts, "rules": one.rules,
            "inserted": one.inserted, "deleted": one.deleted, "is_input": one.is_input, "is_output": one.is_output,
        }
        for one in found
    ]  # fmt: skip
    return {"epoch": number, "relations": told}


@at_any_epoch.get(
    "/relations/{relation}",
    tags=["relations"],
    response_model=models.PageTold,
    responses={200: {"content": forms.OTHER_FORMS}},
)
async def relation_page(
    service: Asked,
    request: Request,
    relation: str,
    where: Annotated[str, Query(max_length=100_000, examples=["from > 10, !edge(from, to)"])] = "",
    order: Annotated[str, Query(max_length=10_000, examples=["-from,to"])] = "",
    offset: Annotated[int, Query(ge=0, lt=1 << 62)] = 0,
    limit: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
    annotations: bool = False,
    explicit: bool = False,
    epoch: Moment = None,
) -> Response:
    """Facts of a relation by pages. `where` holds literals as in the body of a rule, in which the columns are
    variables; `order` names columns, prefix `-` for descending; `annotations` adds levels and counts; with
    `explicit`, only the facts that were given, in any order. By `Accept`: JSON, CSV, Arrow stream or Parquet; the
    latter three hold all facts unless there is a `limit`."""
    if explicit and (where or order or annotations):
        raise forms.malformed("explicit facts come without `where`, `order` and `annotations`")
    form = forms.form_of(request)
    most = None if form == forms.JSON else service.limits.export
    find = service.reading.search if where or order else service.reading.page
    page = await service.call(
        find, relation, where, epoch=epoch, annotations=annotations, explicit=explicit, order=order, offset=offset,
        limit=limit, most=most,
    )  # fmt: skip
    return await forms.page_in(form, page, service)


# --- questions -----------------------------------------------------------------------------------------------------


_Fact = Annotated[FactText, Query(examples=["path(1,3)"])]


@at_any_epoch.post(
    "/query",
    tags=["questions"],
    response_model=models.PageTold,
    responses={200: {"content": forms.OTHER_FORMS}},
)
async def query(service: Asked, request: Request, given: models.QueryGiven, epoch: Moment = None) -> Response:
    """The answers to a conjunctive query with parameters, by pages, in the forms that facts have."""
    form = forms.form_of(request)
    parameters = {name: parameter_from_json(value) for name, value in given.parameters.items()}
    page = await service.call(
        service.reading.query, given.query, parameters, epoch=epoch, seconds=given.seconds, offset=given.offset,
        limit=given.limit, order=given.order, most=None if form == forms.JSON else service.limits.export,
    )  # fmt: skip
    return await forms.page_in(form, page, service)


async def _answered(service: Service, question: Callable[[Session], dict[str, Any]], epoch: Moment) -> dict[str, Any]:
    """What a session of an epoch answers to a question that may take long, with the number of that epoch."""

    def ask(session: Session) -> dict[str, Any]:
        return {"epoch": session.epoch, **question(session)}

    return await service.call(service.reading.ask, ask, epoch)


@at_any_epoch.get("/proof", tags=["questions"])
async def proof(
    service: Asked, fact: _Fact, depth: Annotated[int | None, Query(ge=0, le=1000)] = None, epoch: Moment = None
) -> dict[str, Any]:
    """Why a fact holds: its best proof, to a depth. Facts that are not expanded can be asked for in turn."""
    most = service.limits.depth if depth is None else depth
    return await _answered(service, lambda session: forms.as_object(session.explain(fact, most).to_json()), epoch)


@at_any_epoch.get("/derivations", tags=["questions"])
async def derivations(service: Asked, fact: _Fact, epoch: Moment = None) -> dict[str, Any]:
    """Every derivation of a fact, as proofs of one level."""

    def ask(session: Session) -> dict[str, Any]:
        return {"fact": fact, "derivations": [forms.as_object(one.to_json()) for one in session.derivations(fact)]}

    return await _answered(service, ask, epoch)


@at_any_epoch.get("/why-not", tags=["questions"])
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
        raise forms.malformed("`bindings` is not a JSON object")

    def ask(session: Session) -> dict[str, Any]:
        return forms.as_object(session.why_not(fact, limit, rule=rule, bindings=values).to_json())

    return await _answered(service, ask, epoch)


@at_any_epoch.get("/uses", tags=["questions"])
async def uses(
    service: Asked,
    fact: _Fact,
    all: bool = False,  # noqa: A002  # its public name
    limit: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
    epoch: Moment = None,
) -> dict[str, Any]:
    """The facts that follow directly from a fact; with `all`, those that would go if it went. The first of them, and
    how many they are."""
    found = await service.call(service.reading.ask, lambda session: session.uses(fact, all=all), epoch, changes=all)
    return {
        "fact": fact,
        "total": len(found),
        "uses": [forms.fact_as_json(one) for one in found[: _most(service, limit)]],
    }


def _most(service: Service, limit: int | None) -> int:
    """How many rows an answer has."""
    return service.limits.page if limit is None else min(limit, service.limits.rows)


# --- debugging -----------------------------------------------------------------------------------------------------


@at_any_epoch.post("/localise", tags=["debugging"])
async def localise(service: Asked, given: models.FaultsGiven, epoch: Moment = None) -> dict[str, Any]:
    """A smallest part of the last update, or of what happened between two epochs, that alone shows all faults."""

    def ask(session: Session) -> dict[str, Any]:
        time = service.reading.time_to_search()
        found = session.localise(given.unwanted, given.missing, epochs=given.epochs, time_limit=time)
        return forms.as_object(found.to_json())

    return await service.call(service.reading.ask, ask, epoch, given.seconds, changes=True)


@at_any_epoch.post("/suggest", tags=["debugging"])
async def suggest(service: Asked, given: models.SuggestGiven, epoch: Moment = None) -> dict[str, Any]:
    """A smallest repair: elements of the last update, or explicit facts, whose undoing removes all faults. Their `sign`
    is that of the update, `undoing` says what becomes of them. `undo` is the update that does it, to be sent to
    `/updates`."""

    def ask(session: Session) -> dict[str, Any]:
        candidates: Any = given.candidates
        if isinstance(candidates, dict):
            candidates = forms.rows_from_json(candidates, session.schemas)
        found = session.suggest(
            given.unwanted, given.missing, given.rejected, given.weights or None, service.reading.time_to_search(),
            epochs=given.epochs, over=given.over, candidates=candidates,
        )  # fmt: skip
        told = forms.as_object(found.to_json())
        elements = zip(told["elements"], found.elements, strict=True)
        return {
            **told, "elements": [{**one, "undoing": element.undoing} for one, element in elements],
            "undo": forms.undoing(found),
        }  # fmt: skip

    return await service.call(service.reading.ask, ask, epoch, given.seconds, changes=True)


@at_any_epoch.post("/blame", tags=["debugging"])
async def blame(service: Asked, given: models.BlameGiven, epoch: Moment = None) -> dict[str, Any]:
    """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""

    def ask(session: Session) -> dict[str, Any]:
        found = session.blame(given.fact)
        return {**forms.as_object(found.to_json()), "fact": forms.fact_as_json(found.fact)}

    return await service.call(service.reading.ask, ask, epoch, given.seconds, changes=True)


# --- program -------------------------------------------------------------------------------------------------------


@at_any_epoch.get("/program", tags=["program"])
async def program(service: Asked, epoch: Moment = None) -> dict[str, Any]:
    """The text of the program, and its rules by number, from 1."""
    found = await service.call(service.reading.look, lambda session: session.program, epoch)
    return {"name": found.tree.source.name, "text": found.tree.source.text, "rules": list(rule_texts(found))}


@at_the_last.post("/program/check", tags=["program"])
async def check(service: Asked, given: models.TextGiven) -> dict[str, Any]:
    """The diagnostics of a whole program that might take the place of the present one, as `--format json` has them."""
    found = await service.call(service.reading.check_program, given.program)
    return {"is_correct": all(one.severity != "error" for one in found), "diagnostics": json.loads(render_json(found))}


@at_the_last.patch("/program", tags=["program"], dependencies=WRITES)
async def change(service: Asked, given: models.ProgramGiven, key: Key = None) -> dict[str, Any]:
    """Adds and removes rules, or puts another program in the place of this one: the next epoch. With `preview`, only
    what that would change is told."""
    if given.program is not None and (given.added or given.removed):
        raise forms.malformed("give either a whole program or rules to add and remove")
    writing, program = service.writing, given.program

    def preview() -> Changes:
        if program is None:
            return writing.preview(added=given.added, removed=given.removed)
        return writing.preview_program(program)

    def commit() -> Committed:
        if program is None:
            return writing.apply(added=given.added, removed=given.removed, key=key, source=given.source)
        return writing.become(program, key=key, source=given.source)

    if given.preview:
        return await _previewed(service, preview, given.rows)
    return await _committed(service, commit, given.rows)


async def _previewed(service: Service, preview: Callable[[], Changes], rows: int | None) -> dict[str, Any]:
    return await service.call(forms.changes_as_json, await service.ask(preview), forms.most_rows(service, rows))


async def _committed(service: Service, commit: Callable[[], Committed], rows: int | None) -> dict[str, Any]:
    return await service.call(forms.commit_as_json, await service.commit(commit), service, rows)


# --- updates -------------------------------------------------------------------------------------------------------


Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]


@at_the_last.post(
    "/updates",
    tags=["updates"],
    dependencies=WRITES,
    response_model=models.CommitTold,
)
async def update(service: Asked, given: models.UpdateGiven, key: Key = None) -> dict[str, Any]:
    """Makes the next epoch. With an `Idempotency-Key` it is done once however often it is sent, also when the service
    was started again meanwhile, if it has a store."""
    if given.bad_rows == "quarantine":
        raise forms.malformed(
            "`bad_rows`: only a service that was started with `--bad-rows quarantine` sets rows aside, those of every "
            "update; send `skip` to leave them out: `reports` of the answer has the first of them"
        )

    def apply() -> Committed:
        schemas = service.reading.look(lambda session: session.schemas)
        return service.writing.apply(
            forms.rows_from_json(given.inserted, schemas), forms.rows_from_json(given.deleted, schemas), key=key,
            source=given.source, added=given.added_rules, removed=given.removed_rules, after=given.after,
            bad_rows=given.bad_rows,
        )  # fmt: skip

    return await _committed(service, apply, given.rows)


_THE_LAST = models.UndoGiven()


@at_the_last.post("/undo", tags=["updates"], dependencies=WRITES)
async def undo(service: Asked, given: models.UndoGiven = _THE_LAST, key: Key = None) -> dict[str, Any]:
    """Takes back what an epoch did to explicit facts and rules, by default the last: the next epoch. Facts that have
    come or gone again since stay as they are, and so do declarations. Undoing an undoing does again what was undone."""
    writing = service.writing
    if given.preview:
        return await _previewed(service, lambda: writing.preview_undoing(given.epoch), given.rows)
    return await _committed(service, lambda: writing.take_back(given.epoch, key=key, source=given.source), given.rows)


@at_any_epoch.post("/updates/preview", tags=["updates"], response_model=models.UpdateTold)
async def preview(service: Asked, given: models.PreviewGiven, epoch: Moment = None) -> dict[str, Any]:
    """What an update would change, without an epoch; or what it would have changed at an earlier one."""

    def try_out() -> Changes:
        schemas = service.reading.look(lambda session: session.schemas, epoch)
        return service.writing.preview(
            forms.rows_from_json(given.inserted, schemas), forms.rows_from_json(given.deleted, schemas), given.seconds,
            added=given.added_rules, removed=given.removed_rules, epoch=epoch,
        )  # fmt: skip

    return await _previewed(service, try_out, given.rows)


@at_the_last.post("/updates/forecast", tags=["updates"])
async def forecast(service: Asked, given: models.PreviewGiven) -> dict[str, Any]:
    """What would be chosen for the strata that an update reaches first: to update them, or to recompute them."""

    def look_ahead() -> list[dict[str, Any]]:
        schemas = service.reading.look(lambda session: session.schemas)
        inserted, deleted = (forms.rows_from_json(side, schemas) for side in (given.inserted, given.deleted))
        found = service.writing.forecast(inserted, deleted, added=given.added_rules, removed=given.removed_rules)
        return [asdict(one) for one in found]

    return {"strata": await service.ask(look_ahead)}


# --- changes -------------------------------------------------------------------------------------------------------


STREAM = "text/event-stream"
HEARTBEAT = 15.0
"""Seconds without news after which a comment shows that the connection lives."""
LONGEST_WAIT = 30.0


@at_the_last.get(
    "/changes",
    tags=["changes"],
    response_model=models.EventTold,
    responses={200: {"content": {STREAM: {}}}, 204: {"description": "nothing has changed"}},
)
async def changes(
    service: Asked,
    request: Request,
    since: Annotated[models.Epoch | None, Query()] = None,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0,
    relations: Annotated[str, Query(max_length=10_000, examples=["path,edge"])] = "",
    rows: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=30)] = None,
) -> Response:
    """What changed after an epoch; without `since`, what the next one will change. With `Accept: text/event-stream`, an
    event for every epoch from then on, whose id is its number; otherwise one object, waited for up to `wait` seconds.
    `relations`: only these; `rows`: how many facts an event names at most."""
    known = _known(since, last)
    only = frozenset(name.strip() for name in relations.split(",") if name.strip()) or None
    if only is not None:
        await service.call(service.reading.look, lambda session: [session[name] for name in only])
    most = forms.most_rows(service, rows)
    if known is not None and known != service.epoch:
        await asyncio.to_thread(service.feed.since, known)  # says so here if it is not kept
    if STREAM in request.headers.get("accept", ""):
        if service.feed.listeners >= service.limits.listeners:
            raise Busy.of("E0922.too_many_listeners", number=service.feed.listeners)
        start = service.epoch if known is None else known
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(_stream(service, start, only, most), 200, headers, STREAM)
    event = await service.feed.after(service.epoch if known is None else known, wait or 0.001)
    if event is None:
        return Response(status_code=204)
    return Response(forms.event_text(event, most, only), media_type="application/json")


def _known(since: int | None, last: str | None) -> int | None:
    """The epoch that a listener knows: what its last event was, or else what it says."""
    if last is None or not last:
        return since
    if not last.isdecimal():
        raise forms.malformed("`Last-Event-ID` is not an epoch")
    return int(last)


async def _stream(service: Service, start: int, only: frozenset[str] | None, most: int) -> AsyncIterator[str]:
    yield f"retry: 1000\nid: {start}\nevent: epoch\ndata: {json.dumps({'epoch': start})}\n\n"
    async for events in service.feed.listen(start, HEARTBEAT, service.limits.listeners):
        told = (f"id: {one.epoch}\nevent: changes\ndata: {forms.event_text(one, most, only)}\n\n" for one in events)
        yield "".join(told) or ": nothing new\n\n"


# --- history -------------------------------------------------------------------------------------------------------


@at_any_epoch.get("/epochs", tags=["history"])
async def epochs(
    service: Asked,
    offset: Annotated[int, Query(ge=0, lt=1 << 62)] = 0,
    limit: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
    epoch: Moment = None,
) -> dict[str, Any]:
    """What is known of every epoch, or of those until one, the last first."""
    found = await service.call(service.reading.look, lambda session: session.log(), epoch)
    last = found[::-1][offset : offset + _most(service, limit)]
    return {"total": len(found), "epochs": [one.written() for one in last]}


@at_the_last.get("/diff", tags=["history"])
async def diff(
    service: Asked,
    first: Annotated[models.Epoch, Query(alias="from")],
    to: models.Epoch | None = None,
    rows: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
) -> dict[str, Any]:
    """What the epochs after one until another, by default the latest, did together: facts that came, went, or `moved`
    from the level `was` to another, rules, and declarations. The other way round when `to` is the earlier one."""
    most = forms.most_rows(service, rows)

    def ask(session: Session) -> dict[str, Any]:
        last = session.epoch if to is None else to
        service.reading.require(first, last)
        found = session.diff(first, last)
        relations = {name: forms.difference_as_json(one, most) for name, one in found.items()}
        numbers = [one[f"{side}_count"] for one in relations.values() for side in ("inserted", "deleted", "moved")]
        return {
            "from": first, "to": last, "impact": found.impact, "relations": relations,
            "is_cut": max(numbers, default=0) > most, "declarations": list(found.added_declarations),
            "rules": {"added": list(found.added_rules), "removed": list(found.removed_rules)},
        }  # fmt: skip

    return await service.call(service.reading.ask, ask)


@at_any_epoch.get("/turns", tags=["history"])
async def turns(service: Asked, fact: Annotated[FactText, Query()], epoch: Moment = None) -> dict[str, Any]:
    """The epochs, all or until one, in which a fact appeared, disappeared or changed its level, oldest first."""
    found = await service.call(service.reading.ask, lambda session: session.history(fact), epoch)
    turns = [{"what": one.what, "was": one.was, "level": one.level, "epoch": one.entry.written()} for one in found]
    return {"fact": fact, "turns": turns}


# --- service -------------------------------------------------------------------------------------------------------


@at_the_last.get("/health", tags=["service"])
async def health(service: Asked) -> dict[str, Any]:
    """Whether the service lives: needs no token, and waits for nothing."""
    return {"status": "ok", "version": __version__, "epoch": service.epoch}


@at_the_last.get(
    "/metrics",
    tags=["service"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
async def metrics(service: Asked) -> Response:
    """Epochs, impact, seconds by stratum and choice, facts, memory, readers and requests, as Prometheus reads them."""
    text = await service.call(service.metrics)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
