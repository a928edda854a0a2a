"""`elastalog apply`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elastalog.analysis.findings import counted
from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.fact_text import changed_lines
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.session_options import (
    announcing,
    bad_rows_option,
    functors_option,
    max_bad_rows_option,
    show_reports,
)
from elastalog.cli.standard_input import NAME, standard_input
from elastalog.cli.store_options import store_argument, writing

if TYPE_CHECKING:
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.pending import PendingUpdate
    from elastalog.pipeline.files.policy import Mode


@click.command()
@store_argument
@click.argument("updates", type=click.Path(exists=True, allow_dash=True), nargs=-1, required=True, metavar="UPDATE...")
@click.option("--source", metavar="NAME", help="Name of the source of the updates.")
@click.option(
    "--batch", metavar="ID",
    help="Id of this update in its source; a batch is applied only once. With several files, the second gets ID.2.",
)  # fmt: skip
@click.option("--show-changes", is_flag=True, help="Print the facts that came (+) and went (-).")
@click.option("--preview", is_flag=True, help="Only print what would come and go; nothing is changed.")
@bad_rows_option
@max_bad_rows_option
@click.option(
    "--quarantine", default=".", type=click.Path(file_okay=False), metavar="DIR",
    help="Folder of the bad rows that are set aside.  [default: the current one]",
)  # fmt: skip
@functors_option
@format_option
@verbosity_options
def apply(
    store: str,
    updates: tuple[str, ...],
    source: str | None,
    batch: str | None,
    show_changes: bool,
    preview: bool,
    bad_rows: Mode,
    max_bad_rows: int,
    quarantine: str,
    functors: str | None,
    form: str,
    verbosity: Verbosity,
) -> None:
    """Apply updates to a store, each an epoch.

    An UPDATE is a diff file (`+edge(1,2).` or `-edge(3,4).`, one change a line; `+rule: …` and `-rule: …` change
    rules), a table with a column `op`, a folder of them, or `-` for standard input. What has been committed survives
    anything; when an update fails, those before it stay. An update that changes nothing is remembered, but makes no
    epoch.

    \b
    Examples:
      elastalog apply reach.store monday.diff
      elastalog apply reach.store monday.diff --source crawler --batch 2026-11-16
      elastalog apply reach.store monday.diff --preview
      elastalog apply reach.store monday.diff --bad-rows quarantine --quarantine bad/
      echo '+edge(1, 2).' | elastalog apply reach.store - --show-changes
    """
    from elastalog.pipeline.files.policy import BadRows

    policy = BadRows(bad_rows, max_bad_rows, quarantine)
    with (
        exit_codes(form, verbosity),
        announcing(verbosity),
        writing(store, form, verbosity, functors, policy) as session,
    ):
        for number, path in enumerate(updates, 1):
            pending = session.update(source, batch if batch is None or number == 1 else f"{batch}.{number}")
            _read(pending, path, bad_rows)
            show_reports(pending.reports, form, verbosity)
            if preview:
                changes = session.preview(pending)
                if verbosity != "quiet":
                    click.echo(f"{path}: would change {counted(changes.impact, 'fact')}", err=True)
                _print(changes)
                continue
            changes = pending.commit()
            stats = pending.stats
            if verbosity != "quiet":
                told = f"{counted(changes.impact, 'change')}, {stats.seconds:.3f} s"
                if stats.is_repeated:
                    told = "was applied before"
                elif stats.is_unchanged:
                    told = "changes nothing"
                click.echo(f"epoch {stats.epoch}: {path}: {told}", err=True)
            if show_changes:
                _print(changes)


def _print(changes: Changes) -> None:
    for line in changed_lines(changes.values()):
        click.echo(line)


def _read(pending: PendingUpdate, path: str, bad_rows: Mode) -> None:
    """The changes of a file, or, for `-`, of standard input."""
    if path != "-":
        pending.read(path)
        return
    from elastalog.pipeline.files.diff import parse_diff

    keep_bad = bad_rows != "fail"
    diff = parse_diff(standard_input(), NAME, pending.schemas, pending.schemas_with, keep_bad=keep_bad)
    pending.take(diff, NAME)
