"""The fact panel: why a fact holds, what else derives it, what depends on it, since when; or why it does not hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from nicegui import ui

from elastalog.analysis.pattern import parse_pattern
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from elastalog.provenance.rendering.markup import GraphNode, graph_of
from elastalog.provenance.rendering.text import summary
from elastalog.session import Session
from elastalog.web.pages.graphs import MOST_NODES, Drawn, draw
from elastalog.web.pages.markup import (
    LONG,
    Address,
    empty,
    fact_html,
    faults_html,
    first_of,
    html,
    link,
    rule_html,
    sign,
    tag,
)
from elastalog.web.pages.why import ProofTree, build_absence
from elastalog.web.pages.window import Side, Window, box, button, card, choice, raw

DEPTH = 3
"""Levels of a proof that are requested at once."""
FEW_USES = 30


async def show(window: Window, address: Address) -> None:
    """Builds the page, and again when a commit changes what it shows."""
    given = window.bench.fact_at(address)
    if not given:
        raw(
            empty("No fact", "Write one into the field above, for example path(1, 4), or open one from a table."),
            "wb-card",
        )
        return
    # All that the first sight needs is asked for at once: every question is a way to another thread and back.
    found = await window.answer(partial(_look_up, given))
    if found.fact is None:
        await _pattern(window, str(given).strip().rstrip("."))
        return
    body = box("wb-stack")
    with body:
        await _build(window, address, found.fact, found.proof)

    async def refresh() -> None:
        nonlocal found
        now = await window.answer(partial(_look_up, given))
        if now.fact is not None and (now.proof is None) != (found.proof is None):
            found = now
            body.clear()
            with body:
                await _build(window, window.address, now.fact, now.proof)

    window.follow(refresh)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was looked up: a fact, with its proof if it holds; neither for a pattern."""

    fact: Fact | None
    proof: Proof | None


def _look_up(given: str | Fact, session: Session) -> _Found:
    if isinstance(given, str) and not parse_pattern(given, session.program.checked).is_fact:
        return _Found(None, None)
    relation, values = session.engine.fact(given)
    fact = Fact(relation, tuple(values))
    return _Found(fact, session.explain(fact, DEPTH) if fact.values in session[relation] else None)


async def _pattern(window: Window, pattern: str) -> None:
    """The facts that match a pattern, and why no others do."""
    body = box("wb-stack")

    async def build() -> None:
        there = await window.ask(window.bench.address_of, pattern, window.epoch)
        body.clear()
        with body:
            with box("wb-head"):
                with box():
                    raw(html(pattern, LONG), "wb-fact-title", tag="h1")
                raw(link(there, "Show what is there", "wb-button"), "wb-row")
            await build_absence(window, pattern)

    await build()
    window.follow(build)


