"""Options that several commands share, their units (`2G` of memory, `30s` of time), and how a program is read."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import field
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import click

from elastalog.cli.exits import Console, Verbosity, exit_codes
from elastalog.diagnostics.diagnostic import ElastalogError

if TYPE_CHECKING:
    from elastalog.diagnostics.source import Source
    from elastalog.program import Program
    from elastalog.program.preprocessing import Preprocessing

_Command = TypeVar("_Command", bound=Callable[..., Any])


def together(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Combines several options into one decorator; `--help` lists them in this order."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class Whole(click.IntRange):
    """A whole number; what is none is told what is wanted, and not of an `integer range`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            int(value)
        except ValueError:
            least = "" if self.min is None else f" from {self.min}"
            most = f" to {self.max}" if self.max is not None else " on" * bool(least)
            self.fail(f"'{value}' is not a number: give a whole one{least}{most}.", param, ctx)
        return super().convert(value, param, ctx)


format_option: Final = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the diagnostics and, for query, log, debug and compare, of the answer.",
)

_flags: Final = together(
    click.option("-q", "--quiet", is_flag=True, help="Show errors only."),
    click.option("-v", "--verbose", is_flag=True, help="Show notes too."),
)


def console_options(command: Callable[..., None]) -> Callable[..., None]:
    """`-v` and `-q`, which may also stand before the name of a subcommand, and `--format`. The command receives them as
    a `console`."""

    @wraps(command)
    def judged(*, verbose: bool, quiet: bool, form: str = "text", **given: Any) -> None:
        console = Console(form, _verbosity(verbose, quiet))
        warnings.showwarning = console.warn
        command(console=console, **given)

    return _flags(judged)


def verbosity_options(command: Callable[..., None]) -> Callable[..., None]:
    """Like `console_options`; exceptions of the command end it with the exit code of the failure."""

    @wraps(command)
    def ended(*, console: Console, **given: Any) -> None:
        with exit_codes(console):
            command(console=console, **given)

    return console_options(ended)


