"""A scripted life of a small store, and what it must hold after every epoch.

The program has recursion, negation and an aggregate, so that hidden relations are stored too; the updates bring new
symbols and wide numbers. Snapshots are due every other epoch and history is short, so that every kind of write
happens.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import elastalog
from elastalog.session import Session
from elastalog.storage.manifest import LOCK, Options

PROGRAM = """
.decl edge(x: number, y: number)
.decl label(x: number, text: symbol)
.decl path(x: number, y: number)
.decl reached(text: symbol, paths: number)
.decl lone(text: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
reached(text, n) :- label(x, text), n = count : { path(x, _) }.
lone(text) :- label(x, text), !path(x, _).
"""

FACTS = {"edge": [(1, 2), (2, 3)], "label": [(1, "one"), (3, "three")]}

Rows = dict[str, list[tuple[Any, ...]]]

UPDATES: tuple[tuple[Rows, Rows], ...] = (
    ({"edge": [(3, 4), (4, 1)], "label": [(10**12, "far away")]}, {}),
    ({}, {"edge": [(1, 2)]}),
    ({"label": [(4, 'four\n\t"ü"')], "edge": [(10**12, 2)]}, {"label": [(3, "three")]}),
    ({"edge": [(1, 2), (5, 6)]}, {"edge": [(2, 3), (4, 1)]}),
    ({"edge": [(6, 5)], "label": [(-(10**15), "below")]}, {"edge": [(7, 7)]}),
)
LAST = 1 + len(UPDATES)


State = dict[str, list[tuple[Any, ...]]]


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder that is removed at the end, in memory where there is a file system that is."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def state_of(session: Session) -> State:
    """All facts with their levels and counts."""
    return {
        name: sorted(zip(*session[name].to_arrow(annotations=True).to_pydict().values(), strict=True))
        for name in session
    }


def expected_states() -> dict[int, State]:
    """The state at every epoch, from a session without a store."""
    session = elastalog.open(PROGRAM, facts=FACTS)
    states = {1: state_of(session)}
    for inserted, deleted in UPDATES:
        session.apply(inserted, deleted)
        states[session.epoch] = state_of(session)
    return states


def create(path: Path, **options: Any) -> Session:
    """The store at epoch 1."""
    session = elastalog.open(PROGRAM, facts=FACTS)
    chosen = {"journal_epochs": 2, "retention": 3, **options}
    session._history.keep_in(path, Options(**chosen))
    return session


def lived(path: Path, **options: Any) -> Path:
    """A store at the last epoch, closed."""
    with create(path, **options) as session:
        go_on(session)
    return path


def go_on(session: Session, committed: Callable[[int], None] = lambda epoch: None) -> None:
    """The updates that remain, each with its batch."""
    for number, (inserted, deleted) in enumerate(UPDATES, 2):
        if number > session.epoch:
            session.apply(inserted, deleted, source="script", batch=number)
            committed(session.epoch)


def files_of(path: Path) -> dict[str, bytes]:
    """The content of every file but the lock, which names the last process that held it."""
    return {
        found.relative_to(path).as_posix(): found.read_bytes()
        for found in sorted(path.rglob("*"))
        if found.is_file() and found.name != LOCK
    }


def in_child(work: Callable[[Callable[[int], None]], None]) -> tuple[int, int]:
    """Does work in a forked process, which tells which epochs it committed. Returns how it ended and the last epoch
    it told of."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 70
        try:
            os.close(reading)
            work(lambda epoch: os.write(writing, bytes([epoch])) and None)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    told = b"".join(_all_of(reading))
    _, status = os.waitpid(child, 0)
    return status, told[-1] if told else 0


def _all_of(descriptor: int) -> Iterator[bytes]:
    while data := os.read(descriptor, 4096):
        yield data
    os.close(descriptor)


def write_snapshot(db: Session) -> None:
    """Writes the present epoch of a session as a snapshot, now."""
    store = db._history.store
    assert store is not None
    store.abandon_snapshot()
    coming = store.begin_snapshot(db._dictionary)
    assert coming is not None
    coming.run()
    store.finish_snapshot()
