"""Buttons, fields and cards, as all pages have them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nicegui import ui

from elastalog.web.pages.address import Address
from elastalog.web.pages.markup import html, link

Action = Callable[[], Awaitable[None] | None]


def raw(content: str, *classes: str, tag: str = "div") -> ui.html:
    """HTML that was escaped where it was made."""
    return ui.html(content, sanitize=False, tag=tag).classes(" ".join(classes))


def box(*classes: str, tag: str = "div") -> ui.element:
    """An element to put others in."""
    return ui.element(tag).classes(" ".join(classes))


@contextmanager
def card(title: str = "", note: str = "", *, is_padded: bool = True) -> Iterator[ui.element]:
    """A card; yields its header, to put controls in. What stands in the block is its body."""
    with box("wb-card", tag="section"):
        header = box(tag="header")
        with header:
            raw(html(title), tag="h2")
            if note:
                raw(note, "wb-note", tag="span")
        if not title:
            header.set_visibility(False)
        with box("wb-body" if is_padded else ""):
            yield header


def button(text: str, action: Action, *classes: str, label: str = "", picture: str = "") -> ui.element:
    """A button. `label` is what it is called where only its picture is shown."""
    made = ui.element("button").classes(" ".join(("wb-button", *classes))).props('type="button"')
    if label:
        made.props["aria-label"] = made.props["title"] = label
    with made:
        if picture:
            raw(picture, tag="span")
        if text:
            raw(html(text), tag="span")
    made.on("click", action)
    return made


def field(
    value: str, on_value: Callable[[str], Any], *, label: str, hint: str = "", lines: int = 1
) -> ui.input | ui.textarea:
    """A field for a text of one line or several; `on_value` gets it when Enter is pressed or the field is left."""
    if lines > 1:
        made: ui.input | ui.textarea = ui.textarea(value=value, placeholder=hint).props(f"outlined dense rows={lines}")
    else:
        made = ui.input(value=value, placeholder=hint).props("outlined dense")
        made.on("keydown.enter", lambda: on_value(made.value or ""))
    made.props["aria-label"] = label
    made.props("spellcheck=false autocomplete=off").classes("wb-input")
    made.on("change", lambda: on_value(made.value or ""))
    return made


def select(value: str, options: Mapping[str, str], on_value: Callable[[str], Any], *, label: str) -> ui.select:
    """A choice of one among several, by what they are called."""
    made = ui.select(dict(options), value=value, on_change=lambda event: on_value(event.value))
    made.props["aria-label"] = label
    made.props("outlined dense options-dense").classes("wb-input")
    return made


def choice(options: Sequence[tuple[str, Address]], chosen: str) -> str:
    """A row of links, one of which is where we are."""
    links = (
        link(address, html(text), "is-here" if text == chosen else "", "aria-current=true" if text == chosen else "")
        for text, address in options
    )
    return f'<nav class="wb-choice">{"".join(links)}</nav>'


def heading(title: str, lead: str = "") -> ui.element:
    """The head of a page; controls may be put beside it."""
    head = box("wb-head")
    with head, box():
        raw(html(title), tag="h1")
        if lead:
            raw(lead, "wb-lead", tag="p")
    return head
