"""A store at an address, such as `s3://bucket/reach.store`, copied into a folder of this process, where it is read. It
was put there whole, by `elastalog backup`, or is written there: see `storage.objects`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from elastalog.diagnostics.diagnostic import error
from elastalog.folders.remote import RemoteFolder
from elastalog.storage.manifest import FORMAT_FILE, LOCK, POINTER, JournalFile, read_manifest

TOKEN = 32
"""The length of the token of the process that has written an object of a journal, with which it begins."""

WRITER = "writer"
"""The word before it in `CURRENT`."""

_AT_ONCE = 16
_ATTEMPTS = 5


class FetchedStore(RemoteFolder):
    """A store at an address and its copy."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.pieces: dict[str, int] = {}
        """How many objects of each journal the copy has."""


_fetched: dict[Path, FetchedStore] = {}


def fetch_store(address: str) -> FetchedStore:
    """Fetches a store into a folder of this process, by the names that its manifest has: nothing is listed. Its files
    are checked when they are read, as always."""
    made = FetchedStore(address)
    _fetch(made)
    _fetched[made.folder] = made
    return made


def copy_of(address: str) -> Path:
    """The folder of this process with the copy of a store, up to date."""
    known = next((store for store in _fetched.values() if store.given == address), None)
    if known is not None:
        before = read_manifest(known.folder).store
        _fetch(known)
        if read_manifest(known.folder).store == before:
            return known.folder
        del _fetched[known.folder]  # another store has taken its place
    return fetch_store(address).folder


def fetch_again(folder: Path) -> None:
    """Brings a copy up to date; does nothing in a folder that is not a copy."""
    known = _fetched.get(folder)
    if known is not None:
        _fetch(known)


def _fetch(store: FetchedStore) -> None:
    for _ in range(_ATTEMPTS):
        pointer = _required(store, POINTER)
        if not (store.folder / FORMAT_FILE).exists():
            _required(store, FORMAT_FILE)
            store.fetch(FORMAT_FILE)
        if _fetch_files(store, pointer) or store.read(POINTER) == pointer:
            return  # what is missing although nothing has moved on is told when it is read
    # A writer moves on faster than files arrive: they are checked, so that nothing wrong is read.


def manifest_line(pointer: bytes) -> bytes:
    """What a pointer says of the manifest, without the writer."""
    return pointer[: pointer.find(b"\n") + 1] or pointer


def _writer_in(pointer: bytes) -> tuple[bytes, int] | None:
    """The token of the writer, and how many objects of the last journal were there before; None if that is not said."""
    words = pointer[len(manifest_line(pointer)) :].split()
    is_told = len(words) == 3 and words[0] == WRITER.encode() and words[2].isdigit()
    return (words[1], int(words[2])) if is_told else None


def _fetch_files(store: FetchedStore, pointer: bytes) -> bool:
    """Fetches what a pointer leads to, and then puts it in force. Returns whether all was there."""
    line = manifest_line(pointer)
    name = Path(line.split(b" ")[0].decode("ascii", "replace")).name
    store.fetch(name)
    fresh = store.folder / f"{POINTER}.new"
    fresh.write_bytes(line)
    fresh.replace(store.folder / POINTER)
    manifest = read_manifest(store.folder)
    wanted = sorted(manifest.names() - {FORMAT_FILE, POINTER, LOCK, name})
    absent = [name for name in wanted if not (store.folder / name).exists()]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        is_whole = all(list(pool.map(store.fetch, absent)))
        for journal in manifest.journals:
            is_last = journal is manifest.journals[-1]
            _fetch_pieces(store, journal, _writer_in(pointer) if is_last else None, pool)
    return is_whole


def _fetch_pieces(
    store: FetchedStore, journal: JournalFile, writer: tuple[bytes, int] | None, pool: ThreadPoolExecutor
) -> None:
    """Continues the copy of a journal with the objects that follow, up to the first that is missing or was put by a
    process other than the writer."""
    path = store.folder / journal.name
    if not path.exists() or (journal.sealed is not None and path.stat().st_size >= journal.sealed.bytes):
        return
    token, trusted = writer or (b"", None)
    known = store.pieces.get(journal.name, 0)
    is_more = True
    while is_more:
        numbers = range(known + 1, known + _AT_ONCE + 1)
        found = list(pool.map(store.read, (f"{journal.name}.{number}" for number in numbers)))
        with path.open("ab") as out:
            for number, data in zip(numbers, found, strict=True):
                if data is None or (trusted is not None and number > trusted and data[:TOKEN] != token):
                    is_more = False
                    break
                out.write(data[TOKEN:])
                known = number
    store.pieces[journal.name] = known


def _required(store: FetchedStore, name: str) -> bytes:
    found = store.read(name)
    if found is None:
        raise error("E0801.required", location=store.address, address=store.address, name=name)
    return found
