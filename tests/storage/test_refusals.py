"""Disks that refuse, other writers, Ctrl-C: a clear error, the state unchanged."""

# ruff: noqa: PT017 - many attempts, most of which fail
from __future__ import annotations

import errno
import gc
import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import elastalog
from elastalog.session import Session
from elastalog.storage.filesystem import FileSystem
from elastalog.storage.store import Store
from tests.failpoints import reaching, recording
from tests.refusals import refused
from tests.storage.disks import FailingDisk, SlowDisk, use
from tests.storage.expecting import EXPECTED, require_kept
from tests.storage.scripted import LAST, UPDATES, create, files_of, go_on, in_child, lived, state_of

MOMENTS = ("write.before", "write.middle", "write.after", "fsync.before", "fsync.after")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("moment", [{"writes": 1}, {"fsyncs": 1}])
def test_a_commit_that_cannot_be_written_changes_nothing(folder: Path, code: int, moment: dict[str, int]) -> None:
    with create(folder / "store") as session:
        before = files_of(folder / "store")
        use(session, FailingDisk(code, **moment))
        with refused("E0808", told=os.strerror(code).lower()):
            session.apply({"edge": [(3, 4)]}, source="s", batch=1)
        assert (session.epoch, state_of(session)) == (1, EXPECTED[1])
        assert files_of(folder / "store") == before
        go_on(session)
        assert state_of(session) == EXPECTED[LAST]
    require_kept(folder / "store", LAST)


def test_a_store_that_cannot_undo_a_failed_write_asks_to_be_opened_again(folder: Path) -> None:
    class BrokenDisk(FailingDisk):
        def truncate(self, descriptor: int, size: int) -> None:
            raise OSError(errno.EIO, "input/output error")

    with create(folder / "store") as session:
        use(session, BrokenDisk(errno.EIO, writes=1))
        with pytest.raises(elastalog.ElastalogError, match="E0808"):
            session.apply({"edge": [(3, 4)]})
        use(session, FileSystem())
        with pytest.raises(elastalog.ElastalogError, match="E0809"):
            session.apply({"edge": [(3, 4)]})
        assert (session.epoch, state_of(session)) == (1, EXPECTED[1])
    with elastalog.open(store=folder / "store") as session:
        assert [d.code for d in session.engine.recovery] == ["E0816"]
        go_on(session)
        assert state_of(session) == EXPECTED[LAST]


def test_a_snapshot_that_cannot_be_written_loses_nothing(folder: Path) -> None:
    """Whichever of its writes fails: the epoch is committed, the journal goes on, a later snapshot succeeds."""
    for number in range(1, 100):
        path, disk = folder / f"store-{number}", FailingDisk(errno.ENOSPC, writes=number)
        with create(path) as session:
            use(session, disk)
            for _ in range(LAST):
                try:
                    go_on(session)
                except elastalog.ElastalogError as error:
                    if error.diagnostics[0].code == "E0809":  # the pointer may have moved
                        break
            epoch, state = session.epoch, state_of(session)
            assert state == EXPECTED[epoch]
        with elastalog.open(store=path) as session:
            assert (session.epoch, state_of(session)) == (epoch, state)
            go_on(session)
        require_kept(elastalog.Store(path, read_only=True), LAST)
        if disk.writes > 0:  # there are no more
            break
    assert 10 < number < 99


def test_initialisation_on_a_full_disk_leaves_no_store(folder: Path) -> None:
    session = elastalog.open(".decl a(x: number)\na(1).")
    for number in range(1, 7):
        disk = FailingDisk(errno.ENOSPC, writes=number)
        with pytest.raises(elastalog.ElastalogError, match="no space left on device"):
            _create(session, folder / "store", disk)
        with pytest.raises(elastalog.ElastalogError, match="E0801"):
            elastalog.open(store=folder / "store")
    with elastalog.open(".decl a(x: number)\na(1).", store=folder / "store") as session:
        assert list(session["a"]) == [(1,)]


