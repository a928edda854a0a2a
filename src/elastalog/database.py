"""What a session and a client have in common: `Database`, and the queries that both prepare.

Code that takes a `Database` works with a session in this process and with a service elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Self

    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Blame, Localisation, Suggestion
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.draft import DraftUpdate
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
    function of the parameters."""

    def __init__(self, text: str, parameters: tuple[str, ...], ask: Callable[[Mapping[str, Any]], Relation]) -> None:
        self.text = text
        self.parameters = parameters
        self._ask = ask

    def __call__(self, /, **values: Any) -> Relation:
        """The answers, over the facts of the latest epoch."""
        return self._ask(values)

    def __repr__(self) -> str:
        return f"<PreparedQuery {self.text.strip()}>"


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

    def query(self, text: str, /, *, parameters: Mapping[str, Any] | None = None, **values: Any) -> Relation:
        """The answers to a query."""

    def prepare(self, text: str, /) -> PreparedQuery:
        """A query to be asked often."""

    def update(self, source: str | None = None, batch: str | None = None) -> DraftUpdate:
        """An update to fill."""

    def apply(
        self,
        inserted: Mapping[str, Any] | None = None,
        deleted: Mapping[str, Any] | None = None,
        *,
        source: str | None = None,
        batch: str | None = None,
    ) -> Changes:
        """Applies an update."""

    def change_rules(
        self,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
        *,
        source: str | None = None,
        batch: str | None = None,
    ) -> Changes:
        """Adds and removes rules."""

    def upgrade(
        self, program: str, *, preview: bool = False, source: str | None = None, batch: str | None = None
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

    def uses(self, fact: Written, all: bool = False) -> Iterator[Fact]:  # noqa: A002  # its public name
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
    ) -> Suggestion:
        """A smallest repair."""

    def blame(self, fact: Written) -> Blame:
        """Since when, and why."""

    def at(self, epoch: int | datetime) -> Database:
        """An earlier epoch."""

    def log(self) -> tuple[LogEntry, ...]:
        """What is known of every epoch."""

    def history(self, fact: Written) -> tuple[Turn, ...]:
        """The epochs in which a fact changed."""

    def changes_since(self, epoch: int) -> Changes:
        """What the epochs after one changed together."""
