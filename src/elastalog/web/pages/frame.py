"""What stands around every page: where to go, what to ask, which epoch is shown; and the keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from html import escape
from typing import Any, Final

from nicegui import PageArguments, ui

from elastalog.diagnostics.diagnostic import ElastalogError, InternalError
from elastalog.web.pages import engine, fact, facts, program, repair, timeline, update
from elastalog.web.pages.address import Address
from elastalog.web.pages.controls import box, button, raw
from elastalog.web.pages.icons import BRAND, icon
from elastalog.web.pages.markup import empty, faults_html, html
from elastalog.web.pages.window import Window

Page = Callable[[Window, Address], Awaitable[None]]

PAGES: Final[dict[str, Page]] = {
    "/": facts.show,
    "/facts": facts.show,
    "/fact": fact.show,
    "/program": program.show,
    "/update": update.show,
    "/timeline": timeline.show,
    "/repair": repair.show,
    "/engine": engine.show,
}
_NAVIGATION: Final = (
    ("/facts", "facts", "Facts"),
    ("/program", "program", "Program"),
    ("/update", "update", "Update"),
    ("/timeline", "timeline", "Timeline"),
    ("/repair", "repair", "Repair"),
    ("/engine", "engine", "Engine"),
)
TITLES: Final = {path: name for path, _, name in _NAVIGATION} | {"/": "Facts", "/fact": "Fact"}
_KEYS: Final = (
    ("/", "ask about a fact, or a query"),
    ("1 … 6", "go to a page"),
    ("j, k", "next and previous row"),
    ("Enter", "open the row"),
    ("[, ]", "previous and next page of a table"),
    ("d", "light or dark"),
    ("?", "these keys"),
)


def build(window: Window, is_dark: bool | None) -> None:
    """Builds the window: the frame, and in it the page that the address names."""
    dark = ui.dark_mode(is_dark)
    with box("wb-frame"):
        with box("wb-rail", tag="aside"):
            raw(f'<a class="wb-brand" href="/facts" aria-label="Elastalog">{BRAND}<b>Elastalog</b></a>')
            navigation = raw("", "wb-nav", tag="nav")
            with box("wb-rail-foot"):
                button("", lambda: _turn(dark), "quiet", "icon", label="light or dark", picture=icon("moon")).props(
                    'data-key="d"'
                )
                button("", _show_keys, "quiet", "icon", label="keys", picture=icon("keys")).props('data-key="?"')
        with box("wb-main", tag="main"):
            with box("wb-bar"):
                _ask_box(window)
                present = raw("", "wb-epoch")
            past = raw("")
            pages = {path: _in_window(page, window, lambda: around()) for path, page in PAGES.items()}

            def around() -> None:
                navigation.content = _navigation(window)
                present.content = _present(window)
                past.content = _past(window)

            ui.sub_pages(pages, show_404=False)

    async def committed() -> None:
        with window.client:
            around()
            await window.tell()

    key = id(window)
    window.client.on_connect(lambda: window.bench.live.join(key, committed))
    window.client.on_delete(lambda: window.bench.live.leave(key))


def _in_window(page: Page, window: Window, around: Callable[[], None]) -> Callable[..., Any]:
    """A page as the router calls it. What it refuses is shown in its place."""

    async def builder(arguments: PageArguments) -> None:
        window.enter(Address(arguments.path, tuple(arguments.query_parameters.multi_items())))
        around()
        ui.page_title(_title(window))
        with box("wb-page") as body:
            try:
                await page(window, window.address)
            except ElastalogError as error:
                body.clear()
                with body:
                    raw(faults_html(error.diagnostics))
            except InternalError as error:
                body.clear()
                with body:
                    raw(empty("This should not have happened", str(error)))

    # The router looks for this very class; annotations of this module are texts.
    builder.__annotations__ = {"arguments": PageArguments}
    return builder


def _title(window: Window) -> str:
    """What a tab of the browser says: the page, what it is about, and the program."""
    about = window.address.get("relation") or window.address.get("fact")
    page = about[:60] if about else TITLES[window.address.path]
    return f"{page} · {window.bench.title} · Elastalog"


def _navigation(window: Window) -> str:
    marked = len(window.bench.faults)
    links = []
    for number, (path, picture, name) in enumerate(_NAVIGATION, 1):
        is_here = window.address.path in {
            path,
            "/" if path == "/facts" else path,
            "/fact" if path == "/facts" else path,
        }
        here = ' class="is-here" aria-current="page"' if is_here else ""
        badge = f'<span class="wb-badge">{marked}</span>' if marked and path == "/repair" else ""
        address = escape(str(window.to(path)))
        links.append(
            f'<a href="{address}" data-key="{number}" title="{name}"{here}>{icon(picture)}'
            f'<span class="word">{name}</span>{badge}</a>'
        )
    return "".join(links)


def _present(window: Window) -> str:
    service = window.bench.service
    return (
        f'<span class="wb-dot" title="live"></span><span class="word">{html(window.bench.title)} ·</span> '
        f'<span>epoch <b id="epoch">{service.epoch:,}</b></span>'
    )


def _past(window: Window) -> str:
    if window.epoch is None:
        return ""
    now = escape(str(window.address.with_(epoch=None)))
    return (
        f'<div class="wb-past"><span>This is epoch {window.epoch:,}: it can be looked at and asked, not changed.</span>'
        f'<a href="{now}">Back to the present</a></div>'
    )


def _ask_box(window: Window) -> None:
    with box("wb-ask"):
        asked = ui.input(placeholder=window.bench.example).props("outlined dense spellcheck=false autocomplete=off")
        asked.props["aria-label"] = "ask about a fact, or a query"
        asked.classes("wb-input mono")
        raw("/", tag="kbd")

        def ask() -> None:
            text = (asked.value or "").strip().rstrip(".")
            if text:
                window.go(window.bench.address_of(text, window.epoch))

        asked.on("keydown.enter", ask)


def _turn(dark: ui.dark_mode) -> None:
    """Light if it was dark, and the other way round; a browser that follows the system is asked what it shows."""
    ui.run_javascript(
        "const dark = !document.body.classList.contains('body--dark');"
        "document.cookie = `elastalog_dark=${dark ? 1 : 0}; path=/; max-age=31536000; samesite=strict`;"
        "Quasar.Dark.set(dark);"
    )


def _show_keys() -> None:
    with ui.dialog() as dialog, box("wb-card"):
        raw("<h2>Keys</h2>", tag="header")
        rows = "".join(f"<dt><kbd>{escape(key)}</kbd></dt><dd>{escape(what)}</dd>" for key, what in _KEYS)
        raw(f'<dl class="wb-keys">{rows}</dl>', "wb-body")
    dialog.open()
