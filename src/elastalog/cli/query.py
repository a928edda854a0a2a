"""`elastalog query`"""

from __future__ import annotations

import json

import click

from elastalog.analysis.values import sort_key
from elastalog.cli.exits import exit_codes
from elastalog.cli.fact_text import value_text
from elastalog.cli.options import format_option, verbosity_of, verbosity_options
from elastalog.cli.session_options import announcing
from elastalog.cli.store_options import at_option, reading, store_argument


@click.command()
@store_argument
@click.argument("pattern")
@at_option
@format_option
@verbosity_options
@click.pass_context
def query(
    ctx: click.Context, /, store: str, pattern: str, at: int | None, form: str, verbose: bool, quiet: bool
) -> None:
    """Ask a store which facts fit a pattern.

    Prints one answer a line: the values of the pattern's variables, separated by tabs; with `--format json` one
    object a line. A pattern without variables is answered by `yes` or `no`.

    \b
    Examples:
      elastalog query reach.store 'path(1, X)'
      elastalog query reach.store 'path(1, 4)' --at 17
    """
    verbosity = verbosity_of(ctx, verbose, quiet)
    with exit_codes(form, verbosity), announcing(verbosity), reading(store, at) as session:
        answers = session.query(pattern)
        names = answers.schema.names
        if not names:
            click.echo("yes" if len(answers) else "no")
            return
        for answer in sorted(answers, key=sort_key):
            if form == "json":
                click.echo(json.dumps(dict(zip(names, answer, strict=True)), ensure_ascii=False, default=str))
            else:
                click.echo("\t".join(map(value_text, answer)))
