"""What a client returns: relations held by a service, updates to be sent to it, and its events."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from elastalog.analysis.program import Value
from elastalog.analysis.query import parameter_as_json
from elastalog.analysis.values import public_value
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.pending import DraftUpdate, fill, once_committed
from elastalog.late import dataclass
from elastalog.pipeline.files.diff import read_diff
from elastalog.pipeline.files.policy import FAIL, BadChanges, BadRows, Report
from elastalog.pipeline.spark.for_sessions import make_frame
from elastalog.relations.facts import SHOWN, FactWords, Relation
from elastalog.relations.rows import values_of_fact
from elastalog.relations.schema import Schema
from elastalog.relations.tables import with_types

if TYPE_CHECKING:
    import pyarrow as pa

    from elastalog.client.decoding import Decoder
    from elastalog.client.transport import Calls


class RemoteRelation(Relation):
    """A relation held by a service, at the epoch of its client, by default the latest at each access. `local` lets the
    service filter and sort it; `filter` and `sort` do so in this process."""

    def __init__(self, calls: Calls, decoder: Decoder, schema: Schema) -> None:
        super().__init__(schema, decoder.dictionary, self._words, size=self._total, make_frame=make_frame)
        self._calls = calls
        self._decoder = decoder
        self._address = f"GET /relations/{quote(schema.name, safe='')}"

    def _words(self) -> FactWords:
        return self.local().fact_words()

    def _total(self, explicit: bool = False) -> int:
        total: int = self._calls.ask(self._address, limit=0, explicit=explicit)["total"]
        return total

    def __contains__(self, fact: object) -> bool:
        if not self._may_hold(fact):
            return False
        try:
            values = map(public_value, values_of_fact(self.schema, fact))
        except ElastalogError:
            return False  # it cannot be a fact of this relation
        parameters = {f"a{place}": parameter_as_json(value) for place, value in enumerate(values)}
        text = f"{self.name}({', '.join(f'?{name}' for name in parameters)})"
        return bool(self._calls.ask("POST /query", query=text, parameters=parameters, limit=0)["total"])

    def local(
        self, where: str = "", order: str = "", offset: int = 0, limit: int | None = None, *, explicit: bool = False
    ) -> Relation:
        """The facts, or some of them, fetched into this process. `where`: literals as in the body of a rule, in which
        the columns are variables; `order`: columns, prefixed with `-` for descending; `explicit`: only facts that were
        given, in any order, whether or not rules derive them too."""
        if not self.schema.arity:  # an Arrow table without columns does not say how many rows it has
            return self._decoder.relation(self.schema, [()] * self._total(explicit))
        wanted = {"where": where, "order": order, "offset": offset, "limit": limit, "explicit": explicit}
        return self._decoder.relation(self.schema, self._calls.table(self._address, **wanted))

    def head(self, number: int = SHOWN) -> list[tuple[Value, ...]]:
        """The first facts, in no particular order."""
        return list(self.local(limit=number))

    def to_arrow(self, annotations: bool = False, types: Mapping[str, Any] | None = None) -> pa.Table:
        """An Arrow table; with `annotations`, followed by columns `@level` and `@count` if the strategy keeps them.
        `types` as for a relation of a session."""
        table = self._calls.table(self._address, annotations=annotations)
        return with_types(table, types) if types else table


class Sender(Protocol):
    """The methods of its client that an update calls."""

    @property
    def decoder(self) -> Decoder: ...
    def rows_told(self, name: str, rows: Any, added: str = "", bad: BadChanges | None = None) -> list[list[Any]]: ...
    def send(self, update: Mapping[str, Any], batch: str | int | None = None) -> Changes: ...


class RemoteUpdate(DraftUpdate):
    """An update, sent as one request. After the commit it has `changes`."""

    def __init__(self, client: Sender, source: str | None, batch: str | int | None, policy: BadRows = FAIL) -> None:
        self._client = client
        self._source = source
        self._batch = batch
        self._bad = BadChanges(policy)
        self.edits: dict[str, Any] = {"inserted": {}, "deleted": {}, "added_rules": "", "removed_rules": []}
        """Its content, in the form in which it is sent."""
        self._changes: Changes | None = None

    def insert(self, relation: str, rows: Any) -> None:
        self._add("inserted", relation, rows)

    def delete(self, relation: str, rows: Any) -> None:
        self._add("deleted", relation, rows)

    def _add(self, side: str, relation: str, rows: Any) -> None:
        self.require_open()
        told = self._client.rows_told(relation, rows, self.edits["added_rules"], self._bad)
        self.edits[side].setdefault(relation, []).extend(told)

    def take(
        self, inserted: Any = None, deleted: Any = None, added: str | Iterable[str] = "", removed: Any = ()
    ) -> RemoteUpdate:
        """Stages facts by relation, or the changes of a diff file, and rules, to insert and to delete."""
        if isinstance(inserted, str | os.PathLike):
            self.read(inserted)
            inserted = None
        self.remove_rules(removed)
        self.add_rules(added)
        fill(self, inserted, deleted)
        return self

    def read(self, path: str | os.PathLike[str]) -> None:
        """Stages the changes of a diff file, or of a folder of them."""
        self.require_open()
        decoder = self._client.decoder.with_rules(self.edits["added_rules"])
        diff = read_diff(
            Path(path), decoder.schemas, lambda more: decoder.with_rules("\n".join(more)).schemas,
            keep_bad=self._bad.policy.lets_pass,
        )  # fmt: skip
        for relation, bad in diff.bad.items():
            self._bad.add_of_diff(relation, bad)
        self.take(diff.inserted, diff.deleted, diff.added_rules, diff.removed_rules)

    def add_rules(self, rules: str | Iterable[str]) -> None:
        self.require_open()
        for text in [rules] if isinstance(rules, str) else rules:
            self.edits["added_rules"] += f"{text}\n" if text.strip() else ""

    def remove_rules(self, rules: int | str | Iterable[int | str]) -> None:
        self.require_open()
        self.edits["removed_rules"] += [rules] if isinstance(rules, int | str) else list(rules)

    def commit(self) -> Changes:
        self.require_open()
        self._bad.set_aside()
        self._changes = self._client.send({**self.edits, "source": self._source}, self._batch)
        self._changes.reports = self.reports
        self._end = "committed"
        return self._changes

    @property
    def changes(self) -> Changes:
        return once_committed(self._changes)

    @property
    def reports(self) -> tuple[Report, ...]:
        """Reports on invalid rows, by relation; empty where invalid rows are errors."""
        return self._bad.reports


@dataclass(frozen=True, slots=True)
class Event:
    """What the epochs after `since` up to `epoch` changed together; the next event begins where this one ends."""

    since: int
    epoch: int
    changes: Changes
    source: str | None = None
    batch: str | int | None = None


def sent_events(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Type and content of every event in the lines of an event stream."""
    kind = data = ""
    for line in lines:
        name, _, text = line.partition(": ")
        if name == "event":
            kind = text
        elif name == "data":
            data = text
        elif not line and data:
            yield kind, json.loads(data)
            kind = data = ""
