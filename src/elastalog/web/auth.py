"""What every request passes first: checks of host, origin, token and role, and limits of size; and what every answer
passes last: metrics and headers for browsers.

A program sends `Authorization: Bearer TOKEN`. A browser opens a page once with `?token=TOKEN`; the token then moves
from the address into a cookie that scripts cannot read.
"""

from __future__ import annotations

import hmac
import time
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elastalog.diagnostics.diagnostic import Diagnostic, finding
from elastalog.web.metrics import Metrics
from elastalog.web.problems import Refused, problem
from elastalog.web.settings import Role, Settings

API: Final = "/api/"
FREE: Final = ("/api/v1/health", "/api/openapi.json", "/api/docs")
"""Paths that reveal nothing about facts or rules need no token."""
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_WEEK: Final = 7 * 24 * 3600


_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
_SIGN_IN: Final = Path(__file__).with_name("sign_in.html")


class Guard:
    """Admits authorised requests only, and notes the role of the client in the state of the request as `role`."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._hosts = settings.known_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._admit(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, send)

    def _admit(self, scope: Scope) -> Response | None:
        """None for an authorised request, otherwise the refusal."""
        connection = HTTPConnection(scope)
        headers = connection.headers
        host = headers.get("host", "")
        if _address(host)[0] not in self._hosts and "*" not in self._hosts:
            return problem((finding("E0928", host=host[:100]),))
        origin = headers.get("origin")
        if origin is not None and origin.lower().partition("://")[1:] != ("://", host.lower()):
            return problem((_other_site(origin),))
        state = scope.setdefault("state", {})
        if self._settings.is_open or scope["path"] in FREE:
            state["role"] = Role.WRITE if self._settings.is_open else Role.READ
            return None
        role = self._role(_bearer(headers))
        if role is None:
            role = self._role(connection.cookies.get(cookie_name(host)))
            if role is not None and scope.get("method", "GET") not in _SAFE and "origin" not in headers:
                return problem((_other_site(""),))  # a cookie alone proves nothing about who asks
        if scope["type"] == "http" and not scope["path"].startswith(API):
            # A token in the address is for pages only, and does not stay there.
            given = connection.query_params.get("token")
            if given is not None and self._role(given) is not None:
                return _exchanged(scope, given, host)
        if role is None:
            return self._unknown(scope)
        state["role"] = role
        return None

    def _role(self, token: str | None) -> Role | None:
        if not token:
            return None
        for known, role in ((self._settings.token, Role.WRITE), (self._settings.read_token, Role.READ)):
            if known is not None and hmac.compare_digest(token.encode(), known.encode()):
                return role
        return None

    def _unknown(self, scope: Scope) -> Response:
        told = finding("E0923")
        if scope["path"].startswith(API) or scope.get("method") != "GET":
            return problem((told,))
        is_wrong = b"token=" in scope["query_string"]
        wrong = '<p role="alert"><b>This token is not known here.</b></p>' if is_wrong else ""
        shown = _SIGN_IN.read_text().replace("{wrong}", wrong)
        return HTMLResponse(shown, 401, headers={"Content-Security-Policy": _POLICY})


def role_of(connection: HTTPConnection) -> Role:
    """The role of the client."""
    role: Role = connection.scope["state"]["role"]
    return role


async def may_write(connection: HTTPConnection) -> None:
    """Refuses clients that may only read."""
    if role_of(connection) is not Role.WRITE:
        told = finding("E0924")
        raise Refused(told)


def cookie_name(host: str) -> str:
    """The cookie of a service. Its name has the port, because browsers share cookies among the ports of a host."""
    return f"elastalog-{_address(host)[1]}"


def _exchanged(scope: Scope, token: str, host: str) -> Response:
    """A redirect to the same address without the token, which is now in a cookie."""
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    rest = urlencode([(name, value) for name, value in pairs if name != "token"])
    # Never to another site, whatever the path looks like.
    path = "/" + scope["path"].lstrip("/\\")
    answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
    answer.set_cookie(
        cookie_name(host), token, max_age=_WEEK, path="/", httponly=True, samesite="lax",
        secure=scope.get("scheme") in ("https", "wss"),
    )  # fmt: skip
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _address(host: str) -> tuple[str, int]:
    """The host name and port that a request is addressed to; no name if they are invalid."""
    try:
        found = urlsplit(f"//{host}")
        return (found.hostname or "").lower(), found.port or 0
    except ValueError:
        return "", 0


def _other_site(origin: str) -> Diagnostic:
    return finding("E0929", origin=origin[:100]) if origin else finding("E0929.none")


_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}


class Bounds:
    """Refuses bodies of more than `most` bytes as early as possible, and counts requests."""

    def __init__(self, app: ASGIApp, most: int, metrics: Metrics) -> None:
        self._app = app
        self._most = most
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0
        if scope["path"].startswith(API):
            scope = {**scope, "path": scope["path"].rstrip("/")}

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith(API):
                    headers.setdefault("Cache-Control", "no-store")
                    headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
            await send(message)

        try:
            length = Headers(scope=scope).get("content-length", "0")
            if length.isdecimal() and int(length[:30]) > self._most:
                await problem((self._too_large(),))(scope, receive, sending)
            else:
                await self._app(scope, self._counted(receive), sending)
        finally:
            route = getattr(scope.get("route"), "path", "other").removeprefix("/api/v1")
            self._metrics.count("elastalog_requests_total", call=route, status=str(status))
            self._metrics.took("elastalog_request_seconds", time.perf_counter() - began, call=route)

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def receiving() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._most:
                    raise Refused(self._too_large())
            return message

        return receiving

    def _too_large(self) -> Diagnostic:
        return finding("E0925", most=self._most)
