"""The calls of a service, each in one place: its address, its parameters with their limits, which right it needs, how
it is asked, and its answer. `web.routes` makes routes of them, with their description; a client asks by them.

A call is a function of what `web.routes` gives it, `asked`, and of its parameters. What answers by `asked.session`, the
session of the epoch that is asked, runs in a thread; a coroutine finds its own way.
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
from elastalog.diagnostics.diagnostic import ElastalogError, error, render_json
from elastalog.pipeline.files.policy import Mode
from elastalog.program import rule_texts
from elastalog.provenance.rendering.markup import as_json, fact_as_json

# --- kinds of parameters -------------------------------------------------------------------------------------------


class Within:
    """The limits of a parameter, and examples for its description, as pydantic asks for them. A client has no need."""

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
Rows: TypeAlias = list[list[Any]]
RowsBy: TypeAlias = Annotated[dict[str, Rows], Within({"edge": [[1, 2], [2, 3]]})]
ProgramText: TypeAlias = Annotated[str, Within(max_length=1 << 24)]
Order: TypeAlias = Annotated[str, Within("-from,to", max_length=10_000)]
Offset: TypeAlias = Annotated[int, Within(ge=0, lt=1 << 62)]
Number: TypeAlias = Annotated[int, Within(ge=0, lt=1 << 31)]
Count: TypeAlias = Annotated[int, Within(ge=0)]
Epoch: TypeAlias = Annotated[int, Within(ge=0, lt=1 << 62)]
Moment: TypeAlias = int | datetime | None
"""An epoch by its number, or by a time at which it was in force."""
NONE: Final[Any] = []
NO_MAPPING: Final[Any] = {}
KEY: Final = {"Idempotency-Key": Annotated[str, Within(min_length=1, max_length=255)]}
LAST: Final = {"Last-Event-ID": Annotated[str, Within(max_length=30)]}
Asked: TypeAlias = Any
LONGEST_WAIT = 30.0
Parameters: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Kinds and defaults by name."""
SECONDS: Final[Parameters] = {"seconds": (Annotated[float, Within(gt=0, le=86_400)] | None, None)}
"""How long an answer may take, which `asked` knows."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the interface. `takes`: kinds and defaults of its parameters, which stand in the path, the query or,
    but for GET, the body; a name that Python has for itself ends in `_`. `heeds`: headers. `tells`: the kind of its
    answer. It is `at_any_epoch`, or of the last alone; `is_brief`, or may take long, and then `changes` facts and
    changes them back: always, or with a parameter. `writes`: it needs the right to. `may_lack_body`: it may be sent
    without one."""

    name: str
    method: str
    path: str
    tag: str
    answer: Callable[..., Any]
    takes: Parameters
    heeds: Mapping[str, Any] = field(default_factory=dict)
    tells: str | None = None
    at_any_epoch: bool = True
    is_brief: bool = False
    changes: bool | str = False
    writes: bool = False
    may_lack_body: bool = False

    def request(self, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Path and parameters of a request."""
        assert given.keys() <= self.takes.keys(), f"{self.name} takes {', '.join(self.takes)}"
        rest = {name.rstrip("_"): value for name, value in given.items() if f"{{{name}}}" not in self.path}
        return self.path.format_map({name: quote(str(value), safe="") for name, value in given.items()}), rest


CALLS: Final[list[Call]] = []


def call(
    address: str, tag: str, first: Parameters = NO_MAPPING, last: Parameters = NO_MAPPING, **how: Any
) -> Callable[[Callable[..., Any]], Call]:
    """A decorator that makes a call, at an address such as `GET /relations`, of the function that answers it. Its
    parameters are those of the function, between the `first` and the `last`."""

    def made(answer: Callable[..., Any]) -> Call:
        method, path = address.split()
        kinds = get_type_hints(answer, include_extras=True)
        own = [one for one in inspect.signature(answer).parameters.values() if one.kind is not one.VAR_KEYWORD]
        takes = {one.name: (kinds[one.name], one.default) for one in own[1:]}
        CALLS.append(Call(answer.__name__, method, path, tag, answer, {**first, **takes, **last}, **how))
        return CALLS[-1]

    return made


def malformed(reason: str) -> ElastalogError:
    """A request whose parts do not fit together."""
    return error("E0926", reason=reason)


# --- relations -----------------------------------------------------------------------------------------------------


@call("GET /relations", "relations", tells="RelationsTold")
async def relations(asked: Asked) -> Any:
    """Every relation: its columns, how many facts it holds, and what the last epoch changed in it."""
    found, number = await asked.service.call(asked.reading.relations, asked.epoch)
    told = [
        {
            "name": one.name, "columns": columns_as_json(one.schema), "facts": one.facts, "rules": one.rules,
            "inserted": one.inserted, "deleted": one.deleted, "is_input": one.is_input, "is_output": one.is_output,
        }
        for one in found
    ]  # fmt: skip
    return {"epoch": number, "relations": told}


@call("GET /relations/{relation}", "relations", tells="PageTold")
async def relation_page(
    asked: Asked,
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
    find = asked.reading.search if where or order else asked.reading.page
    return await asked.page(
        find, relation, where, annotations=annotations, explicit=explicit, order=order, offset=offset, limit=limit
    )


# --- questions -----------------------------------------------------------------------------------------------------


@call("POST /query", "questions", last=SECONDS, tells="PageTold")
async def query(
    asked: Asked,
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
    return await asked.page(asked.reading.query, query, values, seconds=asked.seconds, **page)


@call("GET /proof", "questions")
def proof(asked: Asked, fact: FactText, depth: Annotated[int, Within(ge=0, le=1000)] | None = None) -> Any:
    """Why a fact holds: its best proof, to a depth. Facts that are not expanded can be asked for in turn."""
    found = asked.session.explain(fact, asked.limits.depth if depth is None else depth)
    return {"epoch": asked.session.epoch, **as_json(found)}


@call("GET /derivations", "questions")
def derivations(asked: Asked, fact: FactText) -> Any:
    """Every derivation of a fact, as proofs of one level."""
    found = list(map(as_json, asked.session.derivations(fact)))
    return {"epoch": asked.session.epoch, "fact": fact, "derivations": found}


@call("GET /why-not", "questions")
def why_not(
    asked: Asked,
    fact: FactText,
    limit: Annotated[int, Within(ge=1, le=1000)] = 5,
    rule: Annotated[int, Within(ge=1, le=1 << 30)] | None = None,
    bindings: Annotated[str, Within('{"y": 3}', max_length=100_000)] = "{}",
) -> Any:
    """Why a fact does not hold: the derivations of it that fail nearest to success. `rule`, by its number in the
    relation, and `bindings`, a JSON object of values by variable, restrict the search. `fact` may be a pattern, as
    `path(1, X)`: then how many facts fit it (`present`), and the derivations of others that fail nearest to success,
    each with its `conclusion`."""
    try:
        values = json.loads(bindings)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise malformed("`bindings` is not a JSON object")
    found = asked.session.why_not(fact, limit, rule=rule, bindings=values)
    return {"epoch": asked.session.epoch, **as_json(found)}


@call("GET /uses", "questions", changes="all")
def uses(asked: Asked, fact: FactText, all: bool = False, limit: Number | None = None) -> Any:  # noqa: A002
    """The facts that follow directly from a fact; with `all`, those that would go if it went. The first of them, and
    how many they are."""
    found = asked.session.uses(fact, all=all)
    return {"fact": fact, "total": len(found), "uses": list(map(fact_as_json, found[: asked.rows(limit)]))}


# --- debugging -----------------------------------------------------------------------------------------------------


@call("POST /localise", "debugging", last=SECONDS, changes=True)
def localise(
    asked: Asked, unwanted: Facts = NONE, missing: Facts = NONE, epochs: tuple[Epoch, Epoch] | None = None
) -> Any:
    """A smallest part of the last update, or of what happened between two `epochs`, that alone shows all faults: facts
    that hold and are `unwanted`, facts that do not and are `missing`."""
    found = asked.session.localise(unwanted, missing, epochs=epochs, time_limit=asked.reading.time_to_search())
    return found.as_object()


@call("POST /suggest", "debugging", last=SECONDS, changes=True)
def suggest(
    asked: Asked,
    unwanted: Facts = NONE,
    missing: Facts = NONE,
    epochs: tuple[Epoch, Epoch] | None = None,
    rejected: Facts = NONE,
    weights: dict[str, Annotated[float, Within(gt=0, lt=1e9)]] = NO_MAPPING,
    over: Literal["update", "facts"] | None = None,
    candidates: Annotated[Facts | dict[str, Rows] | None, Within(["edge(1, 2)"])] = None,
) -> Any:
    """A smallest repair: elements of the last update, or explicit facts, whose undoing removes all faults, which are as
    for `/localise`. Their `sign` is that of the update, `undoing` says what becomes of them. `undo` is the update that
    does it, to be sent to `/updates`. What is `rejected` stays as it is: facts, patterns (`edge(1, _)`), rules;
    `weights` say how dear it is to change each of them; `over`: parts of an `update`, or explicit `facts`, whenever
    they came. `candidates` bring missing facts about: facts to insert, or to delete (`-edge(1, 2)`), or lists of values
    by relation; unless given, what is found by asking why not."""
    given: Any = candidates
    if isinstance(given, dict):
        schemas = asked.session.schemas
        given = {name: rows_from_json(schemas.get(name), rows) for name, rows in given.items()}
    found = asked.session.suggest(
        unwanted, missing, rejected, weights or None, asked.reading.time_to_search(), epochs=epochs, over=over,
        candidates=given,
    )  # fmt: skip
    told = found.as_object()
    elements = zip(told["elements"], found.elements, strict=True)
    told["elements"] = [{**one, "undoing": element.undoing} for one, element in elements]
    return {**told, "undo": undo_as_json(found)}


@call("POST /blame", "debugging", last=SECONDS, changes=True)
def blame(asked: Asked, fact: FactText) -> Any:
    """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""
    found = asked.session.blame(fact)
    return {**found.as_object(), "fact": fact_as_json(found.fact)}


# --- program -------------------------------------------------------------------------------------------------------


@call("GET /program", "program", is_brief=True)
def program(asked: Asked) -> Any:
    """The text of the program, and its rules by number, from 1."""
    found = asked.session.program
    return {"name": found.tree.source.name, "text": found.tree.source.text, "rules": list(rule_texts(found))}


@call("POST /program/check", "program", at_any_epoch=False)
async def check(asked: Asked, program: ProgramText) -> Any:
    """The diagnostics of a whole program that might take the place of the present one, as `--format json` has them."""
    found = await asked.service.call(asked.reading.check_program, program)
    return {"is_correct": all(one.severity != "error" for one in found), "diagnostics": json.loads(render_json(found))}


@call("PATCH /program", "program", at_any_epoch=False, writes=True, heeds=KEY)
async def change(
    asked: Asked,
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
    edit = asked.edits(added, removed) if program is None else asked.becoming(program)
    return await (asked.previewed(edit, rows) if preview else asked.committed(edit, rows, source))


# --- updates -------------------------------------------------------------------------------------------------------


EDITS: Final[Parameters] = {
    "inserted": (RowsBy, NO_MAPPING),
    "deleted": (RowsBy, NO_MAPPING),
    "added_rules": (ProgramText, ""),
    "removed_rules": (list[int | str], NONE),
}
"""What updates hold."""


@call("POST /updates", "updates", EDITS, at_any_epoch=False, writes=True, heeds=KEY, tells="CommitTold")
async def update(
    asked: Asked,
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
    return await asked.committed(asked.edits(**edits, after=after, bad_rows=bad_rows), rows, source)


@call("POST /undo", "updates", at_any_epoch=False, writes=True, heeds=KEY, may_lack_body=True)
async def undo(
    asked: Asked,
    epoch: Epoch | None = None,
    preview: bool = False,
    rows: Count | None = None,
    source: Name | None = None,
) -> Any:
    """Takes back what an epoch did to explicit facts and rules, by default the last: the next epoch. Facts that have
    come or gone again since stay as they are, and so do declarations. Undoing an undoing does again what was undone.
    With `preview`, only what that would change is told."""
    edit = asked.undoing(epoch)
    return await (asked.previewed(edit, rows) if preview else asked.committed(edit, rows, source))


@call("POST /updates/preview", "updates", EDITS, SECONDS, tells="UpdateTold")
async def preview(asked: Asked, rows: Count | None = None, **edits: Any) -> Any:
    """What an update, as for `/updates`, would change, without an epoch; or what it would have changed at an earlier
    one."""
    return await asked.previewed(asked.edits(**edits), rows)


@call("POST /updates/forecast", "updates", EDITS, SECONDS, at_any_epoch=False, changes=True)
def forecast(asked: Asked, rows: Count | None = None, **edits: Any) -> Any:
    """What would be chosen for the strata that an update, as for `/updates`, reaches first: to update them, or to
    recompute them."""
    return {"strata": list(map(asdict, asked.session.forecast(asked.edits(**edits).of(asked.session))))}


# --- changes -------------------------------------------------------------------------------------------------------


@call("GET /changes", "changes", at_any_epoch=False, heeds=LAST, tells="EventTold")
async def changes(
    asked: Asked,
    since: Epoch | None = None,
    wait: Annotated[float, Within(ge=0, le=LONGEST_WAIT)] = 0,
    relations: Annotated[str, Within("path,edge", max_length=10_000)] = "",
    rows: Count | None = None,
) -> Any:
    """What changed after an epoch; without `since`, what the next one will change. With `Accept: text/event-stream`, an
    event for every epoch from then on, whose id is its number; otherwise one object, waited for up to `wait` seconds.
    `relations`: only these; `rows`: how many facts an event names at most."""
    only = frozenset(name.strip() for name in relations.split(",") if name.strip()) or None
    return await asked.listened(since, wait, only, rows)


# --- history -------------------------------------------------------------------------------------------------------


@call("GET /epochs", "history", is_brief=True)
def epochs(asked: Asked, offset: Offset = 0, limit: Number | None = None) -> Any:
    """What is known of every epoch, or of those until one, the last first."""
    found = asked.session.log()
    last = found[::-1][offset : offset + asked.rows(limit)]
    return {"total": len(found), "epochs": [one.written() for one in last]}


@call("GET /diff", "history", at_any_epoch=False)
def diff(asked: Asked, from_: Epoch, to: Epoch | None = None, rows: Count | None = None) -> Any:
    """What the epochs after one until another, by default the latest, did together: facts that came, went, or `moved`
    from the level `was` to another, rules, and declarations. The other way round when `to` is the earlier one."""
    last = asked.session.epoch if to is None else to
    asked.reading.require(from_, last)
    most, found = asked.changed_rows(rows), asked.session.diff(from_, last)
    relations = {name: difference_as_json(one, most) for name, one in found.items()}
    numbers = [one[f"{side}_count"] for one in relations.values() for side in ("inserted", "deleted", "moved")]
    return {
        "from": from_, "to": last, "impact": found.impact, "relations": relations,
        "is_cut": max(numbers, default=0) > most, "declarations": list(found.added_declarations),
        "rules": {"added": list(found.added_rules), "removed": list(found.removed_rules)},
    }  # fmt: skip


@call("GET /turns", "history")
def turns(asked: Asked, fact: FactText) -> Any:
    """The epochs, all or until one, in which a fact appeared, disappeared or changed its level, oldest first."""
    found = asked.session.history(fact)
    turns = [{"what": one.what, "was": one.was, "level": one.level, "epoch": one.entry.written()} for one in found]
    return {"fact": fact, "turns": turns}


# --- service -------------------------------------------------------------------------------------------------------


@call("GET /health", "service", at_any_epoch=False)
async def health(asked: Asked) -> Any:
    """Whether the service lives: needs no token, and waits for nothing."""
    return {"status": "ok", "version": asked.request.app.version, "epoch": asked.service.epoch}


@call("GET /metrics", "service", at_any_epoch=False, tells="text/plain")
async def metrics(asked: Asked) -> Any:
    """Epochs, impact, seconds by stratum and choice, facts, memory, readers and requests, as Prometheus reads them."""
    return await asked.service.call(asked.service.metrics)
