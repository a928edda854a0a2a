"""`elastalog stream --source`: a folder or a table watched by Spark, its updates kept in a store, or in memory only."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from elastalog.analysis.findings import counted
from elastalog.cli.exits import Verbosity, show_diagnostics
from elastalog.cli.options import together
from elastalog.cli.outputs import write_outputs
from elastalog.cli.session_options import SessionOptions, announcing, load_program, open_session
from elastalog.cli.store_options import folder_of, is_store
from elastalog.cli.update_reports import print_changes, report_stats, stats_row
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, noted
from elastalog.folders.addresses import is_address, without_secrets

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from elastalog.evaluation.pending import PendingUpdate
    from elastalog.pipeline.spark.applying import StreamOptions
    from elastalog.program import Program
    from elastalog.session import Session


@dataclass(frozen=True, slots=True)
class SparkStream:
    """What the user said about a stream on Spark."""

    source: str | None
    store: str | None
    changes: str | None
    checkpoint: str | None
    once: bool
    relation: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    marks: str = "none"
    output: str | None = None
    show_changes: bool = False
    stats: str | None = None


def _settings(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"'{text}' is not KEY=VALUE", ctx, param)
        settings[key] = value
    return settings


spark_stream_options: Final = together(
    click.option(
        "--source", metavar="DIR|TABLE", help="Folder of diff files, each an epoch, or a table, for Spark to watch."
    ),
    click.option(
        "--relation",
        metavar="NAME",
        help="Relation of the rows.  [default: the table's name, or its column `relation`]",
    ),
    click.option(
        "--conf",
        "settings",
        multiple=True,
        callback=_settings,
        metavar="KEY=VALUE",
        help="Setting of the Spark session, as for spark-submit.",
    ),
    click.option(
        "--store", type=click.Path(), metavar="STORE", help="Store of the epochs; created if it does not exist."
    ),
    click.option("--changes", type=click.Path(), metavar="DIR", help="Folder for the change feed, as Parquet."),
    click.option(
        "--checkpoint",
        type=click.Path(),
        metavar="DIR",
        help="Folder of Spark's checkpoints.  [default: STORE.checkpoint; required if STORE is remote]",
    ),
    click.option("--once", is_flag=True, help="Stop once everything available has been applied."),
)
"""The options of `SparkStream`; the command takes them as keyword arguments of the same names."""


def run_spark_stream(
    program: str, asked: SparkStream, options: SessionOptions, form: str, verbosity: Verbosity
) -> None:
    """Applies the files of a folder, or what a table holds, until it is interrupted, or once."""
    if asked.source is None:
        raise click.UsageError("--source is missing")
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
    with (
        TemporaryDirectory() as notes,
        announcing(verbosity),
        _session(program, asked, options, form, verbosity) as session,
    ):
        given: StreamOptions = {
            "checkpoint": asked.checkpoint or _checkpoint(asked.store, asked.source, is_table) or notes,
            "marks": asked.marks, "changes": asked.changes, "available_now": asked.once,
            "on_update": partial(_told, rows, asked),
        }  # fmt: skip
        if is_table:
            handle = on_spark.apply_table(spark, asked.source, session, relation=asked.relation, **given)
        else:
            handle = on_spark.apply_diff_files(spark, asked.source, session, **given)
        if verbosity != "quiet" and not asked.once:
            click.echo(f"epoch {session.epoch}: watching {asked.source}; end with Ctrl-C", err=True)
        try:
            # In pieces, so that Ctrl-C is heard.
            while not handle.wait(1):
                pass
        finally:
            handle.stop()
            if verbosity != "quiet":
                told = f"{counted(handle.applied, 'update')} applied"
                told += f", {handle.repeated:,} had been before" if handle.repeated else ""
                click.echo(f"epoch {session.epoch}: {told}", err=True)
            if asked.stats is not None:  # of a watched source at Ctrl-C, too
                report_stats(rows, asked.stats)
        if asked.output is not None:
            write_outputs(session, asked.output)


def _told(rows: list[dict[str, Any]], asked: SparkStream, update: PendingUpdate) -> None:
    """Notes and prints what is wanted of an update."""
    if asked.stats is not None:
        rows.append(stats_row(update.stats))
    if asked.show_changes:
        print_changes(str(update.stats.batch or ""), update.changes)
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
    from elastalog.pipeline.spark.streamed_tables import is_table_name, require_table

    if not is_table_name(source) or Path(source).is_dir():
        if relation is not None:
            raise click.UsageError("--relation: only for a table. A diff file says what it is about.")
        return False
    with noted(f"there is no folder `{source}` either"):
        require_table(spark, source)
    return True


def _session(
    program: str, asked: SparkStream, options: SessionOptions, form: str, verbosity: Verbosity
) -> AbstractContextManager[Session]:
    """The session of a store that is there, or a new one."""
    loaded = load_program(program, form, verbosity)
    if asked.store is None or not _is_there(asked.store):
        _refuse_old_checkpoint(asked)
        return open_session(loaded, options, form=form, verbosity=verbosity, store=asked.store)
    import elastalog

    session = elastalog.open(
        None if _is_made_for(asked.store, loaded) else loaded,
        store=asked.store,
        engine=options.engine,
        strategy=None if options.strategy == "elastic" else options.strategy,
        levels=None if options.levels == "local" else options.levels,
        jobs=options.jobs,
        limits=elastalog.Limits(memory=options.max_memory, time=options.timeout),
    )
    if session.engine.recovery:
        show_diagnostics(session.engine.recovery, form, verbosity)
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


def _refuse_old_checkpoint(asked: SparkStream) -> None:
    """A diagnostic if a new store would miss what Spark has noted as done."""
    if asked.checkpoint is None or not Path(asked.checkpoint).is_dir() or not os.listdir(asked.checkpoint):
        return
    place = without_secrets(asked.store or "")
    raise ElastalogError(
        [
            Diagnostic(
                code="E1112",
                message=f"the checkpoint `{asked.checkpoint}` is of another store than the new one at `{place}`",
                notes=("updates that it has as done would never be applied to the new store",),
                help="name another folder, or leave --checkpoint out: then every store has its own",
                location=asked.checkpoint,
            )
        ]
    )
