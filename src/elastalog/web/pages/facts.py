"""The page Facts: relations with their last changes, and the facts of one of them, or the answers to a query."""

from __future__ import annotations

import re
from functools import partial
from html import escape
from typing import Final

from nicegui import ui

from elastalog.diagnostics.diagnostic import ElastalogError, collecting_warnings
from elastalog.relations.schema import Schema
from elastalog.web.pages.markup import Address, empty, faults_html, html, link, signed
from elastalog.web.pages.tables import ROWS, page_html
from elastalog.web.pages.window import Window, box, button, card, field, raw
from elastalog.web.paging import Page
from elastalog.web.reading import RelationSummary

_WORD = re.compile(r"[\w.\- ]+")
"""A filter that is searched for in all columns, rather than literals."""
_WHOLE = {"number", "unsigned"}


async def show(window: Window, address: Address) -> None:
    """Builds the page."""
    summaries, _ = await window.ask(window.reading.relations, window.epoch)
    known = {summary.name: summary for summary in summaries}
    chosen = "" if address.get("query") else address.get("relation") or _first(summaries)
    if window.bench.is_demo and window.epoch is None:
        _guide()
    with box("wb-facts"):
        with box("wb-card wb-relations", tag="nav").props('aria-label="relations"'):
            listed = raw(_list(window, summaries, chosen))
        with box("wb-stack"):
            if address.get("query"):
                await _query(window, address)
            elif chosen:
                await _relation(window, address.with_(relation=chosen), known.get(chosen))
            else:
                begin = link(Address("/program"), "Begin on the page Program", "wb-button primary")
                raw(
                    empty("Nothing here yet", "Paste facts and write rules: their answers appear here.") + begin,
                    "wb-card",
                )

    async def refresh() -> None:
        summaries, _ = await window.ask(window.reading.relations)
        listed.content = _list(window, summaries, chosen)

    window.follow(refresh)


LEAK: Final = 'exposed("help.front", "vault")'
"""The fact of the demonstration that should not be there."""


def _guide() -> None:
    """The guide through the demo: why something is wrong, what to change, and what that changed."""
    why = link(Address.of("/fact", fact=LEAK), "Ask why a secret gets out", more='data-guide="1"')
    repair = link(Address.of("/repair", wrong=LEAK), "Mark it as wrong and ask for a repair", more='data-guide="2"')
    past = link(Address("/timeline"), "See which update it was", more='data-guide="3"')

    def hide() -> None:
        guide.set_visibility(False)

    with box("wb-card wb-guide", tag="section") as guide:
        with box(tag="header"):
            raw("Three steps through this example", tag="h2")
            button("Hide", hide, "quiet", "small", mark="hide-guide")
        raw(
            f"<ol><li><code>exposed</code> should be empty: no public service may reach a secret. {why}: its proof"
            f" goes down to the calls.</li><li>{repair}: the smallest change that removes it, tried and shown to be the"
            f" smallest. Apply it.</li><li>{past}, what it changed, and what your repair undid.</li></ol>",
            "wb-body",
        )


def _first(summaries: tuple[RelationSummary, ...]) -> str:
    """The relation shown first: the first output relation with facts, or else the first one."""
    best = min(summaries, key=lambda s: (not s.is_output, not s.facts), default=None)
    return "" if best is None else best.name


def _list(window: Window, summaries: tuple[RelationSummary, ...], chosen: str) -> str:
    links = []
    for summary in summaries:
        look, here = ("is-here", 'aria-current="true"') if summary.name == chosen else ("", "")
        changed = summary.inserted or summary.deleted
        last = f'<span class="last">{signed(summary.inserted or 0, summary.deleted or 0)}</span>' if changed else ""
        told = f'<span class="name">{html(summary.name)}</span><span class="count">{summary.facts:,}</span>{last}'
        more = f'{here} data-relation="{escape(summary.name)}"'
        links.append(link(window.to("/facts", relation=summary.name), told, look, more))
    return "".join(links)


