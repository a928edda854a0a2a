# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""A store through kill -9, damage, full disks and forks: epoch n - 1 or n, never a mixture, never a wrong answer."""

from __future__ import annotations

import errno
import os
import signal
import time
from functools import cache
from pathlib import Path
from random import Random

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.storage.disks import FailingDisk, use
from tests.storage.scripted import (
    LAST,
    UPDATES,
    State,
    create,
    expected_states,
    folder_in_memory,
    go_on,
    lived,
    state_of,
)


@cache
def expected() -> dict[int, State]:
    return expected_states()


def _require_whole(path: Path, least: int) -> None:
    """A store opens at an epoch that was committed, and goes on to the end."""
    with elastalog.open(store=path) as session:
        assert session.epoch >= least
        assert state_of(session) == expected()[session.epoch]
        go_on(session)
        assert state_of(session) == expected()[LAST]


def kills(seed: int) -> None:
    """kill -9 at a random instant of a life: nothing that was told is lost."""
    random = Random(seed)
    expected()
    with folder_in_memory() as folder:
        create(folder / "store").close()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                with elastalog.open(store=folder / "store") as session:
                    os.write(writing, b"\1")
                    go_on(session, lambda epoch: os.write(writing, bytes([epoch])) and None)
            finally:
                os._exit(0)
        os.close(writing)
        told = os.read(reading, 1)
        time.sleep(random.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(reading, 64):
            told += more
        os.close(reading)
        _require_whole(folder / "store", told[-1])


def damage(seed: int) -> None:
    """A byte of a file is another: the store says so, or answers as before."""
    random = Random(seed)
    with folder_in_memory() as folder:
        path = lived(folder / "store")
        files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != "LOCK")
        file = random.choice(files)
        data = bytearray(file.read_bytes())
        match random.randrange(3):
            case 0 if data:
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            case 1:
                del data[random.randrange(len(data) + 1) :]
            case _:
                data[random.randrange(len(data) + 1) : 0] = bytes(random.randrange(1, 9))
        file.write_bytes(data)
        try:
            with elastalog.open(store=path, read_only=random.random() < 0.5) as session:
                assert state_of(session) == expected()[session.epoch]
                assert session.epoch == LAST or session.recovery
        except ElastalogError as error:
            assert error.diagnostics[0].code in ("E0801", "E0803", "E0805", "E0806"), error


def full_disk(seed: int) -> None:
    """The n-th write, or flush, fails: the update is refused or done, and the store is whole."""
    random = Random(seed)
    with folder_in_memory() as folder:
        with create(folder / "store") as session:
            code = random.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT))
            moment = random.choice(("writes", "fsyncs"))
            use(session, FailingDisk(code, **{moment: random.randrange(1, 40)}))
            for _ in range(LAST):
                try:
                    go_on(session)
                except ElastalogError as error:
                    assert error.diagnostics[0].code in ("E0808", "E0809"), error
                assert state_of(session) == expected()[session.epoch]
            epoch = session.epoch
        _require_whole(folder / "store", epoch)


def forks(seed: int) -> None:
    """A child forked at a random epoch tries to write, and to close: the parent's epochs are what they would be."""
    random = Random(seed)
    with folder_in_memory() as folder:
        with create(folder / "store") as session:
            for number, (inserted, deleted) in enumerate(UPDATES, 2):
                if random.random() < 0.5:
                    child = os.fork()
                    if not child:
                        code = 1
                        try:
                            session.apply({"edge": [(99, number)]})
                        except ElastalogError as error:
                            session.close()
                            code = 0 if error.diagnostics[0].code == "E0819" else 2
                        finally:
                            os._exit(code)
                    assert os.waitpid(child, 0)[1] == 0
                session.apply(inserted, deleted)
                assert state_of(session) == expected()[number]
        _require_whole(folder / "store", LAST)
