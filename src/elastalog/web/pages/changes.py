"""What came and went: of an update, of a preview, between two epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from elastalog.analysis.program import Value
from elastalog.provenance.fact import Fact
from elastalog.web.pages.markup import fact_html, html, link, signed

if TYPE_CHECKING:
    from elastalog.relations.facts import Relation
    from elastalog.web.pages.window import Window

FEW = 12
"""Facts of a relation that are listed."""


class Changed(Protocol):
    """The facts of a relation that came and went."""

    @property
    def inserted(self) -> Relation: ...
    @property
    def deleted(self) -> Relation: ...


def changes_html(
    window: Window, changes: Mapping[str, Changed], *, nothing: str, after: int | None = None, most: int = FEW
) -> str:
    """By relation: how many, and the first of them, each a link. `after`: the epoch in which those that came are
    shown, if it is not the one that is looked at."""
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
    shown = [Fact(name, tuple(values)) for values in islice(_ordered(facts, most), most)]
    items = [_item(window, fact, kind, sign, after) for fact in shown]
    if len(facts) > most:
        items.append(f'<li class="wb-note">… {len(facts) - most:,} more</li>')
    return "".join(items)


def _ordered(facts: Relation, most: int) -> Iterable[tuple[Value, ...]]:
    """In order where they are few; of very many, whichever come first."""
    return sorted(facts, key=repr) if len(facts) <= 1_000 else facts.head(most)


def _item(window: Window, fact: Fact, kind: str, sign: str, after: int | None) -> str:
    address = window.bench.fact_address(fact, after)
    return f'<li class="{kind}"><span class="wb-sign">{sign}</span>{link(address, fact_html(*fact), "fact")}</li>'
