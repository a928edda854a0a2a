"""`elastalog log`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

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

    For each: number, time, explicit facts deleted and inserted, facts changed altogether, how it was done, how long it
    took, its source and batch; then the rules that it changed. With `-v` also what was done to every stratum, and
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
        entries = _entries(store)[::-1][:last]
        heads, *lines = _table(entries)
        if form != "json":
            click.echo(heads)
        for entry, line in zip(entries, lines, strict=True):
            if form == "json":
                click.echo(json.dumps(entry.written(), ensure_ascii=False))
                continue
            click.echo(line)
            for sign, rules in (("-", entry.removed_rules), ("+", entry.added_rules)):
                for rule in rules:
                    click.echo(f"        {sign}rule: {shown_rule(rule)}")
            if verbosity == "verbose":
                for stratum in entry.strata:
                    name = ", ".join(stratum.relations)
                    click.echo(f"    {name}: {stratum.how}, {stratum.derivations:,} derivations ({stratum.why})")


def _entries(store: str) -> tuple[LogEntry, ...]:
    """The log alone: no relation is loaded for it."""
    from elastalog.storage.administration import read_log

    return read_log(folder_of(store))


def _table(entries: Sequence[LogEntry]) -> list[str]:
    """The heads of the columns, and a line for each epoch."""
    rows: list[tuple[str, ...]] = [("epoch", "time", "explicit", "changes", "how", "seconds", "source", "batch")]
    for entry in entries:
        how = "+".join(sorted({stratum.how for stratum in entry.strata})) or "nothing"
        explicit = f"-{entry.deleted:,} +{entry.inserted:,}"
        origin = ["" if word is None else str(word) for word in (entry.source, entry.batch)]
        cells = (str(entry.epoch), _time(entry), explicit, f"{entry.impact:,}", how, f"{entry.seconds:.3f}", *origin)
        rows.append(cells)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_aligned, range(len(row)), row, widths)).rstrip() for row in rows]


def _aligned(place: int, cell: str, width: int) -> str:
    return cell.rjust(width) if place in (0, 3, 5) else cell.ljust(width)  # numbers stand right


def _turn_line(turn: Turn) -> str:
    level = "" if turn.level < 0 else f" at level {turn.level}"
    return f"{turn.epoch:>6}  {_time(turn.entry)}  {turn.what}{level}"


def _time(entry: LogEntry) -> str:
    return entry.time.strftime("%Y-%m-%d %H:%M:%S")
