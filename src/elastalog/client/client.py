"""The client of a service: the interface of a session, over HTTP."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from elastalog.analysis.listing import json_value, show_value
from elastalog.analysis.program import Base, Value
from elastalog.analysis.query import parameter_as_json, parameter_values, parameters_in
from elastalog.client.decoding import Decoder
from elastalog.client.remote import Event, RemoteRelation, RemoteUpdate, sent_events
from elastalog.client.transport import Broken, Calls, Transport
from elastalog.debugging.answers import Blame, Localisation, Suggestion
from elastalog.debugging.questions import facts_in
from elastalog.deprecated import INSTEAD, ONLY_OF_SESSIONS, Renamed, takes_key
from elastalog.diagnostics.arguments import listed, require_mapping, require_text, stays_here
from elastalog.diagnostics.diagnostic import error
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.differences import Differences
from elastalog.evaluation.pending import Epoch, epoch_to_undo, require_alone
from elastalog.evaluation.queries import planned_pattern
from elastalog.pipeline.files.policy import FAIL, BadChanges, BadRows, Mode, as_bad_rows
from elastalog.pipeline.files.read import facts_given, said_of_text
from elastalog.prepared import PreparedDecision, PreparedQuery
from elastalog.program import Program, as_program
from elastalog.provenance.absence import Absence
from elastalog.provenance.fact import Fact, Written, no_fact
from elastalog.provenance.proof import Proof
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Column, Schema, UnknownRelation, schema_named
from elastalog.storage.entries import LogEntry, as_moment, in_utc, require_epochs
from elastalog.storage.history import Turn

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")

_ELEMENTS = 'write facts as in the language: `["edge(1, 2)"]`'
MOST_ROWS = 1_000_000
"""The most changed facts that an answer may list."""


def connect(url: str, token: str | None = None, *, timeout: float = 60.0) -> Client:
    """A client of the service at a URL, as printed by `elastalog serve`. `token`: the token of the service, by default
    that of the URL, or of the environment variable `ELASTALOG_TOKEN`. `timeout`: seconds to wait for an answer."""
    require_text("the address of a service is a text", url, "give what `elastalog serve` prints")
    url, _, given = url.partition("?token=")  # as `elastalog workbench` prints it
    token = given or None if token is None else token
    return Client(Transport(url, os.environ.get("ELASTALOG_TOKEN") if token is None else token, timeout))


class Client(Renamed):
    """A session held by a service, with the same methods and kinds of answers. It keeps nothing but the program. `at`
    gives a client of an earlier epoch. Several threads may share one."""

    _instead: ClassVar = {**INSTEAD, **ONLY_OF_SESSIONS}

    def __init__(self, transport: Transport, epoch: int | str | None = None) -> None:
        self._transport = transport
        self._calls = Calls(transport, epoch)
        self._decoder: Decoder | None = None
        self.decoder  # noqa: B018  # whether there is a service, and the token fits, is seen now

    __reduce__ = stays_here("a client", "connect in the process that asks")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the service goes on."""
        self._transport.close()

    def __repr__(self) -> str:
        return f"<Client of {self.url}: epoch {self.epoch}>"

    @property
    def url(self) -> str:
        return self._transport.url

    # --- reading ---------------------------------------------------------------------------------------------------

    @property
    def decoder(self) -> Decoder:
        """The decoder of answers, for the program as last read."""
        if self._decoder is None:
            told = self._calls.ask("GET /program")
            self._decoder = Decoder(Program.reopen(told["text"], told["name"]))
        return self._decoder

    def reload(self) -> None:
        """Reads the program again. Happens automatically when an answer mentions new rules or relations."""
        self._decoder = None

    @property
    def program(self) -> Program:
        """The program, as it is now."""
        self.reload()
        return self.decoder.program

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schemas of its relations, by name."""
        return self.decoder.schemas

    @property
    def epoch(self) -> int:
        """The number of the latest epoch, or of the one that this client asks."""
        found: int = self._calls.ask("GET /relations")["epoch"]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.schemas)

    def __contains__(self, name: object) -> bool:
        return name in self.schemas

    def __getitem__(self, name: str) -> RemoteRelation:
        if name not in self.schemas:
            self.reload()
        return RemoteRelation(self._calls, self.decoder, schema_named(self.schemas, name))

    def explicit(self, name: str) -> Relation:
        """The explicit facts of a relation: those that were given, whether or not rules derive them too."""
        return self[name].local(explicit=True)

    def query(self, text: str, /, parameters: Mapping[str, Any] | None = None, **values: Any) -> Relation:
        """The answers to a query, with parameters `?name`; see `Session.query`. Records are texts."""
        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        given = parameter_values({**(parameters or {}), **values})
        sent = {name: parameter_as_json(value) for name, value in given.items()}
        table = self._calls.table("POST /query", query=text, parameters=sent)
        if not table.num_columns:  # then it does not say how many rows it has
            total = self._calls.ask("POST /query", query=text, parameters=sent)["total"]
            return self.decoder.relation(Schema("answer", ()), [()] * total)
        schema = Schema("answer", tuple(Column(field.name, _base(field.type)) for field in table.schema))
        return self.decoder.relation(schema, table)

    def prepare(self, text: str, /) -> PreparedQuery:
        """A query that is asked often; see `Session.prepare`."""
        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        checked = self.decoder.program.checked
        names = parameters_in(text, checked)
        asked = planned_pattern(text, checked, self.schemas)
        if asked is not None and asked.is_decision:
            return PreparedDecision(self, text, asked)
        return PreparedQuery(self, text, names)

    # --- updating --------------------------------------------------------------------------------------------------

    @takes_key
    def update(
        self, source: str | None = None, batch: str | int | None = None, *, bad_rows: Mode | BadRows | None = None
    ) -> RemoteUpdate:
        """An update, as a context manager: sent on leaving the block, dropped if an exception leaves it. With a `batch`
        it is committed once however often it is sent, for instance again after a lost answer. `bad_rows`: how to handle
        invalid rows, which are found and set aside in this process; by default they are errors."""
        return RemoteUpdate(self, source, batch, as_bad_rows(bad_rows))

    @takes_key
    def apply(
        self,
        inserted: Mapping[str, Any] | Sequence[Fact] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Any] | Sequence[Fact] | None = None,
        *,
        undo: Epoch | None = None,
        source: str | None = None,
        batch: str | int | None = None,
        bad_rows: Mode | BadRows | None = None,
    ) -> Changes:
        """Commits rows by relation, files that hold them, or a diff file, as the next epoch, and returns what it
        changed; or takes back what an epoch did (`undo`). Files are read in this process. `batch` and `bad_rows` as
        for `update`."""
        if undo is not None:
            require_alone(undo, inserted, deleted)
            return self._undone(undo, batch, source=source)
        return self.update(source, batch, bad_rows=bad_rows).take(inserted, deleted).commit()

    @takes_key
    def change_rules(
        self,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
        *,
        preview: bool = False,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Adds and removes rules, as an update; with `preview`, only returns what that would change. `batch` as for
        `update`."""
        if preview:
            return self.preview(added=added, removed=removed)
        return self.update(source, batch).take(added=added, removed=removed).commit()

    @takes_key
    def upgrade(
        self,
        program: str | os.PathLike[str] | Program,
        *,
        preview: bool = False,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Replaces the program with another: a path, a text, or a `Program`. `batch` as for `update`."""
        text = as_program(program).tree.source.text
        return self._commit("PATCH /program", batch, program=text, preview=preview, source=source)

    def preview(
        self,
        inserted: Mapping[str, Any] | Sequence[Fact] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Any] | Sequence[Fact] | None = None,
        *,
        undo: Epoch | None = None,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> Changes:
        """What an update, or undoing an epoch, would change; nothing is committed."""
        if undo is not None:
            require_alone(undo, inserted, deleted, added or None, removed or None)
            return self._undone(undo, None, preview=True)
        edits = self.update().take(inserted, deleted, added, removed).edits
        return self._changes(self._calls.ask("POST /updates/preview", rows=MOST_ROWS, **edits), edits["added_rules"])

    def forecast(
        self,
        inserted: Mapping[str, Any] | Sequence[Fact] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Any] | Sequence[Fact] | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> tuple[Forecast, ...]:
        """What the strategy would choose for an update; see `Session.forecast`."""
        told = self._calls.ask_last(
            "POST /updates/forecast", **self.update().take(inserted, deleted, added, removed).edits
        )
        return tuple(Forecast(**{**one, "relations": tuple(one["relations"])}) for one in told["strata"])

    def send(self, update: Mapping[str, Any], batch: str | int | None = None) -> Changes:
        """Sends an update in the form that `POST /updates` takes."""
        return self._commit("POST /updates", batch, **update)

    def _undone(self, epoch: Epoch, batch: str | int | None, **options: Any) -> Changes:
        return self._commit("POST /undo", batch, epoch=epoch_to_undo(epoch), **options)

    def _commit(self, call: str, batch: str | int | None, **body: Any) -> Changes:
        told = self._calls.ask_last(call, None if batch is None else str(batch), rows=MOST_ROWS, **body)
        if call != "POST /updates" or body.get("added_rules") or body.get("removed_rules"):
            self.reload()  # its rules may be others now
        return self._changes(told)

    def rows_told(self, name: str, rows: Any, added: str = "", bad: BadChanges | None = None) -> list[list[Any]]:
        """Encodes facts of a relation, which the `added` rules may declare, from any form that a session takes, local
        files included. Invalid rows go to `bad`; without it they are errors."""
        if name not in self.schemas:
            self.reload()
        decoder = self.decoder.with_rules(added) if name not in self.schemas else self.decoder
        schema = schema_named(decoder.schemas, name)
        bad = bad or BadChanges(FAIL)
        if bad.policy.lets_pass or isinstance(rows, str | os.PathLike):
            said = said_of_text(decoder.program.checked, name)
            (rows, wrong, converted), places, _ = facts_given(schema, rows, said)
            bad.add(name, places, rows.num_rows, wrong, converted)
        return [list(map(json_value, fact)) for fact in decoder.relation(schema, rows)]

    def _changes(self, told: Mapping[str, Any], added: str = "") -> Changes:
        try:
            return self.decoder.changes(told)
        except UnknownRelation:
            self.reload()
        return self.decoder.with_rules(added).changes(told)  # a preview may be of a relation that is still to come

    # --- asking why ------------------------------------------------------------------------------------------------

    def explain(self, fact: Written, depth: int | None = None) -> Proof:
        """Why a fact holds: its best proof, to a depth (as far as the service goes by default)."""
        told = self._calls.ask("GET /proof", fact=_written(fact), depth=1000 if depth is None else depth)
        return self._decoder_for(told["rules"]).proof(told, _Source(self, told["epoch"]))

    def derivations(self, fact: Written) -> tuple[Proof, ...]:
        """Every derivation of a fact that holds, as proofs of one level."""
        told = self._calls.ask("GET /derivations", fact=_written(fact))
        source = _Source(self, told["epoch"])
        return tuple(self._decoder_for(one["rules"]).proof(one, source) for one in told["derivations"])

    def why_not(
        self,
        fact: Written,
        limit: int = 5,
        *,
        rule: int | None = None,
        bindings: Mapping[str, Value] | None = None,
        depth: int = 1,
    ) -> Absence:
        """Why a fact does not hold: the derivations of it that come nearest to success; with a pattern, `path(1, X)`,
        why no other fact matches it. With a `depth` of several levels, also why their literals fail."""
        values = {name: json_value(value) for name, value in parameter_values(bindings or {}).items()}
        asked: dict[str, Any] = {"limit": limit, "rule": rule, "bindings": json.dumps(values), "depth": depth}
        told = self._calls.ask("GET /why-not", fact=_written(fact), **asked)
        return self._read(Decoder.absence, told, _Source(self, told["epoch"]))

    def uses(self, fact: Written, all: bool = False) -> tuple[Fact, ...]:  # noqa: A002
        """The facts that follow directly from a fact; with `all`, those that would disappear with it. The service may
        list only the first of them."""
        told = self._calls.ask("GET /uses", fact=_written(fact), all=all, limit=MOST_ROWS)
        return tuple(self.decoder.fact(one) for one in told["uses"])

    def _decoder_for(self, rules: Sequence[Mapping[str, Any]]) -> Decoder:
        if not self.decoder.knows_rules(rules):
            self.reload()
        return self.decoder

    # --- debugging -------------------------------------------------------------------------------------------------

    def localise(
        self,
        unwanted: Sequence[str] = (),
        missing: Sequence[str] = (),
        *,
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
    ) -> Localisation:
        """A smallest part of the last update, or of the changes between two epochs, that shows all faults."""
        faults: dict[str, Any] = _faults(unwanted, missing)
        return self.decoder.localisation(self._calls.ask("POST /localise", epochs=epochs, seconds=time_limit, **faults))

    def suggest(
        self,
        unwanted: Sequence[str] = (),
        missing: Sequence[str] = (),
        rejected: Sequence[str] = (),
        weights: Mapping[str, float] | None = None,
        time_limit: float | None = None,
        *,
        epochs: tuple[int, int] | None = None,
        over: str | None = None,
        candidates: Mapping[str, Any] | Sequence[Any] | None = None,
    ) -> Suggestion:
        """A smallest repair; see `Session.suggest`. Its `apply()` sends the repair, which is refused if the service has
        committed other epochs since."""
        require_mapping("weights are numbers by element", weights, 'give a mapping, such as `{"edge(1, 2)": 2}`')
        body = {
            **_faults(unwanted, missing),
            "rejected": [_written(one) for one in listed("rejected elements are given in a list", rejected, _ELEMENTS)],
            "weights": {_written(element): weight for element, weight in (weights or {}).items()},
            "epochs": epochs, "over": over, "candidates": self._candidates(candidates), "seconds": time_limit,
        }  # fmt: skip
        told = self._calls.ask("POST /suggest", **body)
        return self.decoder.suggestion(told, lambda _: self.send({**told["undo"], "source": "repair"}))

    def _candidates(self, given: Any) -> Any:
        if given is None:
            return None
        if isinstance(given, Mapping):
            return {name: self.rows_told(name, rows) for name, rows in given.items()}
        return [_written(one) for one in listed("candidates are facts", given, _ELEMENTS)]

    def blame(self, fact: Written) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""
        return self.decoder.blame(self._calls.ask("POST /blame", fact=_written(fact)))

    # --- history ---------------------------------------------------------------------------------------------------

    def at(self, epoch: int | date | str) -> Client:
        """A client of an earlier epoch, by its number or by a time at which it was the current one; see
        `Session.at`."""
        if isinstance(epoch, date | str):
            return Client(self._transport, in_utc(as_moment(epoch)).isoformat())
        require_epochs(epoch)
        return Client(self._transport, int(epoch))

    def log(self, limit: int | None = None) -> tuple[LogEntry, ...]:
        """The epochs that the service knows, up to that of the client, oldest first: all, or the last `limit`."""
        told = self._calls.ask("GET /epochs", limit=MOST_ROWS if limit is None else limit)
        return tuple(LogEntry.read(one) for one in reversed(told["epochs"]))

    def history(self, fact: Written) -> tuple[Turn, ...]:
        """The epochs, up to that of the client, in which a fact appeared, disappeared or changed its level, oldest
        first."""
        told = self._calls.ask("GET /turns", fact=_written(fact))
        return tuple(Turn(LogEntry.read(one["epoch"]), one["what"], one["was"], one["level"]) for one in told["turns"])

    def changes_since(self, epoch: int) -> Changes:
        """The changes of all epochs after one, together."""
        last = self.epoch
        return self._changes(self._diff(epoch, last))

    def diff(self, first: int, last: int | None = None) -> Differences:
        """The net changes from one epoch to another, by default to the latest; see `Session.diff`."""
        return self._read(Decoder.differences, self._diff(first, self.epoch if last is None else last))

    def _diff(self, first: int, last: int) -> Any:
        require_epochs(first, last)
        asked: dict[str, Any] = {"from": first, "to": last, "rows": MOST_ROWS}
        return self._calls.ask_last("GET /diff", **asked)

    def _read(self, read: Callable[..., T], *told: Any) -> T:
        """Reads an answer that may mention new rules or relations."""
        try:
            return read(self.decoder, *told)
        except (KeyError, UnknownRelation):
            self.reload()
        return read(self.decoder, *told)

    def listen(self, since: int | None = None, *, retries: int = 10) -> Iterator[Event]:
        """Every change from an epoch on (by default from now), without end. A broken connection is resumed without a
        gap; raises ElastalogError if the service does not come back."""
        if self._calls.epoch is not None:
            raise error("E0814.listen")
        return self._heard(since, retries)

    def _heard(self, last: int | None, retries: int) -> Iterator[Event]:
        left = retries
        while True:
            try:
                for event in self._events(last):
                    last, left = event.epoch, retries
                    if event.since != event.epoch:
                        yield event
            except Broken:
                if left <= 0:
                    raise
            left -= 1
            if left < 0:
                return
            time.sleep(min(2.0, 0.05 * 2 ** (retries - left)))

    def _events(self, last: int | None) -> Iterator[Event]:
        for kind, told in sent_events(self._transport.lines("/changes", {"rows": MOST_ROWS}, last)):
            if kind == "epoch":  # where we stand
                nothing = self.decoder.changes({"relations": {}, "impact": 0})
                yield Event(told["epoch"], told["epoch"], nothing)
            else:
                yield Event(told["since"], told["epoch"], self._changes(told), told["source"], told["batch"])


class _Source:
    """Where a proof gets further levels from: the same epoch of the service."""

    def __init__(self, client: Client, epoch: int) -> None:
        self._client = client
        self._epoch = epoch

    def prove(self, fact: Fact, depth: int | None) -> Proof:
        return self._client.at(self._epoch).explain(fact, depth)

    def explain(self, fact: Fact) -> Proof:
        return self.prove(fact, None)

    def explain_absence(self, fact: Fact | str) -> Absence:
        return self._client.at(self._epoch).why_not(fact)


def _faults(unwanted: Any, missing: Any) -> dict[str, list[str]]:
    sides = (("unwanted", unwanted), ("missing", missing))
    return {name: list(map(_written, facts_in(f"{name} facts are given in a list", side))) for name, side in sides}


def _written(given: Any) -> str:
    """A fact, or an element of an update, as text."""
    match given:
        case str():
            return given
        case ("+" | "-" as sign, fact):
            return f"{sign}{_written(fact)}"
        case (str() as name, tuple() | list() as values):
            return f"{name}({', '.join(map(show_value, values))})"
    raise no_fact(given)


def _base(kind: pa.DataType) -> Base:
    bases = {"int64": Base.NUMBER, "uint64": Base.UNSIGNED, "double": Base.FLOAT}
    return bases.get(str(kind), Base.SYMBOL)
