"""Commands about the shell itself: `help`, `echo`, `exit`."""

from __future__ import annotations

from typing import Final

from elastalog.cli.shell_commands.command import Command, Piece, require_nothing
from elastalog.cli.shell_commands.state import ShellState


def _help(state: ShellState, arguments: Piece) -> None:
    from elastalog.cli.shell_commands.registry import COMMANDS, find_command

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
    require_nothing("exit", arguments)
    state.is_over = True


COMMANDS: Final = (
    Command("help", "help [COMMAND]", "list the commands, or explain one", _help, completes="commands"),
    Command("echo", "echo TEXT", "print a text, to mark places in the output of a script", _echo),
    Command("exit", "exit", "leave the shell; a pending update is dropped", _exit, aliases=("quit",)),
)
