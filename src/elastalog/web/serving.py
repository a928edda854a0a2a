"""A service at an address, until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.web.service import Service

GRACE = 10
"""Seconds that answers under way have when the service ends."""


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any that is free. Raises ElastalogError if that cannot be had."""
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(*kind[:3])
        # Head and body of an answer are written apart: waiting to send them together would cost 40 ms each time.
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(kind[4])
        found.listen(1024)
    except OSError as error:
        told = f"{host}:{port} cannot be listened at: {(error.strerror or str(error)).lower()}"
        raise ElastalogError([Diagnostic("E0937", told, help="choose another --port or --host")]) from None
    return found


def address_of(listening: socket.socket, host: str) -> str:
    """The address for browsers and programs."""
    port = listening.getsockname()[1]
    name = "127.0.0.1" if host in ("0.0.0.0", "") else "[::1]" if host == "::" else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def serve(app: Any, service: Service, listening: socket.socket, started: Callable[[], None]) -> None:
    """Answers requests until Ctrl-C or SIGTERM; `started` is called when the first may come. The commit that is under
    way is done; listeners are told that there will be no more."""
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
        service.feed.close()  # otherwise listeners would keep their connections
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    await server.serve(sockets=[listening])
