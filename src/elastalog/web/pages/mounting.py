"""Pages and interface in one application."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from nicegui import ui
from starlette.types import ASGIApp, Receive, Scope, Send

from elastalog.web.auth import role_of
from elastalog.web.pages import frame
from elastalog.web.pages.bench import Bench
from elastalog.web.pages.policy import ContentPolicy
from elastalog.web.pages.window import Window
from elastalog.web.settings import Role

if TYPE_CHECKING:
    from elastalog.web.service import Service

_FREE = ("/api/", "/_nicegui", "/workbench-assets/", "/favicon", "/health", "/metrics", "/socket.io")
"""What addresses begin with that are no pages."""
_NOT_FOUND = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>No such page · Elastalog</title>'
    '<link rel="stylesheet" href="/workbench-assets/workbench.css"></head><body><main class="wb-page">'
    '<div class="wb-card"><div class="wb-empty"><b>There is no page at this address</b>'
    '<p><a href="/facts">Go to the facts</a></p></div></div></main></body></html>'
)


class KnownAddresses:
    """Middleware that answers 404 where there is no page, instead of the first one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in frame.PAGES and not scope["path"].startswith(_FREE):
            await HTMLResponse(_NOT_FOUND, 404)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


_ASSETS = Path(str(files("elastalog.web.pages"))) / "assets"


def mount_pages(app: FastAPI, service: Service, *, title: str, is_demo: bool = False) -> Bench:
    """Adds the pages to an application that has the interface. Once in a process: NiceGUI keeps its state there."""
    bench = Bench(service, title, is_demo)

    def root(request: Request) -> None:
        may_write = role_of(request) is Role.WRITE
        chosen = request.cookies.get("elastalog_dark")
        frame.build(Window(bench, ui.context.client, may_write), {"1": True, "0": False}.get(chosen or ""))

    app.mount("/workbench-assets", StaticFiles(directory=_ASSETS), name="workbench-assets")
    mark = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_ASSETS.iterdir()))).hexdigest()[:12]
    ui.add_head_html(
        f'<link rel="stylesheet" href="/workbench-assets/workbench.css?{mark}">'
        f'<script src="/workbench-assets/workbench.js?{mark}" defer></script>',
        shared=True,
    )
    ui.run_with(
        app, root=root, title=f"{title} · Elastalog", favicon=(_ASSETS / "icon.svg").read_text(), tailwind=False,
        gzip_middleware_factory=None, show_welcome_message=False,
        reconnect_timeout=30.0, binding_refresh_interval=None, dark=None, language="en-US",
    )  # fmt: skip
    app.add_middleware(KnownAddresses)
    app.add_middleware(ContentPolicy)
    Thread(target=bench.prepare, daemon=True).start()
    return bench
