"""Why a fact holds, as a tree of its proof that expands on click; and why one does not hold: the rules that nearly
derive it, and where each of them fails, down to what is missing."""

from __future__ import annotations

from typing import assert_never

from nicegui import ui

from elastalog.diagnostics.diagnostic import collecting_warnings
from elastalog.diagnostics.messages import counted
from elastalog.provenance.absence import Absence, Instantiation, LiteralStatus, PatternAbsence
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Node, Proof
from elastalog.web.pages.markup import LONG, Address, empty, faults_html, html, link, rule_html, tag, value_html
from elastalog.web.pages.window import Window, box, card, raw

MOST_CHILDREN = 50
"""Premises or members that are listed of a node."""


class ProofTree:
    """Facts that are not expanded are proven to a `depth` when they are opened. The address says which nodes are open:
    `open` has their paths, such as `0.2.1`."""

    def __init__(self, window: Window, depth: int) -> None:
        self._window = window
        self._depth = depth
        self._open = set(window.address.all("open"))

    async def build(self, proof: Proof) -> None:
        """Builds the tree, with its root open."""
        with box("wb-tree"):
            await self._node(proof, "0", is_open=True)

    async def _node(self, node: Node, path: str, is_open: bool = False) -> None:
        can_open = bool(node.children) or (isinstance(node, Proof) and not node.is_expanded)
        is_open = can_open and (is_open or path in self._open)
        with box("wb-node"):
            if can_open:
                with ui.element("button").classes("wb-twist") as twist:
                    twist.props(f'type="button" data-row data-path="{path}" aria-label="open"')
                    arrow = raw("▼" if is_open else "▶", tag="span")
            else:
                raw("" if isinstance(node, Member) else "✓" if isinstance(node, Condition) else "•", "wb-mark")
            about = raw(self._line(node), "text")
        below = box(tag="ul")
        below.set_visibility(is_open)
        if can_open:

            async def turn() -> None:
                nonlocal is_open
                is_open = not is_open
                arrow.content = "▼" if is_open else "▶"
                below.set_visibility(is_open)
                (self._open.add if is_open else self._open.discard)(path)
                if is_open and not below.default_slot.children:
                    await self._fill(below, node, path, about)
                self._window.note(self._window.address.with_(open=sorted(self._open)))

            twist.on("click", turn)
        if is_open:
            await self._fill(below, node, path, about)

    async def _fill(self, below: ui.element, node: Node, path: str, about: ui.html) -> None:
        if isinstance(node, Proof) and not node.is_expanded:
            fact = node.fact
            node = await self._window.answer(lambda session: session.explain(fact, self._depth))
            about.content = self._line(node)
        children = node.children
        with below:
            for number, child in enumerate(children[:MOST_CHILDREN]):
                with box(tag="li"):
                    await self._node(child, f"{path}.{number}")
            hidden = (node.number if isinstance(node, AggregatePremise) else len(children)) - min(
                len(children), MOST_CHILDREN
            )
            if hidden:
                raw(f"… {hidden:,} more", "wb-note", tag="li")

    def _line(self, node: Node) -> str:
        match node:
            case Proof():
                link = self._window.fact_link(node.fact)
                if node.is_explicit:
                    return f"<span>{link} {tag('given')}</span>"
                return f'{link}<span class="rule">by {rule_html(node.rule)}</span>' if node.rule is not None else link
            case Condition():
                return f'<span class="fact">{html(node.text, 400)}</span>'
            case AggregatePremise():
                number = counted(node.number, "member")
                return f'<span class="fact">{html(node.text, 400)}</span><span class="rule">{number}</span>'
            case Member():
                return '<span class="rule">a member</span>'
            case _:
                assert_never(node)


_MARKS = {"holds": "✓", "fails": "✗", "open": "?"}