def _create(session: Session, path: Path, disk: FileSystem) -> None:
    from elastalog.evaluation.stored import layout_of, log_entry
    from elastalog.storage.manifest import Options

    backend = session._backend
    Store.create(
        path, session.program.tree.source.text, Options(), layout_of(backend.program), session._dictionary,
        backend.states.of, log_entry(session._history.records[0], 1), {}, disk,
    )  # fmt: skip


def test_short_writes_are_continued(folder: Path) -> None:
    with create(folder / "store") as session:
        use(session, SlowDisk())
        go_on(session)
    with elastalog.open(store=folder / "store") as session:
        assert session.engine.recovery == ()
        assert state_of(session) == EXPECTED[LAST]


def test_a_read_only_folder_can_be_read_and_not_written(folder: Path) -> None:
    store = lived(folder / "store")
    folder.chmod(0o755)

    def open_it(tell: Callable[[int], None]) -> None:
        if os.geteuid() == 0:
            os.setuid(65534)  # root may write everywhere
        try:
            elastalog.open(store=store)
        except elastalog.ElastalogError as error:
            assert [d.code for d in error.diagnostics] == ["E0808"]
            assert "permission denied" in str(error)
            with elastalog.open(store=elastalog.Store(store, read_only=True)) as session:
                tell(session.epoch if state_of(session) == EXPECTED[LAST] else 0)

    for path in (store, *store.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    files = files_of(store)
    assert in_child(open_it) == (0, LAST)
    assert files_of(store) == files
    store.chmod(0o755)


def test_a_second_writer_is_refused_by_the_name_of_the_first(folder: Path) -> None:
    store = lived(folder / "store")
    with elastalog.open(store=store) as session:
        with pytest.raises(elastalog.ElastalogError, match="written by this process, in another session"):
            elastalog.open(store=store)

        def second(tell: Callable[[int], None]) -> None:
            try:
                elastalog.open(store=store)
            except elastalog.ElastalogError as error:
                tell(1 if f"process {os.getppid()}" in str(error) and "E0804" in str(error) else 2)

        assert in_child(second) == (0, 1)
        session.apply({"edge": [(8, 9)]})
    with elastalog.open(store=store) as session:
        assert session.epoch == LAST + 1


def forget(sessions: list[Session]) -> None:
    sessions.clear()
    gc.collect()


def test_a_session_that_is_forgotten_says_so_and_gives_up_its_lock(folder: Path) -> None:
    sessions = [create(folder / "store")]
    sessions[0].apply({"edge": [(3, 4)]})
    with pytest.warns(ResourceWarning, match=r"the session of the store `.*store` was not closed"):
        forget(sessions)
    sessions.append(elastalog.open(store=folder / "store"))
    assert sessions[0].epoch == 2
    sessions[0].close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forget(sessions)


def test_a_forgotten_session_does_not_keep_its_own_process_out(folder: Path) -> None:
    gc.disable()
    try:
        session = create(folder / "store")
        del session
        with pytest.warns(ResourceWarning), elastalog.open(store=folder / "store") as session:
            assert session.epoch == 1
    finally:
        gc.enable()


def test_a_lock_of_a_dead_process_does_not_hold(folder: Path) -> None:
    store = lived(folder / "store")

    def die(tell: Callable[[int], None]) -> None:
        session = elastalog.open(store=store)
        tell(session.epoch)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die)[1] == LAST
    require_kept(store, LAST)


def test_readers_see_the_last_committed_epoch_while_a_writer_goes_on(folder: Path) -> None:
    path = folder / "store"
    with create(path) as writer:
        with elastalog.open(store=elastalog.Store(path, read_only=True)) as reader:
            assert state_of(reader) == EXPECTED[1]
            go_on(writer)
            assert state_of(reader) == EXPECTED[1]
            with pytest.raises(elastalog.ElastalogError, match="E0814"):
                reader.apply({"edge": [(1, 1)]})
        require_kept(elastalog.Store(path, read_only=True), LAST)


