"""What a shell knows between commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from elastalog.analysis.program import Value
from elastalog.analysis.values import sort_key
from elastalog.cli.fact_text import fact_text
from elastalog.cli.shell_commands.debugging import DebuggingState
from elastalog.cli.shell_commands.provenance import ExplanationSettings
from elastalog.diagnostics.display import show_text

if TYPE_CHECKING:
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.evaluation.pending import PendingUpdate
    from elastalog.pipeline.files.policy import BadRow
    from elastalog.program import Program
    from elastalog.session import Session

MOST_SHOWN = 200
"""Lines that a command shows on a terminal unless all are asked for."""


@dataclass(frozen=True, slots=True)
class PendingChange:
    """Facts of a relation to insert or delete: tuples, or an Arrow table read from a file."""

    sign: Literal["+", "-"]
    relation: str
    rows: Any

    def facts(self) -> Iterator[tuple[Value, ...]]:
        if isinstance(self.rows, list):
            yield from self.rows
        elif self.rows.num_columns == 0:
            yield from [()] * self.rows.num_rows
        else:
            yield from zip(*(column.to_pylist() for column in self.rows.columns), strict=True)


@dataclass(frozen=True, slots=True)
class PendingRule:
    """A rule to add or to remove, or a declaration to add."""

    sign: Literal["+", "-"]
    text: str

    @property
    def rows(self) -> tuple[str]:
        """It counts as one change."""
        return (self.text,)


@dataclass(frozen=True, slots=True)
class PendingBad:
    """Rows of a file that are no facts of a relation, which the policy of the session lets pass."""

    relation: str
    bad: tuple[BadRow, ...]

    @property
    def rows(self) -> tuple[()]:
        """They count as no change."""
        return ()


Pending: TypeAlias = PendingChange | PendingRule | PendingBad


@dataclass(slots=True)
class ShellState:
    """The session, the update that waits for `commit`, and how to speak.

    `reopen` opens the program anew under a strategy, over given facts. `is_interactive`: a person reads along; scripts
    get the same output whatever the strategy and the machine."""

    session: Session
    strategy: str
    reopen: Callable[[Program, dict[str, Any], str], Session]
    is_interactive: bool = False
    is_quiet: bool = False
    is_started: bool = False
    is_over: bool = False
    pending: list[Pending] = field(default_factory=list)
    changes: Changes | None = None
    last: EpochRecord | None = None
    """The latest epoch that was made here, which `undo` takes back."""
    explanations: ExplanationSettings = field(default_factory=ExplanationSettings)
    debugging: DebuggingState = field(default_factory=DebuggingState)

    def say(self, line: str) -> None:
        """Writes a line of the result. On a terminal nothing in it can move the cursor."""
        sys.stdout.write((show_text(line) if self.is_interactive else line) + "\n")

    def say_all(self, lines: Iterable[str]) -> None:
        """Writes all lines."""
        for line in lines:
            self.say(line)

    def say_first(self, lines: Iterable[str], number: int, all_with: str) -> None:
        """Writes lines, of which there are `number`; for a person not more than fit some screens. `all_with` says how
        to see all of them."""
        if not self.is_interactive or number <= MOST_SHOWN:
            self.say_all(lines)
        else:
            self.say_all(islice(lines, MOST_SHOWN))
            self.say(f"… and {number - MOST_SHOWN:,} more: {all_with}")

    def update(self) -> PendingUpdate:
        """The pending changes as an update of the session."""
        update = self.session.update()
        # Rules first: they may declare the relations that facts belong to.
        if removed := [rule.text for rule in self.pending_rules if rule.sign == "-"]:
            update.remove_rules(removed)
        if added := [rule.text for rule in self.pending_rules if rule.sign == "+"]:
            update.add_rules(added)
        for change in self.pending_facts:
            (update.insert if change.sign == "+" else update.delete)(change.relation, change.rows)
        for passed in self.pending_bad:
            update.keep_bad(passed.relation, passed.bad)
        return update

    @property
    def pending_rules(self) -> list[PendingRule]:
        return [change for change in self.pending if isinstance(change, PendingRule)]

    @property
    def pending_bad(self) -> list[PendingBad]:
        return [change for change in self.pending if isinstance(change, PendingBad)]

    @property
    def pending_facts(self) -> list[PendingChange]:
        return [change for change in self.pending if isinstance(change, PendingChange)]

    def fact(self, text: str) -> tuple[str, tuple[Value, ...]]:
        """A fact as it is written; its relation may be declared by the pending update."""
        if not self.pending_rules:
            return self.session.engine.fact(text)
        from elastalog.analysis.pattern import parse_fact

        return parse_fact(text, self.update().program.checked)

    @property
    def pending_size(self) -> int:
        """How many facts and rules the pending changes name."""
        return sum(len(change.rows) for change in self.pending)

    def forget_pending(self) -> None:
        """Drops the pending changes."""
        self.pending.clear()
        self.is_started = False


def sorted_facts(relation: str, facts: Iterable[tuple[Value, ...]]) -> list[str]:
    """Facts as lines, in the order of their values."""
    return [fact_text(relation, values) for values in sorted(facts, key=sort_key)]
