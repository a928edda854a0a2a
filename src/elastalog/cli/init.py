"""`elastalog init`"""

from __future__ import annotations

from typing import Any

import click

from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.preprocessor_options import program_argument
from elastalog.cli.session_options import SessionOptions, announcing, load_program, open_session, session_options
from elastalog.cli.store_options import store_argument


@click.command()
@store_argument
@program_argument
@session_options
@click.option(
    "--retention", default=1000, show_default=True, type=click.IntRange(1), metavar="N",
    help="Number of past epochs to keep.",
)  # fmt: skip
@format_option
@verbosity_options
def init(
    store: str,
    program: str,
    retention: int,
    form: str,
    verbosity: Verbosity,
    **options: Any,
) -> None:
    """Make a store of a program and its facts.

    Evaluates PROGRAM over the fact files of a folder and keeps everything in the new folder STORE: program, facts,
    levels, counts. It is then updated with `apply`.

    \b
    Examples:
      elastalog init reach.store reach.dl -F facts
      elastalog apply reach.store monday.diff
    """
    from elastalog.storage.objects.writing import refuse_existing_at

    with exit_codes(form, verbosity), announcing(verbosity):
        loaded = load_program(program, form, verbosity)
        chosen = SessionOptions(**options)
        refuse_existing_at(store)
        with open_session(loaded, chosen, form=form, verbosity=verbosity, store=store, retention=retention) as session:
            if verbosity != "quiet":
                facts = sum(len(session[name]) for name in session)
                click.echo(f"epoch {session.epoch}: {facts:,} facts", err=True)
