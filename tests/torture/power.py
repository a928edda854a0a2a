# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""Power failures at every instant of the life of a store, replayed from what was written, flushed and renamed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

import elastalog
from elastalog.backends.rows import merged
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.session import Session
from elastalog.storage.administration import back_up
from elastalog.storage.filesystem import FileEntry, read_checked
from elastalog.storage.state import StoredState
from elastalog.storage.store import Store
from tests.storage.power import Disk, Event, Image, RecordingDisk, digest_of, put, recorded
from tests.storage.scripted import FACTS, PROGRAM, create, folder_in_memory

PATH = Path("kept/here/store")
RULE = "lone(text) :- label(x, text), edge(x, x)."
CUTS = 3
"""Torn images of every instant, beside that with all and that with nothing of what was not flushed."""


def power_cuts(seed: int, kind: type[RecordingDisk] = RecordingDisk) -> int:
    """Every image opens with the last epoch that someone was told of, or with the next one."""
    random = Random(seed)
    with folder_in_memory() as folder:
        (folder / "lived").mkdir()
        with recorded(folder / "lived", kind) as disk:
            expected = live(folder / "lived" / PATH, disk, random)
        READ.clear()
        checked: set[tuple[bytes, int]] = set()
        cuts = 0
        for told, image in images(disk.events, random):
            cuts += 1
            if (key := (digest_of(image), told)) not in checked:
                checked.add(key)
                put(image, folder / "found")
                check(folder / "found" / PATH, told, expected, random)
                shutil.rmtree(folder / "found")
    return cuts


def images(events: list[Event], random: Random) -> Iterator[tuple[int, Image]]:
    """What can be found after each event, with the epoch that someone had been told of."""
    disk = Disk()
    for event in events:
        disk.take(event)
        yield disk.told, disk.without_pending()
        if disk.has_pending:
            yield disk.told, disk.with_pending()
            for _ in range(CUTS):
                yield disk.told, disk.torn(random)


def live(path: Path, disk: RecordingDisk, random: Random) -> dict[int, bytes]:
    """A life of a store; what it holds at every epoch."""
    expected: dict[int, bytes] = {}

    def told(session: Session) -> None:
        disk.tell(session.epoch)
        if session.epoch not in expected:
            expected[session.epoch] = state_in(Store.open(path, read_only=True))

    session = create(path, journal_epochs=random.choice((1, 2, 3)), retention=random.choice((1, 3)))
    told(session)
    for number in range(random.randrange(2, 5)):
        match random.randrange(8):
            case 0:
                session.close()
                session = elastalog.open(store=path)
            case 1:
                session.change_rules(*((RULE, ()) if RULE not in session.program.tree.source.text else ("", [RULE])))
            case 2:
                session.apply({}, {}, source="script", batch=1000 + number)
            case 3:
                session._history.store.keep_epochs(random.choice((1, 2, 4)))
            case 4 if not (path.parent / "copy").exists():
                back_up(path, path.parent / "copy")
            case _:
                text = random.choice(("new", "more", "x" * 9000)) + str(number)
                edges = [(random.randrange(5), random.randrange(5)) for _ in range(random.choice((1, 3)))]
                session.apply({"edge": edges, "label": [(number, text)]}, {"edge": [(random.randrange(3), 2)]})
        told(session)
    session.close()
    return expected


def state_in(store: Store) -> bytes:
    """All that a store holds at its last epoch, in short."""
    state, found = store.state(), sha256()
    found.update(f"{state.epoch} {state.program_text()}".encode())
    for name in state.layout:
        file, changes = state.file_and_changes(name)
        facts = FactWords.nothing(len(state.layout[name])) if file is None else facts_in(store.root, file, state, name)
        held = merged(facts, changes)
        rows = zip(held.words.tolist(), held.level.tolist(), held.count.tolist(), strict=True)
        found.update(f"{name} {sorted(rows)}".encode())
    dictionary = Dictionary()
    state.fill(dictionary)
    found.update(repr([dictionary.symbols.strings_from(0), dictionary.wide.patterns_from(0).tolist()]).encode())
    return found.digest()


READ: dict[str, FactWords] = {}
"""The facts of files that have been read, by their checksums."""


def facts_in(root: Path, file: FileEntry, state: StoredState, name: str) -> FactWords:
    read_checked(root, file)
    if file.sha256 not in READ:
        READ[file.sha256] = state.relation(name)[0]
    return READ[file.sha256]


def check(path: Path, told: int, expected: dict[int, bytes], random: Random) -> None:
    """A store that was found after a power failure."""
    try:
        store = Store.open(path)
    except ElastalogError as error:
        assert told == 0, error
        assert error.diagnostics[0].code == "E0801", error
        if random.random() < 0.1:  # what was begun is done again
            elastalog.open(PROGRAM, FACTS, store=path).close()
        return
    try:
        assert store.epoch in (told, told + 1)
        assert state_in(store) == expected[store.epoch]
    finally:
        store.close()
    if random.random() < 0.02:
        with elastalog.open(store=path) as session:
            session.apply({"edge": [(77, 78)]})
            assert (77, 78) in session["path"]
        with elastalog.open(store=path) as session:
            assert (77, 78) in session["path"]
