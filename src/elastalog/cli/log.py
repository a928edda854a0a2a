"""`elastalog log`"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from elastalog.analysis.findings import counted
from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.store_options import folder_of, reading, store_argument

if TYPE_CHECKING:
    from elastalog.storage.entries import LogEntry
    from elastalog.storage.history import Turn


@click.command()
@store_argument
@click.option("-n", "--last", type=click.IntRange(1), metavar="N", help="Only the last N epochs.")
@click.option(
    "--fact", metavar="FACT", help="Only the epochs in which FACT appeared, disappeared or changed its level."
)
@format_option
@verbosity_options
def log(store: str, last: int | None, fact: str | None, form: str, verbosity: Verbosity) -> None:
    """List the epochs of a store, the latest first.

    For each: number, time, source and batch, explicit facts deleted and inserted, facts changed altogether, how it
    was done, and how long it took; then the rules that it changed. With `-v` also what was done to every stratum, and
    why.

    \b
    Examples:
      elastalog log reach.store -n 20
      elastalog log reach.store --fact 'path(1, 4)'
      elastalog log reach.store --format json
    """
    from elastalog.program import shown_rule

    with exit_codes(form, verbosity):
        if fact is not None:
            with reading(store) as session:
                for turn in session.history(fact)[::-1][:last]:
                    click.echo(json.dumps(asdict(turn), ensure_ascii=False) if form == "json" else _turn_line(turn))
            return
        for entry in _entries(store)[::-1][:last]:
            if form == "json":
                click.echo(json.dumps(entry.written(), ensure_ascii=False))
                continue
            click.echo(_line(entry))
            for sign, rules in (("-", entry.removed_rules), ("+", entry.added_rules)):
                for rule in rules:
                    click.echo(f"        {sign}rule: {shown_rule(rule)}")
            if verbosity == "verbose":
                for stratum in entry.strata:
                    name = ", ".join(stratum.relations)
                    click.echo(f"    {name}: {stratum.how}, {stratum.derivations:,} derivations ({stratum.why})")


def _entries(store: str) -> tuple[LogEntry, ...]:
    """The log alone: no relation is loaded for it."""
    from elastalog.storage.log import read_log

    return read_log(folder_of(store))


def _line(entry: LogEntry) -> str:
    choices = sorted({stratum.how for stratum in entry.strata}) or ["nothing"]
    origin = "".join(f"  {word}" for word in (entry.source, entry.batch) if word is not None)
    return (
        f"{entry.epoch:>6}  {_time(entry)}  -{entry.deleted:,} +{entry.inserted:,}  {counted(entry.impact, 'change')}"
        f"  {'+'.join(choices)}  {entry.seconds:.3f} s{origin}"
    )


def _turn_line(turn: Turn) -> str:
    level = "" if turn.level < 0 else f" at level {turn.level}"
    return f"{turn.epoch:>6}  {_time(turn.entry)}  {turn.what}{level}"


def _time(entry: LogEntry) -> str:
    return entry.time.strftime("%Y-%m-%d %H:%M:%S")
