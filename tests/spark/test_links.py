"""Tasks that exchange over the network: the same results as through files, and through files where ports are closed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.backends.spark import exchange, links
from elastalog.backends.spark.ways import SETTING
from tests.engine.judging import is_refused, judge, levels_of
from tests.generators.seeded import seeded_case
from tests.reference.cases import parse_accepted
from tests.spark.without_spark import tasks_in_this_process

EDGES = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n"
DOUBLING = EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), path(y, z).\n"
CHAIN = {"edge": [(i, i + 1) for i in range(40)]}
HERE = "127.0.0.1"


@pytest.fixture
def near(tmp_path: Path) -> Iterator[Any]:
    with tasks_in_this_process(tmp_path, **{SETTING: "network"}) as session:
        yield session


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


def linked_all(folder: Path, tokens: list[str]) -> list[dict[int, links.Link] | None]:
    with ThreadPoolExecutor(len(tokens)) as pool:
        waiting = [
            pool.submit(links.linked, str(folder), share, len(tokens), token, HERE)
            for share, token in enumerate(tokens)
        ]
        return [task.result() for task in waiting]


@pytest.mark.parametrize("seed", range(300, 306))
def test_random_updates(near: Any, seed: int) -> None:
    program, updates = seeded_case(seed, most_updates=3)
    if is_refused(program):
        pytest.skip("only recursion binds what an aggregate tests")
    explicit = program.explicit
    with elastalog.open(program.text, facts=program.facts, budget=None, engine="spark", spark=near) as db:
        for update in updates:
            db.apply(update.inserted, update.deleted)
            explicit = update.apply_to(explicit)
        judge(db, parse_accepted(program.text), explicit)


def test_messages_go_over_the_network(near: Any, made: list[bool], tmp_path: Path) -> None:
    with elastalog.open(DOUBLING, CHAIN, engine="spark", spark=near) as db:
        assert levels_of(db) == levels_of(elastalog.open(DOUBLING, CHAIN))
    assert made == [True, True, True]
    assert not list(tmp_path.rglob("*.round"))


def test_where_ports_are_closed_files_are_used(near: Any, made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise ConnectionRefusedError("closed")

    monkeypatch.setattr(links, "_SECONDS", 0.2)
    monkeypatch.setattr(socket, "create_connection", refused)
    with elastalog.open(DOUBLING, CHAIN, engine="spark", spark=near) as db:
        assert levels_of(db) == levels_of(elastalog.open(DOUBLING, CHAIN))
    assert made == [False, False, False]


def test_where_no_port_can_be_had_files_are_used(near: Any, made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise PermissionError("no")

    monkeypatch.setattr(socket, "create_server", refused)
    with elastalog.open(DOUBLING, CHAIN, engine="spark", spark=near) as db:
        assert len(db["path"]) == 41 * 40 // 2
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
    with pytest.raises(links.Unlinked):
        second[0].receive()


def test_who_does_not_know_the_token_is_not_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_SECONDS", 0.3)
    assert linked_all(tmp_path, ["token", "other"]) == [None, None]


def test_a_stranger_does_not_disturb(tmp_path: Path) -> None:
    whole = links._accept

    def disturbed(listening: socket.socket, *others: Any) -> None:
        stranger = socket.create_connection(listening.getsockname())
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: anything at all, long enough\r\n\r\n")
        threading.Timer(0.2, stranger.close).start()
        whole(listening, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "_accept", disturbed)
        found = linked_all(tmp_path, ["token", "token"])
    assert [None if each is None else sorted(each) for each in found] == [[1], [0]]


def test_over_the_network_on_spark(spark: Any) -> None:
    spark.conf.set(SETTING, "network")
    try:
        with (
            elastalog.open(DOUBLING, CHAIN, budget=None, engine="spark", spark=spark) as db,
            elastalog.open(DOUBLING, CHAIN, budget=None) as local,
        ):
            db.apply({"edge": [(40, 41)]}, {"edge": [(20, 21)]})
            local.apply({"edge": [(40, 41)]}, {"edge": [(20, 21)]})
            assert levels_of(db) == levels_of(local)
    finally:
        spark.conf.unset(SETTING)