async def _relation(window: Window, address: Address, summary: RelationSummary | None) -> None:
    name = address.get("relation")
    with card(name, "" if summary is None else html(_columns(summary.schema)), is_padded=False) as header:
        with header:
            levels = address.with_(levels=None if address.get("levels") else True, page=None)
            if address.get("pattern") and address.get("where"):
                why = window.to("/fact", fact=address.get("pattern"))
                raw(link(why, "Why nothing else?", "wb-button small", 'data-action="why-not"'))
            raw(link(levels, "Hide levels" if address.get("levels") else "Show levels", "wb-button small"))
        with box("wb-body"):
            filtered = address.get("where")

            def narrow(text: str) -> None:
                if text.strip() != filtered:
                    window.go(address.with_(where=text.strip(), pattern=None, page=None))

            field(filtered, narrow, label="filter", hint=_example(summary))
        await _table(window, address, name)


async def _query(window: Window, address: Address) -> None:
    with card("Answers", "to a query", is_padded=False):
        with box("wb-body"):
            text = address.get("query")
            field(text, lambda new: window.go(address.with_(query=new.strip(), page=None)), label="query")
        await _table(window, address, None)


async def _table(window: Window, address: Address, relation: str | None) -> None:
    """A page of a relation, or of answers, kept up to date after every commit."""
    fill = partial(_fill, window, box(), address, relation)
    await fill()
    window.follow(fill)


async def _fill(window: Window, table: ui.element, address: Address, relation: str | None) -> None:
    content = ""
    with collecting_warnings() as found:
        try:
            page = await _page(window, address, relation)
            made = page_html if page.rows else _nothing
            content = made(window, page, address, relation)
            if address.get("pattern"):  # its names may be meant as texts
                await window.ask(window.reading.query, address.get("pattern"), epoch=window.epoch, limit=1)
        except ElastalogError as error:
            found += error.diagnostics
    table.clear()
    with table:
        raw(f'<div class="wb-body">{faults_html(found)}</div>{content}' if found else content)


async def _page(window: Window, address: Address, relation: str | None) -> Page:
    offset = ROWS * ((address.number("page", 1) or 1) - 1)
    reading, order = window.reading, address.get("order")
    if relation is None:
        return await window.ask(
            reading.query, address.get("query"), epoch=window.epoch, offset=offset, limit=ROWS, order=order
        )
    schemas = await window.look(lambda session: session.schemas)
    where, parameters = _filter(address.get("where"), schemas.get(relation))
    find = reading.search if where or order else reading.page
    return await window.ask(
        find, relation, where, epoch=window.epoch, parameters=parameters, annotations=bool(address.get("levels")),
        order=order, offset=offset, limit=ROWS,
    )  # fmt: skip


def _filter(text: str, schema: Schema | None) -> tuple[str, dict[str, str]]:
    """A filter as literals over the columns. A single word is searched for in all text columns, a single number in all
    number columns."""
    text = text.strip()
    if schema is None or not text:
        return text, {}
    if _WORD.fullmatch(text):
        kinds = _WHOLE if text.lstrip("-").isdigit() else {"symbol"}
        found = [column.name for column in schema.columns if column.type_name in kinds]
        if found and kinds is _WHOLE:
            return f"({' ; '.join(f'{name} = {text}' for name in found)})", {}
        if found:
            return f"({' ; '.join(f'contains(?text, {name})' for name in found)})", {"text": text}
    return f"({text})" if ";" in text else text, {}


def _nothing(window: Window, page: Page, address: Address, relation: str | None) -> str:
    if page.total:
        return empty("This page is past the end", f"There are {page.total:,} facts.")
    if relation is None:
        return empty("No answers", "Nothing fits the query at this epoch.")
    if address.get("where"):
        return empty("Nothing fits", "No fact of this relation passes the filter. Empty the field to see all of them.")
    return empty(
        "No facts",
        f"`{relation}` is empty at this epoch. Ask above for a fact that you miss, and see why it is not there.",
    )


def _columns(schema: Schema) -> str:
    return ", ".join(f"{column.name}: {column.type_name}" for column in schema.columns)


def _example(summary: RelationSummary | None) -> str:
    if summary is None or not summary.schema.columns:
        return "filter"
    column = summary.schema.columns[0]
    return f"filter: a word, or {column.name} = {'1' if column.type_name != 'symbol' else chr(34) + '…' + chr(34)}"
