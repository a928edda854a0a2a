"""Processes that are forked from one with an open store: they write nothing, hold nothing, and hang nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import elastalog
from elastalog.session import Session
from elastalog.storage.store import Store
from tests.storage.disks import GatedDisk, use
from tests.storage.scripted import LAST, create, expected_states, files_of, go_on, state_of

EXPECTED = expected_states()
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def told_by_child(work: Callable[[], str]) -> str:
    """What work in a forked process returns, or the codes of what it raises."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            try:
                told = work()
            except elastalog.ElastalogError as error:
                told = " ".join(found.code for found in error.diagnostics)
            except BaseException as error:
                told = repr(error)
            os.write(writing, told.encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        for _ in range(600):
            if os.waitpid(child, os.WNOHANG)[0]:
                return os.read(reading, 1 << 16).decode()
            time.sleep(0.05)
        os.kill(child, 9)
        os.waitpid(child, 0)
        raise AssertionError("the child hangs")
    finally:
        os.close(reading)


def test_an_update_in_a_forked_child_is_refused_and_the_parent_goes_on(folder: Path) -> None:
    with create(folder / "store", journal_epochs=1000) as session:
        before = files_of(folder / "store")
        assert told_by_child(lambda: str(session.apply({"edge": [(8, 9)]}))) == "E0819"
        assert files_of(folder / "store") == before
        go_on(session)
    with elastalog.open(store=folder / "store") as session:
        assert (session.epoch, state_of(session)) == (LAST, EXPECTED[LAST])


def test_the_refusal_says_to_open_the_store_again(folder: Path) -> None:
    with create(folder / "store") as session:
        told = told_by_child(lambda: _help_of(lambda: session.apply({"edge": [(8, 9)]})))
    assert told == "open the store again in this process: one process at a time writes it"


def test_rules_and_snapshots_are_refused_in_a_forked_child_too(folder: Path) -> None:
    with create(folder / "store", journal_epochs=1000) as session:
        session.apply({"edge": [(3, 4)]})
        before = files_of(folder / "store")
        assert told_by_child(lambda: str(session.change_rules("lone(t) :- label(_, t)."))) == "E0819"
        assert session._history.store is not None
        store, dictionary = session._history.store, session._dictionary
        assert told_by_child(lambda: str(store.write_snapshot(dictionary, session._backend.states.of))) == "E0819"
        assert files_of(folder / "store") == before


def test_closing_in_a_forked_child_changes_nothing(folder: Path) -> None:
    def leave() -> str:
        with session:
            pass
        return "closed"

    session = create(folder / "store")
    before = files_of(folder / "store")
    assert told_by_child(leave) == "closed"
    assert files_of(folder / "store") == before
    with pytest.raises(elastalog.ElastalogError, match="E0804"):
        Store.open(folder / "store")
    go_on(session)
    session.close()


def test_a_child_that_lives_on_does_not_keep_the_store_locked(folder: Path) -> None:
    session = create(folder / "store")
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(writing)
        os.read(reading, 1)  # until the parent has finished
        os._exit(0)
    try:
        session.close()
        with elastalog.open(store=folder / "store") as again:
            go_on(again)
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def test_a_forked_child_reads_what_the_session_held_and_opens_stores_of_its_own(folder: Path) -> None:
    def read() -> str:
        held = state_of(session) == EXPECTED[1]
        with elastalog.open(store=elastalog.Store(folder / "store", read_only=True)) as own:
            return f"{held} {own.epoch} {len(session.log())} {len(own.log())}"

    def write() -> str:
        with elastalog.open(store=folder / "other") as own:
            go_on(own)
            return str(own.epoch)

    create(folder / "other").close()
    with create(folder / "store", journal_epochs=1000) as session:
        assert told_by_child(read) == "True 1 1 1"
        assert told_by_child(write) == str(LAST)


def test_a_session_without_a_store_is_copied_by_a_fork() -> None:
    session = elastalog.open(".decl a(x: number)\n.decl b(x: number)\nb(x) :- a(x).")
    assert told_by_child(lambda: str(sorted(session.apply({"a": [(1,)]})["b"].inserted))) == "[(1,)]"
    assert list(session["b"]) == []


def test_a_fork_while_another_thread_updates_is_told_so_instead_of_hanging(folder: Path) -> None:
    with create(folder / "store") as session:
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with session.engine.exclusively():
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        try:
            assert told_by_child(lambda: str(session.query("path(1, X)"))) == "E0819"
            assert told_by_child(lambda: str(session.apply({"edge": [(1, 5)]}))) == "E0819"
        finally:
            done.set()
            thread.join()
        go_on(session)
        assert state_of(session) == EXPECTED[LAST]


def test_a_fork_during_a_background_snapshot_neither_waits_for_it_nor_ends_it(folder: Path) -> None:
    from elastalog.evaluation.stored import DurableEpochs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DurableEpochs, "in_background", True)
        with create(folder / "store", journal_epochs=1) as session:
            disk = GatedDisk()
            use(session, disk)
            session.apply({"edge": [(3, 4)]})
            assert disk.is_reached.wait(60)
            assert told_by_child(lambda: str(session.close())) == "None"
            disk.gate.set()
    with elastalog.open(store=folder / "store") as session:
        assert (session.epoch, session._history.store and session._history.store.manifest.snapshots[-1].epoch) == (2, 2)


def test_forks_while_threads_read_and_write_lose_nothing(folder: Path) -> None:
    """As a server that is forked into workers while it runs."""
    with create(folder / "store") as session:
        stop = threading.Event()
        thread = threading.Thread(target=lambda: _write_until(session, stop))
        thread.start()
        try:
            for _ in range(20):
                assert told_by_child(lambda: str(session.apply({"edge": [(1, 5)]}))) == "E0819"
        finally:
            stop.set()
            thread.join()
        epoch, state = session.epoch, state_of(session)
    assert epoch > 1
    with elastalog.open(store=folder / "store") as session:
        assert (session.epoch, state_of(session)) == (epoch, state)


WORKERS = """
import multiprocessing, sys
import elastalog

def epoch_of(path):
    with elastalog.open(store=elastalog.Store(path, read_only=True)) as session:
        return session.epoch

def update(path):
    try:
        with elastalog.open(store=path) as session:
            session.apply({"edge": [(77, 78)]})
            return session.epoch
    except elastalog.ElastalogError as error:
        return error.diagnostics[0].code

if __name__ == "__main__":
    path, method = sys.argv[1:]
    context = multiprocessing.get_context(method)
    with elastalog.open(store=path) as session:
        with context.Pool(2) as pool:
            print(pool.map(epoch_of, [path] * 3), pool.map(update, [path]))
        session.apply({"edge": [(3, 4)]})
    with context.Pool(1) as pool:
        print(pool.map(update, [path]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_open_the_store_themselves_whichever_way_they_start(folder: Path, method: str) -> None:
    create(folder / "store").close()
    script = folder / "workers.py"
    script.write_text(WORKERS)
    command = [sys.executable, str(script), str(folder / "store"), method]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (told.stdout, told.returncode) == ("[1, 1, 1] ['E0804']\n[3]\n", 0), told.stderr


def _help_of(work: Callable[[], object]) -> str:
    try:
        return str(work())
    except elastalog.ElastalogError as error:
        return str(error.diagnostics[0].help)


def _write_until(session: Session, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        session.apply({"label": [(number, f"text {number}")]})
