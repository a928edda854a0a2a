"""`-I`, `-M` and `--no-preprocessor`: options of every command that reads a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from elastalog.cli.options import together
from elastalog.cli.standard_input import NAME, standard_input

if TYPE_CHECKING:
    from elastalog.diagnostics.source import Source
    from elastalog.program import Program
    from elastalog.program.preprocessing import Preprocessing

_META: Final = "elastalog.preprocessing"


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_META, {})[param.name] = value


def _keep_macros(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    macros: dict[str, str] = {}
    for value in values:
        for definition in value.split():
            name, equals, text = definition.partition("=")
            if not name.replace("_", "a").isalnum() or name[:1].isdigit():
                raise click.BadParameter(f"'{definition}' is not NAME or NAME=VALUE.", ctx, param)
            macros[name] = text if equals else "1"
    _keep(ctx, param, macros)


preprocessor_options: Final = together(
    click.option(
        "-I", "--include-dir", "include", multiple=True, metavar="DIR", expose_value=False, callback=_keep,
        help="Folder to search for included files; may be given several times.",
    ),
    click.option(
        "-M", "--macro", "macros", multiple=True, metavar="NAME=VALUE", expose_value=False, callback=_keep_macros,
        help="Define a macro, or several in one text: -M 'SIZE=3 DEBUG'.",
    ),
    click.option(
        "--no-preprocessor", "no_preprocessor", is_flag=True, expose_value=False, callback=_keep,
        help="Ignore preprocessor lines (those that begin with #).",
    ),
)  # fmt: skip
"""The options; `preprocessing_given` and `read_program` know what was given."""

program_argument: Final = together(click.argument("program", type=click.Path()), preprocessor_options)
"""PROGRAM, a path or `-` for standard input, and the options of the preprocessor that reads it."""


def preprocessing_given() -> Preprocessing:
    """What the options of the running command say."""
    from elastalog.program.preprocessing import preprocessing

    ctx = click.get_current_context(silent=True)
    given = ctx.meta.get(_META, {}) if ctx is not None else {}
    return preprocessing(given.get("include", ()), given.get("macros", {}), not given.get("no_preprocessor", False))


def read_program(path: str) -> Program:
    """The checked program of a file, or of standard input for `-`, read as the options say."""
    from elastalog.program import Program

    options = preprocessing_given()
    if path == "-":
        return Program.parse(
            standard_input(), NAME, include=(".", *options.include), macros=dict(options.macros),
            preprocess=options.is_on,
        )  # fmt: skip
    return Program.load(path, include=options.include, macros=dict(options.macros), preprocess=options.is_on)


def read_source(path: str) -> Source:
    """The text that a program stands for, read as the options say."""
    from elastalog.diagnostics.source import Source
    from elastalog.program import read_program_text
    from elastalog.program.preprocessing import preprocess

    source = Source(NAME, standard_input()) if path == "-" else Source(path, read_program_text(path))
    return preprocess(source, preprocessing_given(), read_program_text)
