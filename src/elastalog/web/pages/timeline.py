"""The page Timeline: epochs with what they did and cost, any two of them compared, and a way to look at any of them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from html import escape

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.storage.entries import LogEntry
from elastalog.web.pages.address import Address
from elastalog.web.pages.changes import changes_html
from elastalog.web.pages.controls import box, card, heading, raw
from elastalog.web.pages.markup import empty, faults_html, html, seconds_html, signed, tag
from elastalog.web.pages.window import Window

ROWS = 50
BARS = 80
_HEIGHT = 84


async def show(window: Window, address: Address) -> None:
    """Builds the page."""
    heading("Timeline", "Every update is an epoch. Compare any two, or look at everything as it was.")
    body = box("wb-stack")

    async def build() -> None:
        entries = await window.ask(window.bench.service.epochs)
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
            older = escape(str(address.with_(page=page + 1)))
            newer = escape(str(address.with_(page=page - 1 if page > 2 else None)))
            raw(
                f"<span></span>{f'<a class=wb-button href={newer}>Newer</a>' if page > 1 else ''}"
                f"{f'<a class=wb-button href={older}>Older</a>' if ROWS * page < len(entries) else ''}",
                "wb-pager",
            )
    with card(f"From epoch {first} to epoch {last}", "what changed in between"):
        await _compared(window, first, last)


async def _compared(window: Window, first: int, last: int) -> None:
    if first == last:
        raw(empty("The beginning", "Choose another epoch to compare with."))
        return
    service = window.bench.service
    try:
        differences = await window.ask(service.diff, first, last)
        rules = await window.ask(service.changed_rules, first, last)
    except ElastalogError as error:
        raw(faults_html(error.diagnostics))
        return
    for sign, look, texts in (("−", "minus", rules.removed), ("+", "plus", rules.added)):
        for text in texts:
            raw(
                f'<ul><li class="{look}"><span class="wb-sign">{sign}</span><code>{html(text, 400)}</code></li></ul>',
                "wb-changes",
            )
    after = None if last == service.epoch else last
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
        told = f"epoch {entry.epoch}: {entry.impact:,} facts changed, {seconds_html(entry.seconds)}"
        link = escape(str(Address.of("/timeline", to=entry.epoch)))
        label = (
            f'<text x="{number * step + step / 2:.0f}" y="{_HEIGHT + 16}" text-anchor="middle">{entry.epoch}</text>'
            if _is_labelled(number, len(entries))
            else ""
        )
        parts.append(
            f'<a href="{link}"><title>{told}</title><rect class="{look}" x="{number * step + 2}" y="{_HEIGHT - tall:.1f}" width="{step - 4}" '
            f'height="{tall:.1f}" rx="3"/>{label}</a>'
        )
    width = step * len(entries)
    return f'<svg role="img" aria-label="impact by epoch" width="{width}" height="{_HEIGHT + 22}" viewBox="0 0 {width} {_HEIGHT + 22}">{"".join(parts)}</svg>'


def _is_labelled(number: int, of: int) -> bool:
    return of <= 25 or number % 10 == 0 or number == of - 1


def _table(entries: tuple[LogEntry, ...], first: int, last: int, highest: int) -> str:
    rows = "".join(_row(entry, first, last, highest) for entry in entries)
    return (
        '<div class="wb-scroll"><table class="wb-table"><thead><tr><th>epoch</th><th>when</th><th>by</th><th class="number">given</th>'
        '<th class="number">facts changed</th><th class="wb-hide-phone"></th><th class="number">took</th><th class="wb-hide-phone">how</th><th></th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(entry: LogEntry, first: int, last: int, highest: int) -> str:
    compare = escape(
        str(
            Address.of(
                "/timeline", **{"from": first if entry.epoch > first else entry.epoch, "to": max(entry.epoch, first)}
            )
        )
    )
    look = escape(str(Address.of("/facts", epoch=entry.epoch)))
    share = 100 * math.log1p(entry.impact) / (math.log1p(highest) or 1)
    rules = len(entry.added_rules) + len(entry.removed_rules)
    by = html(entry.source or ("the beginning" if entry.epoch == 1 else ""), 28) + (
        f" {tag('rules', 'accent')}" if rules else ""
    )
    is_today = entry.time.date() == datetime.now(UTC).date()
    day, clock = entry.time.strftime("%Y-%m-%d"), entry.time.strftime("%H:%M:%S")
    return (
        f'<tr{" class=wide-change" if entry.epoch in (first, last) else ""}><td class="inline"><a href="{escape(str(Address.of("/timeline", to=entry.epoch)))}" data-row><b>{entry.epoch}</b></a></td>'
        f'<td class="keep" title="{day} {clock} UTC">{"" if is_today else f"{day} "}{clock}</td><td class="keep">{by}</td><td class="number">{signed(entry.inserted, entry.deleted)}</td>'
        f'<td class="number">{entry.impact:,}</td><td class="wb-hide-phone"><div class="wb-bar-cell"><b style="width:{share:.0f}%"></b></div></td>'
        f'<td class="number">{seconds_html(entry.seconds)}</td><td class="wb-hide-phone">{_how(entry)}</td>'
        f'<td class="inline keep"><a href="{compare}">compare</a> · <a href="{look}">look</a></td></tr>'
    )


def _how(entry: LogEntry) -> str:
    """The choice for every stratum that was touched: how many were updated, and which were evaluated anew."""
    if entry.epoch == 1:
        return ""
    strata = [stratum for stratum in entry.strata if not stratum.relations[0].startswith("@")]
    anew = [stratum for stratum in strata if stratum.how not in ("update", "refold")]
    parts = [tag(f"{len(strata) - len(anew)} updated")] if len(anew) < len(strata) else []
    parts += [
        f'<span class="wb-tag amber" title="{escape(stratum.why)}">{html(", ".join(stratum.relations), 24)}: {html(stratum.how)}</span>'
        for stratum in anew[:2]
    ]
    return " ".join(parts)
