"""`elastalog query`"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elastalog.analysis.listing import json_value
from elastalog.analysis.values import sort_key
from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.fact_text import value_text
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.session_options import SessionOptions, announcing, load_program, open_session, session_options
from elastalog.cli.store_options import at_option, opened_at
from elastalog.folders.addresses import is_address

if TYPE_CHECKING:
    from elastalog.relations.facts import Relation

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?|nan|-?inf", re.ASCII)


@click.command()
@click.argument("program", type=click.Path(), metavar="PROGRAM|STORE")
@click.argument("query")
@click.option(
    "--param", "parameters", multiple=True, metavar="NAME=VALUE",
    help="Value of the parameter `?NAME`: a number, or any other text.",
)  # fmt: skip
@at_option
@session_options
@format_option
@verbosity_options
def query(
    program: str,
    query: str,
    parameters: tuple[str, ...],
    at: int | None,
    form: str,
    verbosity: Verbosity,
    **options: Any,
) -> None:
    """Ask a program, over the fact files of a folder, or a store.

    Of a program only what the answer needs is derived, and only the files are read that it depends on.

    A QUERY is a pattern, or literals as in the body of a rule. Prints one answer a line: the values of the variables in
    the order of first appearance, or of the arguments of a head, separated by tabs; with `--format json` one object a
    line. A query without variables is answered by `yes` or `no`. A VALUE in double quotes is a text even if it is a
    number.

    \b
    Examples:
      elastalog query reach.store 'path(1, X)'
      elastalog query reach.store 'path(1, 4)' --at 17
      elastalog query reach.dl -F facts 'path(?a, X), edge(X, Y), X > 10' --param a=1
      elastalog query reach.store 'far(X) :- path(1, X), !edge(1, X)'
    """
    values = dict(map(_parameter, parameters))
    chosen = SessionOptions(**options)
    with exit_codes(form, verbosity), announcing(verbosity):
        answers = _answers(program, query, values, at, chosen, form, verbosity)
        names = answers.schema.names
        if not names:
            click.echo("yes" if len(answers) else "no")
            return
        for answer in sorted(answers, key=sort_key):
            if form == "json":
                click.echo(json.dumps(dict(zip(names, map(json_value, answer), strict=True)), ensure_ascii=False))
            else:
                click.echo("\t".join(map(value_text, answer)))


def _answers(
    program: str,
    query: str,
    values: dict[str, int | float | str],
    at: int | None,
    options: SessionOptions,
    form: str,
    verbosity: Verbosity,
) -> Relation:
    if is_address(program) or Path(program).is_dir() or at is not None:
        with opened_at(program, at, options, form, verbosity) as session:
            return session.query(query, parameters=values)
    from elastalog.program import with_arithmetic
    from elastalog.session.opening import question

    loaded = with_arithmetic(load_program(program, form, verbosity), options.arithmetic)
    asked = question(loaded, query, values)
    with open_session(asked.program, options, form=form, verbosity=verbosity) as session:
        return asked.answers(session)


def _parameter(written: str) -> tuple[str, int | float | str]:
    name, sign, value = written.partition("=")
    if not sign or not name:
        raise click.BadParameter(f"'{written}' is not NAME=VALUE", param_hint="--param")
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return name, value[1:-1]
    if _INTEGER.fullmatch(value):
        return name, int(value)
    return name, float(value) if _FLOAT.fullmatch(value) else value
