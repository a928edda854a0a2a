"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click

from elastalog.cli.exits import Verbosity

_Command = TypeVar("_Command", bound=Callable[..., Any])


def together(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Several options as one decorator; the help of a command lists them in this order."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


format_option: Final = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the diagnostics; of query, log, debug and compare also that of the answer.",
)

_flags: Final = together(
    click.option("-q", "--quiet", is_flag=True, help="Show errors only."),
    click.option("-v", "--verbose", is_flag=True, help="Show notes too."),
)


def verbosity_options(command: Callable[..., None]) -> Callable[..., None]:
    """`-v` and `-q`, which may stand before or after the name of a subcommand. The command takes what they come down to
    as `verbosity`."""

    @wraps(command)
    def judged(*, verbose: bool, quiet: bool, **given: Any) -> None:
        command(verbosity=_verbosity(verbose, quiet), **given)

    return _flags(judged)


def _verbosity(verbose: bool, quiet: bool) -> Verbosity:
    """What the options of the command and of the group before it come down to."""
    if verbose and quiet:
        raise click.UsageError("-v and -q exclude each other")
    if verbose or quiet:
        return "verbose" if verbose else "quiet"
    outer: Verbosity = click.get_current_context().obj or "normal"
    return outer
