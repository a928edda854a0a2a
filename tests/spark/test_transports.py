"""Tasks that exchange: the links between them, and one task where ports are closed; operators of tasks that exchange
facts; what the driver makes of the results of tasks."""

from __future__ import annotations

import pickle
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.spark import exchange, transports
from elastalog.backends.spark.messages import distribute
from elastalog.backends.spark.results import Fault, FileWritten, Result, outcome_of
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.word_files import WordFile
from tests.engine.judging import levels_of
from tests.spark.exchanging import CHAIN, DOUBLING, UPDATES, follow_a_chain, follow_random_updates, without_room
from tests.spark.following import both

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
    with without_room():
        follow_random_updates(near, seed)


def test_tasks_are_linked(near: Any, made: list[bool]) -> None:
    with elastalog.open(DOUBLING, CHAIN, engine="spark", spark=near) as db:
        assert levels_of(db) == levels_of(elastalog.open(DOUBLING, CHAIN))
    assert made == [True, True, True]


@pytest.mark.parametrize("function", ["create_connection", "create_server"])
def test_where_tasks_cannot_be_linked_one_does_it_all(
    near: Any, made: list[bool], monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise ConnectionRefusedError("closed")

    monkeypatch.setattr(transports, "_SECONDS", 0.2)
    monkeypatch.setattr(socket, function, refused)
    with without_room(), both(DOUBLING, CHAIN, near, budget=None) as sessions:
        for inserted, deleted in UPDATES:  # no job tries again
            sessions.apply({"edge": inserted}, {"edge": deleted})
        why = "one task: tasks cannot exchange (some cannot reach each other over the network), and rule 2 keeps no"
        assert sessions.db._backend.placements[1].why.startswith(why)
    assert made == [False, False, False]


def test_large_blocks_both_ways_at_the_same_time(tmp_path: Path) -> None:
    first, second = linked_all(tmp_path, ["token", "token"])
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


@pytest.mark.parametrize("has_room", [True, False])
def test_on_spark(spark: Any, has_room: bool) -> None:
    follow_a_chain(spark, has_room=has_room)


@pytest.mark.parametrize("size", [0, 1, 50])
@pytest.mark.parametrize("has_count", [False, True])
def test_rows_are_ordered_by_share_and_those_for_everybody_come_last(size: int, has_count: bool) -> None:
    shares_number = 4
    random = np.random.default_rng(size)
    rows = random.integers(0, 100, (size, 2)).astype(np.int32)
    shares = random.integers(-1, shares_number, size).astype(np.int32)
    count = random.integers(1, 9, size if has_count else 0).astype(np.int32)
    ordered = np.empty((size, 2 + has_count), np.int32)
    bounds = np.zeros(shares_number + 2, np.int64)
    distribute(rows, count, shares, ordered, bounds)
    wanted: list[list[int]] = []
    for share in (*range(shares_number), -1):
        assert bounds[share % (shares_number + 1)] == len(wanted)
        for i in range(size):
            if shares[i] == share:
                wanted.append([*rows[i].tolist(), *count[i : i + 1].tolist()])
    assert bounds[-1] == size
    assert ordered.tolist() == wanted


BY_FIRST = Routing(0, 2)


def test_files_belong_to_the_share_that_wrote_them() -> None:
    changed = FileWritten("path", WordFile("/0c.parquet", 2), heard=1)
    results = [
        Result(0, [FileWritten("path", WordFile("/0.parquet", 3)), changed], 5, returned=pickle.dumps("a")),
        Result(1, [FileWritten("path", WordFile("/1c.parquet", 4), heard=4)], 7, returned=pickle.dumps(None)),
    ]
    found = outcome_of(results, {"path": BY_FIRST, "far": BY_FIRST})
    path, far = found.written["path"], found.written["far"]
    assert (found.derivations, found.returned, found.faults) == (12, ["a", None], set())
    assert path.states == (WordFile("/0.parquet", 3, BY_FIRST, 0),)
    assert path.changes == (WordFile("/0c.parquet", 2, BY_FIRST, 0), WordFile("/1c.parquet", 4, BY_FIRST, 1))
    assert path.heard == 5
    assert path.paths == {"/0.parquet", "/0c.parquet", "/1c.parquet"}
    assert (far.states, far.changes, far.heard) == ((), (), 0)


def test_every_fault_is_known() -> None:
    found = {0: Fault.ERROR, 1: None, 2: Fault.OVER_BUDGET, 3: Fault.ERROR}
    results = [Result(share, fault=fault) for share, fault in found.items()]
    assert outcome_of(results, {}).faults == {Fault.ERROR, Fault.OVER_BUDGET}
