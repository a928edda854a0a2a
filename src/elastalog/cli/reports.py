"""What commands print: facts and changes in the syntax of the language, progress on a terminal, statistics as tables or
JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from elastalog.analysis.values import sort_key
from elastalog.cli.exits import Console
from elastalog.cli.outputs import write_text
from elastalog.diagnostics.messages import counted
from elastalog.planning.logical import HIDDEN, MADE
from elastalog.provenance.fact import Fact

if TYPE_CHECKING:
    from elastalog.analysis.program import CheckedProgram
    from elastalog.backends.watch import Progress
    from elastalog.evaluation.changes import Changes, RelationChanges, Update
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.relations.facts import Relation
    from elastalog.session import Session
    from elastalog.session.questions import Statistics


def fact_lines(relation: Relation, sign: str = "") -> Iterator[str]:
    """The facts of a relation in order, as lines of a diff file."""
    for fact in sorted(relation, key=sort_key):
        yield f"{sign}{Fact(relation.name, fact)}."


_FIRST = 10
"""Changes that are shown of each relation unless all are requested."""


def print_changed(changes: Iterable[RelationChanges], batch: str | None = None, is_whole: bool = True) -> None:
    """Prints the deleted and inserted facts, relation by relation, as a diff file; below a comment with the name of the
    update, if it has one. Unless `is_whole`, only the first of each relation; `--show-changes` shows all."""
    if batch is not None:
        click.echo(f"// {batch}")
    for changed in changes:
        lines = (*fact_lines(changed.deleted, "-"), *fact_lines(changed.inserted, "+"))
        # A line more is not worth leaving out.
        most = len(lines) if is_whole or len(lines) <= _FIRST + 1 else _FIRST
        for line in lines[:most]:
            click.echo(line)
        if len(lines) > most:
            name, more = changed.inserted.name, len(lines) - most
            click.echo(f"… and {more:,} more of `{name}`; `--show-changes` shows all", err=True)


_LOOKED_AT = 1000
"""With more facts without effect than this, none is named."""


def without_effect(session: Session, wanted: Update, record: EpochRecord | Changes) -> str:
    """How many facts of an update changed nothing, or would in a preview, which, and why; empty if there are none."""
    if not record.ignored:
        return ""
    from elastalog.relations.facts import Relation

    told = f"{record.ignored:,} without effect"
    if record.is_repeated or wanted.size > _LOOKED_AT:
        return told

    def named(side: Mapping[str, Any], among: Callable[[str], Relation] = session.__getitem__) -> dict[str, bool]:
        """The inserted or deleted facts of an update, and whether each holds now."""
        return {
            str(Fact(name, values)): values in relation
            for name, words in side.items()
            if name in session.schemas  # a preview may be of one that is still to come
            for relation in (among(name),)
            for values in Relation.of(relation.schema, relation.dictionary, words)
        }

    done = getattr(record, "update", None)
    if done is None:  # all is as it was before
        came = {fact for fact, is_given in named(wanted.inserted, session.explicit).items() if not is_given}
        went = {fact for fact, is_given in named(wanted.deleted, session.explicit).items() if is_given}
    else:
        came, went = set(named(done.inserted)), set(named(done.deleted))
    inserted, reasons = named(wanted.inserted), dict[str, list[str]]()
    for fact in inserted.keys() - came:
        reasons.setdefault("there already", []).append(fact)
    for fact, holds in named(wanted.deleted).items():
        if fact not in went and fact not in inserted:
            reasons.setdefault("only derived" if holds else "not there", []).append(fact)
    parts = (f"{', '.join(sorted(facts)[:3])}{', …' * (len(facts) > 3)} {why}" for why, facts in reasons.items())
    return f"{told} ({'; '.join(parts)})" if reasons else told


def profile_lines(statistics: Statistics) -> Iterator[str]:
    """A table of the rules, the slowest first, and one of the relations."""
    spent: dict[tuple[str, str], tuple[float, int]] = {}
    for rule in statistics.rules:  # one may be evaluated in several ways
        key = "" if rule.number is None else str(rule.number), MADE if rule.text[0] == HIDDEN else rule.text
        seconds, derivations = spent.get(key, (0.0, 0))
        spent[key] = seconds + rule.seconds, derivations + rule.derivations
    rules = [("seconds", "derivations", "rule", "")]
    for key, (seconds, derivations) in sorted(spent.items(), key=lambda one: -one[1][0]):
        rules.append((f"{seconds:.3f}", f"{derivations:,}", *key))
    yield from aligned(rules, left=(3,))
    yield ""
    rows = [("facts", "bytes", "relation")]
    rows += [(f"{relation.facts:,}", f"{relation.bytes:,}", relation.name) for relation in statistics.relations]
    if statistics.hidden_bytes:
        rows.append(("", f"{statistics.hidden_bytes:,}", MADE))
    yield from aligned(rows, left=(2,))
    if statistics.elsewhere:
        yield ""
        parts = [("seconds", "transfer", "rounds", "derivations", "peak bytes", "stratum evaluated elsewhere")]
        for part in statistics.elsewhere:
            sizes = ", ".join(f"{name} {size:,}" for name, size in part.bytes.items())
            numbers = f"{part.seconds:.3f}", f"{part.transfer:.3f}", f"{part.rounds:,}", f"{part.derivations:,}"
            parts.append((*numbers, f"{part.peak:,}", f"{part.place}: {sizes}"))
        yield from aligned(parts, left=(5,))


def profile_json(session: Session) -> str:
    """The profile as JSON, with the costs of every stratum at the latest epoch."""
    statistics = session.statistics()
    entry = session.log()[-1]
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


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = ()) -> Iterator[str]:
    """The rows of a table as lines: cells are aligned to the right, except in the given columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


