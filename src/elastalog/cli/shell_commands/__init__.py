"""The commands of the shell. A new one: a `Command` in a module here, and the module's table in `registry.COMMANDS`."""

from elastalog.cli.shell_commands.command import Command as Command
from elastalog.cli.shell_commands.command import Piece as Piece
from elastalog.cli.shell_commands.state import ShellState as ShellState
