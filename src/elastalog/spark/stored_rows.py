"""Rows of a relation as its store has them, decoded by the task that reads them: a share at a time, or what epochs
changed; and what `.option(…)` says to the data source.

A task opens the store itself and reads its share of the snapshot's file, a row group at a time; what the journal has
changed since goes before it. Nothing has to be set aside: an epoch can be read for as long as the store keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from elastalog.analysis.program import Base
from elastalog.backends.protocol import GONE
from elastalog.backends.rows import are_in, last_states
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.evaluation.stored import stored_program, unmoved
from elastalog.folders.addresses import is_address
from elastalog.late import dataclass
from elastalog.pipeline.files.parquet import NULLARY
from elastalog.pipeline.spark.frames import UNSIGNED, absolute, path_of
from elastalog.relations.facts import FactWords
from elastalog.relations.schema import Schema, schema_named, schemas_of
from elastalog.relations.words import ARROW_TYPES, Dictionary
from elastalog.storage import errors
from elastalog.storage.filesystem import require_digest
from elastalog.storage.history import equivalences_in
from elastalog.storage.state import COUNT, LEVEL, StoredState
from elastalog.storage.store import Store

ROWS_OF_A_SHARE = 1 << 20
"""Facts that are worth a task of their own."""


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a task: rows `first` to `last` of the file of a relation in the snapshot of epoch `base`, and as
    large a part, the `number`-th of `shares`, of the facts that were changed between it and `epoch`."""

    base: int
    epoch: int
    first: int
    last: int
    number: int
    shares: int


def readable(root: Path, relation: str, epoch: int | None) -> tuple[int, Schema]:
    """An epoch of a store, the last by default, and the schema of a relation whose facts its files have."""
    state, schemas = state_and_schemas(root, epoch)
    schema = schema_named(schemas, relation)
    if relation in equivalences_in(state.layout):
        raise error("E0662", location=root, relation=relation)
    return state.epoch, schema


def state_and_schemas(root: Path, epoch: int | None) -> tuple[StoredState, dict[str, Schema]]:
    """A store at an epoch, the last by default, and the schemas of the relations that its program declares."""
    with unmoved(root):
        opened = Store.open(root, read_only=True, until=epoch)
        state = opened.state(epoch)
        program, _ = stored_program(opened, state, None, None, None)
    return state, schemas_of(program.checked)


def arrow_fields(schema: Schema, annotations: bool) -> dict[str, pa.DataType]:
    """The columns of a relation as Spark has them, by name; a relation without any has one that is true."""
    kinds = {**ARROW_TYPES, Base.UNSIGNED: UNSIGNED}
    fields = {column.name: kinds[column.base] for column in schema.columns} or {NULLARY: pa.bool_()}
    return {**fields, **({LEVEL: pa.int32(), COUNT: pa.int32()} if annotations else {})}


