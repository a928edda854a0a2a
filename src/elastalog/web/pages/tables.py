"""Facts in tables, page by page, sorted, filtered and cut by the server; and lists of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from elastalog.analysis.program import Value
from elastalog.provenance.fact import Fact
from elastalog.web.pages.markup import SHORT, Address, cell, fact_html, html, link, signed, table, value_html

if TYPE_CHECKING:
    from elastalog.evaluation.changes import RelationChanges
    from elastalog.relations.facts import Relation
    from elastalog.relations.schema import Schema
    from elastalog.web.pages.window import Window
    from elastalog.web.paging import Page

ROWS = 50
"""Rows of a page."""


def page_html(window: Window, page: Page, address: Address, relation: str | None) -> str:
    """The table, with links to its other pages. Rows of a relation link to their facts."""
    head = "".join(_heading(name, kind, address) for name, kind in _columns(page))
    notes = [*zip(*page.annotations.values(), strict=True)] or [()] * len(page.facts)
    pairs = zip(page.rows, notes, strict=True)
    rows = [_row(window, page.schema, values, noted, relation) for values, noted in pairs]
    return table(head, rows) + _pager(page, len(rows), address)


def _columns(page: Page) -> list[tuple[str, str]]:
    columns = [(column.name, column.type_name) for column in page.schema.columns]
    return columns + ([("@level", ""), ("@count", "")] if page.annotations else [])


def _heading(name: str, kind: str, address: Address) -> str:
    order = address.get("order")
    is_sorted = order.removeprefix("-") == name
    turned = f"-{name}" if order == name else None if order == f"-{name}" else name
    arrow = (" ↓" if order.startswith("-") else " ↑") if is_sorted else ""
    look = "is-sorted" if is_sorted else ""
    side = ' class="number"' if kind in NUMBERS or not kind else ""
    sort = f' aria-sort="{"descending" if order.startswith("-") else "ascending"}"' if is_sorted else ""
    shown = link(address.with_(order=turned, page=None), html(name.removeprefix("@")) + arrow, look)
    return f'<th scope="col"{side}{sort}>{shown}{f"<i>{html(kind)}</i>" if kind else ""}</th>'


NUMBERS = {"number", "unsigned", "float"}
"""Types whose values are aligned to the right."""


def _row(window: Window, schema: Schema, values: Sequence[Value], notes: Sequence[int], relation: str | None) -> str:
    columns = zip(values, schema.columns, strict=True)
    cells = [(value_html(value, SHORT), column.type_name in NUMBERS) for value, column in columns]
    cells += [(f"{number:,}", True) for number in notes]
    if not cells:
        cells = [("()", False)]
    to = None if relation is None else window.bench.fact_address(Fact(relation, tuple(values)), window.epoch)
    return f"<tr>{''.join(_cell(text, is_number, to, i == 0) for i, (text, is_number) in enumerate(cells))}</tr>"


def _cell(text: str, is_number: bool, to: Address | None, is_first: bool) -> str:
    # One link of a row takes part in the order of the keys: all of them lead to the same fact.
    reach = "data-row" if is_first else 'tabindex="-1"'
    return cell(text if to is None else link(to, text, more=reach), "mono number" if is_number else "mono")


def _pager(page: Page, shown: int, address: Address) -> str:
    number = address.number("page", 1) or 1
    last = max(1, -(-page.total // ROWS))
    where = f"{page.offset + 1:,} – {page.offset + shown:,} of {page.total:,}" if shown else f"0 of {page.total:,}"
    links = (("[", "Previous", number - 1), ("]", "Next", number + 1))
    parts = [
        link(address.with_(page=to if to > 1 else None), text, "wb-button small", f'data-key="{key}"')
        if 1 <= to <= last
        else f'<button class="wb-button small" disabled>{text}</button>'
        for key, text, to in links
    ]
    return f'<div class="wb-pager"><span>{where}</span>{"".join(parts) if last > 1 else ""}</div>'


FEW = 12
"""Facts of a relation that are listed."""


def changes_html(
    window: Window,
    changes: Mapping[str, RelationChanges],
    *,
    nothing: str,
    after: int | None = None,
    most: int = FEW,
) -> str:
    """Changes by relation: how many, and the first of them as links. `after`: the epoch in which inserted facts are
    shown, if not the present one."""
    parts = []
    for name, changed in changes.items():
        lists = [("plus", "+", changed.inserted), ("minus", "−", changed.deleted)]
        items = "".join(
            _list(window, name, kind, sign, facts, after, most) for kind, sign, facts in lists if len(facts)
        )
        if items:
            counts = signed(len(changed.inserted), len(changed.deleted))
            parts.append(
                f'<section data-changed="{escape(name)}"><h3>{html(name)} <span>{counts}</span></h3>'
                f"<ul>{items}</ul></section>"
            )
    return f'<div class="wb-changes">{"".join(parts)}</div>' if parts else f'<p class="wb-note">{html(nothing)}</p>'


def _list(window: Window, name: str, kind: str, sign: str, facts: Relation, after: int | None, most: int) -> str:
    """The facts, sorted if they are few; of a great many, the first `most`."""
    shown = sorted(facts, key=repr)[:most] if len(facts) <= 1_000 else facts.head(most)
    items = [_item(window, Fact(name, tuple(values)), kind, sign, after) for values in shown]
    if len(facts) > most:
        items.append(f'<li class="wb-note">… {len(facts) - most:,} more</li>')
    return "".join(items)


def _item(window: Window, fact: Fact, kind: str, sign: str, after: int | None) -> str:
    address = window.bench.fact_address(fact, after)
    return f'<li class="{kind}"><span class="wb-sign">{sign}</span>{link(address, fact_html(*fact), "fact")}</li>'