async def _build(window: Window, address: Address, fact: Fact, proof: Proof | None) -> None:
    tags = box("wb-row")
    with box("wb-head"):
        with box():
            raw(link(window.to("/facts", relation=fact.relation), html(fact.relation)), "wb-crumb")
            raw(fact_html(fact.relation, fact.values, LONG // 4), "wb-fact-title", tag="h1")
            tags.move(ui.context.slot.parent)
        with box("wb-row"):
            if any(isinstance(value, str) and len(value) > LONG // 4 for value in fact.values):
                button("Show all of it", lambda: _show_all(fact))
            mark(window, fact, "missing" if proof is None else "wrong")
    if proof is not None:
        await _holds(window, address, proof, tags)
    else:
        with tags:
            raw(tag("does not hold", "minus"))
        await build_absence(window, fact)


def mark(window: Window, fact: Fact, side: Side) -> None:
    """A button that adds a fact to the basket of Repair, or removes it."""
    if not window.can_change:
        return
    text = str(fact)

    def turn() -> None:
        faults = window.bench.faults
        is_marked = text in faults.side(side)
        window.bench.faults = faults.without(text) if is_marked else faults.with_(side, text)
        label.content = name()

    def name() -> str:
        return f"Marked as {side}" if text in window.bench.faults.side(side) else f"Mark as {side}"

    with button("", turn, "danger" if side == "wrong" else "", mark=f"mark-{side}"):
        label = raw(name(), tag="span")


async def _holds(window: Window, address: Address, proof: Proof, tags: ui.element) -> None:
    fact = proof.fact
    with tags:
        kinds = tag("given") if proof.is_explicit else tag("derived", "accent")
        height = "" if proof.height is None or proof.is_explicit else tag(f"proof of height {proof.height}")
        raw(kinds + " " + height)
    view = address.get("view", "tree")
    with card("Why it holds", html("" if proof.is_explicit else summary(proof)), is_padded=view == "tree") as header:
        with header:
            options = [("tree", address.with_(view=None)), ("graph", address.with_(view="graph"))]
            raw(choice(options, view))
        if view == "graph":
            raw(await window.answer(partial(_graph, window, fact)), "wb-graph")
        else:
            if proof.is_explicit:
                raw("It was given: it is an explicit fact, and needs no proof.", "wb-note", tag="p")
            await ProofTree(window, DEPTH - 1).build(proof)
    with box("wb-columns"):
        with card("Derivations", "all that lead to it in one step"):
            raw(_derivations(window, await window.answer(lambda session: session.derivations(fact))))
        with card("Used for", "what follows from it directly"):
            raw(_uses(window, await window.answer(lambda session: session.uses(fact))))
        _what_if(window, fact, proof.is_explicit)
        with card("Since when", "by whose change"):
            await _blame(window, fact)


def _graph(window: Window, fact: Fact, session: Session) -> str:
    graph = graph_of(session.explain(fact, 12))
    if len(graph.nodes) > MOST_NODES:
        graph = graph_of(session.explain(fact, 4))
    if len(graph.nodes) > MOST_NODES:
        return empty(
            "Too large to draw",
            f"This proof has more than {MOST_NODES} different facts. The tree opens it step by step.",
        )
    nodes = [_drawn(window, node, is_goal=not number) for number, node in enumerate(graph.nodes)]
    return draw(nodes, [(target, source) for source, target, _ in graph.edges], title=f"proof of {fact}")


def _drawn(window: Window, node: GraphNode, is_goal: bool) -> Drawn:
    """A fact as two lines: relation and values."""
    relation, bracket, values = node.text.partition("(")
    is_fact = node.kind != "aggregate" and bracket and values.endswith((")", ") …"))
    text, note = (relation, f"({values}") if is_fact else (node.text, "")
    return Drawn(text, note, "goal" if is_goal else node.kind, _link(window, node.text, node.kind))


def _link(window: Window, text: str, kind: str) -> str:
    if kind not in ("explicit", "derived", "cut") or len(text) > 1_000:
        return ""
    return str(Address.of("/fact", fact=text.removesuffix(" …"), view="graph", epoch=window.epoch))


def _derivations(window: Window, derivations: tuple[Proof, ...]) -> str:
    if not derivations:
        return '<p class="wb-note">None: it was given.</p>'
    parts = []
    for derivation in derivations:
        premises = ", ".join(
            window.fact_link(child.fact, look="") if isinstance(child, Proof) else html(child.text, 200)
            for child in derivation.children
        )
        by = (
            f'<span class="rule">by {rule_html(derivation.rule)}</span>'
            if derivation.rule is not None
            else '<span class="rule">given</span>'
        )
        parts.append(
            '<div class="wb-node"><span class="wb-mark">•</span>'
            f'<div class="text"><span class="fact">{premises}</span>{by}</div></div>'
        )
    return "".join(first_of(parts, 20))


def _uses(window: Window, uses: tuple[Fact, ...]) -> str:
    if not uses:
        return '<p class="wb-note">Nothing follows from it.</p>'
    items = [f"<li>{window.fact_link(use)}</li>" for use in uses[:FEW_USES]]
    items += [f'<li class="wb-note">… {len(uses) - FEW_USES:,} more</li>'] * (len(uses) > FEW_USES)
    return f'<ul class="wb-list">{"".join(items)}</ul>'


def _what_if(window: Window, fact: Fact, is_given: bool) -> None:
    with card("What if it went?", "a preview: nothing is changed"):
        found = box()

        async def ask() -> None:
            going = window.answer(lambda session: session.uses(fact, all=True), changes=True)
            changes = await window.attempt(going, found)
            if changes is not None:
                with found:
                    raw(_uses(window, changes) if changes else '<p class="wb-note">Nothing else would go.</p>')

        with box("wb-row"):
            button("Preview", ask, mark="what-if")
            if window.can_change and len(str(fact)) < LONG:
                if is_given:
                    raw(link(Address.of("/update", delete=str(fact)), "Stage its deletion", "wb-button"))
                else:
                    repair = Address.of("/repair", wrong=str(fact), over="facts")
                    raw(link(repair, "Find what to delete", "wb-button", 'data-action="find-deletion"'))
        if not is_given:
            raw("It is derived: it goes when facts that it follows from are deleted.", "wb-note", tag="p")


async def _blame(window: Window, fact: Fact) -> None:
    try:
        blame = await window.answer(lambda session: session.blame(fact), changes=True)
    except ElastalogError as error:
        raw(faults_html(error.diagnostics))
        return
    since = f"Since {link(Address.of('/timeline', to=blame.epoch), f'epoch {blame.epoch}')}, "
    if blame.localisation is None:
        raw(f"{since}the earliest that is known.", tag="p")
        return
    items = "".join(
        f'<li>{sign(element.sign == "+")}<span class="fact">{html(str(element.fact), 400)}</span></li>'
        for element in blame.elements
    )
    raw(f"{since}because of", tag="p")
    raw(items, "wb-list", tag="ul")


def _show_all(fact: Fact) -> None:
    with ui.dialog() as dialog, box("wb-card"):
        raw(f"<h2>{html(fact.relation)}</h2>", tag="header")
        with box("wb-body"):
            for value in fact.values:
                text = value if isinstance(value, str) else repr(value)
                raw(f"{len(text):,} characters", "wb-note")
                raw(html(text, 1 << 30), "wb-long")
    dialog.open()