def report_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--format`, and those of `verbosity_options`."""
    return format_option(verbosity_options(command))


def option(*names: str, **settings: Any) -> Any:
    """A field of a dataclass that is an option of a command; see `options_of`. Arguments are those of click."""
    return field(metadata={"names": names, "settings": settings})


def options_of(kind: type[Any], name: str) -> Callable[[_Command], _Command]:
    """The fields of a dataclass as options, in their order. The command receives an instance with all of them, as one
    argument."""
    fields = kind.__dataclass_fields__

    def decorate(command: Any) -> Any:
        @wraps(command)
        def gathered(**given: Any) -> None:
            command(**{name: kind(**{each: given.pop(each) for each in fields})}, **given)

        return together(*(click_option(each, key) for key, each in fields.items()))(gathered)

    return decorate


def click_option(declared: Any, *name: str) -> Callable[[Any], Any]:
    """The option of a field, under a name or that of the field itself."""
    return click.option(*declared.metadata["names"], *name, **declared.metadata["settings"])


def _verbosity(verbose: bool, quiet: bool) -> Verbosity:
    """The verbosity that results from the options of the command and of the group."""
    if verbose and quiet:
        raise click.UsageError("-v and -q exclude each other")
    if verbose or quiet:
        return "verbose" if verbose else "quiet"
    outer: Verbosity = click.get_current_context().obj or "normal"
    return outer


_UNITS_OF_MEMORY: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_UNITS_OF_TIME: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_MEMORY: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]?)(?:i?b)?", re.IGNORECASE)
_TIME: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(ms|s|min|m|h|)")


def memory_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of bytes, with a unit of 1024 (`512M`, `2G`, `1.5GiB`) or without."""
    if value is None:
        return None
    found = _MEMORY.fullmatch(value.strip())
    size = int(float(found[1]) * _UNITS_OF_MEMORY[found[2].lower()]) if found else 0
    if size <= 0:
        raise click.BadParameter(f"'{value}' is not an amount of memory: write it as 512M or 2G.", ctx, param)
    return size


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A number of seconds, with a unit (`500ms`, `30s`, `5m`, `2h`) or without."""
    if value is None:
        return None
    found = _TIME.fullmatch(value.strip())
    seconds = float(found[1]) * _UNITS_OF_TIME[found[2]] if found else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"'{value}' is not a time: write it as 30s, 5m or 2h.", ctx, param)
    return seconds


def update_budget(ctx: click.Context, param: click.Parameter, value: str) -> float | Literal["auto"] | None:
    """`auto`, a fraction of a bootstrap, or `none` for updates without limit."""
    if value.lower() == "none":
        return None
    if value.lower() == "auto":
        return "auto"
    try:
        budget = float(value)
    except ValueError:
        budget = -1.0
    if not 0 <= budget < float("inf"):
        raise click.BadParameter(f"'{value}' is not a budget: write auto, a fraction such as 0.2, or none.", ctx, param)
    return budget


NAME = "<stdin>"
"""The name of standard input in diagnostics."""


def standard_input() -> str:
    """All of standard input. Raises ElastalogError if it is not UTF-8."""
    data = b"" if sys.stdin is None else sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ElastalogError.of("E0505.standard_input", location=f"{NAME}:{line}", data=data[error.start]) from None


def kept(*names: str, read: Callable[..., Any] = lambda ctx, param, value: value, **settings: Any) -> Any:
    """An option whose value, as `read` makes it of what was written, is not handed to the command: `given` has it."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[f"elastalog.{param.name}"] = read(ctx, param, value)

    return click.option(*names, expose_value=False, callback=keep, **settings)


def given(name: str, default: Any = None) -> Any:
    """The value of such an option in the running command."""
    ctx = click.get_current_context(silent=True)
    return default if ctx is None else ctx.meta.get(f"elastalog.{name}", default)


def _macros(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    macros: dict[str, str] = {}
    for value in values:
        for definition in value.split():
            name, equals, text = definition.partition("=")
            if not name.replace("_", "a").isalnum() or name[:1].isdigit():
                raise click.BadParameter(f"'{definition}' is not NAME or NAME=VALUE.", ctx, param)
            macros[name] = text if equals else "1"
    return macros


preprocessor_options: Final = together(
    kept(
        "-I", "--include-dir", "include", multiple=True, metavar="DIR",
        help="Folder to search for included files; may be given several times.",
    ),
    kept(
        "-M", "--macro", "macros", multiple=True, metavar="NAME=VALUE", read=_macros,
        help="Define a macro, or several in one text: -M 'SIZE=3 DEBUG'.",
    ),
    kept("--no-preprocessor", is_flag=True, help="Ignore preprocessor lines (those that begin with #)."),
)  # fmt: skip
"""The options; `preprocessing_given` and `read_program` read their values."""

program_argument: Final = together(click.argument("program", type=click.Path()), preprocessor_options)
"""PROGRAM, a path or `-` for standard input, and the options of the preprocessor that reads it."""


def preprocessing_given() -> Preprocessing:
    """The values of these options in the running command."""
    from elastalog.program.preprocessing import preprocessing

    return preprocessing(given("include", ()), given("macros", {}), not given("no_preprocessor", False))


def read_program(path: str) -> Program:
    """The checked program of a file, or of standard input for `-`, read with these options."""
    from elastalog.program import Program

    options = preprocessing_given()
    if path == "-":
        return Program.parse(
            standard_input(), NAME, include=(".", *options.include), macros=dict(options.macros),
            preprocess=options.is_on,
        )  # fmt: skip
    return Program.load(path, include=options.include, macros=dict(options.macros), preprocess=options.is_on)


def read_source(path: str) -> Source:
    """The text of a program, read with these options."""
    from elastalog.diagnostics.source import Source
    from elastalog.program import read_program_text
    from elastalog.program.preprocessing import preprocess

    source = Source(NAME, standard_input()) if path == "-" else Source(path, read_program_text(path))
    return preprocess(source, preprocessing_given(), read_program_text)
