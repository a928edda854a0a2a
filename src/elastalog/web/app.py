"""The application: all calls behind the guard and within the limits, the page `/api/docs` that describes them without
loading anything from elsewhere, and the server that runs until it is told to end."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from elastalog import __version__
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.web import problems
from elastalog.web.auth import Bounds, Guard
from elastalog.web.models import PROBLEM_MODEL, bearer
from elastalog.web.pages.markup import prose
from elastalog.web.routes import at_any_epoch, at_the_last
from elastalog.web.service import Service
from elastalog.web.settings import Settings

PREFIX = "/api/v1"


def make_app(service: Service, settings: Settings | None = None) -> FastAPI:
    """The application of a service. Closing the service is left to the caller."""
    settings = settings or Settings()
    app = FastAPI(
        title="Elastalog",
        version=__version__,
        summary="Datalog that keeps its answers up to date and can say why they are so",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service, app.state.settings = service, settings
    for router, prefix in ((at_any_epoch, PREFIX), (at_any_epoch, f"{PREFIX}/at/{{epoch}}"), (at_the_last, PREFIX)):
        app.include_router(router, prefix=prefix, dependencies=[Depends(bearer)])
    app.get("/api/docs", include_in_schema=False)(reference_page)
    app.add_exception_handler(ElastalogError, problems.of_error)
    app.add_exception_handler(HTTPException, problems.of_refusal)
    app.add_exception_handler(RequestValidationError, problems.of_malformed)
    app.add_exception_handler(Exception, problems.of_defect)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Bounds, most=settings.limits.body, metrics=service.metrics_kept)
    _describe_problems(app)
    return app


def without_pages(app: FastAPI) -> FastAPI:
    """The application of a service without pages: its root shows the calls."""
    app.add_route("/", lambda _request: RedirectResponse("/api/docs"), include_in_schema=False)
    return app


def _describe_problems(app: FastAPI) -> None:
    """Adds error responses to the OpenAPI description."""
    describe = app.openapi

    def described() -> dict[str, Any]:
        found = describe()
        found["components"]["schemas"].setdefault("Problem", PROBLEM_MODEL.model_json_schema())
        return found

    app.openapi = described  # type: ignore[method-assign]


STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
section { border-top: 1px solid #8886; padding: 0.5rem 0; }
h3 { font-size: 1rem; margin: 0.5rem 0; } h3 b { display: inline-block; min-width: 4rem; }
table { border-collapse: collapse; } td { padding: 0.1rem 1rem 0.1rem 0; vertical-align: top; }
"""
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'; base-uri 'none'"


async def reference_page(request: Request) -> HTMLResponse:
    """A page of all calls with their parameters and answers."""
    described = request.app.openapi()
    parts = "\n".join(_parts(described))
    title = escape(described["info"]["title"])
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: HTTP</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>{parts}</body></html>'
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})


def _parts(described: Mapping[str, Any]) -> Iterator[str]:
    info = described["info"]
    yield f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
    yield '<p>For programs: <a href="/api/openapi.json">/api/openapi.json</a>.'
    yield " What can be asked at any epoch is also below <code>/api/v1/at/N/…</code>, by number or time.</p>"
    for path, calls in described["paths"].items():
        if "/at/{epoch}" not in path:
            for method, call in calls.items():
                yield from _call(path, method, call, described)


def _call(path: str, method: str, call: Mapping[str, Any], described: Mapping[str, Any]) -> Iterator[str]:
    yield f"<section><h3><b>{method.upper()}</b> <code>{escape(path)}</code></h3>"
    yield f"<p>{_told(call)}</p><table>"
    for content in call.get("requestBody", {}).get("content", {}).values():
        body = described["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        for name, field in body["properties"].items():
            yield _row(name, _kind(field), name in body.get("required", ()))
    for one in call.get("parameters", ()):
        where = "" if one["in"] == "query" and method == "get" else f" ({one['in']})"
        yield _row(f"{one['name']}{where}", _kind(one["schema"]), one.get("required", False))
    yield "</table></section>"


def _told(described: Mapping[str, Any]) -> str:
    return prose(" ".join(described.get("description", "").split()))  # lines end where those of the code do


def _row(name: str, kind: str, is_required: bool) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{escape(kind)}</td><td>{'required' * is_required}</td></tr>"


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"] if one.get("type") != "null")
    examples = schema.get("examples") or ()
    example = f", as {examples[0]}" if examples else ""
    return f"{schema.get('format', schema.get('type', 'anything'))}{example}"


GRACE = 10
"""Seconds that unfinished answers have when the service ends."""


def listen(host: str, port: int) -> socket.socket:
    """A socket listening at an address; port 0 is any free one. Raises ElastalogError if it cannot be opened."""
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(*kind[:3])
        # Head and body of an answer are written apart: waiting to send them together would cost 40 ms each time.
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(kind[4])
        found.listen(1024)
    except OSError as error:
        raise ElastalogError.of("E0937", host=host, port=port, error=(error.strerror or str(error)).lower()) from None
    return found


def address_of(listening: socket.socket, host: str) -> str:
    """The URL for browsers and programs."""
    port = listening.getsockname()[1]
    name = "127.0.0.1" if host in ("0.0.0.0", "") else "[::1]" if host == "::" else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def serve(app: Any, service: Service, listening: socket.socket, started: Callable[[], None]) -> None:
    """Serves until Ctrl-C or SIGTERM; `started` is called when the first request may come. The service ends as
    `Service.end` says."""
    asyncio.run(_serve(app, service, listening, started))


async def _serve(app: Any, service: Service, listening: socket.socket, started: Callable[[], None]) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # ours, below: a service that is told to end has ended well

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE, server_header=False,
        date_header=False, lifespan="on",
    )  # fmt: skip
    server = Server(config)

    def end() -> None:
        service.end()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    await server.serve(sockets=[listening])
