"""A service that is killed in a commit: what was acknowledged is there, once, and the feed goes on without a gap."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import elastalog
from elastalog import ElastalogError
from tests.closures import REACH as PROGRAM
from tests.web.api.conftest import TOKEN

pytestmark = pytest.mark.slow  # every one starts processes


class Server:
    """`elastalog serve` in a process of its own."""

    def __init__(self, started: list[Server], program: str, *options: str) -> None:
        started.append(self)
        command = [sys.executable, "-m", "elastalog", "serve", program, "--port", "0", "--token", TOKEN, *options]
        source = str(Path(elastalog.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": source}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self.url = self.process.stdout.readline().rpartition(" at ")[2].strip()

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture
def started() -> Iterator[list[Server]]:
    """Every service that was started, for them to end with the test."""
    servers: list[Server] = []
    yield servers
    for server in servers:
        server.process.kill()
        server.process.wait(30)


def made(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("1\t2\n")
    return str(tmp_path / "reach.dl"), str(tmp_path)


def test_a_service_at_an_update_without_end_ends_well(tmp_path: Path, started: list[Server]) -> None:
    program = ".decl far(x: number, km: min number)\n.decl road(x: number, y: number, km: number)\n.input road\n"
    (tmp_path / "far.dl").write_text(f"{program}far(1, 0).\nfar(y, d + k) :- far(x, d), road(x, y, k).\n")
    (tmp_path / "road.facts").write_text("1\t2\t5\n")
    server = Server(started, str(tmp_path / "far.dl"), "-F", str(tmp_path), "--store", str(tmp_path / "store"))
    told: list[str] = []

    def update(timeout: float) -> None:
        with elastalog.connect(server.url, TOKEN, timeout=timeout) as db:
            try:
                db.apply({"road": [(2, 1, -6)]})
            except ElastalogError as error:
                told.append(str(error))

    update(1.0)
    assert "E0933" in told[0]
    assert "within 1 seconds, and may still be at work on it" in told[0]
    waiting = threading.Thread(target=update, args=(30.0,), daemon=True)
    waiting.start()
    time.sleep(0.5)
    assert server.end(signal.SIGTERM) == 0
    waiting.join(10)
    assert "E0936" in told[1]
    with elastalog.open(store=elastalog.Store(tmp_path / "store", read_only=True)) as kept:
        assert list(kept["road"]) == [(1, 2, 5)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_service_that_is_told_to_end_ends_well(tmp_path: Path, started: list[Server], number: int) -> None:
    program, facts = made(tmp_path)
    server = Server(started, program, "-F", facts, "--store", str(tmp_path / "store"))
    db = elastalog.connect(server.url, TOKEN)
    listening = threading.Thread(target=lambda: list(db.listen(retries=0)), daemon=True)
    listening.start()
    db.apply({"edge": [(2, 3)]})
    assert server.end(number) == 0
    listening.join(10)
    assert not listening.is_alive()
    with elastalog.open(store=elastalog.Store(tmp_path / "store", read_only=True)) as kept:
        assert sorted(kept["edge"]) == [(1, 2), (2, 3)]


def test_a_start_says_what_is_opened(tmp_path: Path) -> None:
    program, facts = made(tmp_path)
    command = [sys.executable, "-m", "elastalog", "serve", program, "-F", facts, "--host", "203.0.113.1"]
    environment = {**os.environ, "PYTHONPATH": str(Path(elastalog.__file__).parents[1])}
    for more in ([], ["-q"]):
        ended = subprocess.run(
            [*command, "--token", "T", *more], capture_output=True, text=True, env=environment, timeout=60
        )
        assert ended.stderr.startswith(f"opening {program} …\n") == (not more)
        assert "E0937" in ended.stderr


def test_another_address_needs_a_token_or_that_none_is_wanted(tmp_path: Path) -> None:
    program, facts = made(tmp_path)
    command = [sys.executable, "-m", "elastalog", "serve", program, "-F", facts, "--host", "0.0.0.0"]
    environment = {name: value for name, value in os.environ.items() if name != "ELASTALOG_TOKEN"}
    environment["PYTHONPATH"] = str(Path(elastalog.__file__).parents[1])
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert ended.returncode == 1
    assert "E0935" in ended.stderr


def test_a_key_stands_for_one_update_when_the_service_is_started_again(tmp_path: Path, started: list[Server]) -> None:
    program, facts = made(tmp_path)
    store = str(tmp_path / "store")
    for arguments in ((program, "-F", facts, "--store", store), (store,)):
        server = Server(started, *arguments)
        db = elastalog.connect(server.url, TOKEN)
        db.apply({"edge": [(2, 3)]}, batch="1")
        with pytest.raises(ElastalogError, match="E0932"):
            db.apply({"edge": [(7, 8)]}, batch="1")
        assert sorted(db["edge"]) == [(1, 2), (2, 3)]
        assert server.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 30))])
def test_nothing_is_lost_or_doubled_when_it_is_killed(tmp_path: Path, started: list[Server], seed: int) -> None:
    """A writer sends updates with keys, again until each is acknowledged; a listener adds up what it hears. The service
    is killed at some moment and started again."""
    chance = random.Random(seed)
    program, facts = made(tmp_path)
    store = str(tmp_path / "store")
    server = Server(started, program, "-F", facts, "--store", store)
    port = server.url.rpartition(":")[2]
    heard: set[tuple[int, int]] = set()
    edges = {(1, 2)}
    faults: list[str] = []
    last_epoch = [1]
    listener = elastalog.connect(server.url, TOKEN)

    def listen() -> None:
        for event in listener.listen(1, retries=60):
            if event.since != last_epoch[0]:
                faults.append(f"{event.since} after {last_epoch[0]}")
            last_epoch[0] = event.epoch
            changed = event.changes["edge"]
            if heard & set(changed.inserted) or set(changed.deleted) - heard - {(1, 2)}:
                faults.append(f"twice in {event.epoch}")
            heard.difference_update(changed.deleted)
            heard.update(changed.inserted)

    threading.Thread(target=listen, daemon=True).start()
    db = elastalog.connect(server.url, TOKEN)
    killed = server.process
    killing = threading.Timer(chance.uniform(0.05, 0.6), killed.kill)
    killing.start()
    for step in range(60):
        edge = (chance.randrange(30), chance.randrange(30))
        is_new = edge not in edges
        while True:
            try:
                db.apply(
                    {"edge": [edge]} if is_new else None, None if is_new else {"edge": [edge]}, batch=f"step-{step}"
                )
                break
            except ElastalogError as error:
                if error.diagnostics[0].code not in ("E0933", "E0936"):
                    raise
                if server.process.poll() is not None:
                    server = Server(started, store, "--port", port)
        edges ^= {edge}
    killing.join()
    killed.wait(30)
    if server.process.poll() is not None:
        server = Server(started, store, "--port", port)
    db = elastalog.connect(server.url, TOKEN)
    assert set(db["edge"]) == edges
    last = db.epoch
    deadline = time.monotonic() + 30
    while last_epoch[0] < last and time.monotonic() < deadline:
        time.sleep(0.05)
    assert faults == []
    assert last_epoch[0] == last
    assert heard | {(1, 2)} & edges == edges
    assert server.end(signal.SIGTERM) == 0
