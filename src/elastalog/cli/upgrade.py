"""`elastalog upgrade`"""

from __future__ import annotations

import click

from elastalog.analysis.findings import counted
from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.fact_text import changed_lines
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.preprocessor_options import program_argument
from elastalog.cli.session_options import announcing, functors_option, load_program
from elastalog.cli.store_options import store_argument, writing


@click.command()
@store_argument
@program_argument
@click.option("--preview", is_flag=True, help="Only show what would change.")
@click.option("--show-changes", is_flag=True, help="Print every fact that comes (+) or goes (-).")
@functors_option
@format_option
@verbosity_options
def upgrade(
    store: str,
    program: str,
    preview: bool,
    show_changes: bool,
    functors: str | None,
    form: str,
    verbosity: Verbosity,
) -> None:
    """Let a store go over to another program.

    The difference between the program of the store and PROGRAM (rules, declarations, facts in the text) is one update:
    what depends on it is kept up to date, the rest stays. Relations that PROGRAM does not declare stay too; a relation
    that it declares with other attributes is an error.

    \b
    Examples:
      elastalog upgrade reach.store reach.dl --preview
      elastalog upgrade reach.store reach.dl
    """
    from elastalog.program import difference

    with exit_codes(form, verbosity), announcing(verbosity):
        loaded = load_program(program, form, verbosity)
        with writing(store, form, verbosity, functors) as session:
            found = difference(session.program, loaded)
            changes = session.upgrade(loaded, preview=preview)
            if verbosity != "quiet":
                for sign, texts in (("-", found.removed), ("+", (*found.declarations, *found.rules, *found.facts))):
                    for text in texts:
                        click.echo(f"{sign}rule: {text}", err=True)
                where = "would change" if preview else f"epoch {session.epoch}"
                click.echo(f"{where}: {counted(changes.impact, 'fact')}", err=True)
            if show_changes or preview:
                for line in changed_lines(changes.values()):
                    click.echo(line)
