"""The calls of a service, one function each: its path, parameters with their limits, required rights and answer.
`web.routes` turns them into routes and their OpenAPI description; a client sends its requests by the same table.

The first argument of a call is the `context` of the request. A plain function uses `context.session`, the session at
the requested epoch, and runs in a worker thread; a coroutine runs in the event loop and chooses its threads itself.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias, get_type_hints
from urllib.parse import quote

from elastalog.analysis.query import parameter_from_json
from elastalog.client.encoding import columns_as_json, difference_as_json, rows_from_json, undo_as_json
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.pipeline.files.policy import Mode
from elastalog.program import rule_texts
from elastalog.provenance.rendering.markup import as_json, fact_as_json

# --- kinds of parameters -------------------------------------------------------------------------------------------


class Within:
    """The limits of a parameter and examples for its description, in the form that pydantic reads. Clients ignore
    them."""

    def __init__(self, *examples: Any, **limits: Any) -> None:
        self._shown = {"examples": list(examples)} if examples else {}
        self._limits = limits

    def __get_pydantic_core_schema__(self, kind: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return handler(kind) | self._limits

    def __get_pydantic_json_schema__(self, core: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return handler(core) | self._shown


Name: TypeAlias = Annotated[str, Within(max_length=1000)]
FactText: TypeAlias = Annotated[str, Within("path(1, 3)", min_length=1, max_length=1 << 20)]
Facts: TypeAlias = list[FactText]
Rows: TypeAlias = list[list[Any] | dict[str, Any]]
RowsBy: TypeAlias = Annotated[dict[str, Rows], Within({"edge": [[1, 2], [2, 3]]})]
ProgramText: TypeAlias = Annotated[str, Within(max_length=1 << 24)]
Order: TypeAlias = Annotated[str, Within("-from,to", max_length=10_000)]
Offset: TypeAlias = Annotated[int, Within(ge=0, lt=1 << 62)]
Number: TypeAlias = Annotated[int, Within(ge=0, lt=1 << 31)]
Count: TypeAlias = Annotated[int, Within(ge=0)]
Epoch: TypeAlias = Annotated[int, Within(ge=0, lt=1 << 62)]
Moment: TypeAlias = int | datetime | None
"""An epoch, by its number or by a time at which it was the current one."""
NONE: Final[Any] = []
NO_MAPPING: Final[Any] = {}
KEY: Final = {"Idempotency-Key": Annotated[str, Within(min_length=1, max_length=255)]}
LAST: Final = {"Last-Event-ID": Annotated[str, Within(max_length=30)]}
Context: TypeAlias = Any
LONGEST_WAIT = 30.0
Parameters: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Types and defaults by name."""
SECONDS: Final[Parameters] = {"seconds": (Annotated[float, Within(gt=0, le=86_400)] | None, None)}
"""How long an answer may take; the context has it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the HTTP interface. `parameters`: in the path, else the query (GET) or the body; a name that is a
    keyword of Python ends in `_`. `headers`: those it reads. `response`: the name of its response model.
    `at_any_epoch`: it can be asked of earlier epochs, too. `is_brief`: it only looks something up; other calls may take
    long. `changes`: to answer, it changes facts and reverts them; a text names the parameter that makes it do so.
    `writes`: it needs the right to write. `may_lack_body`: the body is optional."""

    name: str
    method: str
    path: str
    tag: str
    handler: Callable[..., Any]
    parameters: Parameters
    headers: Mapping[str, Any] = field(default_factory=dict)
    response: str | None = None
    at_any_epoch: bool = True
    is_brief: bool = False
    changes: bool | str = False
    writes: bool = False
    may_lack_body: bool = False

    def request(self, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Path and parameters of a request."""
        assert given.keys() <= self.parameters.keys(), f"{self.name} takes {', '.join(self.parameters)}"
        rest = {name.rstrip("_"): value for name, value in given.items() if f"{{{name}}}" not in self.path}
        return self.path.format_map({name: quote(str(value), safe="") for name, value in given.items()}), rest


CALLS: Final[list[Call]] = []


def call(
    address: str, tag: str, first: Parameters = NO_MAPPING, last: Parameters = NO_MAPPING, **how: Any
) -> Callable[[Callable[..., Any]], Call]:
    """A decorator that registers a function as a call, at an address such as `GET /relations`. The parameters are those
    of the function, between the `first` and the `last`."""

    def made(handler: Callable[..., Any]) -> Call:
        method, path = address.split()
        kinds = get_type_hints(handler, include_extras=True)
        own = [one for one in inspect.signature(handler).parameters.values() if one.kind is not one.VAR_KEYWORD]
        parameters = {one.name: (kinds[one.name], one.default) for one in own[1:]}
        CALLS.append(Call(handler.__name__, method, path, tag, handler, {**first, **parameters, **last}, **how))
        return CALLS[-1]

    return made


def malformed(reason: str) -> ElastalogError:
    """The error for a request whose parts contradict each other."""
    return error("E0926", reason=reason)


# --- relations -----------------------------------------------------------------------------------------------------


@call("GET /relations", "relations", response="RelationList")
async def relations(context: Context) -> Any:
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


@call("GET /relations/{relation}", "relations", response="Page")
async def relation_page(
    context: Context,
    relation: str,
    where: Annotated[str, Within("from > 10, !edge(from, to)", max_length=100_000)] = "",
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


@call("POST /query", "questions", last=SECONDS, response="Page")
async def query(
    context: Context,
    query: Annotated[str, Within("path(?a, X), edge(X, Y), X > 10", max_length=1 << 20)],
    parameters: Annotated[dict[str, Any], Within({"a": 1})] = NO_MAPPING,
    offset: Offset = 0,
    limit: Number | None = None,
    order: Order = "",
) -> Any:
    """The answers to a conjunctive query, by pages, in the forms that facts have. `?a` in its text is a parameter,
    whose value is never pasted into it."""
    values = {name: parameter_from_json(value) for name, value in parameters.items()}
    page = {"offset": offset, "limit": limit, "order": order}
    return await context.page(context.reading.query, query, values, seconds=context.seconds, **page)


@call("GET /proof", "questions")
def proof(context: Context, fact: FactText, depth: Annotated[int, Within(ge=0, le=1000)] | None = None) -> Any:
    """Why a fact holds: its best proof, to a depth. Facts that are not expanded can be asked for in turn."""
    found = context.session.explain(fact, context.limits.depth if depth is None else depth)
    return {"epoch": context.session.epoch, **as_json(found)}


@call("GET /derivations", "questions")
def derivations(context: Context, fact: FactText) -> Any:
    """Every derivation of a fact, as proofs of one level."""
    found = list(map(as_json, context.session.derivations(fact)))
    return {"epoch": context.session.epoch, "fact": fact, "derivations": found}


@call("GET /why-not", "questions")
def why_not(
    context: Context,
    fact: FactText,
    limit: Annotated[int, Within(ge=1, le=1000)] = 5,
    rule: Annotated[int, Within(ge=1, le=1 << 30)] | None = None,
    bindings: Annotated[str, Within('{"y": 3}', max_length=100_000)] = "{}",
    depth: Annotated[int, Within(ge=1, le=100)] = 1,
) -> Any:
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
    found = context.session.why_not(fact, limit, rule=rule, bindings=values, depth=depth)
    return {"epoch": context.session.epoch, **as_json(found)}


@call("GET /uses", "questions", changes="all")
def uses(context: Context, fact: FactText, all: bool = False, limit: Number | None = None) -> Any:  # noqa: A002
    """The facts that follow directly from a fact; with `all`, those that would go if it went. The first of them, and
    how many they are."""
    found = context.session.uses(fact, all=all)
    return {"fact": fact, "total": len(found), "uses": list(map(fact_as_json, found[: context.rows(limit)]))}


# --- debugging -----------------------------------------------------------------------------------------------------


@call("POST /localise", "debugging", last=SECONDS, changes=True)
def localise(
    context: Context, unwanted: Facts = NONE, missing: Facts = NONE, epochs: tuple[Epoch, Epoch] | None = None
) -> Any:
    """A smallest part of the last update, or of what happened between two `epochs`, that alone shows all faults: facts
    that hold and are `unwanted`, facts that do not and are `missing`."""
    found = context.session.localise(unwanted, missing, epochs=epochs, time_limit=context.reading.time_to_search())
    return found.as_object()


@call("POST /suggest", "debugging", last=SECONDS, changes=True)
def suggest(
    context: Context,
    unwanted: Facts = NONE,
    missing: Facts = NONE,
    epochs: tuple[Epoch, Epoch] | None = None,
    rejected: Facts = NONE,
    weights: dict[str, Annotated[float, Within(gt=0, lt=1e9)]] = NO_MAPPING,
    over: Literal["update", "facts"] | None = None,
    candidates: Annotated[Facts | dict[str, Rows] | None, Within(["edge(1, 2)"])] = None,
) -> Any:
    """A smallest repair: elements of the last update, or explicit facts, whose undoing removes all faults, which are as
    for `/localise`. `sign` says how an element came (`+`: it was inserted), `undoing` what the repair does with it.
    `undo` is the update that does it, to be sent to `/updates`. What is `rejected` stays as it is: facts, patterns
    (`edge(1, _)`), rules; `weights` say how dear it is to change each of them; `over`: parts of an `update`, or
    explicit `facts`, whenever they came. `candidates` bring missing facts about: facts to insert, or to delete
    (`-edge(1, 2)`), or patterns of such, or lists of values by relation; unless given, what is found by asking why
    not."""
    given: Any = candidates
    if isinstance(given, dict):
        schemas = context.session.schemas
        given = {name: rows_from_json(schemas.get(name), rows) for name, rows in given.items()}
    found = context.session.suggest(
        unwanted, missing, rejected, weights or None, context.reading.time_to_search(), epochs=epochs, over=over,
        candidates=given,
    )  # fmt: skip
    told = found.as_object()
    elements = zip(told["elements"], found.elements, strict=True)
    told["elements"] = [{**one, "undoing": element.undoing} for one, element in elements]
    return {**told, "undo": undo_as_json(found)}


@call("POST /blame", "debugging", last=SECONDS, changes=True)
def blame(context: Context, fact: FactText) -> Any:
    """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""
    found = context.session.blame(fact)
    return {**found.as_object(), "fact": fact_as_json(found.fact)}


# --- program -------------------------------------------------------------------------------------------------------


@call("GET /program", "program", is_brief=True)
def program(context: Context) -> Any:
    """The text of the program, and its rules by number, from 1."""
    found = context.session.program
    return {"name": found.tree.source.name, "text": found.tree.source.text, "rules": list(rule_texts(found))}


@call("POST /program/check", "program", at_any_epoch=False)
async def check(context: Context, program: ProgramText) -> Any:
    """The diagnostics of a whole program that might take the place of the present one, as `--format json` has them."""
    found = await context.service.call(context.reading.check_program, program)
    return {"is_correct": all(one.severity != "error" for one in found), "diagnostics": context.diagnostics(found)}


@call("PATCH /program", "program", at_any_epoch=False, writes=True, headers=KEY)
async def change(
    context: Context,
    added: ProgramText = "",
    removed: list[int | str] = NONE,
    program: ProgramText | None = None,
    preview: bool = False,
    rows: Count | None = None,
    source: Name | None = None,
) -> Any:
    """Adds and removes rules, or puts another `program` in the place of this one: the next epoch. With `preview`, only
    what that would change is told."""
    if program is not None and (added or removed):
        raise malformed("give either a whole program or rules to add and remove")
    edit = context.edits(added, removed) if program is None else context.becoming(program)
    return await (context.previewed(edit, rows) if preview else context.committed(edit, rows, source))


# --- updates -------------------------------------------------------------------------------------------------------


EDITS: Final[Parameters] = {
    "inserted": (RowsBy, NO_MAPPING),
    "deleted": (RowsBy, NO_MAPPING),
    "added_rules": (ProgramText, ""),
    "removed_rules": (list[int | str], NONE),
}
"""What updates hold."""


@call("POST /updates", "updates", EDITS, at_any_epoch=False, writes=True, headers=KEY, response="Commit")
async def update(
    context: Context,
    rows: Count | None = None,
    source: Name | None = None,
    after: Epoch | None = None,
    bad_rows: Mode | None = None,
    **edits: Any,
) -> Any:
    """Makes the next epoch: explicit facts to insert and delete, and rules to add and remove (by number or text).
    `after`: only if this is still the last epoch. `rows`: how many changed facts to name. `bad_rows`: with `skip`, rows
    that cannot be facts are left out and reported, with `fail` they are an error; as the service says unless given.
    With an `Idempotency-Key` it is done once however often it is sent, also when the service was started again
    meanwhile, if it has a store."""
    if bad_rows == "quarantine":
        raise malformed(
            "`bad_rows`: only a service that was started with `--bad-rows quarantine` sets rows aside, those of every "
            "update; send `skip` to leave them out: `reports` of the answer has the first of them"
        )
    return await context.committed(context.edits(**edits, after=after, bad_rows=bad_rows), rows, source)


@call("POST /undo", "updates", at_any_epoch=False, writes=True, headers=KEY, may_lack_body=True)
async def undo(
    context: Context,
    epoch: Epoch | None = None,
    preview: bool = False,
    rows: Count | None = None,
    source: Name | None = None,
) -> Any:
    """Takes back what an epoch did to explicit facts and rules, by default the last: the next epoch. Facts that have
    come or gone again since stay as they are, and so do declarations. Undoing an undoing does again what was undone.
    With `preview`, only what that would change is told."""
    edit = context.undoing(epoch)
    return await (context.previewed(edit, rows) if preview else context.committed(edit, rows, source))


@call("POST /updates/preview", "updates", EDITS, SECONDS, response="Preview")
async def preview(context: Context, rows: Count | None = None, **edits: Any) -> Any:
    """What an update, as for `/updates`, would change, without an epoch; or what it would have changed at an earlier
    one."""
    return await context.previewed(context.edits(**edits), rows)


@call("POST /updates/forecast", "updates", EDITS, SECONDS, at_any_epoch=False, changes=True)
def forecast(context: Context, rows: Count | None = None, **edits: Any) -> Any:
    """What would be chosen for the strata that an update, as for `/updates`, reaches first: to update them, or to
    recompute them."""
    return {"strata": list(map(asdict, context.session.forecast(context.edits(**edits).of(context.session))))}


# --- changes -------------------------------------------------------------------------------------------------------


@call("GET /changes", "changes", at_any_epoch=False, headers=LAST, response="ChangeEvent")
async def changes(
    context: Context,
    since: Epoch | None = None,
    wait: Annotated[float, Within(ge=0, le=LONGEST_WAIT)] = 0,
    relations: Annotated[str, Within("path,edge", max_length=10_000)] = "",
    rows: Count | None = None,
) -> Any:
    """What changed after an epoch; without `since`, what the next epoch changes, once it comes. With `Accept:
    text/event-stream`, an event for every epoch from then on, whose id is its number; otherwise one object, waited for
    up to `wait` seconds. `relations`: only these; `rows`: how many facts an event names at most."""
    only = frozenset(name.strip() for name in relations.split(",") if name.strip()) or None
    return await context.listened(since, wait, only, rows)


# --- history -------------------------------------------------------------------------------------------------------


@call("GET /epochs", "history", is_brief=True)
def epochs(context: Context, offset: Offset = 0, limit: Number | None = None) -> Any:
    """What is known of every epoch, or of those until one, the last first."""
    found = context.session.log()
    last = found[::-1][offset : offset + context.rows(limit)]
    return {"total": len(found), "epochs": [one.written() for one in last]}


@call("GET /diff", "history", at_any_epoch=False)
def diff(context: Context, from_: Epoch, to: Epoch | None = None, rows: Count | None = None) -> Any:
    """What the epochs after one until another, by default the latest, did together: facts that came, went, or `moved`
    from the level `was` to another, rules, and declarations. The other way round when `to` is the earlier one."""
    last = context.session.epoch if to is None else to
    context.reading.require(from_, last)
    most, found = context.changed_rows(rows), context.session.diff(from_, last)
    relations = {name: difference_as_json(found[name], most) for name in found}
    numbers = [one[f"{side}_count"] for one in relations.values() for side in ("inserted", "deleted", "moved")]
    return {
        "from": from_, "to": last, "impact": found.impact, "relations": relations,
        "is_cut": max(numbers, default=0) > most, "declarations": list(found.added_declarations),
        "rules": {"added": list(found.added_rules), "removed": list(found.removed_rules)},
    }  # fmt: skip


@call("GET /turns", "history")
def turns(context: Context, fact: FactText) -> Any:
    """The epochs, all or until one, in which a fact appeared, disappeared or changed its level, oldest first."""
    found = context.session.history(fact)
    turns = [{"what": one.what, "was": one.was, "level": one.level, "epoch": one.entry.written()} for one in found]
    return {"fact": fact, "turns": turns}


# --- service -------------------------------------------------------------------------------------------------------


@call("GET /health", "service", at_any_epoch=False)
async def health(context: Context) -> Any:
    """Whether the service lives: needs no token, and waits for nothing."""
    return {"status": "ok", "version": context.request.app.version, "epoch": context.service.epoch}


@call("GET /metrics", "service", at_any_epoch=False, response="text/plain")
async def metrics(context: Context) -> Any:
    """Epochs, impact, seconds by stratum and choice, facts, memory, readers and requests, as Prometheus reads them."""
    return await context.service.call(context.service.metrics)
