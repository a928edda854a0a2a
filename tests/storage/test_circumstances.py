# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""Clocks that go backwards, file systems without locks, stores that were copied, disks that fill up at any write."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation import epochs
from elastalog.storage import administration, store
from tests.storage.disks import FailingDisk
from tests.storage.scripted import FACTS, LAST, PROGRAM, create, expected_states, files_of, go_on, lived, state_of


def codes(error: ElastalogError) -> list[str]:
    return [found.code for found in error.diagnostics]


# --- clocks --------------------------------------------------------------------------------------------------------


def test_a_clock_that_goes_backwards_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs 1 to 4 at 100, 300, 200 and 400 seconds: until 300 the first was in force."""
    times = iter([100.0, 300.0, 200.0, 400.0])
    record = epochs.EpochRecord
    monkeypatch.setattr(
        epochs, "EpochRecord", lambda *given, **named: replace(record(*given, **named), time=next(times))
    )
    with create(tmp_path / "store") as session:
        for number in range(3):
            session.apply({"edge": [(7, number)]})
        assert [entry.timestamp for entry in session.log()] == [100.0, 300.0, 200.0, 400.0]

        def at(seconds: int) -> int:
            return session.engine.epoch_at(datetime.fromtimestamp(seconds, UTC))

        assert [at(100), at(250), at(299), at(300), at(399), at(400), at(9000)] == [1, 1, 1, 3, 3, 4, 4]
        with pytest.raises(ElastalogError):
            at(99)
        assert set(session.at(datetime.fromtimestamp(250, UTC))["edge"]) == set(FACTS["edge"])


def test_retention_counts_epochs_whatever_the_clock_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(1000, 0, -10))
    record = epochs.EpochRecord
    monkeypatch.setattr(
        epochs, "EpochRecord", lambda *given, **named: replace(record(*given, **named), time=next(times))
    )
    path = lived(tmp_path / "store", journal_epochs=1, retention=1)
    with elastalog.open(store=path) as session:
        assert session.epoch == LAST
        assert session.log()[0].epoch > 1
        assert [entry.epoch for entry in session.log()] == list(range(session.log()[0].epoch, LAST + 1))


# --- locks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    path = lived(tmp_path / "store")

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    for attempt in (lambda: elastalog.open(store=path), lambda: create(tmp_path / "other")):
        with pytest.raises(ElastalogError) as raised:
            attempt()
        assert codes(raised.value) == ["E0829"]
    with elastalog.open(store=elastalog.Store(path, read_only=True)) as session:
        assert state_of(session) == expected_states()[LAST]
    monkeypatch.undo()
    with elastalog.open(store=path) as session:
        assert state_of(session) == expected_states()[LAST]
    with create(tmp_path / "other") as session:  # what was begun there is done again
        assert session.epoch == 1


@pytest.mark.parametrize("journal_epochs", [1, 1000])
def test_nothing_is_made_over_a_store_that_has_lost_its_pointer(tmp_path: Path, journal_epochs: int) -> None:
    """Whether it has had snapshots, or a journal alone."""
    path = lived(tmp_path / "store", journal_epochs=journal_epochs, retention=1)
    pointer = (path / "CURRENT").read_bytes()
    (path / "CURRENT").unlink()
    before = files_of(path)
    with pytest.raises(ElastalogError) as raised:
        create(path)
    assert codes(raised.value) == ["E0806"]
    assert files_of(path) == before
    (path / "CURRENT").write_bytes(pointer)
    with elastalog.open(store=path) as session:
        assert state_of(session) == expected_states()[LAST]


def test_a_session_whose_lock_was_removed_writes_no_more(tmp_path: Path) -> None:
    path = lived(tmp_path / "store")
    with elastalog.open(store=path) as first:
        (path / "LOCK").unlink()
        with elastalog.open(store=path) as second:
            second.apply({"edge": [(20, 1)]})
            with pytest.raises(ElastalogError) as raised:
                first.apply({"edge": [(30, 1)]})
            assert codes(raised.value) == ["E0809"]
            assert state_of(first) == expected_states()[LAST]
    with elastalog.open(store=path) as session:
        assert session.epoch == LAST + 1
        assert (20, 1) in session["edge"]
        assert (30, 1) not in session["edge"]


def test_a_store_that_was_removed_acknowledges_nothing(tmp_path: Path) -> None:
    path = lived(tmp_path / "store")
    with elastalog.open(store=path) as session:
        shutil.move(path, tmp_path / "moved")
        session.apply({"edge": [(20, 1)]})
        with elastalog.open(store=elastalog.Store(tmp_path / "moved", read_only=True)) as reader:
            assert (20, 1) in reader["edge"]
        shutil.rmtree(tmp_path / "moved")
        with pytest.raises(ElastalogError) as raised:
            session.apply({"edge": [(20, 2)]})
        assert codes(raised.value) == ["E0809"]


# --- copies --------------------------------------------------------------------------------------------------------


def test_a_copied_store_is_used_beside_the_first(tmp_path: Path) -> None:
    path = lived(tmp_path / "store")
    shutil.copytree(path, tmp_path / "copy")
    with elastalog.open(store=path) as one, elastalog.open(store=tmp_path / "copy") as other:
        for number in range(4):
            one.apply({"edge": [(20, number)]})
            other.apply({"edge": [(30, number)]})
    for folder, mine, theirs in ((path, 20, 30), (tmp_path / "copy", 30, 20)):
        with elastalog.open(store=folder) as session:
            assert session.epoch == LAST + 4
            assert {(mine, n) for n in range(4)} <= set(session["edge"])
            assert not {(theirs, n) for n in range(4)} & set(session["edge"])
            assert session.verify().is_exact


def test_files_of_a_copy_are_not_taken_for_those_of_the_first(tmp_path: Path) -> None:
    """Both went on from the same epoch: the journal of one does not fit what the other has written since."""
    path = lived(tmp_path / "store", journal_epochs=100)
    shutil.copytree(path, tmp_path / "copy")
    for folder, number in ((path, 20), (tmp_path / "copy", 30)):
        with elastalog.open(store=folder) as session:
            session.apply({"edge": [(number, number)]})
            session._history.store.write_snapshot(session._materialisation.dictionary, session._backend.states.of)  # type: ignore[union-attr]
    sealed = sorted(path.glob("journal-*.log"))[0]
    shutil.copy(tmp_path / "copy" / sealed.name, sealed)
    with elastalog.open(store=elastalog.Store(path, read_only=True)) as session:
        assert (20, 20) in session["edge"]
        assert (30, 30) not in session["edge"]
    shutil.copy(tmp_path / "copy" / "CURRENT", path / "CURRENT")
    with pytest.raises(ElastalogError) as raised:
        elastalog.open(store=path)
    assert codes(raised.value) == ["E0805"]


# --- full disks ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["writes", "fsyncs"])
def test_a_disk_that_fills_up_at_any_write_of_a_new_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Until it is made there is no store; afterwards, with room again, it is made in the same place."""
    made = 0
    for number in range(1, 60):
        disk = FailingDisk(errno.ENOSPC, **{moment: number})
        path = tmp_path / f"store-{number}"
        with monkeypatch.context() as patch:
            patch.setattr(store, "FileSystem", lambda disk=disk: disk)
            try:
                create(path).close()
                made += 1
            except ElastalogError as error:
                assert codes(error) == ["E0808"]
            else:
                break
        # What was said to have failed may be there all the same, when its last flush was refused.
        is_there = (path / "CURRENT").exists()
        with elastalog.open(store=path) if is_there else elastalog.open(PROGRAM, FACTS, store=path) as db:
            go_on(db)
            assert state_of(db) == expected_states()[LAST]
    assert made == 1
    assert number > 10


@pytest.mark.parametrize("moment", ["writes", "fsyncs"])
def test_a_disk_that_fills_up_while_a_store_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = lived(tmp_path / "store")
    for number in range(1, 60):
        copy = tmp_path / f"copy-{number}"
        disk = FailingDisk(errno.ENOSPC, **{moment: number})
        with elastalog.open(store=elastalog.Store(path, read_only=True)) as session, monkeypatch.context() as patch:
            patch.setattr(administration, "FileSystem", lambda disk=disk: disk)
            try:
                session.backup(copy)
            except ElastalogError as error:
                assert codes(error) == ["E0808"]
            else:
                break
    assert number > 10
    with elastalog.open(store=copy) as session:
        assert state_of(session) == expected_states()[LAST]
