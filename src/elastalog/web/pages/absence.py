"""Why a fact does not hold: rules that nearly derive it, and where each of them fails, down to what is missing."""

from __future__ import annotations

from html import escape

from elastalog.provenance.absence import Absence, Instantiation, LiteralStatus
from elastalog.provenance.fact import Fact
from elastalog.web.pages.address import Address
from elastalog.web.pages.controls import card, raw
from elastalog.web.pages.markup import empty, html, rule_html, value_html
from elastalog.web.pages.window import Window

_MARKS = {"holds": "✓", "fails": "✗", "open": "?"}


async def build(window: Window, fact: Fact) -> None:
    """The nearest derivations that fail, and the rules that could never derive the fact."""
    found = await window.ask(window.bench.service.why_not, fact, 5, window.epoch)
    with card("Why it does not hold", html(_headline(found))):
        if not found.instantiations and not found.impossible:
            raw(empty("No rule derives it", f"There are no rules for {fact.relation}: it holds only if it is given."))
        for instantiation in found.instantiations:
            raw(_instantiation(window, instantiation), "wb-why-not")
        if found.impossible:
            items = "".join(
                f"<li><div>{rule_html(rule)}<div class=wb-note>{html(why)}</div></div></li>"
                for rule, why in found.impossible
            )
            raw(f'<h3>Rules that can never derive it</h3><ul class="wb-list">{items}</ul>')
        if window.can_change and len(str(fact)) < 2_000:
            address = escape(str(Address.of("/update", insert=str(fact))))
            raw(f'<a class="wb-button" href="{address}">Stage its insertion</a>', "wb-row")


def _headline(found: Absence) -> str:
    if not found.instantiations:
        return ""
    return "the nearest derivations that fail" + ("" if found.is_exhaustive else "; the search was cut short")


def _instantiation(window: Window, found: Instantiation) -> str:
    bound = ", ".join(
        f"{html(name)} = {value_html(value, 40)}" for name, value in found.bindings.items() if not name.startswith("@")
    )
    literals = "".join(_literal(window, literal) for literal in found.literals)
    with_values = f'<span class="wb-note">with {bound}</span>' if bound else ""
    return f'<p class="rule">{rule_html(found.rule)} {with_values}</p><ul class="wb-literals">{literals}</ul>'


def _literal(window: Window, literal: LiteralStatus) -> str:
    link = ""
    if literal.fact is not None:
        address = escape(str(window.bench.fact_address(Fact(*literal.fact), window.epoch)))
        is_there = (literal.status == "holds") == (literal.kind == "atom")
        link = f'<a href="{address}">{"why" if is_there else "why not"}</a>'
    elif literal.kind == "atom":
        address = escape(str(window.to("/facts", query=literal.text)))
        link = f'<a href="{address}">look</a>'
    mark = f'<span class="wb-mark">{_MARKS[literal.status]}</span>'
    return f'<li class="{literal.status}">{mark}<code>{html(literal.text, 400)}</code>{link}</li>'
