"""Promise 2: a crash at any instant leaves epoch n-1 or n, never a mixture."""

# ruff: noqa: PT017 - many attempts, most of which fail
from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import elastalog
from tests.failpoints import EXIT_CODE, POINTS, PURPOSES, recording, stop_at
from tests.storage.expecting import EXPECTED, require_kept
from tests.storage.scripted import LAST, create, files_of, go_on, in_child, lived, state_of


def life(path: Path, committed: Callable[[int], None]) -> None:
    with create(path) as session:
        committed(session.epoch)
        go_on(session, committed)


def check_recovery(path: Path, committed: int) -> int:
    """Opens a store after a crash; returns its epoch, 0 if there is no store yet."""
    try:
        session = elastalog.open(store=path)
    except elastalog.ElastalogError as error:
        assert committed == 0, error
        assert {d.code for d in error.diagnostics} == {"E0801"}
        return 0
    with session:
        epoch = session.epoch
        assert epoch in (committed, committed + 1)
        assert state_of(session) == EXPECTED[epoch]
        discarded = session.engine.recovery
        assert all(str(epoch) in diagnostic.message for diagnostic in discarded)
    files = files_of(path)
    with elastalog.open(store=path) as session:
        assert session.engine.recovery == ()
        assert state_of(session) == EXPECTED[epoch]
    assert files_of(path) == files, "a second recovery must change nothing"
    return epoch


def check_continuation(path: Path, epoch: int) -> None:
    """The store lives on after a crash, and ends where it would have ended."""
    with create(path) if epoch == 0 else elastalog.open(store=path) as session:
        go_on(session)
        assert session.epoch == LAST
    require_kept(path, LAST)


@pytest.mark.slow
@pytest.mark.parametrize("share", [15, pytest.param(1, marks=pytest.mark.long)], ids=["some", "every one"])
def test_a_crash_at_every_failpoint_leaves_the_epoch_before_or_after(
    folder: Path, in_background: bool, share: int
) -> None:
    """Every one of them at its first time, or always. Beside a thread it is not determined which comes when; how many
    there are is, nearly."""
    ends = {EXIT_CODE, 0} if in_background else {EXIT_CODE}
    with recording() as reached:
        life(folder / "recorded", lambda epoch: None)
    seen = set(reached)
    assert {name.split(".")[0] for name in seen} == {*PURPOSES, "folder", "garbage"}
    assert not set(POINTS) - seen - {"journal.truncate.before", "journal.truncate.after"}
    epochs = set()
    continued: set[tuple[int, frozenset[str]]] = set()
    first = {reached.index(name) + 1 for name in seen}
    for number in sorted({*first, *range(1, len(reached) + 1, share)}):
        path = folder / f"stopped-{number}"

        def work(tell: Callable[[int], None], path: Path = path, number: int = number) -> None:
            with stop_at(number, action="exit"):
                life(path, tell)

        status, committed = in_child(work)
        assert os.waitstatus_to_exitcode(status) in ends, reached[number - 1]
        epoch = check_recovery(path, committed)
        epochs.add(epoch)
        files = frozenset(files_of(path)) if path.exists() else frozenset()
        if (epoch, files) not in continued:
            continued.add((epoch, files))
            check_continuation(path, epoch)
        shutil.rmtree(path)
    every = set(range(LAST + 1))
    assert epochs == every if share == 1 else {0, 1} < epochs <= every


def test_a_crash_at_every_failpoint_of_a_recovery_changes_nothing(folder: Path) -> None:
    # A torn record; a snapshot that is written but not in force; files that a snapshot has made superfluous.
    for name, occurrence in (("journal.write.middle", 5), ("pointer.rename.before", 2), ("garbage.remove.before", 1)):
        shutil.rmtree(folder / "torn", ignore_errors=True)

        def stopped(tell: Callable[[int], None], name: str = name, occurrence: int = occurrence) -> None:
            with stop_at(occurrence, name, "exit"):
                life(folder / "torn", tell)

        status, committed = in_child(stopped)
        assert os.waitstatus_to_exitcode(status) == EXIT_CODE
        shutil.copytree(folder / "torn", folder / "recorded")
        with recording() as reached:
            elastalog.open(store=folder / "recorded").close()
        assert reached, "there must be something to repair"
        shutil.rmtree(folder / "recorded")
        for number in range(1, len(reached) + 1):
            path = folder / "again"
            shutil.copytree(folder / "torn", path)

            def recover(tell: Callable[[int], None], path: Path = path, number: int = number) -> None:
                with stop_at(number, action="exit"):
                    elastalog.open(store=path)

            status, _ = in_child(recover)
            assert os.waitstatus_to_exitcode(status) == EXIT_CODE
            check_recovery(path, committed)
            shutil.rmtree(path)


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(10, 60))])
def test_kill_9_at_a_random_time(folder: Path, seed: int, in_background: bool) -> None:
    path = folder / "store"
    delay = random.Random(seed).uniform(0.001, 0.06)

    def work(tell: Callable[[int], None]) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if not os.fork():
            time.sleep(delay)
            os.kill(os.getppid(), signal.SIGKILL)
            os._exit(0)
        life(path, tell)

    _, committed = in_child(work)
    if path.exists() and any(path.iterdir()):
        check_continuation(path, check_recovery(path, committed))


def test_half_of_a_record_is_cut_off(folder: Path) -> None:
    store = lived(folder / "store")

    def work(tell: Callable[[int], None]) -> None:
        with stop_at(1, "journal.write.middle", "exit"):
            elastalog.open(store=store).apply({"edge": [(9, 9)]})

    status, _ = in_child(work)
    assert os.waitstatus_to_exitcode(status) == EXIT_CODE
    with elastalog.open(store=store) as session:
        assert [d.code for d in session.engine.recovery] == ["E0816"]
        assert state_of(session) == EXPECTED[LAST]
