"""`elastalog explain-error`"""

from __future__ import annotations

import sys
from textwrap import fill, indent

import click

from elastalog.cli.exits import WRONG_USAGE, exit_codes


@click.command("explain-error")
@click.argument("code", required=False)
def explain_error(code: str | None) -> None:
    """Explain an error code.

    Shows why it is an error, a program that has it and the same program mended. Without CODE, lists all codes.

    \b
    Examples:
      elastalog explain-error E0412
      elastalog explain-error | grep -i aggregate
    """
    with exit_codes():
        from elastalog.diagnostics.catalogue import CATALOGUE

        if code is None:
            for entry in CATALOGUE.values():
                click.echo(f"{entry.code}  {entry.title}")
            return
        found = CATALOGUE.get(_normal_form(code))
        if found is None:
            from elastalog.diagnostics.nearest import nearest

            wanted = _normal_form(code)
            of_same_stage = [known for known in CATALOGUE if known[:3] == wanted[:3]]
            near = nearest(wanted, of_same_stage) or nearest(wanted, CATALOGUE)
            hint = f"did you mean {near}?" if near else "`elastalog explain-error` lists all codes"
            click.echo(f"unknown error code `{code[:40]}`: {hint}", err=True)
            sys.exit(WRONG_USAGE)
        paragraphs = "\n\n".join(fill(paragraph, 100) for paragraph in found.explanation.split("\n\n"))
        click.echo(f"{found.code}: {found.title}\n\n{paragraphs}\n")
        click.echo(f"Wrong:\n\n{indent(found.example.strip(), '    ')}\n")
        click.echo(f"Right:\n\n{indent(found.fix.strip(), '    ')}")


def _normal_form(code: str) -> str:
    """`e412`, `412` and `E0412` are the same code."""
    digits = code.strip().upper().removeprefix("E")
    return f"E{digits.zfill(4)}" if digits.isascii() and digits.isdigit() else code
