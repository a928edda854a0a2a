"""A proof as a tree that opens on click: what is below a fact is asked for when it is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from html import escape
from typing import assert_never

from nicegui import ui

from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Node, Proof, children_of
from elastalog.web.pages.controls import box, raw
from elastalog.web.pages.markup import fact_html, html, rule_html, tag
from elastalog.web.pages.window import Window

MOST_CHILDREN = 50
"""More premises or members of one node are not listed."""


class ProofTree:
    """`prove` gives a proof of a fact to a depth of a few. Which nodes are open is part of the address: `open` has
    their paths, as `0.2.1`."""

    def __init__(self, window: Window, prove: Callable[[Fact], Awaitable[Proof]]) -> None:
        self._window = window
        self._prove = prove
        self._open = set(window.address.all("open"))

    async def build(self, proof: Proof) -> None:
        """The tree, its root open."""
        with box("wb-tree"):
            await self._node(proof, "0", is_open=True)

    async def _node(self, node: Node, path: str, is_open: bool = False) -> None:
        can_open = bool(children_of(node)) or (isinstance(node, Proof) and not node.is_expanded)
        is_open = can_open and (is_open or path in self._open)
        with box("wb-node"):
            if can_open:
                twist = (
                    ui.element("button")
                    .classes("wb-twist")
                    .props(f'type="button" data-row data-path="{path}" aria-label="open"')
                )
                with twist:
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
            node = await self._prove(node.fact)
            about.content = self._line(node)
        children = children_of(node)
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
                address = self._window.bench.fact_address(node.fact, self._window.epoch)
                link = f'<a class="fact" href="{escape(str(address))}">{fact_html(*node.fact)}</a>'
                if node.is_explicit:
                    return f"<span>{link} {tag('given')}</span>"
                return f'{link}<span class="rule">by {rule_html(node.rule)}</span>' if node.rule is not None else link
            case Condition():
                return f'<span class="fact">{html(node.text, 400)}</span>'
            case AggregatePremise():
                noun = "member" if node.number == 1 else "members"
                return (
                    f'<span class="fact">{html(node.text, 400)}</span><span class="rule">{node.number:,} {noun}</span>'
                )
            case Member():
                return '<span class="rule">a member</span>'
            case _:
                assert_never(node)
