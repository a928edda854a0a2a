"""The elements of an update, as users and as the backend see them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from elastalog.evaluation.update import Update
from elastalog.provenance.fact import Fact
from elastalog.provenance.reading import WordFact

Sign: TypeAlias = Literal["+", "-"]


class Element(NamedTuple):
    """A change of one explicit fact, or of one rule, which is its text; equal to the plain pair `("+", fact)`."""

    sign: Sign
    fact: Fact | str

    @property
    def is_rule(self) -> bool:
        return isinstance(self.fact, str)

    @property
    def undoing(self) -> str:
        """What undoing it does: `delete`, `insert`, `remove rule` or `add rule`."""
        return ("remove rule" if self.sign == "+" else "add rule") if self.is_rule else _UNDONE[self.sign]

    def __str__(self) -> str:
        return f"{self.sign}{self.fact}"


_UNDONE = {"+": "delete", "-": "insert"}


def net_changes(updates: Iterable[Update]) -> dict[WordFact, bool]:
    """What a row of updates, as they took effect, did together: whether each explicit fact that changed came or
    went."""
    last: dict[WordFact, bool] = {}
    first: dict[WordFact, bool] = {}
    for update in updates:
        for is_there, side in ((False, update.deleted), (True, update.inserted)):
            for relation, words in side.items():
                for row in words.tolist():
                    fact = relation, tuple(row)
                    first.setdefault(fact, is_there)
                    last[fact] = is_there
    # An update only deletes what is explicit and inserts what is not: the first change tells what was before.
    return {fact: is_there for fact, is_there in last.items() if first[fact] == is_there}
