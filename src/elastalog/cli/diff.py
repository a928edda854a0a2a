"""`elastalog diff`"""

from __future__ import annotations

import click

from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.fact_text import changed_lines, fact_text
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.store_options import reading, store_argument


@click.command()
@store_argument
@click.argument("first", type=click.IntRange(1), metavar="A")
@click.argument("last", type=click.IntRange(1), metavar="B")
@click.option("--relation", "-r", "wanted", multiple=True, metavar="NAME", help="Only this relation; may be repeated.")
@click.option("--levels", is_flag=True, help="Include facts whose lowest proof changed its height (~).")
@format_option
@verbosity_options
def diff(
    store: str,
    first: int,
    last: int,
    wanted: tuple[str, ...],
    levels: bool,
    form: str,
    verbosity: Verbosity,
) -> None:
    """Show how epoch B of a store differs from epoch A.

    Prints the rules and the facts that went (`-`) and came (`+`), as a diff file has them, new declarations before the
    rules; with `--levels` also facts that stayed and have other proofs.

    \b
    Examples:
      elastalog diff reach.store 1 17
      elastalog diff reach.store 16 17 --levels -r path
    """
    from elastalog.program import shown_rule

    with exit_codes(form, verbosity), reading(store) as session:
        found = session.diff(first, last)
        if not wanted:
            for sign, texts in (("-", found.removed_rules), ("+", (*found.added_declarations, *found.added_rules))):
                for text in texts:
                    click.echo(f"{sign}rule: {shown_rule(text)}")
        for name in wanted:
            session[name]  # an unknown one is an error
        for name, difference in found.items():
            if wanted and name not in wanted:
                continue
            for line in changed_lines((difference,)):
                click.echo(line)
            if levels:
                arity = session.schemas[name].arity
                for *values, was, level in sorted(zip(*difference.moved.to_pydict().values(), strict=True)):
                    click.echo(f"~{fact_text(name, values[:arity])}. // level {was}, now {level}")
