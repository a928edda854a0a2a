"""The workbench as an application: the frame around every page, keyboard shortcuts, and the content security policy.

Scripts run only if they come from our own address or carry the nonce of their page, which every script in NiceGUI's
template gets here. NiceGUI prevents two restrictions: it compiles component templates in the browser (`unsafe-eval`),
and Vue, Quasar and the editor set inline styles (`unsafe-inline`, for styles only).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from nicegui import PageArguments, ui
from nicegui import app as ui_app
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elastalog.diagnostics.diagnostic import ElastalogError, InternalError
from elastalog.web.auth import role_of
from elastalog.web.pages import engine, fact, facts, program, repair, timeline, update
from elastalog.web.pages.markup import Address, empty, faults_html, html, icon
from elastalog.web.pages.window import Bench, Window, box, button, raw, written
from elastalog.web.problems import of_unknown
from elastalog.web.settings import Role

if TYPE_CHECKING:
    from elastalog.web.service import Service

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
            raw(f'<a class="wb-brand" href="/facts" aria-label="Elastalog">{icon("brand")}<b>Elastalog</b></a>')
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

    windows = window.bench.windows
    window.client.on_connect(lambda: windows.update({id(window): committed}))
    window.client.on_delete(lambda: windows.pop(id(window), None))


def _in_window(page: Page, window: Window, around: Callable[[], None]) -> Callable[..., Any]:
    """A page as the router calls it. Errors are shown in its place."""

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
    """The title of the browser tab: the page, its subject, and the program."""
    about = window.address.get("relation") or window.address.get("fact")
    page = about[:60] if about else (window.address.path[1:] or "facts").capitalize()
    return f"{page} · {window.bench.title} · Elastalog"


def _navigation(window: Window) -> str:
    marked = len(window.bench.faults)
    links = []
    of_facts = ("/", "/fact")  # which have no place of their own
    shown = "/facts" if window.address.path in of_facts else window.address.path
    for number, path in enumerate((path for path in PAGES if path not in of_facts), 1):
        name = path[1:].capitalize()
        here = ' class="is-here" aria-current="page"' if path == shown else ""
        badge = f'<span class="wb-badge">{marked}</span>' if marked and path == "/repair" else ""
        address = escape(str(window.to(path)))
        links.append(
            f'<a href="{address}" data-key="{number}" title="{name}"{here}>{icon(path[1:])}'
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
        asked = written("ask about a fact, or a query", window.bench.example, "mono")
        raw("/", tag="kbd")

        def ask() -> None:
            text = (asked.value or "").strip().rstrip(".")
            if text:
                window.go(window.bench.address_of(text, window.epoch))

        asked.on("keydown.enter", ask)


def _turn(dark: ui.dark_mode) -> None:
    """Switches between light and dark; a browser that follows the system is asked what it shows."""
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


_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; manifest-src 'self'"
)


class ContentPolicy:
    """Middleware that gives every HTML page a policy, and its scripts the nonce."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        start: Message | None = None
        parts: list[bytes] = []

        async def guarded(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
                if headers.get("content-type", "").startswith("text/html") and "content-encoding" not in headers:
                    headers["Content-Security-Policy"] = _POLICY.format(nonce=nonce)
                    start = message
                    return
            elif start is not None:
                parts.append(message.get("body", b""))
                if message.get("more_body"):
                    return
                # Facts have `<` escaped here (they stand in a JSON text): each of these is a tag of the template.
                body = b"".join(parts).replace(b"<script", f'<script nonce="{nonce}"'.encode())
                MutableHeaders(scope=start)["Content-Length"] = str(len(body))
                await send(start)
                await send({"type": "http.response.body", "body": body})
                return
            await send(message)

        await self._app(scope, receive, guarded)


_FREE = ("/api/", "/_nicegui", "/workbench-assets/", "/favicon", "/health", "/metrics", "/socket.io")
"""How addresses begin that are not pages."""
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_NOT_FOUND = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>No such page · Elastalog</title>'
    '<link rel="stylesheet" href="/workbench-assets/workbench.css"></head><body><main class="wb-page">'
    '<div class="wb-card"><div class="wb-empty"><b>There is no page at this address</b>'
    '<p><a href="/facts">Go to the facts</a></p></div></div></main></body></html>'
)


class KnownAddresses:
    """Middleware that answers unknown addresses with 404 instead of the first page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in PAGES and not scope["path"].startswith(_FREE):
            await HTMLResponse(_NOT_FOUND, 404)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


_ASSETS = Path(str(files("elastalog.web.pages"))) / "assets"


def mount_pages(app: FastAPI, service: Service, *, title: str, is_demo: bool = False) -> Bench:
    """Adds the pages to an application that has the HTTP interface. Once in a process, because NiceGUI keeps global
    state."""
    bench = Bench(service, title, is_demo)

    def root(request: Request) -> None:
        may_write = role_of(request) is Role.WRITE
        chosen = request.cookies.get("elastalog_dark")
        build(Window(bench, ui.context.client, may_write), {"1": True, "0": False}.get(chosen or ""))

    app.add_route("/api/{rest:path}", of_unknown, _METHODS, include_in_schema=False)
    app.mount("/workbench-assets", StaticFiles(directory=_ASSETS), name="workbench-assets")
    mark = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_ASSETS.iterdir()))).hexdigest()[:12]
    ui.add_head_html(
        f'<link rel="stylesheet" href="/workbench-assets/workbench.css?{mark}">'
        f'<script src="/workbench-assets/workbench.js?{mark}" defer></script>',
        shared=True,
    )
    ui_app.on_startup(bench.listen)
    ui.run_with(
        app, root=root, title=f"{title} · Elastalog", favicon=(_ASSETS / "icon.svg").read_text(), tailwind=False,
        gzip_middleware_factory=None, show_welcome_message=False,
        reconnect_timeout=30.0, binding_refresh_interval=None, dark=None, language="en-US",
    )  # fmt: skip
    app.add_middleware(KnownAddresses)
    app.add_middleware(ContentPolicy)
    Thread(target=bench.prepare, daemon=True).start()
    return bench
