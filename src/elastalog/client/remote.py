"""What a client hands out: relations that a service holds, updates that are sent to it, events that it sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from elastalog.analysis.program import Value
from elastalog.analysis.values import public_value
from elastalog.diagnostics.arguments import stays_here
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.pending import DraftUpdate, once_committed
from elastalog.late import dataclass
from elastalog.relations.facts import Relation
from elastalog.relations.rows import values_of_fact
from elastalog.relations.schema import Schema

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from elastalog.client.decoding import Decoder

SHOWN = 10


class Asked(Protocol):
    """What relations and updates ask of their client."""

    @property
    def url(self) -> str: ...
    @property
    def decoder(self) -> Decoder: ...
    def query(self, text: str, /, *, parameters: Mapping[str, Any]) -> Relation: ...
    def page_told(self, relation: str, **query: Any) -> dict[str, Any]: ...
    def rows_told(self, name: str, rows: Any, added: str = "") -> list[list[Any]]: ...
    def send(self, update: Mapping[str, Any], batch: str | int | None = None) -> Changes: ...


class RemoteRelation:
    """Like `Relation`: `len`, iteration over tuples, `in`, conversion to Arrow, pandas and polars. It shows the latest
    epoch of the service whenever it is read, or that of the client which gave it."""

    def __init__(self, client: Asked, schema: Schema, fetch: Callable[..., pa.Table]) -> None:
        self.schema = schema
        self._client = client
        self._fetch = fetch

    __reduce__ = stays_here("a relation", "hand on its rows, `list(relation)`, or the table that `to_arrow` makes")

    @property
    def name(self) -> str:
        return self.schema.name

    def __len__(self) -> int:
        total: int = self._client.page_told(self.name, limit=0)["total"]
        return total

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(self.local())

    def __contains__(self, fact: object) -> bool:
        if not isinstance(fact, tuple) or len(fact) != self.schema.arity:
            return False
        try:
            values = map(public_value, values_of_fact(self.schema, fact))
        except ElastalogError:
            return False  # it can be no fact of this relation
        parameters = {f"a{place}": value for place, value in enumerate(values)}
        text = f"{self.name}({', '.join(f'?{name}' for name in parameters)})"
        return bool(self._client.query(text, parameters=parameters))

    def local(self, where: str = "", order: str = "", offset: int = 0, limit: int | None = None) -> Relation:
        """The facts, or a part of them, in this process. `where`: literals as in the body of a rule, in which the
        columns are variables; `order`: columns, prefixed with `-` for descending."""
        if not self.schema.arity:  # an Arrow table without columns does not say how many rows it has
            return self._client.decoder.relation(self.schema, [()] * len(self))
        return self._client.decoder.relation(
            self.schema, self._fetch(where=where, order=order, offset=offset, limit=limit)
        )

    def head(self, number: int = SHOWN) -> list[tuple[Value, ...]]:
        """The first facts, in no particular order."""
        return list(self.local(limit=number))

    def to_arrow(self, annotations: bool = False) -> pa.Table:
        """An Arrow table; with `annotations`, columns `@level` and `@count` follow, if the strategy keeps them."""
        return self._fetch(annotations=annotations)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame."""
        return self.local().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """A polars data frame."""
        return self.local().to_polars()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{self.schema} of {self._client.url}>"

    def _repr_html_(self) -> str:
        return self.local(limit=SHOWN)._repr_html_()


class RemoteUpdate(DraftUpdate):
    """What it holds is sent as one. After the commit: `changes`."""

    def __init__(self, client: Asked, source: str | None, batch: str | int | None) -> None:
        self._client = client
        self._batch = batch
        self._told: dict[str, Any] = {
            "inserted": {}, "deleted": {}, "added_rules": "", "removed_rules": [], "source": source,
        }  # fmt: skip
        self._changes: Changes | None = None

    def insert(self, relation: str, rows: Any) -> None:
        self._take("inserted", relation, rows)

    def delete(self, relation: str, rows: Any) -> None:
        self._take("deleted", relation, rows)

    def _take(self, side: str, relation: str, rows: Any) -> None:
        self.require_open()
        told = self._client.rows_told(relation, rows, self._told["added_rules"])
        self._told[side].setdefault(relation, []).extend(told)

    def add_rules(self, rules: str | Iterable[str]) -> None:
        self.require_open()
        for text in [rules] if isinstance(rules, str) else rules:
            self._told["added_rules"] += f"{text}\n"

    def remove_rules(self, rules: int | str | Iterable[int | str]) -> None:
        self.require_open()
        self._told["removed_rules"] += [rules] if isinstance(rules, int | str) else list(rules)

    def commit(self) -> Changes:
        self.require_open()
        self._changes = self._client.send(self._told, self._batch)
        self._end = "committed"
        return self._changes

    @property
    def changes(self) -> Changes:
        return once_committed(self._changes)


@dataclass(frozen=True, slots=True)
class Event:
    """What the epochs after `since` until `epoch` changed together; the next event begins where this one ends."""

    since: int
    epoch: int
    changes: Changes
    source: str | None = None
    batch: str | int | None = None


def sent_events(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Kind and content of every event that a service sends, from the lines of its answer."""
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
