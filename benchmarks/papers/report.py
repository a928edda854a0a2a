"""Pages from records: tables printed and measured, plots in the papers' form, verdicts. Nothing is measured here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.papers.claims import Judgement, Verdict, judge_all, shown
from benchmarks.papers.items import ITEMS, PAPERS, Item
from benchmarks.papers.record import RESULTS, Record, kept
from benchmarks.papers.stated import CLAIMS
from benchmarks.papers.tables import Cell, Plot
from benchmarks.plot import draw_histograms, draw_lines
from benchmarks.workloads import HERE

INTRODUCTION = """\
Every table and figure of the papers behind Elastalog that can be had with public data: as printed, as measured here,
and why they differ. `make papers` measures all of them (hours) and writes these pages from the records in
`benchmarks/results/papers/`; `make papers QUICK=1` does so at reduced sizes, `make papers ONLY=elastic.table3` for one.
The data: [Run the benchmarks on data](../how-to/benchmark-data.md)."""

HOW_IT_IS_DECIDED = """\
What the papers claim, and whether it holds here, decided from the records alone. A rule bounds a named value of a
record. A claim holds if every value lies within its bounds; with other numbers, if one is not the printed figure; it
does not hold if one lies outside. Counters that an algorithm determines must be equal to the printed ones. Bounds for
times and sizes are ours: the papers rarely say how much is little. They are wide, and what changes its side from run to
run is not judged."""

PAGES = HERE.parent / "docs" / "papers"
_BUSY = 1.5
"""Processes that want a processor, from which on a machine is called busy."""


def write_pages(results: Path = RESULTS, pages: Path = PAGES) -> None:
    """Writes all pages and plots; those of items without a record say so."""
    judgements = judge_all(CLAIMS, results)
    pages.mkdir(parents=True, exist_ok=True)
    _write(pages / "README.md", _index(judgements, results))
    _write(pages / "claims.md", _claims(judgements))
    for paper in PAPERS:
        _write(pages / f"{paper}.md", _paper(paper, results, pages))


def _write(file: Path, lines: Iterator[str]) -> None:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


# --- the pages -------------------------------------------------------------------------------------------------------


def _index(judgements: Sequence[Judgement], results: Path) -> Iterator[str]:
    yield "# The papers, reproduced"
    yield ""
    yield INTRODUCTION
    yield ""
    counted = Counter(judgement.verdict for judgement in judgements)
    parts = ", ".join(f"{verdict.value}: {counted[verdict]}" for verdict in Verdict if counted[verdict])
    yield f"The {len(judgements)} [claims](claims.md): {parts}."
    for paper, title in PAPERS.items():
        yield f"\n## [{title}]({paper}.md)\n"
        if not _items(paper):
            yield "No table and no figure."
            continue
        yield "| name | table or figure | measured |"
        yield "|---|---|---|"
        for item in _items(paper):
            yield f"| `{item.name}` | {item.title} | {_state(item, kept(item.name, results))} |"


def _state(item: Item, record: Record | None) -> str:
    if item.measure is None:
        return "cannot be, see there"
    return "not measured yet" if record is None else f"{record.mode}, {record.machine['date']}"


def _claims(judgements: Sequence[Judgement]) -> Iterator[str]:
    yield "# Claims"
    yield ""
    yield HOW_IT_IS_DECIDED
    for paper, title in PAPERS.items():
        yield f"\n## {title}\n"
        yield "| claim | printed | here | rule | verdict |"
        yield "|---|---|---|---|---|"
        for judgement in judgements:
            if judgement.claim.paper == paper:
                yield _claim_row(judgement)


def _claim_row(judgement: Judgement) -> str:
    claim, rules = judgement.claim, judgement.claim.rules
    printed = "; ".join(shown(rule.printed) for rule in rules if rule.printed is not None)
    values = "; ".join("?" if value is None else shown(value) for value in judgement.values)
    is_explained = judgement.verdict in (Verdict.FAILS, Verdict.UNTESTABLE) and claim.note
    verdict = f"**{judgement.verdict.value}**" + (f": {claim.note}" if is_explained else "")
    return f"| {claim.text} | {printed} | {values} | {'; '.join(map(str, rules))} | {verdict} |"


def _paper(paper: str, results: Path, pages: Path) -> Iterator[str]:
    yield f"# {PAPERS[paper]}"
    yield ""
    yield "[All papers](README.md) · [claims](claims.md)"
    if not _items(paper):
        yield "\nIt prints no table and no figure; items of the other papers decide about its claims."
    for item in _items(paper):
        yield f"\n## {item.title}\n"
        for table in item.printed:
            yield f"Printed{': ' + table.title if table.title else ''}:\n"
            yield from _table(table.head, table.rows)
            yield ""
        yield from _measured(item, kept(item.name, results), pages)
        yield item.why


def _measured(item: Item, record: Record | None, pages: Path) -> Iterator[str]:
    if item.measure is None:
        return
    if record is None:
        yield f"Not measured yet: `make papers ONLY={item.name}`.\n"
        return
    yield f"Measured ({_circumstances(record)}):\n"
    for table in record.figures.tables:
        if table.title:
            yield f"{table.title}:\n"
        yield from _table(table.head, table.rows)
        yield ""
    for number, plot in enumerate(record.figures.plots):
        file = pages / "plots" / f"{item.name}{number or ''}.svg"
        draw(plot, file)
        yield f"![{plot.title}](plots/{file.name})\n"


def _circumstances(record: Record) -> str:
    machine = record.machine
    size = "the paper's sizes" if record.mode == "full" else "reduced sizes"
    cores = f"{machine['cores']} cores {machine['processor']}, Python {machine['python']}"
    busy = ", the machine busy" if record.load > _BUSY else ""
    return f"{size}; {machine['date']}, {cores}, commit `{record.commit}`{busy}"


def _items(paper: str) -> list[Item]:
    return [item for item in ITEMS.values() if item.paper == paper]


# --- tables and plots ------------------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else shown(cell)


def draw(plot: Plot, file: Path) -> None:
    if plot.kind == "steps":
        steps = {name: {int(x): y for x, y in points} for name, points in plot.series.items()}
        draw_histograms(file, plot.title, plot.x, plot.y, steps)
        return
    lines = {name: [(x, y) for x, y in points] for name, points in plot.series.items()}
    draw_lines(file, plot.title, plot.x, plot.y, lines, is_joined=plot.kind == "lines", is_linear=plot.is_linear)
