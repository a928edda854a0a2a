"""`elastalog stream --source`: a folder or a table watched by Spark, its updates kept in a store, or in memory only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elastalog.analysis.findings import counted
from elastalog.cli.exits import Verbosity
from elastalog.cli.session_options import SessionOptions, announcing, load_program, open_session
from elastalog.cli.store_options import is_store, writing
from elastalog.diagnostics.noted import noted

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from elastalog.pipeline.spark.applying import StreamOptions
    from elastalog.session import Session

_Command = TypeVar("_Command", bound=Callable[..., Any])


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


def spark_stream_options(command: _Command) -> _Command:
    """The options of `SparkStream`; the command takes them as keyword arguments of the same names."""
    options = (
        click.option(
            "--source", metavar="DIR|TABLE", help="Folder of diff files, each an epoch, or a table, for Spark to watch."
        ),
        click.option(
            "--relation", metavar="NAME", help="What the table is about.  [default: its name, or a column `relation`]"
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
            "--store", type=click.Path(), metavar="STORE", help="Store of the epochs; made if it is not there."
        ),
        click.option("--changes", type=click.Path(), metavar="DIR", help="Folder for the change feed, as Parquet."),
        click.option(
            "--checkpoint", type=click.Path(), metavar="DIR", help="Spark's notes.  [default: STORE.checkpoint]"
        ),
        click.option("--once", is_flag=True, help="End when all that is there has been applied."),
    )
    for decorate in reversed(options):
        command = decorate(command)
    return command


def run_spark_stream(
    program: str, asked: SparkStream, options: SessionOptions, form: str, verbosity: Verbosity
) -> None:
    """Applies the files of a folder, or what a table holds, until it is interrupted, or once."""
    if asked.source is None:
        raise click.UsageError("--source is missing")
    if asked.store is None and (asked.changes is not None or asked.checkpoint is not None):
        # Without a store a new process starts from the facts again, and what earlier ones have noted would mislead it.
        raise click.UsageError("--changes and --checkpoint need --store")
    from elastalog.pipeline.spark.session import spark_session
    from elastalog.pipeline.spark.streamed_tables import apply_table
    from elastalog.pipeline.spark.streams import apply_diff_files

    spark = spark_session(settings=asked.settings)
    is_table = _is_table(spark, asked.source, asked.relation)
    with (
        TemporaryDirectory() as notes,
        announcing(verbosity),
        _session(program, asked.store, options, form, verbosity) as session,
    ):
        default = notes if asked.store is None else f"{asked.store}.checkpoint"
        given: StreamOptions = {
            "checkpoint": asked.checkpoint or default, "marks": asked.marks, "changes": asked.changes,
            "available_now": asked.once,
        }  # fmt: skip
        if is_table:
            handle = apply_table(spark, asked.source, session, relation=asked.relation, **given)
        else:
            handle = apply_diff_files(spark, asked.source, session, **given)
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
        if asked.output is not None:
            from elastalog.cli.run import _write

            _write(session, asked.output)


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


def _settings(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"'{text}' is not KEY=VALUE", ctx, param)
        settings[key] = value
    return settings


def _session(
    program: str, store: str | None, options: SessionOptions, form: str, verbosity: Verbosity
) -> AbstractContextManager[Session]:
    if store is not None and is_store(store):
        return writing(store, form, verbosity)
    loaded = load_program(program, form, verbosity)
    return open_session(loaded, options, form=form, verbosity=verbosity, store=store)
