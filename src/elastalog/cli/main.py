"""The command `elastalog`; subcommands are imported on demand."""

from __future__ import annotations

import atexit
import gc
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import click

from elastalog import __version__
from elastalog.cli.exits import code_of, end_without_output

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Write programs": {
        "check": "elastalog.cli.programs:check",
        "show": "elastalog.cli.programs:show",
        "format": "elastalog.cli.programs:format_command",
        "lsp": "elastalog.cli.programs:lsp",
    },
    "Evaluate": {
        "run": "elastalog.cli.run:run",
        "query": "elastalog.cli.questions:query",
        "shell": "elastalog.cli.shell:shell",
        "stream": "elastalog.cli.stream:stream",
        "compare": "elastalog.cli.compare:compare",
    },
    "Explain and repair": {
        "explain": "elastalog.cli.questions:explain",
        "whynot": "elastalog.cli.questions:whynot",
        "debug": "elastalog.cli.questions:debug",
    },
    "Keep a store": {
        "init": "elastalog.cli.stores:init",
        "apply": "elastalog.cli.stores:apply",
        "undo": "elastalog.cli.stores:undo",
        "log": "elastalog.cli.stores:log",
        "diff": "elastalog.cli.stores:diff",
        "upgrade": "elastalog.cli.stores:upgrade",
        "export": "elastalog.cli.stores:export",
        "backup": "elastalog.cli.stores:backup",
        "verify": "elastalog.cli.stores:verify",
    },
    "Work with RDF": {"rdf": "elastalog.cli.rdf:rdf"},
    "Serve": {"serve": "elastalog.cli.service:serve", "workbench": "elastalog.cli.service:workbench"},
    "Get help": {
        "explain-error": "elastalog.cli.help:explain_error",
        "doctor": "elastalog.cli.help:doctor",
        "completion": "elastalog.cli.help:completion",
    },
}
"""The module and function of each subcommand, by the groups of `--help`."""

COMMANDS: Final = {name: home for group in GROUPS.values() for name, home in group.items()}

_MEANT: Final = {
    "why": "explain' or 'whynot", "why-not": "whynot", "ask": "query",
    "suggest": "debug' with '--missing' or '--unwanted", "repair": "debug", "blame": "debug' with '--blame",
    "localise": "debug' with '--localise",
}  # fmt: skip
"""The right command for names that users try."""


class LazyGroup(click.Group):
    """Imports the module of a subcommand only when it runs, or when `--help` describes it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = COMMANDS.get(cmd_name)
        if home is None:
            return None
        module, _, name = home.partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the complete summaries, by group."""
        for title, group in GROUPS.items():
            commands = [(name, self.get_command(ctx, name)) for name in group]
            with formatter.section(title):
                width = max(map(len, COMMANDS)) - max(map(len, group))  # the summaries of all groups below each other
                rows = [(name, command.get_short_help_str(1000)) for name, command in commands if command is not None]
                formatter.write_dl(rows, col_spacing=2 + width)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as end:
            # One that came when signals already were exceptions but no handler was in place yet.
            sys.exit(code_of(end))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as fault:
            from elastalog.diagnostics.nearest import nearest

            near = (_MEANT.get(args[0]) or nearest(args[0], COMMANDS)) if args else None
            if near is None and args and args[0].endswith(".dl"):
                near = f"run {args[0]}"
            if near is not None:
                raise click.UsageError(f"{fault.message} Did you mean '{near}'?", ctx) from None
            raise


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=lambda ctx, _, value: _version(ctx, value),
    help="Show the version, and those of Python and the main libraries.",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show notes too.")
@click.option("-q", "--quiet", is_flag=True, help="Show errors only.")
@click.pass_context
def cli(ctx: click.Context, verbose: bool, quiet: bool) -> None:
    """Datalog that keeps its answers up to date and can say why they are so.

    \b
    Example:
      elastalog check reach.dl
    """
    if verbose and quiet:
        raise click.UsageError("-v and -q exclude each other")
    ctx.obj = "verbose" if verbose else "quiet" if quiet else "normal"


def _version(ctx: click.Context, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        from elastalog.cli.help import engine_details

        python = f"Python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
        click.echo(f"elastalog, version {__version__} ({python}, {engine_details()})")
        ctx.exit()


def main() -> Any:
    """The entry point of the command."""
    # Nearly all that a short command makes stays to its end: looking for garbage in it, again and again and once more
    # at the exit, took a fifth of the time of a small program.
    gc.set_threshold(250_000, 20, 20)
    atexit.register(gc.freeze)
    warnings.filterwarnings("default", category=UserWarning)  # `-q` silences them, and no variable of Python's
    run: Callable[..., Any] = cli.main
    try:
        return run(prog_name="elastalog")
    except OSError as fault:
        end_without_output(fault)


if __name__ == "__main__":
    main()
