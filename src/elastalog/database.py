"""What a session and a client have in common: `Database`, and the queries that both prepare.

Code that takes a `Database` works with a session in this process and with a service elsewhere.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, overload

from elastalog.diagnostics.arguments import wrong_kind
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.late import dataclass

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date
    from typing import Self

    import numpy as np

    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Blame, Localisation, Suggestion
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.costs import Forecast
    from elastalog.evaluation.differences import Differences
    from elastalog.evaluation.pending import DraftUpdate
    from elastalog.evaluation.queries import PatternQuery
    from elastalog.pipeline.files.policy import Mode
    from elastalog.program import Program
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.fact import Fact
    from elastalog.provenance.proof import Proof
    from elastalog.relations.facts import Relation
    from elastalog.relations.schema import Schema
    from elastalog.storage.entries import LogEntry
    from elastalog.storage.history import Turn

Written: TypeAlias = "str | tuple[str, tuple[Value, ...]]"
"""A fact: as in the language, `path(1, 4)`, or as a pair, `("path", (1, 4))`."""


class PreparedQuery:
    """A query that is asked often, with other values for its parameters each time. Made by `db.prepare`; it is a
    function of the parameters, which are given by name or in the order of `parameters`."""

    def __init__(self, db: Database, text: str, parameters: tuple[str, ...]) -> None:
        self._db = db
        self.text = text
        self.parameters = parameters

    def __call__(self, /, *values: Any, **named: Any) -> Relation:
        """The answers, over the facts of the latest epoch."""
        return self._db.query(self.text, parameters=self._by_name(values, named))

    def _by_name(self, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The values by parameter. Raises ElastalogError if there are too many or too few, or one is there twice."""
        if len(values) > len(self.parameters):
            raise wrong_kind(f"{self!r} takes {len(self.parameters)} values", values, "give one for each parameter")
        found = dict(zip(self.parameters, values, strict=False))
        for name in named:
            if name in found:
                raise wrong_kind(f"`?{name}` has one value", (found[name], named[name]), "give it once")
        found.update(named)
        lacking = [name for name in self.parameters if name not in found]
        if lacking and found.keys() <= set(self.parameters):
            by_name = not any(map(iskeyword, self.parameters))
            call = ", ".join(f"{name}=…" if by_name else "…" for name in self.parameters)
            raise error("E0619.prepared", name=lacking[0], text=self.text.strip(), call=call)
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text.strip()}>"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a prepared decision with its reason; true or false, as the fact that was asked for holds or not.
    `reason`: the proof of the fact, or why it does not hold."""

    fact: Fact
    holds: bool
    reason: Proof | Absence

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return str(self.reason)


class PreparedDecision(PreparedQuery):
    """A prepared query of one atom without variables, `ok(?user, ?resource)`: whether a fact holds."""

    def __init__(self, db: Database, text: str, asked: PatternQuery) -> None:
        super().__init__(db, text, asked.parameters)
        self._asked = asked

    @overload  # type: ignore[override]  # a fact holds or not: there are no answers to list
    def __call__(self, /, *values: Any, explain: Literal[False] = False, **named: Any) -> bool: ...
    @overload
    def __call__(self, /, *values: Any, explain: Literal[True], **named: Any) -> Decision: ...
    def __call__(self, /, *values: Any, explain: bool = False, **named: Any) -> bool | Decision:
        """Whether the fact holds in the latest epoch. With `explain`, a `Decision`, which says why, or why not."""
        if named or len(values) != len(self.parameters):
            values = self._in_order(self._by_name(values, named))
        return self._explained(values) if explain else self._holds(values)

    def many(self, /, *values: Any, **named: Any) -> np.ndarray:
        """Many decisions of one epoch: an array of truth values. Of each parameter a list or an array of values, all of
        one length, or one value for all."""
        import numpy as np

        given = self._in_order(self._by_name(values, named))
        lengths = {len(column) for column in given if is_column(column)}
        if len(lengths) > 1:
            told = "the values of all parameters are equally many"
            raise wrong_kind(told, sorted(lengths), "give lists of one length, or one value for all")
        size = lengths.pop() if lengths else 1
        columns = [_listed(column) if is_column(column) else [column] * size for column in given]
        rows = list(zip(*columns, strict=True)) if columns else [()] * size
        return np.array(self._hold(rows), np.bool_)

    def _in_order(self, named: dict[str, Any]) -> tuple[Any, ...]:
        if named.keys() != set(self.parameters):
            self._db.query(self.text, parameters=named)  # says which one is missing, or unknown
        return tuple([named[name] for name in self.parameters])

    def _holds(self, values: Sequence[Any]) -> bool:
        """Whether the fact with these values holds."""
        return bool(self._db.query(self.text, parameters=dict(zip(self.parameters, values, strict=True))))

    def _hold(self, rows: Sequence[Sequence[Any]]) -> Sequence[bool] | np.ndarray:
        """Which of many facts hold."""
        return [self._holds(row) for row in rows]

    def _explained(self, values: Sequence[Any]) -> Decision:
        from elastalog.provenance.fact import Fact

        fact = Fact(self._asked.relation, tuple(self._asked.arguments(values)))
        try:
            return Decision(fact, True, self._db.explain(fact))
        except ElastalogError as error:
            if error.diagnostics[0].code != "E0701":
                raise
        return Decision(fact, False, self._db.why_not(fact))


def is_column(given: object) -> bool:
    """Whether the values of a parameter are many: a list, or an array, of Arrow, numpy, pandas or polars."""
    return isinstance(given, list) or hasattr(given, "dtype") or hasattr(given, "to_pylist")


def _listed(column: Any) -> list[Any]:
    """The values of a list or an array."""
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


class Database(Protocol):
    """The calls that a session and a client share, with the same arguments and the same kinds of answers."""

    @property
    def program(self) -> Program:
        """The program of the latest epoch."""

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schemas of its relations, by name."""

    @property
    def epoch(self) -> int:
        """The number of the latest epoch."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: Any) -> None: ...
    def __getitem__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object) -> bool: ...

    def close(self) -> None:
        """Ends the session, or the connection."""

    def explicit(self, name: str) -> Relation:
        """The explicit facts of a relation."""

    def query(self, text: str, /, parameters: Mapping[str, Any] | None = None, **values: Any) -> Relation:
        """The answers to a query."""

    def prepare(self, text: str, /) -> PreparedQuery:
        """A query, or a decision, to be asked often."""

    def update(
        self, source: str | None = None, batch: str | None = None, *, bad_rows: Mode | None = None
    ) -> DraftUpdate:
        """An update to fill."""

    def apply(
        self,
        inserted: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Any] | None = None,
        *,
        source: str | None = None,
        batch: str | None = None,
        bad_rows: Mode | None = None,
    ) -> Changes:
        """Applies an update."""

    def change_rules(
        self,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
        *,
        preview: bool = False,
        source: str | None = None,
        batch: str | None = None,
    ) -> Changes:
        """Adds and removes rules."""

    def upgrade(
        self,
        program: str | os.PathLike[str] | Program,
        *,
        preview: bool = False,
        source: str | None = None,
        batch: str | None = None,
    ) -> Changes:
        """Goes over to another program."""

    def preview(
        self,
        inserted: Mapping[str, Any] | None = None,
        deleted: Mapping[str, Any] | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> Changes:
        """What an update would change."""

    def forecast(
        self,
        inserted: Mapping[str, Any] | None = None,
        deleted: Mapping[str, Any] | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> tuple[Forecast, ...]:
        """What would be chosen for the strata that an update reaches first."""

    def explain(self, fact: Written, depth: int | None = None) -> Proof:
        """Why a fact holds."""

    def derivations(self, fact: Written) -> tuple[Proof, ...]:
        """Every derivation of a fact."""

    def why_not(
        self,
        fact: Written,
        limit: int = 5,
        *,
        rule: int | None = None,
        bindings: Mapping[str, Value] | None = None,
    ) -> Absence:
        """Why a fact does not hold."""

    def uses(self, fact: Written, all: bool = False) -> tuple[Fact, ...]:  # noqa: A002  # its public name
        """What follows from a fact."""

    def localise(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        *,
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
    ) -> Localisation:
        """What shows the faults."""

    def suggest(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        rejected: Sequence[Any] = (),
        weights: Mapping[Any, float] | None = None,
        time_limit: float | None = None,
        *,
        epochs: tuple[int, int] | None = None,
        over: str | None = None,
        candidates: Mapping[str, Any] | Sequence[Any] | None = None,
    ) -> Suggestion:
        """A smallest repair."""

    def blame(self, fact: Written) -> Blame:
        """Since when, and why."""

    def at(self, epoch: int | date | str) -> Database:
        """An earlier epoch."""

    def log(self) -> tuple[LogEntry, ...]:
        """What is known of every epoch."""

    def history(self, fact: Written) -> tuple[Turn, ...]:
        """The epochs in which a fact changed."""

    def changes_since(self, epoch: int) -> Changes:
        """What the epochs after one changed together."""

    def diff(self, first: int, last: int | None = None) -> Differences:
        """The net changes from one epoch to another, by default to the latest."""