_INTERVAL = 0.1
_LONGEST_NAMES = 40


@contextmanager
def progress_shown(program: CheckedProgram, console: Console) -> Iterator[Callable[[Progress], None] | None]:
    """What shows progress; None if nobody would see it: standard error is not a terminal, or the user asked for
    quiet."""
    if console.is_quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    from elastalog.planning.lower import lower

    names = [_names(stratum.relations) for stratum in lower(program).strata]
    with Console(stderr=True).status("reading facts", spinner="dots") as status:
        reporter = _Reporter(names, status.update)
        yield reporter.report
    reporter.is_over = True  # the session goes on to report, also of strata of queries


class _Reporter:
    """Formats the progress of an evaluation as a line, no more often than one can read."""

    def __init__(self, names: list[str], show: Callable[[str], None]) -> None:
        self._names = names
        self._show = show
        self._began = time.monotonic()
        self._shown = 0.0
        self._found: dict[int, int] = {}
        self.is_over = False

    def report(self, news: Progress) -> None:
        self._found[news.stratum] = self._found.get(news.stratum, 0) + news.found
        now = time.monotonic()
        if self.is_over or now - self._shown < _INTERVAL:
            return
        self._shown = now
        facts = sum(self._found.values())
        iteration = f", iteration {news.iteration}" if news.iteration else ""
        self._show(
            f"stratum {news.stratum + 1} of {len(self._names)}{self._names[news.stratum]}{iteration}:"
            f" {counted(facts, 'fact')} derived, {now - self._began:.1f} s"
        )


def _names(relations: tuple[str, ...]) -> str:
    """The relations of a stratum in parentheses, without internal ones and not too long."""
    from elastalog.planning.logical import is_hidden_name

    text = ", ".join(name for name in relations if not is_hidden_name(name))
    shortened = text if len(text) <= _LONGEST_NAMES else text[: _LONGEST_NAMES - 1] + "…"
    return f" ({shortened})" if text else ""


TO_TERMINAL = "-"


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
    else:
        write_text(place, json.dumps(rows, indent=2))


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        click.echo("no updates", err=True)
        return
    shown = [name for name in rows[0] if name in ("batch", "impact", "seconds") or any(row[name] for row in rows)]
    total = {name: sum(row[name] for row in rows) for name in shown if name not in ("batch", "epoch")}
    lines = [shown, *([str(row[name]) for name in shown] for row in rows)]
    lines.append([str(total.get(name, "total" if name == "batch" else "")) for name in shown])
    for line in aligned(lines):
        click.echo(line, err=True)
