"""Commands that find what broke something: `localise`, `suggest`, `reject`, `apply`, `proofs`, `blame`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from elastalog.analysis.findings import counted
from elastalog.cli.explanations import rendered
from elastalog.cli.shell_commands.command import Command, Piece, require_nothing
from elastalog.diagnostics.diagnostic import ElastalogError

if TYPE_CHECKING:
    from elastalog.cli.shell_commands.state import ShellState
    from elastalog.debugging.answers import Answer, Suggestion
    from elastalog.provenance.proof import Proof


@dataclass(slots=True)
class DebuggingState:
    """The last question about faults, what was rejected since, and its answer."""

    unwanted: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    suggestion: Suggestion | None = None
    proofs: tuple[Proof, ...] = ()


def signed(arguments: Piece) -> Iterator[tuple[str, Piece]]:
    """`+path(1, 2) -path(3, 4)`: each sign and the fact after it. Commas between them may stand."""
    text = arguments.text
    starts = list(_starts(text))
    if not starts or text[: starts[0]].strip(" ,"):
        advice = "write `+` before unwanted facts, `-` before missing ones"
        raise arguments.error("E0652", "a sign is missing", advice=advice)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        written = text[start + 1 : end].rstrip(" \t,")
        piece = Piece(arguments.source, arguments.start + start + 1, arguments.start + start + 1 + len(written))
        yield text[start], piece.trimmed()


def _starts(text: str) -> Iterator[int]:
    """Where signs stand outside of parentheses, strings and bodies of rules."""
    depth, is_string, is_body, position = 0, False, False, 0
    while position < len(text):
        character = text[position]
        if is_string:
            position += character == "\\"
            is_string = character != '"'
        elif character == '"':
            is_string = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif text.startswith(":-", position):
            is_body = True
            position += 1
        elif character == "." and not text[position + 1 : position + 2].strip():
            is_body = False
        elif character in "+-" and depth <= 0 and not is_body:
            yield position
        position += 1


def _ask(state: ShellState, command: str, arguments: Piece) -> None:
    """Takes the faults of a command as the question."""
    if not arguments.text:
        raise arguments.error(
            "E0652", f"`{command}` needs faults", advice=f"write it as `{command} +path(1, 4) -path(2, 3)`"
        )
    sides: dict[str, list[str]] = {"+": [], "-": []}
    for sign, piece in signed(arguments):
        try:
            state.session.engine.fact(piece.text)
        except ElastalogError as error:
            raise piece.place(error) from None
        sides[sign].append(piece.text)
    asked = state.debugging
    asked.unwanted, asked.missing, asked.rejected, asked.suggestion = sides["+"], sides["-"], [], None


def _news(state: ShellState) -> Callable[[str], None] | None:
    return state.say if state.is_interactive else None


def _localise(state: ShellState, arguments: Piece) -> None:
    _ask(state, "localise", arguments)
    asked = state.debugging
    try:
        _show(state, state.session.localise(asked.unwanted, asked.missing, on_progress=_news(state)))
    except ElastalogError as error:
        raise arguments.place(error) from None


def _suggest(state: ShellState, arguments: Piece) -> None:
    _ask(state, "suggest", arguments)
    _suggest_again(state, arguments)


def _suggest_again(state: ShellState, arguments: Piece) -> None:
    asked = state.debugging
    asked.suggestion = None
    try:
        asked.suggestion = state.session.suggest(
            asked.unwanted, asked.missing, asked.rejected, on_progress=_news(state)
        )
    except ElastalogError as error:
        raise arguments.place(error) from None
    _show(state, asked.suggestion)


def _reject(state: ShellState, arguments: Piece) -> None:
    asked = state.debugging
    if not asked.unwanted and not asked.missing:
        raise arguments.error("E0652", "nothing was suggested", advice="ask with `suggest +path(1, 4)` first")
    if not arguments.text:
        advice = "write it as `reject +edge(3, 4)`, or with a rule"
        raise arguments.error("E0652", "`reject` needs an element", advice=advice)
    asked.rejected += [f"{sign}{piece.text}" for sign, piece in signed(arguments)]
    _suggest_again(state, arguments)


def _apply(state: ShellState, arguments: Piece) -> None:
    from elastalog.cli.shell_commands.updates import change_lines

    require_nothing("apply", arguments)
    suggestion = state.debugging.suggestion
    if suggestion is None:
        raise arguments.error("E0652", "there is no suggestion to apply", advice="ask with `suggest +path(1, 4)` first")
    state.debugging.suggestion = None
    state.changes = suggestion.apply()
    state.say_first(change_lines(state.changes), state.changes.impact, "`changes` shows all")
    state.say(f"epoch {state.session.epoch}: {counted(len(suggestion.elements), 'element')} undone")


def _show(state: ShellState, answer: Answer) -> None:
    state.debugging.proofs = answer.proofs
    state.say_all(str(answer).split("\n"))


def _proofs(state: ShellState, arguments: Piece) -> None:
    require_nothing("proofs", arguments)
    for proof in state.debugging.proofs:
        state.say_all(rendered(proof, state.explanations.form).split("\n"))
        state.say("")


def _blame(state: ShellState, arguments: Piece) -> None:
    if not arguments.text:
        raise arguments.error("E0652", "`blame` needs a fact", advice="write it as `blame path(1, 4)`")
    try:
        state.say_all(str(state.session.blame(arguments.text)).split("\n"))
    except ElastalogError as error:
        raise arguments.place(error) from None


COMMANDS: Final = (
    Command(
        "localise",
        "localise +R(1) -S(2)",
        "show which part of the last update made +facts appear and -facts disappear",
        _localise,
        completes="relations",
    ),
    Command(
        "suggest",
        "suggest +R(1) -S(2)",
        "show the smallest part of the last update to undo, against the same faults",
        _suggest,
        completes="relations",
    ),
    Command(
        "reject",
        "reject +E(1)",
        "suggest again, while parts of the update stay applied",
        _reject,
        completes="relations",
    ),
    Command("apply", "apply", "undo what was suggested, as a new update", _apply),
    Command("proofs", "proofs", "show the proofs that connect the last answer with its faults", _proofs),
    Command(
        "blame",
        "blame R(1, 2)",
        "show the epoch a fact last came or went in, and why",
        _blame,
        completes="relations",
    ),
)
