"""`elastalog export`"""

from __future__ import annotations

from pathlib import Path

import click

from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.options import verbosity_options
from elastalog.cli.session_options import announcing
from elastalog.cli.store_options import at_option, reading, store_argument


@click.command()
@store_argument
@click.option("-D", "--output", default=".", metavar="DIR", help="Folder to write to.  [default: the current one]")
@click.option(
    "--format", "form", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True,
    help="Form of the files: tab-separated text as Soufflé writes it, or Parquet.",
)  # fmt: skip
@click.option("--relation", "-r", "wanted", multiple=True, metavar="NAME", help="Only this relation; may be repeated.")
@click.option("--explicit", is_flag=True, help="Only the explicit facts, as NAME.facts: what `init` and `run` read.")
@at_option
@verbosity_options
def export(
    store: str,
    output: str,
    form: str,
    wanted: tuple[str, ...],
    explicit: bool,
    at: int | None,
    verbosity: Verbosity,
) -> None:
    """Write the relations of a store to files, one each.

    \b
    Examples:
      elastalog export reach.store -D out
      elastalog export reach.store -D out --format parquet --at 17
      elastalog export reach.store -D facts --explicit
    """
    with exit_codes("text", verbosity), announcing(verbosity), reading(store, at) as session:
        from elastalog.pipeline.files.write import write_facts

        for name in wanted or session:
            facts = session.explicit(name) if explicit else session[name]
            if explicit and not len(facts) and not wanted:
                continue
            ending = "parquet" if form == "parquet" else "facts" if explicit else "csv"
            path = Path(output) / f"{name}.{ending}"
            write_facts(facts.schema, facts.to_arrow(), path)
            if verbosity != "quiet":
                click.echo(f"{path}: {len(facts):,} facts", err=True)
