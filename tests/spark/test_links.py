"""Tasks that exchange over the network: the same results as through files, and through files where ports are closed."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.backends.spark import exchange, transports
from tests.engine.judging import levels_of
from tests.spark.exchanging import CHAIN, DOUBLING, by_way, follow_a_chain, follow_random_updates

WAY = "network"
HERE = "127.0.0.1"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether tasks were linked, of every task."""
    found: list[bool] = []
    whole = exchange.linked

    def linked(*arguments: Any) -> Any:
        result = whole(*arguments)
        found.append(result is not None)
        return result

    monkeypatch.setattr(exchange, "linked", linked)
    return found


def linked_all(folder: Path, tokens: list[str]) -> list[dict[int, transports.Link] | None]:
    with ThreadPoolExecutor(len(tokens)) as pool:
        waiting = [
            pool.submit(transports.linked, str(folder), share, len(tokens), token, HERE)
            for share, token in enumerate(tokens)
        ]
        return [task.result() for task in waiting]


@pytest.mark.parametrize("seed", range(300, 303))
def test_random_updates(near: Any, seed: int) -> None:
    follow_random_updates(near, seed)


def test_messages_go_over_the_network(near: Any, made: list[bool], tmp_path: Path) -> None:
    with elastalog.open(DOUBLING, CHAIN, engine="spark", spark=near) as db:
        assert levels_of(db) == levels_of(elastalog.open(DOUBLING, CHAIN))
    assert made == [True, True, True]
    assert not list(tmp_path.rglob("*.round"))


def test_where_ports_are_closed_files_are_used(near: Any, made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise ConnectionRefusedError("closed")

    monkeypatch.setattr(transports, "_SECONDS", 0.2)
    monkeypatch.setattr(socket, "create_connection", refused)
    with elastalog.open(DOUBLING, CHAIN, engine="spark", spark=near) as db:
        assert levels_of(db) == levels_of(elastalog.open(DOUBLING, CHAIN))
    assert made == [False, False, False]


def test_where_no_port_can_be_had_files_are_used(near: Any, made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise PermissionError("no")

    monkeypatch.setattr(socket, "create_server", refused)
    with elastalog.open(DOUBLING, CHAIN, engine="spark", spark=near) as db:
        assert len(db["path"]) == 17 * 16 // 2
    assert made == [False, False, False]


def test_large_blocks_both_ways_at_the_same_time(tmp_path: Path) -> None:
    first, second = linked_all(tmp_path, ["token", "token"])
    assert first is not None
    assert second is not None
    block = bytes(8 << 20)
    with ThreadPoolExecutor(2) as pool:
        sent = [pool.submit(first[1].send, b"a", block), pool.submit(second[0].send, block, b"b")]
        for task in sent:
            task.result(60)
    assert first[1].receive() == block + b"b"
    assert second[0].receive() == b"a" + block
    first[1].close()
    with pytest.raises(transports.Unlinked):
        second[0].receive()


def test_who_does_not_know_the_token_is_not_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "_SECONDS", 0.3)
    assert linked_all(tmp_path, ["token", "other"]) == [None, None]


def test_a_stranger_does_not_disturb(tmp_path: Path) -> None:
    whole = transports._accept

    def disturbed(listening: socket.socket, *others: Any) -> None:
        stranger = socket.create_connection(listening.getsockname())
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: anything at all, long enough\r\n\r\n")
        threading.Timer(0.2, stranger.close).start()
        whole(listening, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transports, "_accept", disturbed)
        found = linked_all(tmp_path, ["token", "token"])
    assert [None if each is None else sorted(each) for each in found] == [[1], [0]]


def test_over_the_network_on_spark(spark: Any) -> None:
    with by_way(spark, "network"):
        follow_a_chain(spark)
