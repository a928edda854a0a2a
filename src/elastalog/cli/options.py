"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from elastalog.cli.exits import Verbosity
from elastalog.cli.preprocessor_options import preprocessor_options

_Command = TypeVar("_Command", bound=Callable[..., Any])


def program_argument(command: _Command) -> _Command:
    """PROGRAM, a path or `-` for standard input, and the options of the preprocessor that reads it."""
    return click.argument("program", type=click.Path())(preprocessor_options(command))


format_option: Final = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the diagnostics; of query, log, debug and compare also that of the answer.",
)


def verbosity_options(command: _Command) -> _Command:
    """`-v` and `-q`, which may stand before or after the name of a subcommand."""
    for decorate in (
        click.option("-v", "--verbose", is_flag=True, help="Show notes too."),
        click.option("-q", "--quiet", is_flag=True, help="Show errors only."),
    ):
        command = decorate(command)
    return command


def verbosity_of(ctx: click.Context, verbose: bool, quiet: bool) -> Verbosity:
    """What the options of the command and of the group before it come down to."""
    if verbose and quiet:
        raise click.UsageError("-v and -q exclude each other")
    if verbose or quiet:
        return "verbose" if verbose else "quiet"
    outer: Verbosity = ctx.obj or "normal"
    return outer
