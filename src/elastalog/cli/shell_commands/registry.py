"""The table of all commands. Adding a module of commands means adding its table here."""

from __future__ import annotations

from typing import Final

from elastalog.cli.shell_commands import control, debugging, evaluation, provenance, reading, updates
from elastalog.cli.shell_commands.command import Command, Piece
from elastalog.diagnostics.nearest import did_you_mean

COMMANDS: Final[tuple[Command, ...]] = (
    *updates.COMMANDS,
    *reading.COMMANDS,
    *provenance.COMMANDS,
    *debugging.COMMANDS,
    *evaluation.COMMANDS,
    *control.COMMANDS,
)
"""In the order of `help`."""

BY_NAME: Final[dict[str, Command]] = {name: c for c in COMMANDS for name in (c.name, *c.aliases)}


def find_command(name: str, place: Piece) -> Command:
    """The command of a name; an error at its place if there is none."""
    found = BY_NAME.get(name)
    if found is None:
        advice = did_you_mean(name, BY_NAME) or "`help` lists the commands"
        raise place.error("E0651", f"there is no command `{name[:60]}`", advice=advice)
    return found
