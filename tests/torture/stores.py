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
from elastalog.storage.store import Store
from tests.storage.disks import FailingDisk, use
from tests.storage.power import Image, put
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
from tests.torture.power import state_in


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


@cache
def expected_digests() -> dict[int, bytes]:
    """What a store holds at every epoch, in short."""
    found: dict[int, bytes] = {}
    with folder_in_memory() as folder, create(folder / "store") as session:
        found[1] = state_in(Store.open(folder / "store", read_only=True))
        go_on(session, lambda epoch: found.update({epoch: state_in(Store.open(folder / "store", read_only=True))}))
    return found


@cache
def image_of(name: str) -> tuple[Image, dict[int, bytes], int]:
    """A store that has lived in one of several ways, what it holds at its last epoch, and which that is."""
    with folder_in_memory() as folder:
        path = folder / "store"
        match name:
            case "new":
                create(path).close()
            case "long journal":
                lived(path, journal_epochs=100)
            case "many snapshots":
                lived(path, journal_epochs=1, retention=100)
            case "other rules":
                with create(path, journal_epochs=3) as session:
                    session.change_rules("lone(text) :- label(x, text), edge(x, x).", [])
                    go_on(session)
                    session.change_rules("", ["lone(text) :- label(x, text), edge(x, x)."])
            case _:
                lived(path)
        store = Store.open(path, read_only=True)
        files = {found.relative_to(path).as_posix(): found for found in sorted(path.rglob("*")) if found.name != "LOCK"}
        image = {name: found.read_bytes() if found.is_file() else None for name, found in files.items()}
        return image, {store.epoch: state_in(store)}, store.epoch


def kills(seed: int) -> int:
    """kill -9 at random instants of a life, opened again after each: nothing that was told is lost."""
    random = Random(seed)
    number = 0
    with folder_in_memory() as folder:
        put(image_of("new")[0], folder / "store")
        epoch = 1
        while epoch < LAST and number < KILLS:
            told = killed(folder / "store", random.randrange(3), random.random() * 0.02)
            number += 1
            store = Store.open(folder / "store")
            assert store.epoch >= max(told, epoch)
            assert state_in(store) == expected_digests()[store.epoch]
            epoch = store.epoch
            store.close()
        if random.random() < 0.1:
            _require_whole(folder / "store", epoch)
    return number


KILLS = 12
"""Most kills of one life."""


def killed(path: Path, epochs: int, seconds: float) -> int:
    """Goes on with a life in another process, and ends it so long after it has told of some epochs. Returns the last
    that it told of."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            with elastalog.open(store=path) as session:
                os.write(writing, b"\1")
                go_on(session, lambda epoch: os.write(writing, bytes([epoch])) and None)
        finally:
            os._exit(0)
    os.close(writing)
    told = os.read(reading, 1)
    while len(told) <= epochs and (more := os.read(reading, 1)):
        told += more
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 64):
        told += more
    os.close(reading)
    return told[-1]


DAMAGES = 10
"""How many stores one trial damages."""


def damage(seed: int) -> int:
    """Some bytes of a file are others: the store says so, or answers as before."""
    random = Random(seed)
    image, held, last = image_of(random.choice(("lived", "long journal", "many snapshots", "other rules")))
    for _ in range(DAMAGES):
        with folder_in_memory() as folder:
            path = folder / "store"
            name = random.choice([name for name, content in image.items() if content is not None])
            content = image[name]
            assert content is not None
            put({**image, name: _damaged(random, content)}, path)
            try:
                store = Store.open(path, read_only=random.random() < 0.5)
                found, epoch, discarded = state_in(store), store.epoch, store.discarded
                store.close()
                assert epoch == last or discarded, (name, epoch)
                assert epoch != last or found == held[last], name
                if random.random() < 0.05:
                    with elastalog.open(store=path) as session:
                        assert session.verify().is_exact
            except ElastalogError as error:
                assert error.diagnostics[0].code in ("E0801", "E0803", "E0805", "E0806"), error
    return DAMAGES


def _damaged(random: Random, content: bytes) -> bytes:
    data = bytearray(content)
    at = random.randrange(len(data) + 1)
    match random.randrange(5):
        case 0 if data:
            data[at - 1] ^= 1 << random.randrange(8)
        case 1:
            del data[at:]
        case 2:
            data[at:at] = bytes(random.randrange(1, 9))
        case 3:
            data[at : at + 512] = bytes(len(data[at : at + 512]))
        case _:
            other = random.randrange(len(data) + 1)
            data[at : at + 40] = data[other : other + 40]
    return bytes(data)


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