def test_readers_beside_a_busy_writer_always_see_a_committed_epoch(folder: Path, in_background: bool) -> None:
    """Snapshots at every epoch and no history: the files that a reader has been told of are gone a moment later."""
    path = folder / "store"
    create(path, journal_epochs=1, retention=0).close()
    inserted, deleted = {"edge": [(3, 4), (4, 1)]}, {"edge": [(1, 2)]}
    with elastalog.open(store=path) as session:
        even = state_of(session)
        session.apply(inserted, deleted)
        odd = state_of(session)
        session.apply(deleted, inserted)
    stop = folder / "stop"
    writer = os.fork()
    if not writer:
        with elastalog.open(store=path) as session:
            while not stop.exists():
                session.apply(inserted, deleted)
                session.apply(deleted, inserted)
        os._exit(0)
    try:
        seen = []
        for _ in range(60):
            with elastalog.open(store=elastalog.Store(path, read_only=True)) as session:
                seen.append(session.epoch)
                assert state_of(session) == (even if session.epoch % 2 else odd)
        assert seen == sorted(seen)
        assert len(set(seen)) > 5
    finally:
        stop.touch()
        assert os.waitpid(writer, 0)[1] == 0


def test_a_reader_during_an_unfinished_write_sees_the_epoch_before(folder: Path) -> None:
    store = lived(folder / "store", journal_epochs=100)
    journal = store / "journal-1.log"
    data = journal.read_bytes()
    journal.write_bytes(data[:-10])
    require_kept(elastalog.Store(store, read_only=True), LAST - 1)
    assert journal.read_bytes() == data[:-10], "a reader changes nothing"


@pytest.mark.parametrize("point", [f"journal.{moment}" for moment in MOMENTS])
def test_ctrl_c_during_a_commit_waits_for_its_end(folder: Path, point: str) -> None:
    with create(folder / "store", journal_epochs=100) as session:

        def interrupt(name: str) -> None:
            if name == point:
                os.kill(os.getpid(), signal.SIGINT)

        update = session.update("script", 2)
        for name, rows in UPDATES[0][0].items():
            update.insert(name, rows)
        with reaching(interrupt), pytest.raises(KeyboardInterrupt):
            update.commit()
        assert (session.epoch, state_of(session)) == (2, EXPECTED[2])
        assert (update.stats.epoch, update.stats.inserted) == (2, 3)
        assert set(update.changes["label"].inserted) == {(10**12, "far away")}
        assert session.log()[-1].epoch == 2
    with elastalog.open(store=folder / "store") as session:
        assert session.engine.recovery == ()
        assert (session.epoch, state_of(session)) == (2, EXPECTED[2])
        go_on(session)
        assert state_of(session) == EXPECTED[LAST]


def test_ctrl_c_anywhere_in_a_snapshot_loses_nothing(folder: Path) -> None:
    with recording() as reached, create(folder / "recorded") as session:
        del reached[:]
        go_on(session)
        steps = len(reached)  # before those of closing
    for number in range(0, steps, 5):
        path = folder / f"store-{number}"
        with create(path) as session:
            left = [number]

            def interrupt(name: str, left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] == -1:
                    os.kill(os.getpid(), signal.SIGINT)

            with reaching(interrupt), pytest.raises(KeyboardInterrupt):
                go_on(session)
            epoch = session.epoch
            assert state_of(session) == EXPECTED[epoch]
            go_on(session)
            assert state_of(session) == EXPECTED[LAST]
        with elastalog.open(store=path) as session:
            assert session.engine.recovery == ()
            assert state_of(session) == EXPECTED[LAST]


def test_a_store_is_made_only_where_there_is_none(folder: Path) -> None:
    (folder / "full").mkdir()
    (folder / "full" / "letter.txt").write_text("dear")
    with pytest.raises(elastalog.ElastalogError, match="E0802"):
        elastalog.open(".decl a(x: number)", store=folder / "full")
    assert os.listdir(folder / "full") == ["letter.txt"]


def test_options_that_a_store_cannot_have_are_refused(folder: Path) -> None:
    store = lived(folder / "store")
    with pytest.raises(elastalog.ElastalogError, match="E0811"):
        elastalog.open(store=store, levels="global")
    with pytest.raises(elastalog.ElastalogError, match="E0811"):
        elastalog.open(store=store, strategy="recompute")
    with pytest.raises(elastalog.ElastalogError, match="E0818"):
        elastalog.open()