def shares_of(root: Path, relation: str, epoch: int, wanted: int | None) -> list[Share]:
    """The shares of a relation at an epoch: as many as are wanted, or as its size suggests. Its file is checked."""
    with unmoved(root):
        state = Store.open(root, read_only=True, until=epoch).state(epoch)
        file, changes = state.file_and_changes(relation)
        rows = 0
        if file is not None:
            require_digest(root / file.name, file, root / file.name)
            rows = parquet.read_metadata(root / file.name).num_rows
    total = rows + sum(map(len, changes))
    shares = wanted or max(1, -(-total // ROWS_OF_A_SHARE))
    ends = [rows * i // shares for i in range(shares + 1)]
    return [Share(state.snapshot.epoch, epoch, ends[i], ends[i + 1], i, shares) for i in range(shares)]


def rows_of_share(root: Path, schema: Schema, share: Share, names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of a share, some columns of them."""
    with unmoved(root):
        state = _state_from(root, share.base, share.epoch)
        dictionary = Dictionary()
        state.fill(dictionary)
        file, changes = state.file_and_changes(schema.name)
        changed = last_states(changes) if changes else FactWords.nothing(len(state.layout[schema.name]))
        assert changed.level is not None
        is_own = (np.arange(len(changed.words)) % share.shares == share.number) & (changed.level != GONE)
        yield _decoded(schema, changed.taken(is_own), dictionary, names)
        if file is None:
            return
        for facts in _row_groups(root / file.name, len(state.layout[schema.name]), share.first, share.last):
            if len(changed.words):
                facts = facts.taken(~are_in(facts.words, changed.words))
            yield _decoded(schema, facts, dictionary, names)


def rows_of_changes(root: Path, schema: Schema, after: int, until: int, names: Sequence[str]) -> Iterator[pa.Table]:
    """What the epochs after one, until another, did to a relation: for every epoch, the facts that went, then those
    that came; `op` and `epoch` before and behind the columns asked for."""
    with unmoved(root):
        store = Store.open(root, read_only=True, until=until)
        store.require(after)
        dictionary = Dictionary()
        store.state(until).fill(dictionary)
        for record in store.records(after, until):
            changes = record.changes.get(schema.name)
            if changes is None:
                continue
            went, came = (
                (changes.was != GONE) & (changes.level == GONE),
                (changes.was == GONE) & (changes.level != GONE),
            )
            for sign, chosen in (("-", went), ("+", came)):
                facts = FactWords(changes.words[chosen])
                yield with_operation(_decoded(schema, facts, dictionary, names), sign, record.entry.epoch)


def with_operation(table: pa.Table, sign: str, epoch: int) -> pa.Table:
    """Rows of a change feed."""
    signs = pa.array([sign] * table.num_rows, pa.string())
    return table.add_column(0, "op", signs).append_column("epoch", pa.array([epoch] * table.num_rows, pa.int64()))


def _state_from(root: Path, base: int, epoch: int) -> StoredState:
    """The state of an epoch from the snapshot that shares were made of: there may be a later one by now."""
    store = Store.open(root, read_only=True, until=epoch)
    snapshot = next((found for found in store.manifest.snapshots if found.epoch == base), None)
    if snapshot is None:
        raise error("E0872", location=root, epoch=epoch, first_epoch=store.first_epoch, epoch_2=store.epoch)
    return StoredState(root, store.manifest, snapshot, list(store.records(base, epoch)), {})


def _row_groups(path: Path, width: int, first: int, last: int) -> Iterator[FactWords]:
    """The facts of some rows of a file, a row group at a time."""
    try:
        file = parquet.ParquetFile(path)
    except FileNotFoundError:
        raise errors.missing(path) from None
    end = 0
    for group in range(file.metadata.num_row_groups):
        begin, end = end, end + file.metadata.row_group(group).num_rows
        low, high = max(begin, first), min(end, last)
        if low < high:
            table = file.read_row_group(group).slice(low - begin, high - low)
            words = np.empty((table.num_rows, width), np.int32)
            for i in range(width):
                words[:, i] = table.column(str(i)).to_numpy()
            yield FactWords(words, table.column(LEVEL).to_numpy(), table.column(COUNT).to_numpy())


def _decoded(schema: Schema, facts: FactWords, dictionary: Dictionary, names: Sequence[str]) -> pa.Table:
    places = {column.name: i for i, column in enumerate(schema.columns)}
    kinds = arrow_fields(schema, annotations=True)
    columns = []
    for name in names:
        if name in places:
            place = places[name]
            values = dictionary.decode_column(schema.columns[place].base, np.ascontiguousarray(facts.words[:, place]))
        elif name in (LEVEL, COUNT):
            values = pa.array(facts.level if name == LEVEL else facts.count)
        else:
            values = pa.array([True] * len(facts.words), pa.bool_())
        columns.append(values.cast(kinds[name]))
    return pa.table(columns, names=list(names))


_READ = ("store", "relation", "epoch", "columns", "annotations", "changes", "partitions")
_WRITE = ("store", "relation", "source", "batch")
_PATH = "path"
"""Where Spark puts the argument of `load` and `save`: the store, by a shorter way."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read. `store`: its folder, or its address. `epoch`: the last one if None; `columns`: all if None;
    `changes`: what epochs change, not what is there; `partitions`: as the size suggests if None."""

    store: str
    relation: str
    epoch: int | None
    columns: tuple[str, ...] | None
    annotations: bool
    changes: bool
    partitions: int | None

    @staticmethod
    def of(given: Mapping[str, str]) -> ReadOptions:
        """The options of a reader. Raises ElastalogError where one is missing, unknown or of the wrong form."""
        options = _known(given, _READ)
        columns = options.get("columns")
        if _flag(options, "annotations") and _flag(options, "changes"):
            raise refused("changes have no annotations", "leave one of the options `annotations`, `changes` out")
        return ReadOptions(
            _place(options),
            _required(options, "relation"),
            _number(options, "epoch", 1),
            None if columns is None else tuple(name.strip() for name in columns.split(",")),
            _flag(options, "annotations"),
            _flag(options, "changes"),
            _number(options, "partitions", 1),
        )


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where updates go. `relation`: what rows are about, None if they say it themselves; `source` and `batch`: by which
    the store knows an update that it has applied already."""

    store: str
    relation: str | None
    source: str | None
    batch: str | None

    @staticmethod
    def of(given: Mapping[str, str]) -> WriteOptions:
        """The options of a writer. Raises ElastalogError where one is missing or unknown."""
        options = _known(given, _WRITE)
        source, batch = options.get("source"), options.get("batch")
        if (source is None) is not (batch is None):
            there, missing = ("batch", "source") if source is None else ("source", "batch")
            raise refused(
                f"option `{there}` is given, and `{missing}` is not", "an update is known by the two together"
            )
        return WriteOptions(_place(options), options.get("relation"), source, batch)


def refused(message: str, advice: str) -> ElastalogError:
    """What is wrong with the options of a reader or writer."""
    return error("E0870", message=message, advice=advice)


def _known(given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """The options by their names in lower case, as Spark compares them; the path is the store."""
    options = {name.lower(): value for name, value in given.items()}
    if _PATH in options:
        options.setdefault("store", options.pop(_PATH))
    for name in options:
        if name not in (*names, _PATH):
            advice = did_you_mean(name, names) or f"the options are {', '.join(names)}"
            raise refused(f"the data source has no option `{name}`", advice)
    return options


def _required(options: Mapping[str, str], name: str) -> str:
    if not options.get(name):
        raise refused(f"the data source needs the option `{name}`", f'give it by `.option("{name}", …)`')
    return options[name]


def folder_of(store: str) -> Path:
    """The folder of a store. Of one at an address, its copy in this process, be it the driver's or a task's, as the
    store is now."""
    if not is_address(store):
        return Path(store)
    from elastalog.storage.fetching import copy_of

    return copy_of(store)


def _place(options: Mapping[str, str]) -> str:
    """Where the store is: tasks may be at home elsewhere."""
    return absolute(path_of(_required(options, "store")))


def _number(options: Mapping[str, str], name: str, least: int) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise refused(f"option `{name}` is `{text}`", f"give a whole number from {least} on")
    return int(text)


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise refused(f"option `{name}` is `{text}`", "give true or false")
    return text == "true"
