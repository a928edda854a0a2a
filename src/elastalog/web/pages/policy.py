"""What a page may load and run: the content-security policy, on every answer that is HTML.

Scripts run only if they are ours by address or carry the nonce of their page, which every script that NiceGUI's
template writes gets here. Two things NiceGUI does not admit: it compiles templates of components in the browser
(`unsafe-eval`), and Vue, Quasar and the editor set styles inline (`unsafe-inline`, for styles alone).
"""

from __future__ import annotations

import secrets
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; manifest-src 'self'"
)
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class ContentPolicy:
    """Middleware that gives every HTML page a policy, and its scripts the nonce of it."""

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
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
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
