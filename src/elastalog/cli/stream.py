"""`elastalog stream`: updates from a folder or a table, read here or, with `--source`, watched by Spark."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from elastalog.cli.exits import Console
from elastalog.cli.options import option, options_of, program_argument, report_options
from elastalog.cli.outputs import checked_output, write_outputs
from elastalog.cli.reports import TO_TERMINAL, print_changed, report_stats, stats_row, without_effect
from elastalog.cli.session_options import (
    SessionOptions,
    announcing,
    folder_of,
    is_store,
    load_program,
    open_session,
    session_options,
    show_reports,
    tell_unread_facts,
)
from elastalog.diagnostics.diagnostic import error, noted
from elastalog.diagnostics.messages import counted
from elastalog.folders.addresses import is_address, without_secrets

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from elastalog.pipeline.streams import StreamedUpdate
    from elastalog.program import Program
    from elastalog.session import Session
    from elastalog.session.pending import PendingUpdate
    from elastalog.spark.applying import StreamOptions


def _settings(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"'{text}' is not KEY=VALUE", ctx, param)
        settings[key] = value
    return settings


@dataclass(frozen=True, slots=True)
class StreamChoices:
    """What the user said about a stream: `updates` are read here, a `source` is watched by Spark."""

    updates: str | None = option(
        "--updates", type=click.Path(exists=True), metavar="PATH",
        help="Folder of updates, a diff file, or one table with a column `step`.",
    )  # fmt: skip
    marks: str = option(
        "--marks", default="none", show_default=True, type=click.Choice(["none", "eager", "linked", "auto"]),
        help="Look one update ahead and mark what it will check (dred, bf, bfc); auto: only where it pays.",
    )  # fmt: skip
    source: str | None = option(
        "--source", metavar="DIR|TABLE", help="Folder of diff files, each an epoch, or a table, for Spark to watch."
    )
    relation: str | None = option(
        "--relation", metavar="NAME",
        help="Relation of the rows.  [default: the table's name, or its column `relation`]",
    )  # fmt: skip
    settings: Mapping[str, str] = option(
        "--conf", multiple=True, callback=_settings, metavar="KEY=VALUE",
        help="Setting of the Spark session, as for spark-submit.",
    )  # fmt: skip
    store: str | None = option(
        "--store", type=click.Path(), metavar="STORE", help="Store of the epochs; created if it does not exist."
    )
    changes: str | None = option(
        "--changes", type=click.Path(), metavar="DIR", help="Folder for the change feed, as Parquet."
    )
    checkpoint: str | None = option(
        "--checkpoint", type=click.Path(), metavar="DIR",
        help="Folder of Spark's checkpoints.  [default: STORE.checkpoint; required if STORE is remote]",
    )  # fmt: skip
    once: bool = option("--once", is_flag=True, help="Stop once everything available has been applied.")
    output: str | None = option(
        "-D", "--output", metavar="DIR", help="Write the outputs there after the last update; - for standard output."
    )
    show_changes: bool = option(
        "--show-changes", is_flag=True, help="Print the facts that came (+) and went (-), update by update."
    )
    stats: str | None = option(
        "--stats", is_flag=False, flag_value=TO_TERMINAL, metavar="[FILE.json]",
        help="Print what every update did and cost, or write it to FILE.json.",
    )  # fmt: skip


def run_spark_stream(program: Program, asked: StreamChoices, options: SessionOptions, console: Console) -> None:
    """Applies the files of a folder, or what a table holds, until it is interrupted, or once."""
    assert asked.source is not None
    if asked.store is None and (asked.changes is not None or asked.checkpoint is not None):
        # Without a store a new process starts from the facts again, and what earlier ones have noted would mislead it.
        raise click.UsageError("--changes and --checkpoint need --store")
    if is_address(asked.store) and asked.checkpoint is None:
        # Beside a folder there is a place for them. At an address Spark's Java side may have no rights.
        told = "a folder that stays, or an address that Spark itself can write to (hdfs://…, s3a://…)"
        raise click.UsageError(
            f"a --store at an address needs --checkpoint, where Spark notes what it has seen: {told}"
        )
    from elastalog import spark as on_spark
    from elastalog.pipeline.spark.session import silence_streams

    spark = on_spark.session(settings=asked.settings)
    silence_streams(spark)
    is_table = _is_table(spark, asked.source, asked.relation)
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory() as notes, announcing(console), _session(program, asked, options, console) as session:
        given: StreamOptions = {
            "checkpoint": asked.checkpoint or _checkpoint(asked.store, asked.source, is_table) or notes,
            "marks": asked.marks, "changes": asked.changes, "available_now": asked.once,
            "on_update": partial(_told, rows, asked),
        }  # fmt: skip
        if is_table:
            handle = on_spark.apply_table(spark, asked.source, session, relation=asked.relation, **given)
        else:
            handle = on_spark.apply_diff_files(spark, asked.source, session, **given)
        if not console.is_quiet and not asked.once:
            click.echo(f"epoch {session.epoch}: watching {asked.source}; end with Ctrl-C", err=True)
        try:
            # In pieces, so that Ctrl-C is heard.
            while not handle.wait(1):
                pass
        finally:
            handle.stop()
            if not console.is_quiet:
                told = f"{counted(handle.applied, 'update')} applied"
                told += f", {handle.repeated:,} had been before" if handle.repeated else ""
                click.echo(f"epoch {session.epoch}: {told}", err=True)
            if asked.stats is not None:  # of a watched source at Ctrl-C, too
                report_stats(rows, asked.stats)
        if asked.output is not None:
            write_outputs(session, asked.output)


def _told(rows: list[dict[str, Any]], asked: StreamChoices, update: PendingUpdate) -> None:
    """Notes and prints what is wanted of an update."""
    if asked.stats is not None:
        rows.append(stats_row(update.stats))
    if asked.show_changes:
        print_changed(update.changes.values(), str(update.stats.batch or ""))
        sys.stdout.flush()


def _checkpoint(store: str | None, source: str, is_table: bool) -> str | None:
    """Where Spark notes how far it has come with a source for a store. Another store at the same place has to begin
    with the first update, and another source has its own."""
    if store is None:
        return None
    from elastalog.storage.manifest import read_manifest

    place = f"table {source}" if is_table else os.path.abspath(source)
    return f"{store}.checkpoint/{read_manifest(Path(store)).store}-{zlib.crc32(place.encode()):08x}"


def _is_table(spark: Any, source: str, relation: str | None) -> bool:
    """Whether a source is a table, not a folder. What is neither is said now, before anything is evaluated."""
    from elastalog.spark.streams import is_table_name, require_table

    if not is_table_name(source) or Path(source).is_dir():
        if relation is not None:
            raise click.UsageError("--relation: only for a table. A diff file says what it is about.")
        return False
    with noted(f"there is no folder `{source}` either"):
        require_table(spark, source)
    return True


def _session(
    program: Program, asked: StreamChoices, options: SessionOptions, console: Console
) -> AbstractContextManager[Session]:
    """The session of an existing store, or a new one."""
    if asked.store is None or not _is_there(asked.store):
        _refuse_old_checkpoint(asked)
        return open_session(program, options, console, store=asked.store)
    import elastalog

    tell_unread_facts(asked.store, console)
    session = elastalog.open(
        None if _is_made_for(asked.store, program) else program,
        store=asked.store,
        engine=options.engine,
        strategy=None if options.strategy == "elastic" else options.strategy,
        levels=None if options.levels == "local" else options.levels,
        jobs=options.jobs,
        limits=elastalog.Limits(memory=options.max_memory, time=options.timeout),
    )
    if session.engine.recovery:
        console.show(session.engine.recovery)
    return session


def _is_made_for(store: str, program: Program) -> bool:
    """Whether a store was made for a program, whatever updates have made of its rules since."""
    from elastalog.storage.filesystem import read_checked
    from elastalog.storage.manifest import read_manifest

    root = folder_of(store)
    return read_checked(root, read_manifest(root).program) == program.tree.source.text.encode()


def _is_there(store: str) -> bool:
    """Whether there is a store already."""
    if not is_address(store):
        return is_store(store)
    from elastalog.storage.objects.writing import is_store_at

    return is_store_at(store)


def _refuse_old_checkpoint(asked: StreamChoices) -> None:
    """A diagnostic if a new store would miss what Spark has noted as done."""
    if asked.checkpoint is None or not Path(asked.checkpoint).is_dir() or not os.listdir(asked.checkpoint):
        return
    place = without_secrets(asked.store or "")
    raise error("E1112.refuse_old_checkpoint", location=asked.checkpoint, checkpoint=asked.checkpoint, place=place)


@click.command()
@program_argument
@options_of(StreamChoices, "asked")
@session_options
@report_options
def stream(program: str, asked: StreamChoices, options: SessionOptions, console: Console) -> None:
    """Evaluate PROGRAM, then apply a stream of updates, each exactly once, as an epoch.

    The updates are the entries of a folder in natural order (2.diff before 10.diff: diff files, tables with a column
    `op`, or folders of them), one diff file, or the rows of one CSV or Parquet file, grouped by their column `step`. If
    an update is faulty, the command stops; those before it have been applied (with --marks, all but one).

    With --source, Spark watches a folder instead: every diff file that appears in it becomes an epoch. Or it watches a
    table of its catalogue, with a column `op` and the attributes of the relation it is named after (or columns `op`,
    `relation`, `a1`, `a2`, …): every file of it becomes an epoch, or all rows with the same number in a column `step`,
    `epoch` or `batch`. With --store, each is kept there exactly once, however often the command is interrupted and
    restarted; without it, every start begins from the facts. An existing store is continued, and facts are not read
    again.

    \b
    Examples:
      elastalog stream reach.dl -F facts --updates updates/ -D out
      elastalog stream reach.dl -F facts --updates changes.parquet --show-changes
      elastalog stream reach.dl -F facts --updates updates/ --strategy bfc --marks linked --stats
      elastalog stream reach.dl -F facts --source incoming/ --store reach.store --changes feed/
      elastalog stream reach.dl -F facts --source lake.edge --store reach.store --conf spark.jars=…
      elastalog stream reach.dl -F facts --source incoming/ --strategy bfc --marks eager --once -D out
    """
    if (asked.updates is None) == (asked.source is None):
        raise click.UsageError("Give either --updates or --source.")
    given = {
        "--store": asked.store, "--changes": asked.changes, "--checkpoint": asked.checkpoint, "--once": asked.once,
        "--relation": asked.relation, "--conf": asked.settings,
    }  # fmt: skip
    if asked.updates is not None and (misplaced := [option for option, value in given.items() if value]):
        raise click.UsageError(f"{', '.join(misplaced)}: only with --source. `elastalog apply` updates a store.")
    from elastalog.pipeline.files.loading import keep_inputs

    with checked_output():
        loaded = load_program(program, console)
        if asked.output not in (None, "-"):
            keep_inputs(loaded.checked, options.facts, asked.output, asked.updates or asked.source)
        if asked.updates is None:
            run_spark_stream(loaded, asked, options, console)
            return
        with announcing(console):
            session = open_session(loaded, options, console)
        rows = _apply_all(session, asked.updates, asked, console, options.bad_rows != "fail")
        if asked.output is not None:
            write_outputs(session, asked.output)
        if asked.stats is not None:
            report_stats(rows, asked.stats)


def _apply_all(
    session: Session, updates: str, asked: StreamChoices, console: Console, keep_bad: bool
) -> list[dict[str, Any]]:
    """Returns what every update did and cost."""
    from elastalog.pipeline.streams import read_stream, with_next

    source = Path(updates).name
    rows: list[dict[str, Any]] = []
    idle = 0
    stream = _within_limits(session, read_stream(updates, session.program, keep_bad=keep_bad))
    # Without marks nothing is read ahead: an update is applied although the next one is at fault.
    pairs = with_next(stream) if asked.marks != "none" else ((update, None) for update in stream)
    for present, following in pairs:
        if following is not None and not present.diff.changes_rules:
            session.engine.announce(_filled(session, source, following), asked.marks)
        update = _filled(session, source, present)
        show_reports(update.reports, console)
        wanted, changes = update.as_update(), update.commit()
        rows.append(stats_row(update.stats))
        idle += update.stats.is_unchanged
        if console.is_verbose:
            vain = without_effect(session, wanted, update.stats)
            told = ", ".join(filter(None, (counted(changes.impact, "change"), vain)))
            click.echo(f"epoch {update.stats.epoch}: {present.batch}: {told}", err=True)
        if asked.show_changes:
            print_changed(changes.values(), present.batch)
    if idle or not rows:
        told = f"{idle:,} of {counted(len(rows), 'update')} changed nothing; `-v` says why"
        console.say(told if rows else f"there are no updates in {updates}")
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
    pending.is_compared = False  # a file that has changed since it was applied is not an update of its own
    pending.take(update.diff, update.batch)
    return pending
