"""Snapshots in the background: commits go on, nothing is lost whatever happens, and no two are written at once."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import elastalog
from elastalog.evaluation.stored import DurableEpochs
from elastalog.session import Session
from elastalog.storage.administration import check_files
from elastalog.storage.errors import StoreDamaged
from elastalog.storage.manifest import Options, read_manifest
from tests.storage.disks import FailingDisk, GatedDisk, use
from tests.storage.expecting import EXPECTED, require_kept
from tests.storage.scripted import LAST, UPDATES, create, files_of, go_on, in_child, state_of, write_snapshot
from tests.storage.test_crashes import check_continuation, check_recovery


@pytest.fixture(autouse=True)
def snapshots_in_the_background(monkeypatch: pytest.MonkeyPatch, snapshots_by_the_commit: None) -> None:
    monkeypatch.setattr(DurableEpochs, "in_background", True)


def snapshot_epochs(path: Path) -> list[int]:
    return [snapshot.epoch for snapshot in read_manifest(path).snapshots]


def journal_epochs(path: Path) -> list[int]:
    return [journal.epoch for journal in read_manifest(path).journals]


def snapshot_threads() -> int:
    return sum(thread.name.startswith("elastalog-snapshot") for thread in threading.enumerate())


def held_at(path: Path, epoch: int, **options: int) -> tuple[Session, GatedDisk]:
    """A store whose first snapshot, of some epoch, is being written and does not get on."""
    session = create(path, **{"journal_epochs": epoch - 1, "retention": 100, **options})
    disk = GatedDisk()
    use(session, disk)
    for inserted, deleted in UPDATES[: epoch - 1]:
        session.apply(inserted, deleted, source="script", batch=session.epoch + 1)
    assert disk.is_reached.wait(60)
    return session, disk


def is_written(session: Session) -> bool:
    session._history.store._coming.wait()
    return True


def test_a_life_with_snapshots_in_the_background(folder: Path) -> None:
    for _ in range(5):
        with create(folder / "store") as session:
            go_on(session)
            assert state_of(session) == EXPECTED[LAST]
        assert len(snapshot_epochs(folder / "store")) > 1
        assert check_files(folder / "store")[0] == []
        with elastalog.open(store=folder / "store") as session:
            assert session.engine.recovery == ()
            assert state_of(session) == EXPECTED[LAST]
        shutil.rmtree(folder / "store")


def test_commits_go_on_while_a_snapshot_is_written(folder: Path) -> None:
    path = folder / "store"
    session, disk = held_at(path, 3)
    for epoch in (4, 5):
        inserted, deleted = UPDATES[epoch - 2]
        session.apply(inserted, deleted, source="script", batch=epoch)
        assert (session.epoch, state_of(session)) == (epoch, EXPECTED[epoch])
        require_kept(elastalog.Store(path, read_only=True), epoch)
    assert snapshot_epochs(path) == [1], "it is in force only when it has been written"
    assert snapshot_threads() == 1, "no second one is begun"
    disk.gate.set()
    assert is_written(session)
    go_on(session)
    assert (snapshot_epochs(path), journal_epochs(path)) == ([1, 3], [1, 6])
    for epoch in range(1, LAST + 1):
        assert state_of(session.at(epoch)) == EXPECTED[epoch]
    assert [entry.epoch for entry in session.log()] == list(range(1, LAST + 1))
    session.close()
    for _ in range(2):
        with elastalog.open(store=path) as session:
            assert session.engine.recovery == ()
            assert (session.epoch, state_of(session)) == (LAST, EXPECTED[LAST])
            assert session.engine.is_applied("script", "5"), "batches of all journals are known"
            assert session.epoch == LAST
    for epoch in range(1, LAST + 1):
        require_kept(elastalog.Store(path, at=epoch), epoch)


def test_closing_waits_for_a_snapshot(folder: Path) -> None:
    path = folder / "store"
    session, disk = held_at(path, 3)
    threading.Timer(0.1, disk.gate.set).start()
    session.close()
    assert (snapshot_epochs(path), journal_epochs(path)) == ([1, 3], [1, 3])
    require_kept(path, 3)


@pytest.mark.usefixtures("uncollected")
def test_ctrl_c_while_closing_abandons_a_snapshot(folder: Path) -> None:
    path = folder / "store"
    session, disk = held_at(path, 3)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    threading.Timer(0.3, disk.gate.set).start()
    with pytest.raises(KeyboardInterrupt):
        session.close()
    assert snapshot_threads() == 0
    assert snapshot_epochs(path) == [1]
    with elastalog.open(store=path) as session:
        assert session.engine.recovery == ()
        assert not list((path / "facts").glob("*-3.parquet")), "what it had written is removed"
        go_on(session)
    require_kept(path, LAST)


def test_a_snapshot_now_takes_the_place_of_one_in_the_making(folder: Path) -> None:
    path = folder / "store"
    session, disk = held_at(path, 3)
    session.apply(*UPDATES[2], source="script", batch=4)
    threading.Timer(0.1, disk.gate.set).start()
    assert session._history.store is not None
    write_snapshot(session)
    assert (snapshot_epochs(path), journal_epochs(path)) == ([1, 4], [1, 4])
    go_on(session)
    session.close()
    require_kept(path, LAST)


@pytest.mark.parametrize("writes", range(1, 12))
def test_what_goes_wrong_is_said_at_the_next_commit_and_loses_nothing(
    folder: Path, writes: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "store"
    session, disk = held_at(path, 3)
    disk._write = FailingDisk(errno.ENOSPC, writes=writes)._write
    disk.gate.set()
    assert is_written(session)
    said = []
    for _ in range(LAST):
        try:
            go_on(session)
        except elastalog.ElastalogError as error:  # it was the commit's write, or the pointer's
            said.append(error.diagnostics[0].code)
            if said[-1] == "E0809":
                break
    said += [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert any("E0808" in text for text in said)
    epoch = session.epoch
    assert state_of(session) == EXPECTED[epoch]
    session.close()
    with elastalog.open(store=path) as session:
        assert (session.epoch, state_of(session)) == (epoch, EXPECTED[epoch])
        go_on(session)
    assert len(snapshot_epochs(path)) > 1, "a later one succeeds"
    require_kept(path, LAST)


def test_what_goes_wrong_is_said_at_the_latest_when_the_store_is_closed(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session, disk = held_at(folder / "store", 3)
    disk._fsync = FailingDisk(errno.EIO, fsyncs=1)._fsync
    disk.gate.set()
    session.close()
    assert ["E0808" in record.getMessage() for record in caplog.records] == [True]
    require_kept(folder / "store", 3)


def test_a_damaged_snapshot_before_is_said_and_not_built_upon(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = folder / "store"
    with create(path, journal_epochs=100) as session:
        (file,) = (path / "facts").glob("*-edge-1.parquet")
        file.write_bytes(file.read_bytes()[:-1] + b"x")
        for inserted, deleted in UPDATES:
            session.apply(inserted, deleted)
        coming = session._history.durable.store.begin_snapshot(session._dictionary)
        coming.start()
    assert [file.name in record.getMessage() for record in caplog.records] == [True]
    assert snapshot_epochs(path) == [1]


def test_damage_between_a_snapshot_and_the_last_journal_is_noticed(folder: Path) -> None:
    path = folder / "store"
    session, disk = held_at(path, 3)
    session.apply(*UPDATES[2])
    disk.gate.set()
    assert is_written(session)
    session.apply(*UPDATES[3])
    session._history.store.abandon_snapshot()  # the next one
    session.close()
    assert journal_epochs(path) == [1, 5]
    assert snapshot_epochs(path) == [1, 3]
    journal = path / "journal-1.log"
    data = journal.read_bytes()
    for size in (len(data) - 1, len(data) - 40, 200):
        journal.write_bytes(data[:size])
        with pytest.raises(StoreDamaged, match=r"journal-1\.log"):
            elastalog.open(store=path)
    journal.write_bytes(data[:-40] + bytes([data[-40] ^ 1]) + data[-39:])
    with pytest.raises(StoreDamaged, match=r"journal-1\.log"):
        elastalog.open(store=path)
    journal.unlink()
    with pytest.raises(elastalog.ElastalogError, match="E0806"):
        elastalog.open(store=path)
    journal.write_bytes(data)
    require_kept(path, 5)


def test_history_reaches_back_as_far_as_without_threads(folder: Path) -> None:
    """Snapshots that take a while lie in the middle of journals."""
    path = folder / "store"
    program = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\npath(x, y) :- edge(x, y)."
    session = elastalog.open(program, facts={"edge": [(1, 2)]})
    session._history.keep_in(path, Options(journal_epochs=3, retention=20))
    states = {1: state_of(session)}
    for number in range(2, 80):
        session.apply({"edge": [(number, number + 1)]}, {"edge": [(number - 1, number)]} if number % 3 else {})
        states[session.epoch] = state_of(session)
        if number % 5 == 0:
            time.sleep(0.01)
    first = session.log()[0].epoch
    assert first <= 79 - 20
    for epoch in range(first, 80):
        assert state_of(session.at(epoch)) == states[epoch]
    session.close()
    assert check_files(path)[0] == []
    with elastalog.open(store=path) as session:
        assert state_of(session) == states[79]
    manifest = read_manifest(path)
    assert {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()} == manifest.names()


def test_a_crash_long_after_a_snapshot_was_begun(folder: Path) -> None:
    path = folder / "store"

    def work(tell: Callable[[int], None]) -> None:
        session, _ = held_at(path, 3)
        go_on(session, tell)
        os._exit(0)

    assert in_child(work) == (0, LAST)
    assert snapshot_epochs(path) == [1]
    check_continuation(path, check_recovery(path, LAST))


def test_files_that_a_snapshot_replaces_stay_until_it_is_in_force(folder: Path) -> None:
    path = folder / "store"
    session, disk = held_at(path, 3, retention=0)
    before = set(files_of(path))
    disk.gate.set()
    assert is_written(session)
    assert before <= set(files_of(path))
    session.apply(*UPDATES[2])
    assert snapshot_epochs(path) == [3]
    assert before <= set(files_of(path)), "a commit waits for no file to be removed"
    session.close()
    assert set(files_of(path)).isdisjoint({"manifest-1.json", "facts/0-edge-1.parquet"})


def test_what_a_snapshot_has_replaced_goes_with_the_next(folder: Path) -> None:
    path = folder / "store"
    session, disk = held_at(path, 3, retention=0)
    disk.gate.set()
    assert is_written(session)
    for inserted, deleted in UPDATES[2:]:
        session.apply(inserted, deleted)
        if session._history.store._coming is not None:
            assert is_written(session)
    assert set(files_of(path)).isdisjoint({"manifest-1.json", "facts/0-edge-1.parquet"})
    session.close()


def test_the_switch_interval_of_the_program_stays(folder: Path) -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.02)
    try:
        session, disk = held_at(folder / "store", 3)
        assert sys.getswitchinterval() < 0.001
        disk.gate.set()
        session.close()
        deadline = time.monotonic() + 60
        while sys.getswitchinterval() != pytest.approx(0.02) and time.monotonic() < deadline:
            time.sleep(0.01)  # the thread ends after what it has written is told
        assert sys.getswitchinterval() == pytest.approx(0.02)
    finally:
        sys.setswitchinterval(usual)
