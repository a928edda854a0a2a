"""A service at a real address, for a program with everything that calls ask about."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import elastalog

pytest.importorskip("fastapi", reason="the extra `web` is not installed")

from elastalog.web.app import address_of, listen, make_app, without_pages
from elastalog.web.service import Service
from elastalog.web.settings import Limits, Settings

PROGRAM = """
.decl edge(from: number, to: number)
.input edge
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
.decl label(of: number, text: symbol)
.input label
.decl named(text: symbol)
named(t) :- label(x, t), path(x, _).
.output path
"""
FACTS: dict[str, list[Any]] = {"edge": [(1, 2), (2, 3), (3, 4)], "label": [(1, "one")]}
TOKEN, READ_TOKEN = "may-write", "may-read"


@dataclass(frozen=True)
class Running:
    """A service that runs."""

    url: str
    service: Service
    session: elastalog.Session

    def connect(self, token: str | None = TOKEN) -> elastalog.Client:
        return elastalog.connect(self.url, token=token)


@pytest.fixture(autouse=True)
def no_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """httpx reads all certificates that it trusts anew for every client, which takes longer than most of these tests; a
    folder of them it would look into when it meets one."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts services, which end with the test."""
    import asyncio

    import uvicorn

    running: list[tuple[Any, Service, threading.Thread]] = []

    def begin(
        program: str = PROGRAM,
        facts: Any = FACTS,
        store: Path | None = tmp_path / "kept.store",
        limits: Limits | None = None,
        session: elastalog.Session | None = None,
        **settings: Any,
    ) -> Running:
        session = session or elastalog.open(program, facts, store=store)
        service = Service(session, limits)
        given = {"token": TOKEN, "read_token": READ_TOKEN, **settings}
        app = without_pages(make_app(service, Settings(limits=limits or Limits(), **given)))
        listening = listen("127.0.0.1", 0)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
        thread.start()
        running.append((server, service, thread))
        return Running(address_of(listening, "127.0.0.1"), service, session)

    yield begin
    for server, service, thread in running:
        service.feed.close()
        server.should_exit = True
        thread.join(20)
        service.close()


@pytest.fixture
def running(start: Callable[..., Running]) -> Running:
    """The service of the program above, with a store."""
    return start()
