"""Commands that read facts: `query`, `dump`, `relations`."""

from __future__ import annotations

from typing import Final

from elastalog.analysis.values import sort_key
from elastalog.cli.fact_text import value_text
from elastalog.cli.shell_commands.command import Command, Piece, require_nothing
from elastalog.cli.shell_commands.state import ShellState, sorted_facts
from elastalog.diagnostics.diagnostic import ElastalogError


def _query(state: ShellState, arguments: Piece) -> None:
    if not arguments.text:
        raise arguments.error("E0652", "`query` needs a pattern", advice="write it as `query path(1, X)`")
    try:
        answers = state.session.query(arguments.text)
    except ElastalogError as error:
        raise arguments.place(error) from None
    if not answers.schema.columns:
        state.say("true" if len(answers) else "false")
        return
    names = answers.schema.names
    lines = (
        ", ".join(f"{name} = {value_text(value)}" for name, value in zip(names, values, strict=True))
        for values in sorted(answers, key=sort_key)
    )
    state.say_first(lines, len(answers), "bind more arguments, or use `dump`")
    if not len(answers):
        state.say("no answers")


def _dump(state: ShellState, arguments: Piece) -> None:
    try:
        names = [state.session[arguments.text].name] if arguments.text else list(state.session)
    except ElastalogError as error:
        raise arguments.place(error) from None
    for name in names:
        state.say_all(sorted_facts(name, state.session[name]))


def _relations(state: ShellState, arguments: Piece) -> None:
    require_nothing("relations", arguments)
    for name in state.session:
        size = len(state.session[name])
        state.say(f"{state.session.schemas[name]}: {size:,} {'fact' if size == 1 else 'facts'}")


COMMANDS: Final = (
    Command("query", "query R(1, X)", "show the values for which a pattern holds", _query, completes="relations"),
    Command("dump", "dump [R]", "show all facts of a relation, or of every relation", _dump, completes="relations"),
    Command("relations", "relations", "list the relations, with their attributes and sizes", _relations),
)
