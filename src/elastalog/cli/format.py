"""`elastalog format`"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from elastalog.cli.exits import AT_FAULT, Verbosity, exit_codes
from elastalog.cli.options import format_option, verbosity_options


@click.command(name="format")
@click.argument("programs", type=click.Path(), nargs=-1, required=True, metavar="PROGRAM...")
@click.option("--write", "-w", is_flag=True, help="Rewrite the files instead of printing.")
@click.option("--check", "-c", "only_check", is_flag=True, help="Say which files would change; exit code 1 if any.")
@format_option
@verbosity_options
def format_command(programs: tuple[str, ...], write: bool, only_check: bool, form: str, verbosity: Verbosity) -> None:
    """Print programs in one layout.

    Every declaration, directive and rule begins a line, blanks and indentation are set, comments, line breaks inside
    rules and lines for the preprocessor stay. The words of the program are never changed.

    \b
    Examples:
      elastalog format reach.dl
      elastalog format --write rules/*.dl
      elastalog format --check reach.dl
      elastalog format - < reach.dl
    """
    if write and only_check:
        raise click.UsageError("--write and --check exclude each other")
    with exit_codes(form, verbosity):
        changed = [path for path in programs if _format(path, write, only_check)]
        if only_check:
            for path in changed:
                click.echo(f"would change: {path}")
            if changed:
                sys.exit(AT_FAULT)


def _format(path: str, write: bool, only_check: bool) -> bool:
    """Whether the layout of a program differs from its text."""
    from elastalog.diagnostics.diagnostic import ElastalogError
    from elastalog.diagnostics.source import Source
    from elastalog.pipeline.files.atomic import replacing
    from elastalog.program import read_program_text
    from elastalog.syntax.format import format_program

    text = sys.stdin.read() if path == "-" else read_program_text(path)
    formatted, faults = format_program(Source("<stdin>" if path == "-" else path, text))
    if faults:
        raise ElastalogError(faults)
    if write and path != "-":
        if formatted != text:
            with replacing(Path(path)) as out:
                out.write(formatted.encode())
    elif not only_check:
        click.echo(formatted, nl=False)
    return formatted != text
