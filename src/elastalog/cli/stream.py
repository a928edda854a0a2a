"""`elastalog stream`"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elastalog.analysis.findings import counted
from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.outputs import write_outputs
from elastalog.cli.preprocessor_options import program_argument
from elastalog.cli.session_options import (
    SessionOptions,
    announcing,
    load_program,
    open_session,
    session_options,
    show_reports,
)
from elastalog.cli.spark_stream import SparkStream, run_spark_stream, spark_stream_options
from elastalog.cli.standard_output import checked_output
from elastalog.cli.update_reports import TO_TERMINAL, print_changes, report_stats, stats_row

if TYPE_CHECKING:
    from elastalog.evaluation.pending import PendingUpdate
    from elastalog.pipeline.streams import StreamedUpdate
    from elastalog.session import Session


@click.command()
@program_argument
@click.option(
    "--updates", type=click.Path(exists=True), metavar="PATH",
    help="Folder of updates, or one table with a column `step`.",
)  # fmt: skip
@click.option(
    "--marks", default="none", show_default=True, type=click.Choice(["none", "eager", "linked", "auto"]),
    help="Look one update ahead and mark what it will check (dred, bf, bfc); auto: only where it pays.",
)  # fmt: skip
@session_options
@spark_stream_options
@click.option(
    "-D", "--output", metavar="DIR", help="Write the outputs there after the last update; - for standard output."
)
@click.option("--show-changes", is_flag=True, help="Print the facts that came (+) and went (-), update by update.")
@click.option(
    "--stats", is_flag=False, flag_value=TO_TERMINAL, metavar="[FILE.json]",
    help="Print what every update did and cost, or write it to FILE.json.",
)  # fmt: skip
@format_option
@verbosity_options
def stream(
    program: str,
    updates: str | None,
    marks: str,
    source: str | None,
    store: str | None,
    changes: str | None,
    checkpoint: str | None,
    once: bool,
    relation: str | None,
    settings: dict[str, str],
    output: str | None,
    show_changes: bool,
    stats: str | None,
    form: str,
    verbosity: Verbosity,
    **options: Any,
) -> None:
    """Evaluate PROGRAM, then apply a stream of updates, each an epoch, each once.

    The updates are the entries of a folder in natural order (2.diff before 10.diff: diff files, tables with a column
    `op`, or folders of them), or the rows of one CSV or Parquet file, grouped by their column `step`. When an update
    is at fault, those before it have been applied (with --marks all but one), and the command ends.

    With --source Spark watches a folder instead: every diff file that appears in it becomes an epoch. Or a table of
    its catalogue, with a column `op` and the attributes of the relation it is named after (or columns `op`,
    `relation`, `a1`, `a2`, …): every file of it becomes an epoch, or all rows with the same number in a column
    `step`, `epoch` or `batch`. With --store they are kept there, once, whatever is interrupted and started again;
    without, every start begins with the facts. A store that is there goes on; its facts are not read again.

    \b
    Examples:
      elastalog stream reach.dl -F facts --updates updates/ -D out
      elastalog stream reach.dl -F facts --updates changes.parquet --show-changes
      elastalog stream reach.dl -F facts --updates updates/ --strategy bfc --marks linked --stats
      elastalog stream reach.dl -F facts --source incoming/ --store reach.store --changes feed/
      elastalog stream reach.dl -F facts --source lake.edge --store reach.store --conf spark.jars=…
      elastalog stream reach.dl -F facts --source incoming/ --strategy bfc --marks eager --once -D out
    """
    if (updates is None) == (source is None):
        raise click.UsageError("Give either --updates or --source.")
    given = {
        "--store": store, "--changes": changes, "--checkpoint": checkpoint, "--once": once, "--relation": relation,
        "--conf": settings,
    }  # fmt: skip
    if updates is not None and (misplaced := [option for option, value in given.items() if value]):
        raise click.UsageError(f"{', '.join(misplaced)}: only with --source. `elastalog apply` updates a store.")
    with exit_codes(form, verbosity), checked_output():
        if updates is None:
            asked = SparkStream(
                source, store, changes, checkpoint, once, relation, settings, marks, output, show_changes, stats
            )
            run_spark_stream(program, asked, SessionOptions(**options), form, verbosity)
            return
        loaded = load_program(program, form, verbosity)
        with announcing(verbosity):
            session = open_session(loaded, SessionOptions(**options), form=form, verbosity=verbosity)
        rows = _apply_all(session, updates, marks, show_changes, form, verbosity, options["bad_rows"] != "fail")
        if output is not None:
            write_outputs(session, output)
        if stats is not None:
            report_stats(rows, stats)


def _apply_all(
    session: Session, updates: str, marks: str, show_changes: bool, form: str, verbosity: Verbosity, keep_bad: bool
) -> list[dict[str, Any]]:
    """Returns what every update did and cost."""
    from elastalog.pipeline.streams import read_stream, with_next

    source = Path(updates).name
    rows: list[dict[str, Any]] = []
    stream = _within_limits(session, read_stream(updates, session.program, keep_bad=keep_bad))
    # Without marks nothing is read ahead: an update is applied although the next one is at fault.
    pairs = with_next(stream) if marks != "none" else ((update, None) for update in stream)
    for present, following in pairs:
        if following is not None and not present.diff.changes_rules:
            session.engine.announce(_filled(session, source, following), marks)
        update = _filled(session, source, present)
        show_reports(update.reports, form, verbosity)
        changes = update.commit()
        rows.append(stats_row(update.stats))
        if verbosity == "verbose":
            click.echo(f"epoch {update.stats.epoch}: {present.batch}: {counted(changes.impact, 'change')}", err=True)
        if show_changes:
            print_changes(present.batch, changes)
    return rows


def _within_limits(session: Session, stream: Iterator[StreamedUpdate]) -> Iterator[StreamedUpdate]:
    """The updates of a stream, each read within the limits of the session."""
    while True:
        with session.engine.reading():
            update = next(stream, None)
        if update is None:
            return
        yield update


def _filled(session: Session, source: str, update: StreamedUpdate) -> PendingUpdate:
    pending = session.update(source, update.batch)
    pending.take(update.diff, update.batch)
    return pending
