"""Questions have time and memory of their own, and an update does not wait for them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.diagnostics.quota import Quota, resident_bytes, within
from elastalog.web import replicas
from elastalog.web.feed import Event
from elastalog.web.service import Service
from elastalog.web.settings import Limits
from elastalog.web.writing import edits
from tests.web.api.conftest import READ_TOKEN, Running

PATHS = """
.decl e(x: number, y: number)
.input e
.decl p(x: number, y: number)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
"""
ENDLESS = "p(x + 1, y + 1) :- p(x, y)."
MIB = 1 << 20
LONG = 60.0
"""Seconds that nothing here should take."""


@contextmanager
def served(session: elastalog.Session, limits: Limits, *, is_twofold: bool = True) -> Iterator[Service]:
    service = Service(session, limits, is_twofold=is_twofold)
    try:
        yield service
    finally:
        service.close()


def paths(number: int) -> elastalog.Session:
    return elastalog.open(PATHS, {"e": [(i, i + 1) for i in range(number)]})


class Asked:
    """A question in a thread of its own, and what came of it."""

    def __init__(self, question: Callable[[], Any]) -> None:
        self.answer: Any = None
        self._question = question
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self.answer = self._question()
        except ElastalogError as error:
            self.answer = error.diagnostics[0].code

    def is_under_way(self) -> bool:
        return self._thread.is_alive()

    def wait(self) -> Any:
        self._thread.join(LONG)
        return self.answer


def comes_to_be(is_so: Callable[[], object]) -> bool:
    """Whether something comes to be so, on a machine that does other things too."""
    end = time.monotonic() + LONG
    while not is_so() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(is_so())


# --- an update does not wait ----------------------------------------------------------------------------------------


def test_an_update_does_not_wait_for_endless_previews() -> None:
    with served(paths(20), Limits(seconds=3.0)) as service:
        service.writing.commit(edits({"e": [(50, 51)]}))
        previews = [Asked(lambda: service.writing.preview(edits(added=ENDLESS))) for _ in range(3)]
        assert comes_to_be(lambda: not service._replicas._free)  # one has begun
        for n in range(60, 65):
            service.writing.commit(edits({"e": [(n, n + 1)]}))
        assert all(one.is_under_way() for one in previews)
        assert {one.wait() for one in previews} <= {"E0603", "E0663", "E0921"}  # of time or memory, or of both
        assert service.writing.preview(edits({"e": [(70, 71)]})).impact == 2  # of the last epoch
        assert service.epoch == 7


class Gate:
    """A functor that stays where it is until it is let go, the first time that it is asked for."""

    def __init__(self) -> None:
        self.calls = 0
        self.is_open = threading.Event()

    def __call__(self, x: int) -> int:
        self.calls += 1
        if self.calls == 1:
            assert self.is_open.wait(LONG)
        return 0


GATED = """
.decl e, none, q(x: number)
.functor gate(x: number): number
q(x) :- none(x), e(y), @gate(x + y) = 1.
"""


def gated(gate: Gate) -> elastalog.Session:
    """A session in which only why-not asks the functor: for every `e`."""
    session = elastalog.open(GATED, {"e": [(n,) for n in range(5)]}, functors={"gate": gate})
    session.apply({"e": [(5,)]})
    assert gate.calls == 0
    return session


def test_updates_go_on_while_a_question_does_not_look_at_its_time() -> None:
    """It keeps the second: readers get the new epochs from the first."""
    gate = Gate()
    with served(gated(gate), Limits(seconds=LONG)) as service:
        first = service.epoch
        question = Asked(lambda: service.reading.ask(lambda db: db.why_not("q(7)")))
        assert comes_to_be(lambda: gate.calls == 1)
        for n in range(10, 14):
            service.writing.commit(edits({"e": [(n,)]}))
            assert service.reading.page("e", where=f"x = {n}").total == 1
        assert question.is_under_way()
        assert service.epoch == first + 4
        gate.is_open.set()
        # It was told to stop, and has begun again on a replica, of the last epoch.
        assert str(question.wait()).startswith("q(7)")
        assert gate.calls > 5
        assert service._replicas._spare[0].session is not None
        assert service.writing.commit(edits({"e": [(20,)]})).epoch == first + 5
        assert comes_to_be(lambda: service._worker.waiting == 0)
        assert service._replicas._second.epoch == first + 5


def test_a_question_is_refused_where_facts_are_held_once() -> None:
    gate = Gate()
    with served(gated(gate), Limits(seconds=LONG), is_twofold=False) as service:
        question = Asked(lambda: service.reading.ask(lambda db: db.why_not("q(7)")))
        assert comes_to_be(lambda: gate.calls == 1)
        update = Asked(lambda: service.writing.commit(edits({"e": [(10,)]})).epoch)
        (quota,) = next(iter(service._replicas._readers.values()))
        assert comes_to_be(lambda: quota._is_stopped)
        gate.is_open.set()
        assert question.wait() == "E0939"
        assert update.wait() == 3
        assert str(service.reading.ask(lambda db: db.why_not("q(7)"))).startswith("q(7)")


class Clock:
    """Time that passes only when somebody waits for what is not so; then `meanwhile` is done."""

    def __init__(self, waited: replicas.Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.meanwhile: Callable[[], object] = lambda: None
        monkeypatch.setattr(waited._gate, "wait_for", self._wait_for)
        monkeypatch.setattr("elastalog.web.replicas.time.monotonic", lambda: self.now)

    def _wait_for(self, is_so: Callable[[], object], seconds: float | None = None) -> object:
        if not is_so():
            meanwhile, self.meanwhile = self.meanwhile, lambda: None
            meanwhile()
        if not is_so():
            assert seconds is not None
            self.now += seconds
        return is_so()


def test_a_commit_waits_a_tenth_of_a_second_for_all_readers_together(monkeypatch: pytest.MonkeyPatch) -> None:
    both = replicas.Replicas(paths(5))
    clock = Clock(both, monkeypatch)

    def commit(n: int) -> float:
        update = both.first.update()
        update.insert("e", [(n, n + 1)])
        began = clock.now
        with both.wanting():
            both.follow()  # as after the commit before
            both.commit(update)
        return clock.now - began

    assert commit(10) == 0
    both.follow()
    with both.reading(Quota()):  # on the second, and it does not stop
        assert commit(20) == 0
        assert commit(30) == pytest.approx(replicas.SECOND)
        with both.reading():  # on the first
            assert both.epoch == 4
            assert commit(40) == pytest.approx(0.1)
            assert commit(50) == pytest.approx(0.1)
    both.follow()
    assert both._second.epoch == 6
    both.close()


def test_a_replica_is_copied_from_what_no_commit_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    both = replicas.Replicas(paths(5))
    clock = Clock(both, monkeypatch)
    update = both.first.update()
    update.insert("e", [(10, 11)])
    both.commit(update)
    assert both._front is both._first
    clock.meanwhile = both.follow
    copied: list[object] = []
    usual = type(both._first.engine).twin
    monkeypatch.setattr(type(both._first.engine), "twin", lambda engine: (copied.append(both._front), usual(engine))[1])
    with within(5.0), both.replica() as session:
        assert (session.epoch, copied) == (2, [both._second])
    both.close()


def test_large_queries_at_once_do_not_hold_up_a_stream_of_updates() -> None:
    limits = Limits(seconds=8.0)
    session = elastalog.open(
        ".decl a(x: number)\n.decl b(x: number)\nb(x + 1) :- a(x).", {"a": [(i,) for i in range(300)]}
    )
    with served(session, limits) as service:
        service.writing.commit(edits({"a": [(1000,)]}))

        def large() -> object:
            return asyncio.run(service.call(service.reading.query, "a(x), a(y), a(z), a(v), x + y + z + v < 0"))

        queries = [Asked(large) for _ in range(8)]
        assert comes_to_be(lambda: service._calls.waiting == 8)
        longest = 0.0
        for n in range(20):
            began = time.monotonic()
            service.writing.commit(edits({"a": [(2000 + n,)]}))
            longest = max(longest, time.monotonic() - began)
        assert any(query.is_under_way() for query in queries)
        assert longest < limits.seconds / 4
        assert {query.wait() for query in queries} <= {"E0603", "E0921"}


def test_many_listeners_from_an_early_epoch_are_told_by_one_answer(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    for n in range(10, 20):
        running.service.writing.commit(edits({"edge": [(n, n + 1)]}))
    made: list[int] = []
    usual = running.service.feed._since

    def counted(epoch: int) -> Event:
        made.append(epoch)
        return usual(epoch)

    monkeypatch.setattr(running.service.feed, "_since", counted)
    running.service.feed._events.clear()  # as after a restart
    headers = {"Authorization": f"Bearer {READ_TOKEN}", "Accept": "text/event-stream"}
    with ExitStack() as stack, httpx.Client(base_url=running.url, headers=headers, timeout=LONG) as client:
        listening = [
            stack.enter_context(client.stream("GET", "/api/v1/changes?since=1")).iter_lines() for _ in range(30)
        ]
        running.service.writing.commit(edits({"edge": [(50, 51)]}))
        for lines in listening:
            ids: list[int] = []
            while not ids or ids[-1] < 12:
                line = next(lines)
                if line.startswith("id: "):
                    ids.append(int(line.removeprefix("id: ")))
            assert ids in ([1, 11, 12], [1, 12])
    assert len(made) < 5


# --- time and memory ------------------------------------------------------------------------------------------------

PRODUCT = "e(a, _), e(b, _), e(c, _), e(d, _), e(f, _)"


def test_a_query_is_refused_beyond_its_memory() -> None:
    with served(paths(120), Limits(seconds=LONG, memory=30 * MIB)) as service:
        assert service.reading.query("e(a, _), e(b, _)").total == 120 * 120
        before = resident_bytes()
        with pytest.raises(LimitReached) as refused:
            service.reading.query(PRODUCT)
        assert resident_bytes() < before + 200 * MIB
        found = refused.value.diagnostics[0]
        assert (found.code, found.source and found.source.text) == ("E0663", PRODUCT)
        assert found.help is not None
        assert service.reading.query("e(a, _), e(b, _)").total == 120 * 120


def test_a_preview_is_refused_beyond_its_memory_and_leaves_nothing() -> None:
    with served(paths(20), Limits(seconds=LONG, memory=30 * MIB)) as service:
        with pytest.raises(LimitReached, match="E0663") as refused:
            service.writing.preview(edits(added=ENDLESS))
        source = refused.value.diagnostics[0].source
        assert source.text == ENDLESS
        assert service.writing.preview(edits({"e": [(70, 71)]})).impact == 2


def test_the_interface_says_that_a_question_needs_too_much(start: Callable[..., Running]) -> None:
    running = start(limits=Limits(seconds=LONG, memory=1 * MIB))
    body = {"query": ", ".join(f"path(x{n}, y{n})" for n in range(8))}
    headers = {"Authorization": f"Bearer {READ_TOKEN}"}
    answer = httpx.post(f"{running.url}/api/v1/query", json=body, headers=headers, timeout=LONG)
    told = answer.json()
    assert (answer.status_code, told["code"]) == (507, "E0663")
    assert told["help"]
    assert told["diagnostics"][0]["labels"]
    with pytest.raises(LimitReached, match="E0663"):
        running.connect(READ_TOKEN).query(body["query"])


def test_a_repair_of_all_facts_ends_at_its_time() -> None:
    session = elastalog.open(PATHS, {})
    session.apply({"e": [(i, i + 1) for i in range(400)]})
    with served(session, Limits(seconds=1.0)) as service:
        began = time.process_time()
        with pytest.raises(LimitReached, match="E0603"):
            service.reading.ask(lambda db: db.suggest(["p(_, _)"]), changes=True)
        with pytest.raises(LimitReached, match="E0603"):
            service.reading.ask(lambda db: db.suggest(["p(_, _)"], over="facts"), changes=True)
        assert time.process_time() - began < 8.0  # minutes, when time was not looked at


# --- replicas -------------------------------------------------------------------------------------------------------


def test_a_replica_that_is_far_behind_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "MOST_PENDING", 2)
    with served(paths(3), Limits()) as service:
        (replica,) = service._replicas._spare
        assert service.writing.preview(edits({"e": [(3, 4)]})).impact == 5
        for n, is_kept in ((10, True), (20, True), (30, False), (40, False)):
            service.writing.commit(edits({"e": [(n, n + 1)]}))
            assert (replica.session is not None) == is_kept
        assert service.writing.preview(edits({"e": [(41, 42)]})).impact == 3
        assert replica.session.epoch == service.epoch


def test_previews_go_on_beside_updates() -> None:
    """Every preview is of some epoch, whole."""
    with served(paths(10), Limits(seconds=LONG)) as service:
        impacts: set[int] = set()
        until = threading.Event()

        def preview() -> None:
            while not until.is_set():
                impacts.add(service.writing.preview(edits({"e": [(-1, 0)]})).impact)

        asked = [Asked(preview) for _ in range(2)]
        for n in range(10, 30):
            service.writing.commit(edits({"e": [(n, n + 1)]}))
        until.set()
        for one in asked:
            assert one.wait() is None
        assert impacts <= {n + 2 for n in range(10, 31)}
        assert service.writing.preview(edits({"e": [(-1, 0)]})).impact == 32
