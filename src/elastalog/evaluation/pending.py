"""An update in the making: of a session here, or of a service elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar

from elastalog.diagnostics.arguments import require_mapping, require_whole, stays_here, wrong_kind
from elastalog.diagnostics.diagnostic import error
from elastalog.evaluation.changes import Changes

if TYPE_CHECKING:
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.storage.entries import LogEntry

T = TypeVar("T")

_ENDS = {
    "committed": "the update has been committed already",
    "dropped": "the update was dropped when an exception left its `with` block",
}


class DraftUpdate(ABC):
    """Insertions and deletions of facts, and changes of rules, that become one epoch: on leaving its `with` block, or
    by `commit`. It is dropped if an exception passes. After either it takes nothing any more."""

    _end: Literal["committed", "dropped"] | None = None

    __reduce__ = stays_here("an update", "make it with `db.update()` in the process that commits it")

    @abstractmethod
    def insert(self, relation: str, rows: Any) -> None:
        """Explicit facts to add."""

    @abstractmethod
    def delete(self, relation: str, rows: Any) -> None:
        """Explicit facts to remove; removing one that is not there changes nothing."""

    @abstractmethod
    def add_rules(self, rules: str | Iterable[str]) -> None:
        """Rules to add, as program text, or several of them; it may also declare new relations, and hold facts. A rule
        that is there already is not added again."""

    @abstractmethod
    def remove_rules(self, rules: int | str | Iterable[int | str]) -> None:
        """Rules to remove: by their number in the program of the moment, or by their text, however it is laid out."""

    @abstractmethod
    def commit(self) -> Changes:
        """Makes it the next epoch, and tells what it changed."""

    def _commit(self) -> None:
        """Makes it the next epoch, as the end of its block does."""
        self.commit()

    @property
    @abstractmethod
    def changes(self) -> Changes:
        """What the update changed, once committed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._end is not None:
            return
        if kind is None:
            self._commit()
        else:
            self._end = "dropped"

    def __repr__(self) -> str:
        return f"<update: {self._end or 'to be committed'}>"

    def require_open(self) -> None:
        """Raises ElastalogError once the update has been committed or dropped."""
        if self._end is not None:
            raise error("E0620", told=_ENDS[self._end])


Given: TypeAlias = "Mapping[str, Any] | Sequence[Any] | None"
"""Rows by relation, or facts as a suggestion holds them."""


def fill(update: DraftUpdate, inserted: Given, deleted: Given) -> None:
    """Puts facts into an update. Raises WrongArgument unless they are given by relation, or know it."""
    given: Any
    for side, given, take in (("deleted", deleted, update.delete), ("inserted", inserted, update.insert)):
        if isinstance(given, list | tuple) and all(hasattr(fact, "relation") for fact in given):
            for fact in given:
                take(fact.relation, [fact.values])
        elif given is not None:
            advice = 'give a mapping, such as `{"edge": [(1, 2)]}`'
            told: object = given
            if isinstance(told, str | list | tuple) and "(" in str(told):  # patterns
                advice += '; for the facts that fit a pattern, `{"edge": db["edge"].filter(lambda x, y: x == 1)}`'
            require_mapping(f"{side} facts are a mapping from relations to rows", given, advice)
            for name, rows in given.items():
                take(name, rows)


Epoch: TypeAlias = "int | EpochRecord | LogEntry"
"""An epoch, by its number or by what is known of it."""


def epoch_to_undo(epoch: Epoch) -> int:
    """The number of an epoch. Raises WrongArgument for anything else."""
    number: Any = getattr(epoch, "epoch", epoch)
    require_whole("an epoch to undo is given by its number", number, "give that of one; `db.log()` lists them")
    return int(number)


def require_alone(undo: object, *others: object) -> None:
    """Raises WrongArgument if an epoch is to be undone together with other changes."""
    if any(other is not None for other in others):
        raise wrong_kind("an epoch is undone by itself", undo, "apply other changes before it or after it")


def once_committed(found: T | None) -> T:
    """What is known of an update after its commit. Raises ElastalogError before."""
    if found is None:
        raise error("E0611")
    return found
