"""The table of all commands, and those that read facts (`query`, `dump`), tell about the evaluation (`stats`) or about
the shell itself (`help`, `exit`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from elastalog.analysis.listing import show_value
from elastalog.analysis.values import sort_key
from elastalog.cli.reports import profile_lines
from elastalog.cli.shell_commands.state import Command, Piece, ShellState, require_some, sorted_facts
from elastalog.cli.shell_commands.updates import UPDATES
from elastalog.cli.shell_commands.why import DEBUGGING, EXPLAINING
from elastalog.diagnostics.messages import counted
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.planning.logical import shown_names
from elastalog.syntax.tree import written_type


def _query(state: ShellState, arguments: Piece) -> None:
    require_some("query", arguments, "a pattern", "write it as `query path(1, X)`")
    with arguments.placing():
        answers = state.session.query(arguments.text)
    if not answers.schema.columns:
        state.say("true" if len(answers) else "false")
        return
    names = answers.schema.names
    lines = (
        ", ".join(f"{name} = {show_value(value)}" for name, value in zip(names, values, strict=True))
        for values in sorted(answers, key=sort_key)
    )
    state.say_first(lines, len(answers), "bind more arguments, or use `dump`")
    if not len(answers):
        state.say("no answers")


def _dump(state: ShellState, arguments: Piece) -> None:
    if "(" in arguments.text:
        _query(state, arguments)
        return
    with arguments.placing():
        names = [state.session[arguments.text].name] if arguments.text else list(state.session)
    for name in names:
        state.say_all(sorted_facts(name, state.session[name]))


def _relations(state: ShellState, arguments: Piece) -> None:
    with arguments.placing():
        names = [state.session[arguments.text].name] if arguments.text else list(state.session)
    for name in names:
        declared = state.session.program.checked.relations[name].attributes
        attributes = ", ".join(f"{one.name}: {written_type(one)}" for one in declared)
        state.say(f"{name}({attributes}): {counted(len(state.session[name]), 'fact')}")


_READING: Final = (
    Command("query R(1, X)", "show the values for which a pattern holds", _query),
    Command("dump [R]", "show all facts of a relation, or of every relation", _dump),
    Command("relations [R]", "list the relations, with their attributes and sizes", _relations, aliases=("describe",)),
)


def _stats(state: ShellState, arguments: Piece) -> None:
    entry = state.session.log()[-1]
    state.say(
        f"epoch {entry.epoch}, strategy {state.strategy}: {counted(entry.derivations, 'derivation')}"
        f" in {entry.seconds * 1000:.1f} ms"
    )
    for stratum in entry.strata:
        names = shown_names(stratum.relations)
        state.say(f"  {names}: {stratum.how} ({stratum.why}), {counted(stratum.derivations, 'derivation')}")
    state.say("")
    state.say_all(profile_lines(state.session.statistics()))


def _strategy(state: ShellState, arguments: Piece) -> None:
    from elastalog.evaluation.strategies import STRATEGIES

    if not arguments.text:
        state.say(state.strategy)
        return
    name = arguments.text
    if name not in STRATEGIES:
        advice = did_you_mean(name, STRATEGIES) or f"there are: {', '.join(STRATEGIES)}"
        raise arguments.error("E0652", f"there is no strategy `{name[:60]}`", advice=advice)
    program = state.session.program
    facts = {relation: list(state.session.explicit(relation)) for relation in state.session}
    # The facts in the program's text are among the explicit ones, unless they have been deleted since.
    without_facts = replace(program, checked=replace(program.checked, facts=()))
    session = state.reopen(without_facts, {relation: rows for relation, rows in facts.items() if rows}, name)
    state.session.close()
    state.session, state.strategy, state.changes = session, name, None
    if state.is_interactive:
        state.say(f"recomputed under {name}: epoch {session.epoch}")


_EVALUATION: Final = (
    Command("stats", "show what the latest epoch, the rules and the relations cost", _stats),
    Command(
        "strategy [NAME]",
        "recompute under another strategy, keeping the explicit facts; alone: show the present one",
        _strategy,
        arguments="strategies",
    ),
)


def _help(state: ShellState, arguments: Piece) -> None:
    if arguments.text:
        command = find_command(arguments.text, arguments)
        state.say(command.usage)
        state.say(f"    {command.help}")
        if command.aliases:
            state.say(f"    also: {', '.join(command.aliases)}")
        return
    width = max(len(command.usage) for command in COMMANDS)
    for command in COMMANDS:
        state.say(f"{command.usage.ljust(width)}  {command.help}")
    state.say("Commands end at the end of the line or with `;`; comments start with `//` or `#`.")


def _echo(state: ShellState, arguments: Piece) -> None:
    state.say(arguments.text)


def _exit(state: ShellState, arguments: Piece) -> None:
    state.is_over = True


_CONTROL: Final = (
    Command("help [COMMAND]", "list the commands, or explain one", _help, arguments="commands"),
    Command("echo TEXT", "print a text, to mark places in the output of a script", _echo),
    Command("exit", "leave the shell; a pending update is dropped", _exit, aliases=("quit",)),
)


COMMANDS: Final[tuple[Command, ...]] = (*UPDATES, *_READING, *EXPLAINING, *DEBUGGING, *_EVALUATION, *_CONTROL)
"""In the order of `help`."""

BY_NAME: Final[dict[str, Command]] = {name: c for c in COMMANDS for name in (c.name, *c.aliases)}

_HABITS: Final = {
    "select": "`query edge(x, y)` finds the facts that fit a pattern, as `SELECT * FROM edge` does",
    "?": "write `query` in its place",
    "show": "`relations` lists them, and `query` shows facts",
    "diff": "`preview` shows what the pending update would change; `elastalog diff` compares epochs of a store",
    "update": "`delete` the fact as it was and `insert` the new one, then `commit`",
}
"""Commands of other languages, and what is written here."""


def find_command(name: str, place: Piece) -> Command:
    """The command of a name; an error at its place if there is none."""
    found = BY_NAME.get(name)
    if found is None:
        advice = _HABITS.get(name.lower()) or did_you_mean(name, BY_NAME) or "`help` lists the commands"
        raise place.error("E0651", f"there is no command `{name[:60]}`", advice=advice)
    return found
