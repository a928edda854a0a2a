"""A question whose time is over ends: its thread, and the one that works, are free again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.web.service import Service
from elastalog.web.settings import Limits
from elastalog.web.writing import edits
from tests.web.api.conftest import TOKEN, Running

SLOW = """
.decl gate, a, b(x: number)
.functor wait(x: number): number
.decl slow(x: number)
slow(x) :- gate(x), a(y), @wait(x + y) = 1.
.decl used(x: number)
used(x) :- b(x).
"""
PRODUCT = "a(y), a(z), a(v), a(w), y + z + v + w < 0"
LIMIT = 0.3
NAP, NAPS = 0.02, 200


class Napping:
    """A functor that takes its time, and counts."""

    def __init__(self) -> None:
        self.naps = 0

    def __call__(self, x: int) -> int:
        time.sleep(NAP)
        self.naps += 1
        return 1


@pytest.fixture
def napping() -> Napping:
    return Napping()


@pytest.fixture
def service(napping: Napping) -> Iterator[Service]:
    session = elastalog.open(SLOW, {"a": [(i,) for i in range(NAPS)], "b": [(1,)]}, functors={"wait": napping})
    service = Service(session, Limits(seconds=LIMIT, concurrent=2))
    yield service
    service.close()


ASKED: dict[str, Callable[[Service], Any]] = {
    "why not": lambda service: service.reading.ask(lambda db: db.why_not("slow(5)")),
    "a preview of rules": lambda service: service.writing.preview(edits(added=f"used(x) :- b(x), {PRODUCT}.")),
    "a suggestion": lambda service: service.reading.ask(
        lambda db: db.suggest(missing=["slow(5)"], over="facts"), changes=True
    ),
}


@pytest.mark.parametrize("what", ASKED)
def test_a_question_ends_soon_after_its_time(service: Service, napping: Napping, what: str) -> None:
    with pytest.raises(ElastalogError, match=r"E0603|E0921"):
        ASKED[what](service)
    assert service.reading.ask(lambda db: tuple(db.uses("b(1)", all=True)), changes=True) == (("used", (1,)),)
    assert _settles(lambda: service._worker.waiting == 0)
    assert napping.naps < NAPS / 2  # all of them are four seconds


def test_the_threads_of_readers_are_free_again(start: Callable[..., Running]) -> None:
    facts = {"a": [(i,) for i in range(NAPS)], "b": [(1,)]}
    session = elastalog.open(SLOW, facts, functors={"wait": Napping()})
    running = start(session=session, limits=Limits(seconds=LIMIT, concurrent=2))
    get = httpx.Client(base_url=f"{running.url}/api/v1", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
    codes: list[str] = []

    def ask() -> None:
        answer = httpx.get(
            f"{running.url}/api/v1/why-not?fact=slow(5)", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30
        )
        codes.append(f"{answer.status_code} {answer.json()['code']}")

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) <= {"504 E0603", "504 E0921"}
    assert _settles(lambda: running.service._calls.waiting == 0)
    assert get.get("/relations/b").json()["total"] == 1


def _settles(is_so: Callable[[], bool]) -> bool:
    """Whether something comes to be so, on a machine that does other things too."""
    for _ in range(1000):
        if is_so():
            return True
        time.sleep(0.01)
    return False
