"""What a shell knows between commands, what a command is, and what is typed, taken apart: commands between semicolons,
facts between commas, comments left out."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from elastalog.analysis.program import Value
from elastalog.analysis.values import sort_key
from elastalog.cli.exits import Console
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label
from elastalog.diagnostics.display import show_text
from elastalog.diagnostics.source import Source, Span
from elastalog.pipeline.files.diff import Diff
from elastalog.provenance.fact import Fact

if TYPE_CHECKING:
    from elastalog.debugging.answers import Suggestion
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.program import Program
    from elastalog.provenance.proof import Proof
    from elastalog.session import Session
    from elastalog.session.pending import PendingUpdate


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of what was typed, which knows its place, so that errors can point at it."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def trimmed(self) -> Piece:
        """Without the white space around it."""
        text = self.text
        start = self.start + len(text) - len(text.lstrip())
        return Piece(self.source, start, max(start, self.start + len(text.rstrip())))

    def after_word(self) -> tuple[str, Piece]:
        """The first word and what follows it."""
        first = self.trimmed()
        length = 0
        while length < len(first.text) and (first.text[length].isalnum() or first.text[length] in "_?"):
            length += 1
        # A piece that starts with no letter has its first character for a word: commands start with letters.
        length = length or min(1, len(first.text))
        return first.text[:length], Piece(self.source, first.start + length, first.end).trimmed()

    def error(self, code: str, message: str, label: str = "", *, advice: str) -> ElastalogError:
        """An error about this piece; if nothing was given, about the command before it."""
        span = Span(self.start, max(self.end, self.start + 1))
        if not self.text and (before := re.search(r"\w+(?=\s*$)", self.source.text[: self.start])):
            span = Span(*before.span())
        return ElastalogError(
            [Diagnostic(code, message, help=advice, labels=(Label(span, label),), source=self.source)]
        )

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Makes errors about the text of this piece in the block errors about its place in what was typed."""
        try:
            yield
        except ElastalogError as error:
            raise self._placed(error) from None

    def _placed(self, error: ElastalogError) -> ElastalogError:
        placed = []
        for found in error.diagnostics:
            if found.source is not None and found.source.name == "<query>":
                labels = tuple(replace(label, span=self._span(label.span)) for label in found.labels)
                found = replace(found, source=self.source, labels=labels)
            elif found.source is None and found.location is None:
                span = Span(self.start, self.end)
                found = replace(found, source=self.source, labels=(Label(span),))
            placed.append(found)
        return type(error)(placed)

    def _span(self, span: Span) -> Span:
        start = min(self.start + span.start, max(self.end - 1, self.start))
        return Span(start, max(min(self.start + span.end, self.end), start + 1))


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `run` gets the state of the shell and what follows the command's name; it raises ElastalogError for
    what the user can mend. `completes` says what its arguments are, for completion: relations, where the usage has
    one."""

    usage: str
    help: str
    run: Callable[[ShellState, Piece], None]
    aliases: tuple[str, ...] = ()
    arguments: Literal["files", "strategies", "commands"] | None = None

    @property
    def name(self) -> str:
        return self.usage.partition(" ")[0]

    @property
    def completes(self) -> str | None:
        has_relation = re.search(r"\b[RE]\b|RULE", self.usage) is not None
        return "relations" if has_relation else self.arguments

    def execute(self, state: ShellState, arguments: Piece) -> None:
        """Runs it; an error if it takes no arguments and was given some."""
        if arguments.text and self.usage == self.name:
            told, advice = f"`{self.name}` takes no arguments", f"write `{self.name}` alone: {self.help}"
            raise arguments.error("E0652", told, advice=advice)
        self.run(state, arguments)


def require_some(command: str, piece: Piece, what: str, advice: str) -> None:
    """An error if a command was given no arguments."""
    if not piece.text:
        raise piece.error("E0652", f"`{command}` needs {what}", advice=advice)


def split(piece: Piece, separator: str) -> Iterator[Piece]:
    """The parts of a text between separators that stand outside strings and parentheses."""
    start = depth = 0
    for position, character in _outside_strings(piece.text):
        depth += (character == "(") - (character == ")")
        if character == separator and (depth <= 0 or separator == ";"):
            yield Piece(piece.source, piece.start + start, piece.start + position)
            start = position + 1
    yield Piece(piece.source, piece.start + start, piece.end)


def without_comment(line: str) -> str:
    """The text up to `//` or `#` outside strings."""
    for position, character in _outside_strings(line):
        if character == "#" or line.startswith("//", position):
            return line[:position]
    return line


def statements(line: Piece) -> Iterator[Piece]:
    """The commands of a line, comments left out before. In a rule, semicolons within parentheses part alternatives."""
    started: Piece | None = None
    for part in split(line, ";"):
        piece = part if started is None else Piece(line.source, started.start, part.end)
        trimmed = piece.trimmed()
        is_rule = trimmed.after_word()[0] in _TAKING_RULES
        started = piece if is_rule and is_open(trimmed.text) else None
        if trimmed.text and started is None:
            yield trimmed
    if started is not None:
        yield started.trimmed()


_TAKING_RULES = ("addrule", "removerule")


def is_open(text: str) -> bool:
    """Whether more parentheses or braces are opened than closed, outside strings."""
    return sum((character in "({") - (character in ")}") for _, character in _outside_strings(text)) > 0


def signed(arguments: Piece) -> Iterator[tuple[str, Piece]]:
    """`+path(1, 2) -path(3, 4)`, or `unwanted path(1, 2) missing path(3, 4)`, also as options, `--missing path(3, 4)`:
    each sign and the fact after it; the sign of a candidate is `--candidate`. Commas between them may stand."""
    text = arguments.text
    signs = list(_signs(text))
    if not signs or text[: signs[0].start()].strip(" ,"):
        advice = (
            "write `+` (or `unwanted`) before facts that should not hold, `-` (or `missing`) before those that should"
        )
        raise arguments.error("E0652", "a sign is missing", advice=advice)
    for sign, end in zip(signs, [*(sign.start() for sign in signs[1:]), len(text)], strict=True):
        written = text[sign.end() : end].rstrip(" \t,")
        start = arguments.start + sign.end()
        yield _SIGNS.get(sign[0].strip(" -="), sign[0]), Piece(arguments.source, start, start + len(written)).trimmed()


CANDIDATE = "--candidate "
_SIGNS = {"unwanted": "+", "missing": "-", "candidate": CANDIDATE}
_SIGN = re.compile(r"(?:--|(?<!-)\b)(?:unwanted|missing)[\s=]|--candidate[\s=]\s*|(?<!-)[+-](?!-)")


def _signs(text: str) -> Iterator[re.Match[str]]:
    """The signs that stand outside of parentheses, strings and bodies of rules."""
    depth, is_body, after = 0, False, 0
    for position, character in _outside_strings(text):
        depth += (character == "(") - (character == ")")
        if text.startswith(":-", position):
            is_body = True
        elif character == "." and not text[position + 1 : position + 2].strip():
            is_body = False
        elif depth <= 0 and not is_body and position >= after and (sign := _SIGN.match(text, position)):
            after = sign.end() + sign[0].startswith(CANDIDATE.strip())  # whose own sign is part of it
            yield sign


def _outside_strings(text: str) -> Iterator[tuple[int, str]]:
    """The characters of a text that stand outside of strings, with their places. A string may be left open."""
    is_string, position = False, 0
    while position < len(text):
        character = text[position]
        if is_string:
            position += character == "\\"
            is_string = character != '"'
        elif character == '"':
            is_string = True
        else:
            yield position, character
        position += 1


MOST_SHOWN = 200
"""Lines that a command shows on a terminal unless all are asked for."""


@dataclass(slots=True)
class ExplanationSettings:
    """How explanations are shown, and the places where the last proof ended."""

    depth: int = 4
    depth_of_absence: int = 1
    limit: int = 5
    form: str = "auto"
    output: Path | None = None
    ends: tuple[Fact, ...] = ()


@dataclass(slots=True)
class DebuggingState:
    """The last question about faults, what was rejected since, and its answer."""

    unwanted: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    over: str | None = None
    suggestion: Suggestion | None = None
    proofs: tuple[Proof, ...] = ()


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
    pending: list[Diff] = field(default_factory=list)
    changes: Changes | None = None
    last: EpochRecord | None = None
    """The latest epoch that was made here, which `undo` takes back."""
    explanations: ExplanationSettings = field(default_factory=ExplanationSettings)
    debugging: DebuggingState = field(default_factory=DebuggingState)

    @property
    def console(self) -> Console:
        """Standard error, for notes."""
        return Console(verbosity="quiet" if self.is_quiet else "normal")

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
        added = tuple(text for one in self.pending for text in one.added_rules)
        update.take(Diff(added_rules=added, removed_rules=tuple(t for one in self.pending for t in one.removed_rules)))
        for one in self.pending:
            update.take(replace(one, added_rules=(), removed_rules=()))
        return update

    @property
    def changes_rules(self) -> bool:
        """Whether rules are among the pending changes."""
        return any(one.changes_rules for one in self.pending)

    def fact(self, text: str) -> tuple[str, tuple[Value, ...]]:
        """A fact as it is written; its relation may be declared by the pending update."""
        if not self.changes_rules:
            return self.session.engine.fact(text)
        from elastalog.analysis.pattern import parse_fact

        return parse_fact(text, self.update().program.checked)

    @property
    def pending_size(self) -> int:
        """How many facts and rules the pending changes name."""
        return sum(map(size_of, self.pending))

    def forget_pending(self) -> None:
        """Drops the pending changes."""
        self.pending.clear()
        self.is_started = False


def size_of(diff: Diff) -> int:
    """How many facts and rules an update names."""
    facts = (*diff.inserted.values(), *diff.deleted.values())
    return sum(map(len, (*facts, diff.added_rules, diff.removed_rules)))


def sorted_facts(relation: str, facts: Iterable[tuple[Value, ...]]) -> list[str]:
    """Facts as lines, in the order of their values."""
    return [str(Fact(relation, values)) for values in sorted(facts, key=sort_key)]
