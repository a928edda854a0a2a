"""What the updates of a stream changed, did and cost, as the command tells it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elastalog.cli.fact_text import changed_lines

if TYPE_CHECKING:
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.epochs import EpochRecord

TO_TERMINAL = "-"


def print_changes(batch: str, changes: Changes) -> None:
    """The facts that went and came, as a diff file has them, after a comment that names the update."""
    click.echo(f"// {batch}")
    for line in changed_lines(changes.values()):
        click.echo(line)


def stats_row(record: EpochRecord) -> dict[str, Any]:
    """What an update did and cost, by name."""
    return {
        "batch": record.batch, "epoch": record.epoch, "deleted": record.deleted, "inserted": record.inserted,
        "impact": record.impact, "seconds": round(record.seconds, 6), **record.work.counters.as_dict(),
    }  # fmt: skip


def report_stats(rows: Sequence[dict[str, Any]], place: str) -> None:
    """Prints what all updates did and cost on standard error, or writes it to a JSON file."""
    if place == TO_TERMINAL:
        _print_table(rows)
        return
    import json

    from elastalog.pipeline.files.atomic import replacing

    with replacing(Path(place)) as out:
        out.write(json.dumps(rows, indent=2).encode() + b"\n")


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        click.echo("no updates", err=True)
        return
    shown = [name for name in rows[0] if name in ("batch", "impact", "seconds") or any(row[name] for row in rows)]
    total = {name: sum(row[name] for row in rows) for name in shown if name not in ("batch", "epoch")}
    lines = [shown, *([str(row[name]) for name in shown] for row in rows)]
    lines.append([str(total.get(name, "total" if name == "batch" else "")) for name in shown])
    widths = [max(len(line[i]) for line in lines) for i in range(len(shown))]
    for line in lines:
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)), err=True)
