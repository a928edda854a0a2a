"""Files are read ahead of those that use them: what comes out, and what goes wrong, is the same with every number of
threads."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.backends.watch import Watch
from elastalog.pipeline.files import ahead, loading
from elastalog.pipeline.files.ahead import Ahead, Part
from elastalog.pipeline.files.allowance import Allowance, allowance, reading_within
from elastalog.settings import SETTINGS
from tests.refusals import refused

T = TypeVar("T")

PROGRAM = "".join(f".decl r{i}(x: symbol, y: number)\n.input r{i}\n" for i in range(6))


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    """Each file has texts of the one before, and new ones."""
    for i in range(6):
        (tmp_path / f"r{i}.facts").write_text("".join(f"text {n}\t{-n}\n" for n in range(50 * i, 50 * i + 100)))
    return tmp_path


def are_reading() -> bool:
    return any(thread.name.startswith("elastalog reading") for thread in threading.enumerate())


@contextmanager
def started(parts: Iterable[Part[T]], threads: int) -> Iterator[Ahead[T]]:
    with closing(Ahead(parts, threads, "reading")) as coming:
        coming.start()
        yield coming


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_results_come_in_order_and_few_are_ahead(threads: int) -> None:
    begun: list[int] = []

    def read(number: int) -> int:
        begun.append(number)
        return number

    with started((Part(partial(read, i)) for i in range(9)), threads) as coming:
        for number in coming:
            assert set(range(number + 1)) <= set(begun)
            assert len(begun) <= number + 1 + threads
    assert sorted(begun) == list(range(9))
    with started([], threads) as coming:
        assert list(coming) == []
    assert not are_reading()


def test_reading_begins_before_anyone_asks_and_stops_when_much_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "BYTES_AHEAD", 100)
    begun: list[int] = []

    def read(number: int) -> int:
        begun.append(number)
        return number

    with started((Part(partial(read, i), 30) for i in range(9)), 2) as coming:
        until = time.monotonic() + 10
        while len(begun) < 3 and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(0.01)
        assert begun == [0, 1, 2]  # 90 bytes: the next would be too much
        assert list(coming) == list(range(9))


def test_who_asks_helps_while_others_read() -> None:
    may_go_on = threading.Event()
    by: dict[int, str] = {}

    def read(number: int) -> int:
        by[number] = threading.current_thread().name
        if by[number].startswith("elastalog reading"):
            assert may_go_on.wait(10)
        elif number == 3:
            may_go_on.set()
        return number

    with started((Part(partial(read, i), 1) for i in range(4)), 2) as coming:
        while not by:
            time.sleep(0.001)
        assert list(coming) == [0, 1, 2, 3]
    assert by[0] == "elastalog reading 0"
    assert {by[1], by[2], by[3]} == {threading.current_thread().name}


def test_what_a_read_raises_is_raised_in_its_turn() -> None:
    def read(number: int) -> int:
        if number == 1:
            raise ValueError("the second")
        return number

    with started((Part(partial(read, i)) for i in range(4)), 2) as coming:
        assert next(coming) == 0
        with pytest.raises(ValueError, match="the second"):
            next(coming)
    assert not are_reading()


@pytest.mark.parametrize("size", [None, 1])
def test_ctrl_c_ends_reading(size: int | None) -> None:
    """While who asks waits for a part, or reads another: nothing more is begun, and no thread is left."""
    begun: list[int] = []
    caller = threading.get_ident()

    def read(number: int) -> int:
        begun.append(number)
        if threading.get_ident() != caller:
            time.sleep(0.02)
            signal.pthread_kill(caller, signal.SIGINT)
        time.sleep(0.02)
        return number

    with pytest.raises(KeyboardInterrupt), started((Part(partial(read, i), size) for i in range(50)), 1) as coming:
        list(coming)
    assert len(begun) < 50
    assert not are_reading()


def test_limits_hold_in_the_other_thread() -> None:
    allowed = Allowance(Watch(), 7)
    with reading_within(allowed), started([Part(allowance), Part(allowance)], 2) as coming:
        assert list(coming) == [allowed, allowed]


def test_ids_do_not_depend_on_threads(facts: Path) -> None:
    known = []
    for jobs in (1, 2, 3):
        with elastalog.open(PROGRAM, facts=facts, jobs=jobs, engine="local") as db:
            symbols = db._materialisation.dictionary.symbols
            known.append((symbols.strings_from(0), {name: sorted(db[name]) for name in db}))
    assert known[0] == known[1] == known[2]
    assert known[0][0] == [f"text {n}" for n in range(350)]
    assert len(known[0][1]["r5"]) == 100


def test_the_first_file_that_is_wrong_is_named(facts: Path) -> None:
    (facts / "r2.facts").write_text("text\tno number\n")
    (facts / "r3.facts").unlink()
    messages = []
    for jobs in (1, 2):
        with pytest.raises(ElastalogError) as error:
            elastalog.open(PROGRAM, facts=facts, jobs=jobs, engine="local")
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "r2.facts" in messages[0]


def test_a_program_that_cannot_be_planned_leaves_no_thread(facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are being read by then; what is wrong with them is not said."""
    monkeypatch.setattr(SETTINGS, "read_in_threads_from", 1)
    (facts / "r0.facts").write_text("text\tno number\n")
    program = PROGRAM + ".functor f(x: number): number\n.decl s(x: number)\ns(@f(y)) :- r0(_, y).\n"
    for jobs in (1, 2):
        with refused("E0641"):
            elastalog.open(program, facts=facts, jobs=jobs, engine="local")
        assert not are_reading()


def test_reading_ends_before_evaluation_begins(facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "read_in_threads_from", 1)
    seen: list[bool] = []

    def look(given: int) -> int:
        seen.append(are_reading())
        return given

    program = PROGRAM + ".functor f(x: number): number\n.decl s(x: number)\ns(@f(y)) :- r0(_, y).\n"
    with elastalog.open(program, facts=facts, jobs=2, engine="local", functors={"f": look}) as db:
        assert len(db["s"]) == 100
    assert not any(seen)
    assert seen


@pytest.mark.parametrize("at", [0, 3])
def test_ctrl_c_while_files_are_read_and_the_program_is_planned(
    facts: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """At the first block the program is not planned yet; at a later one facts are encoded."""
    monkeypatch.setattr(SETTINGS, "read_in_threads_from", 1)
    monkeypatch.setattr(SETTINGS, "bytes_of_a_block", 64)
    caller = threading.get_ident()
    begun: list[int] = []

    def read(file: loading.PlainFile, start: int) -> loading.Lines:
        begun.append(start)
        if len(begun) > at and threading.get_ident() != caller and told.acquire(blocking=False):
            signal.pthread_kill(caller, signal.SIGINT)
        return read_really(file, start)

    told = threading.Lock()
    read_really = loading.PlainFile._read
    monkeypatch.setattr(loading.PlainFile, "_read", read)

    def open_until_told() -> None:
        while not told.locked():  # the caller may be so late that it reads all later blocks itself
            begun.clear()
            elastalog.open(PROGRAM, facts=facts, jobs=2, engine="local").close()

    with pytest.raises(KeyboardInterrupt):
        open_until_told()
    assert not are_reading()
