"""The statistics of a session, as tables for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elastalog.evaluation.statistics import Statistics
    from elastalog.session import Session
    from elastalog.storage.entries import LogEntry


def profile_lines(statistics: Statistics) -> Iterator[str]:
    """A table of the rules, the slowest first, and one of the relations."""
    slowest = sorted(statistics.rules, key=lambda rule: -rule.seconds)
    yield from _table(
        ("seconds", "derivations", "rule", ""),
        [
            (f"{rule.seconds:.3f}", f"{rule.derivations:,}", "" if rule.number is None else str(rule.number), rule.text)
            for rule in slowest
        ],
    )
    yield ""
    rows = [(f"{relation.facts:,}", f"{relation.bytes:,}", relation.name) for relation in statistics.relations]
    if statistics.hidden_bytes:
        rows.append(("", f"{statistics.hidden_bytes:,}", "(made for negations and aggregates)"))
    yield from _table(("facts", "bytes", "relation"), rows)
    if statistics.elsewhere:
        yield ""
        yield from _table(
            ("seconds", "transfer", "rounds", "derivations", "peak bytes", "stratum evaluated elsewhere"),
            [
                (
                    f"{part.seconds:.3f}", f"{part.transfer:.3f}", f"{part.rounds:,}", f"{part.derivations:,}",
                    f"{part.peak:,}", f"{part.place}: " + ", ".join(f"{n} {size:,}" for n, size in part.bytes.items()),
                )
                for part in statistics.elsewhere
            ],
        )  # fmt: skip


def profile_json(session: Session) -> str:
    """The same, and what every stratum of the latest epoch cost."""
    statistics = session.statistics()
    entry = latest_entry(session)
    return json.dumps(
        {
            "epoch": session.epoch,
            "seconds": entry.seconds,
            "derivations": entry.derivations,
            "bytes": statistics.bytes,
            "strata": [asdict(stratum) for stratum in entry.strata],
            "rules": [asdict(rule) for rule in statistics.rules],
            "elsewhere": [asdict(stratum) for stratum in statistics.elsewhere],
            "relations": [asdict(relation) for relation in statistics.relations],
        },
        indent=2,
    )


def latest_entry(session: Session) -> LogEntry:
    """What the latest epoch was and cost."""
    return session.log()[-1]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns to the right, the last to the left."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header) - 1)]
    for row in (header, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join((*cells, row[-1])).rstrip()
