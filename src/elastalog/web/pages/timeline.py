"""The page Timeline: what epochs did and cost, the difference between any two, and links to each of them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from html import escape

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.storage.entries import LogEntry
from elastalog.web.pages.markup import (
    Address,
    bar_cell,
    cell,
    empty,
    faults_html,
    html,
    link,
    seconds_html,
    signed,
    table,
    tag,
)
from elastalog.web.pages.tables import changes_html
from elastalog.web.pages.window import Window, box, card, heading, raw

ROWS = 50
BARS = 80
_HEIGHT = 84


async def show(window: Window, address: Address) -> None:
    """Builds the page."""
    heading("Timeline", "Every update is an epoch. Compare any two, or look at everything as it was.")
    body = box("wb-stack")

    async def build() -> None:
        entries = await window.ask(window.reading.look, lambda session: session.log())
        body.clear()
        with body:
            await _build(window, window.address, entries)

    await build()
    window.follow(build)


async def _build(window: Window, address: Address, entries: tuple[LogEntry, ...]) -> None:
    latest, oldest = entries[-1].epoch, entries[0].epoch
    last = min(address.number("to", 1) or latest, latest)
    first = address.number("from", 1)
    first = max(oldest, last - 1) if first is None else first
    with card("Impact", "facts changed, by epoch (logarithmic)", is_padded=False):
        raw(_bars(entries[-BARS:], first, last), "wb-spark")
    page = address.number("page", 1) or 1
    shown = tuple(reversed(entries))[ROWS * (page - 1) : ROWS * page]
    with card("Epochs", f"{len(entries):,}", is_padded=False):
        raw(_table(shown, first, last, max((entry.impact for entry in shown), default=1)), "wb-tall")
        if len(entries) > ROWS:
            ways = [("Newer", page - 1)] * (page > 1) + [("Older", page + 1)] * (ROWS * page < len(entries))
            links = (link(address.with_(page=to if to > 1 else None), name, "wb-button") for name, to in ways)
            raw(f"<span></span>{''.join(links)}", "wb-pager")
    with card(f"From epoch {first} to epoch {last}", "what changed in between"):
        await _compared(window, first, last)


async def _compared(window: Window, first: int, last: int) -> None:
    if first == last:
        raw(empty("The beginning", "Choose another epoch to compare with."))
        return
    try:
        differences, rules = await window.ask(
            window.reading.ask, lambda session: (session.diff(first, last), session.engine.changed_rules(first, last))
        )
    except ElastalogError as error:
        raw(faults_html(error.diagnostics))
        return
    for sign, look, texts in (("−", "minus", rules.removed), ("+", "plus", rules.added)):
        for text in texts:
            raw(
                f'<ul><li class="{look}"><span class="wb-sign">{sign}</span><code>{html(text, 400)}</code></li></ul>',
                "wb-changes",
            )
    after = None if last == window.bench.service.epoch else last
    raw(changes_html(window, differences, nothing="No fact came or went.", after=after, most=8))


def _bars(entries: tuple[LogEntry, ...], first: int, last: int) -> str:
    highest = max(math.log1p(entry.impact) for entry in entries) or 1.0
    step = max(14, min(56, 1_000 // len(entries)))
    parts = []
    for number, entry in enumerate(entries):
        tall = max(3.0, (_HEIGHT - 4) * math.log1p(entry.impact) / highest)
        look = (
            "bar"
            + (" rules" if entry.added_rules or entry.removed_rules else "")
            + (" is-chosen" if entry.epoch in (first, last) else "")
        )
        about = f"epoch {entry.epoch}: {entry.impact:,} facts changed, {seconds_html(entry.seconds)}"
        label = (
            f'<text x="{number * step + step / 2:.0f}" y="{_HEIGHT + 16}" text-anchor="middle">{entry.epoch}</text>'
            if _is_labelled(number, len(entries))
            else ""
        )
        place = f'x="{number * step + 2}" y="{_HEIGHT - tall:.1f}" width="{step - 4}" height="{tall:.1f}"'
        drawn = f'<title>{about}</title><rect class="{look}" {place} rx="3"/>{label}'
        parts.append(link(Address.of("/timeline", to=entry.epoch), drawn))
    size = f'width="{step * len(entries)}" height="{_HEIGHT + 22}"'
    return f'<svg role="img" aria-label="impact by epoch" {size}>{"".join(parts)}</svg>'


def _is_labelled(number: int, of: int) -> bool:
    return of <= 25 or number % 10 == 0 or number == of - 1


def _table(entries: tuple[LogEntry, ...], first: int, last: int, highest: int) -> str:
    rows = (_row(entry, first, last, highest) for entry in entries)
    head = (
        '<th>epoch</th><th>when</th><th>by</th><th class="number">given</th><th class="number">facts changed</th>'
        '<th class="wb-hide-phone"></th><th class="number">took</th><th class="wb-hide-phone">how</th><th></th>'
    )
    return table(head, rows)


def _row(entry: LogEntry, first: int, last: int, highest: int) -> str:
    compared = {"from": min(first, entry.epoch), "to": max(first, entry.epoch)}
    day, clock = entry.time.strftime("%Y-%m-%d"), entry.time.strftime("%H:%M:%S")
    is_today = entry.time.date() == datetime.now(UTC).date()
    by = html(entry.source or ("the beginning" if entry.epoch == 1 else ""), 28)
    rules = f" {tag('rules', 'accent')}" if entry.added_rules or entry.removed_rules else ""
    ways = (link(Address.of("/timeline", **compared), "compare"), link(Address.of("/facts", epoch=entry.epoch), "look"))
    cells = (
        cell(link(Address.of("/timeline", to=entry.epoch), f"<b>{entry.epoch}</b>", more="data-row"), "inline"),
        f'<td class="keep" title="{day} {clock} UTC">{clock if is_today else f"{day} {clock}"}</td>',
        cell(by + rules, "keep"),
        cell(signed(entry.inserted, entry.deleted), "number"),
        cell(f"{entry.impact:,}", "number"),
        bar_cell(math.log1p(entry.impact) / (math.log1p(highest) or 1)),
        cell(seconds_html(entry.seconds), "number"),
        cell(_how(entry), "wb-hide-phone"),
        cell(" · ".join(ways), "inline keep"),
    )
    look = "wide-change" if entry.epoch in (first, last) else ""
    return f'<tr class="{look}">{"".join(cells)}</tr>'


def _how(entry: LogEntry) -> str:
    """The choice for every affected stratum: how many were updated, and which were recomputed."""
    if entry.epoch == 1:
        return ""
    strata = [stratum for stratum in entry.strata if not stratum.relations[0].startswith("@")]
    anew = [stratum for stratum in strata if stratum.how not in ("update", "refold")]
    parts = [tag(f"{len(strata) - len(anew)} updated")] if len(anew) < len(strata) else []
    parts += [
        f'<span class="wb-tag amber" title="{escape(stratum.why)}">'
        f"{html(', '.join(stratum.relations), 24)}: {html(stratum.how)}</span>"
        for stratum in anew[:2]
    ]
    return " ".join(parts)
