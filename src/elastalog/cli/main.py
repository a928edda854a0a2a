"""The command `elastalog`: finds its subcommands when they are asked for."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import click

from elastalog import __version__
from elastalog.cli.exits import code_of

COMMANDS: Final[dict[str, str]] = {
    "check": "elastalog.cli.check:check",
    "show": "elastalog.cli.show:show",
    "format": "elastalog.cli.format:format_command",
    "lsp": "elastalog.cli.lsp:lsp",
    "run": "elastalog.cli.run:run",
    "shell": "elastalog.cli.shell:shell",
    "init": "elastalog.cli.init:init",
    "apply": "elastalog.cli.apply:apply",
    "query": "elastalog.cli.query:query",
    "log": "elastalog.cli.log:log",
    "diff": "elastalog.cli.diff:diff",
    "verify": "elastalog.cli.verify:verify",
    "export": "elastalog.cli.export:export",
    "explain": "elastalog.cli.explain:explain",
    "whynot": "elastalog.cli.whynot:whynot",
    "debug": "elastalog.cli.debug:debug",
    "stream": "elastalog.cli.stream:stream",
    "compare": "elastalog.cli.compare:compare",
    "backup": "elastalog.cli.backup:backup",
    "upgrade": "elastalog.cli.upgrade:upgrade",
    "serve": "elastalog.cli.serve:serve",
    "workbench": "elastalog.cli.workbench:workbench",
    "doctor": "elastalog.cli.doctor:doctor",
    "completion": "elastalog.cli.completion:completion",
    "explain-error": "elastalog.cli.explain_error:explain_error",
}
"""Where each subcommand lives, as `module:function`, in the order of `--help`."""


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

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as end:
            # One that came when signals were exceptions already and nobody was there to catch it yet.
            sys.exit(code_of(end))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as fault:
            from elastalog.diagnostics.nearest import nearest

            near = nearest(args[0], COMMANDS) if args else None
            if near is not None:
                raise click.UsageError(f"{fault.message} Did you mean '{near}'?", ctx) from None
            raise


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=lambda ctx, _, value: _version(ctx, value),
    help="Show the version, and those of what evaluates.",
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
        from elastalog.cli.doctor import engine_details

        python = f"Python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
        click.echo(f"elastalog, version {__version__} ({python}, {engine_details()})")
        ctx.exit()


def main() -> Any:
    """The entry point of the command."""
    # Nearly all that a short command makes stays to its end: looking for garbage in it, again and again and once more
    # at the exit, took a fifth of the time of a small program.
    gc.set_threshold(250_000, 20, 20)
    atexit.register(gc.freeze)
    run: Callable[..., Any] = cli.main
    try:
        return run(prog_name="elastalog")
    except OSError as fault:
        from elastalog.cli.exits import end_without_output

        end_without_output(fault)


if __name__ == "__main__":
    main()
