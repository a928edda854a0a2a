"""Around every request: how large it may be, how long it took, and what its answer must say to browsers."""

from __future__ import annotations

import time
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.web.metrics import Metrics
from elastalog.web.problems import Refused, problem

API: Final = "/api/"
_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}


class Bounds:
    """Refuses bodies beyond `most` bytes as soon as that is seen, and counts requests."""

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
            if self._is_too_large(Headers(scope=scope)):
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

    def _is_too_large(self, headers: Headers) -> bool:
        length = headers.get("content-length", "0")
        return length.isdecimal() and int(length[:30]) > self._most

    def _too_large(self) -> Diagnostic:
        told = f"the request has more than {self._most:,} bytes"
        return Diagnostic("E0925", told, help="send it in parts")