async def build_absence(window: Window, asked: Fact | str) -> None:
    """The derivations that come nearest to success, and the rules that could never derive the fact; for a pattern, why
    no other fact matches it."""
    with collecting_warnings() as warned:
        found = await window.answer(lambda session: session.why_not(asked))
    is_pattern = isinstance(found, PatternAbsence)
    with card("Why nothing else fits it" if is_pattern else "Why it does not hold", html(_note(found))):
        if warned:
            raw(faults_html(warned))
        if not found.instantiations and not found.impossible:
            raw(empty("No rule comes near", f"{found.headline}."))
        for number, instantiation in enumerate(found.instantiations):
            title = instantiation.conclusion if is_pattern else ""
            raw(_instantiation(window, instantiation, title), "wb-why-not").props(f'data-near="{number}"')
        if found.impossible:
            items = "".join(
                f"<li><div>{rule_html(rule)}<div class=wb-note>{html(why)}</div></div></li>"
                for rule, why in found.impossible
            )
            raw(f'<h3>Rules that can never derive it</h3><ul class="wb-list">{items}</ul>')
        if window.can_change and not is_pattern and len(found.subject) < 2_000:
            program = await window.look(lambda session: session.program)
            raw(_what_to_do(found, {rule.head.relation for rule in program.checked.rules}), "wb-row")


def _what_to_do(found: Absence, derived: set[str]) -> str:
    """Ways to make the fact hold; for a derived relation, what the nearest derivation lacks."""
    if found.fact.relation not in derived:
        return link(Address.of("/update", insert=found.subject), "Stage its insertion", "wb-button")
    ways = ""
    missing = (
        [each for each in found.instantiations[0].literals if each.status != "holds"] if found.instantiations else []
    )
    leaves = [each.fact for each in missing if each.fact is not None and each.fact.relation not in derived]
    if missing and len(leaves) == len(missing):
        changes: dict[str, list[str]] = {"insert": [], "delete": []}
        for each in missing:
            changes["insert" if each.kind == "atom" else "delete"].append(str(each.fact))
        what = "Stage what is missing" if not changes["delete"] else "Stage what is lacking"
        ways = link(Address.of("/update", **changes), what, "wb-button", 'data-action="stage-missing"') + " "
    repair = Address.of("/repair", missing=found.subject, over="facts")
    return ways + link(repair, "Find what to insert", "wb-button", 'data-action="find-insertion"')


def _note(found: Absence) -> str:
    there = f"{counted(found.present, 'fact')} there; " if isinstance(found, PatternAbsence) else ""
    if not found.instantiations:
        return there.rstrip("; ")
    return f"{there}the nearest derivations that fail" + ("" if found.is_exhaustive else "; the search was cut short")


def _instantiation(window: Window, found: Instantiation, title: str) -> str:
    bound = ", ".join(
        f"{html(name)} = {value_html(value, 40)}" for name, value in found.bindings.items() if not name.startswith("@")
    )
    literals = "".join(_literal(window, literal) for literal in found.literals)
    with_values = f'<span class="wb-note">with {bound}</span>' if bound else ""
    address = window.to("/fact", fact=title)
    would = f"<h3>{link(address, html(title, 400), 'fact')}</h3>" if title and len(title) < LONG else ""
    return f'{would}<p class="rule">{rule_html(found.rule)} {with_values}</p><ul class="wb-literals">{literals}</ul>'


def _literal(window: Window, literal: LiteralStatus) -> str:
    asked = ""
    if literal.fact is not None:
        is_there = (literal.status == "holds") == (literal.kind == "atom")
        asked = window.fact_link(Fact(*literal.fact), "why" if is_there else "why not", "")
    elif literal.kind == "atom":
        asked = link(window.to("/fact", fact=literal.text), "why not")
    mark = f'<span class="wb-mark">{_MARKS[literal.status]}</span>'
    return f'<li class="{literal.status}">{mark}<code>{html(literal.text, 400)}</code>{asked}</li>'
