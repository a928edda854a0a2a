"""Readers see the last committed epoch, and wait for no commit."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.web.service import Service
from elastalog.web.settings import Limits
from elastalog.web.writing import edits
from tests.closures import CLOSURE as CHAIN
from tests.web.api.conftest import FACTS, PROGRAM

SEARCH = """
.decl a, found(x: number)

found(x) :- a(x), a(y), a(z), (x * 31 + y * 17 + z * 7) % 1000003 = 1000002.
"""


def chained(length: int) -> tuple[Service, list[tuple[int, int]]]:
    """A chain that lacks one edge in the middle, which makes very many paths."""
    middle = [(length // 2, length // 2 + 1)]
    edges = [(i, i + 1) for i in range(length) if (i, i + 1) not in middle]
    patient = Limits(seconds=600.0)  # on a machine that is halted for a while
    return Service(elastalog.open(CHAIN, {"edge": edges}, budget=None), patient), middle


def reading(service: Service, until: threading.Event, found: list[tuple[float, float, int]]) -> None:
    """Reads again and again; notes when, for how long, and how many paths there were."""
    questions: list[Callable[[], object]] = [
        lambda: service.reading.page("path", offset=100, limit=100),
        lambda: service.reading.ask(lambda db: db.explain("path(3, 9)", 3)),
        lambda: service.reading.query("path(5, X), X < 20"),
    ]
    turn = 0
    while not until.is_set():
        began = time.perf_counter()
        total = service.reading.page("path", limit=1).total
        questions[turn % 3]()
        found.append((began, time.perf_counter() - began, total))
        turn += 1
        time.sleep(0.002)


def test_readers_wait_for_no_commit_and_see_it_at_once() -> None:
    """Reads begin and end while a commit goes on, however fast the machine is; the test below says how long they
    take."""
    length = 1200
    service, middle = chained(length)
    service.writing.commit(edits({"edge": [(-2, -1)]}))  # whatever has to be compiled or planned is
    before = len_of(service)
    busy: list[tuple[float, float, int]] = []
    commits: list[tuple[float, float]] = []
    try:
        with readers(service, busy):
            for change in ("insert", "delete"):
                began = time.perf_counter()
                service.writing.commit(
                    edits(*((({"edge": middle}, None)) if change == "insert" else (None, {"edge": middle})))
                )
                commits.append((began, time.perf_counter()))
                service.writing.preview(edits({"edge": middle}))
    finally:
        after = len_of(service)
        service.close()
    assert before == after
    many = before + (length // 2 + 1) * (length - length // 2)
    assert {total for _, _, total in busy} == {before, many}  # never a half of it
    for first, last in commits:
        assert sum(first < at and at + took < last for at, took, _ in busy) > 2


@pytest.mark.long
def test_a_commit_of_ten_seconds_delays_no_reader() -> None:
    """A rule that takes long to evaluate, and little memory: as long as the machine needs for ten seconds or so. The
    other side follows for as long. What a reader waits is what it waits without any commit, and little besides: a
    machine with much to do may hold one up, but nobody waits for the commit."""
    few, seconds = 200, 12.0
    began = time.perf_counter()
    elastalog.open(SEARCH, {"a": [(i,) for i in range(few)]}).close()
    many = int(few * (seconds / max(time.perf_counter() - began - 0.05, 0.01)) ** (1 / 3))
    facts = {"edge": [(i, i + 1) for i in range(600)], "a": [(i,) for i in range(many)]}
    declared, rule = SEARCH.split("\n\n")
    service = Service(elastalog.open(CHAIN + declared, facts))
    idle: list[tuple[float, float, int]] = []
    busy: list[tuple[float, float, int]] = []
    try:
        service.writing.commit(edits({"edge": [(-2, -1)]}))
        with readers(service, []):
            time.sleep(1.0)  # whatever has to be compiled or planned is
        with readers(service, idle):
            time.sleep(2.0)
        with readers(service, busy):
            began = time.perf_counter()
            service.writing.commit(edits(added=rule))
            committed = time.perf_counter()
            while service._worker.waiting:
                time.sleep(0.01)
            followed = time.perf_counter()
    finally:
        service.close()
    usual = max(took for _, took, _ in idle)
    during = max(took for at, took, _ in busy if at <= committed)
    after = max(took for at, took, _ in busy if at > committed)
    longest = f"{1e3 * during:.0f}, {1e3 * after:.0f} and {1e3 * usual:.0f} ms"
    print(f"commit {committed - began:.1f} s, following {followed - committed:.1f} s; longest read of {len(busy):,}")
    print(f"during the commit, while the other side followed, and without any: {longest}")
    assert committed - began > 5
    assert max(during, after) < usual + (committed - began) / 10


def replicas_of(service: Service) -> tuple[elastalog.Session, elastalog.Session, elastalog.Session]:
    """The sessions of a service that has been asked for a preview, when all have followed."""
    while service._worker.waiting:
        time.sleep(0.001)
    second, replica = service._replicas._second, service._replicas._spare[0].session
    assert second is not None
    assert replica is not None
    return service._replicas._first, second, replica


def len_of(service: Service) -> int:
    return service.reading.page("path", limit=1).total


class readers:  # noqa: N801  # reads as a block
    """Two threads that read while the block lasts."""

    def __init__(self, service: Service, found: list[tuple[float, float, int]]) -> None:
        self._until = threading.Event()
        self._threads = [threading.Thread(target=reading, args=(service, self._until, found)) for _ in range(2)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._until.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dred"])
def test_both_replicas_are_the_same_after_every_epoch(strategy: str) -> None:
    session = elastalog.open(PROGRAM, FACTS, strategy=strategy)
    twin = session.engine.twin()
    with closing(Service(session)) as service:
        service.writing.commit(edits({"edge": [(4, 1), (5, 6)]}))
        service.writing.commit(edits(added=".decl far(x: number)\nfar(x) :- path(1, x), !edge(1, x)."))
        service.writing.commit(edits(deleted={"edge": [(2, 3)]}))
        service.writing.commit(edits(removed=["far(x) :- path(1, x), !edge(1, x)."]))
        service.writing.preview(edits({"edge": [(7, 7)]}))
        first, *others = replicas_of(service)
        assert [side.epoch for side in others] == [first.epoch] * 2 == [5, 5]
        for name in first:
            expected, *levels = (
                sorted(map(str, side[name].to_arrow(annotations=True).to_pylist())) for side in (first, *others)
            )
            assert levels == [expected] * 2
        assert sorted(twin["path"]) == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]  # nobody told it


def test_what_depends_on_an_order_is_the_same_on_both_replicas() -> None:
    program = """
    .decl edge(a: number, b: number)
    .decl numbered(i: number, a: number)
    numbered(autoinc(), x) :- edge(x, _).
    .decl chosen(a: number, b: number) choice-domain a
    chosen(x, y) :- edge(x, y).
    .decl alike(a: number, b: number) eqrel
    alike(x, y) :- edge(x, y).
    """
    chance = random.Random(3)
    with closing(Service(elastalog.open(program, {"edge": [(i, i * 7 % 5) for i in range(20)]}))) as service:
        for _ in range(20):
            came, went = ([(chance.randrange(12), chance.randrange(12)) for _ in range(3)] for _ in range(2))
            service.writing.commit(edits({"edge": came}, {"edge": went}))
            if chance.random() < 0.5:
                service.writing.preview(edits())
        service.writing.preview(edits())
        expected, *others = ({name: sorted(side[name]) for name in side} for side in replicas_of(service))
        assert others == [expected] * 2


def test_a_commit_that_fails_changes_nothing_for_readers() -> None:
    with closing(Service(elastalog.open(".decl a, b(x: number)\nb(x * x) :- a(x).", {"a": [(1,)]}))) as service:
        with pytest.raises(ElastalogError):
            service.writing.commit(edits({"a": [(5_000_000_000,)]}))
        assert service.epoch == 1
        assert service.reading.page("a").rows == [(1,)]
        assert service.writing.commit(edits({"a": [(2,)]})).epoch == 2
        assert sorted(service.reading.page("b").rows) == [(1,), (4,)]


def test_bad_rows_of_an_update_are_set_aside_and_reported(tmp_path: Path) -> None:
    session = elastalog.open(PROGRAM, FACTS, bad_rows=elastalog.BadRows("quarantine", folder=tmp_path))
    service = Service(session)
    done = service.writing.commit(edits({"edge": [(4, 5), ("x", 5)]}))
    (report,) = done.changes.reports
    assert (report.loaded, report.bad, report.quarantine) == (1, 1, tmp_path / "edge.bad.jsonl")
    assert len((tmp_path / "edge.bad.jsonl").read_text().splitlines()) == 1
    assert set(session["edge"]) == {*FACTS["edge"], (4, 5)}
    service.close()


def test_readers_may_wait_instead(tmp_path: Path) -> None:
    with closing(Service(elastalog.open(PROGRAM, FACTS, store=tmp_path / "store"), is_twofold=False)) as service:
        assert service.writing.commit(edits({"edge": [(4, 5)]})).epoch == 2
        assert service.writing.preview(edits(deleted={"edge": [(4, 5)]})).impact == 5
        assert service.reading.page("path").total == 10
        assert service.reading.page("path", epoch=1).total == 6


def test_a_preview_that_takes_too_long_is_cancelled() -> None:
    service, middle = chained(1500)
    with closing(service):
        with pytest.raises(ElastalogError, match=r"E0603|E0921"):
            service.writing.preview(edits({"edge": middle}), seconds=0.02)
        assert service.writing.preview(edits({"edge": [(-2, -1)]})).impact == 2


def test_updates_wait_for_their_turn_and_are_all_done() -> None:
    with closing(Service(elastalog.open(PROGRAM, FACTS))) as service:
        threads = [
            threading.Thread(target=service.writing.commit, args=(edits({"edge": [(100 + i, 200 + i)]}), f"key {i}"))
            for i in [*range(20), *range(20)]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert service.epoch == 21
        assert service.reading.page("edge", where="from >= 100").total == 20
