"""Rows of a relation as its store has them, decoded by the task that reads them: a share at a time, or what epochs
changed; and what `.option(…)` says to the data source.

A task opens the store itself and reads its share of the snapshot's file, a row group at a time; what the journal has
changed since goes before it. Nothing has to be set aside: an epoch can be read for as long as the store keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from elastalog.backends.protocol import GONE
from elastalog.backends.rows import are_in, last_states
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.evaluation.stored import stored_program, unmoved
from elastalog.folders.addresses import is_address
from elastalog.late import dataclass
from elastalog.pipeline.spark.frames import absolute, decoded, path_of
from elastalog.relations.facts import COUNT, LEVEL, FactWords
from elastalog.relations.schema import Schema, schema_named, schemas_of
from elastalog.storage import errors
from elastalog.storage.filesystem import require_digest
from elastalog.storage.history import equivalences_in
from elastalog.storage.state import StoredState
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


@contextmanager
def opened(root: Path, epoch: int | None = None) -> Iterator[Store]:
    """Opens a store, of which no epoch beyond `epoch` is looked at. No file of it is removed during the block."""
    with unmoved(root):
        yield Store.open(root, read_only=True, until=epoch)


def readable(root: Path, relation: str, epoch: int | None) -> tuple[StoredState, Schema]:
    """A store at an epoch, the last by default, and the schema of a relation whose facts its files have."""
    state, schemas = state_and_schemas(root, epoch)
    schema = schema_named(schemas, relation)
    if relation in equivalences_in(state.layout):
        raise error("E0662", location=root, relation=relation)
    return state, schema


def state_and_schemas(root: Path, epoch: int | None) -> tuple[StoredState, dict[str, Schema]]:
    """A store at an epoch, the last by default, and the schemas of the relations that its program declares."""
    with opened(root, epoch) as store:
        state = store.state(epoch)
        program, _ = stored_program(store, state, None, None, None)
    return state, schemas_of(program.checked)


def shares_of(state: StoredState, relation: str, wanted: int | None) -> list[Share]:
    """The shares of a relation at an epoch: as many as are wanted, or as its size suggests. Its file is checked."""
    file, changes = state.file_and_changes(relation)
    rows = 0
    if file is not None:
        path = state.root / file.name
        require_digest(path, file, path)
        rows = parquet.read_metadata(path).num_rows
    total = rows + sum(map(len, changes))
    shares = wanted or max(1, -(-total // ROWS_OF_A_SHARE))
    ends = [rows * i // shares for i in range(shares + 1)]
    return [Share(state.snapshot.epoch, state.epoch, ends[i], ends[i + 1], i, shares) for i in range(shares)]


def rows_of_share(root: Path, schema: Schema, share: Share, names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of a share, some columns of them."""
    with opened(root, share.epoch) as store:
        state = _state_from(store, share)
        width = len(state.layout[schema.name])
        file, changes = state.file_and_changes(schema.name)
        changed = last_states(changes) if changes else FactWords.nothing(width)
        assert changed.level is not None
        is_own = (np.arange(len(changed.words)) % share.shares == share.number) & (changed.level != GONE)
        kept = () if file is None else _row_groups(root / file.name, width, share.first, share.last)
        others = (facts.taken(~are_in(facts.words, changed.words)) if len(changed.words) else facts for facts in kept)
        facts = FactWords.joined([changed.taken(is_own), *others])
        yield from decoded(schema, facts, names, state.texts(), state.patterns())


def rows_of_changes(root: Path, schema: Schema, after: int, until: int, names: Sequence[str]) -> Iterator[pa.Table]:
    """What the epochs after one, until another, did to a relation: for every epoch, the facts that it deleted, then
    those that it inserted; `op` comes before the columns asked for, `epoch` behind them."""
    with opened(root, until) as store:
        store.require(after)
        state = store.state(until)
        words: list[np.ndarray] = []
        signs: list[str] = []
        epochs: list[int] = []
        for record in store.records(after, until):
            if (changes := record.changes.get(schema.name)) is not None:
                was_there, is_there = changes.was != GONE, changes.level != GONE
                for sign, chosen in (("-", was_there & ~is_there), ("+", ~was_there & is_there)):
                    words.append(changes.words[chosen])
                    signs += [sign] * len(words[-1])
                    epochs += [record.entry.epoch] * len(words[-1])
        if signs:
            facts, first = FactWords(np.concatenate(words)), 0
            for table in decoded(schema, facts, names, state.texts(), state.patterns()):
                last = first + table.num_rows
                yield with_operation(table, signs[first:last], epochs[first:last])
                first = last


def with_operation(table: pa.Table, signs: list[str], epochs: list[int]) -> pa.Table:
    """Rows of a change feed."""
    return table.add_column(0, "op", pa.array(signs, pa.string())).append_column("epoch", pa.array(epochs, pa.int64()))


def _state_from(store: Store, share: Share) -> StoredState:
    """The state of an epoch as of the snapshot that the shares were made from: there may be a later snapshot by now."""
    snapshot = next((found for found in store.manifest.snapshots if found.epoch == share.base), None)
    if snapshot is None:
        raise error("E0872", location=store.root, epoch=share.epoch, first_epoch=store.first_epoch, epoch_2=store.epoch)
    return StoredState(store.root, store.manifest, snapshot, list(store.records(share.base, share.epoch)), {})


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


def folder_of(store: str) -> Path:
    """The folder of a store. Of one at an address, its copy in this process, be it the driver's or a task's, as the
    store is now."""
    if not is_address(store):
        return Path(store)
    from elastalog.storage.fetching import copy_of

    return copy_of(store)


# --- options ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read. `store`: its folder, or its address. `epoch`: the last one if None; `columns`: all if None;
    `changes`: what epochs change, not what is there; `partitions`: as the size suggests if None."""

    store: str
    relation: str
    epoch: int | None = None
    columns: tuple[str, ...] | None = None
    annotations: bool = False
    changes: bool = False
    partitions: int | None = None

    @staticmethod
    def of(given: Mapping[str, str]) -> ReadOptions:
        """The options of a reader. Raises ElastalogError where one is missing, unknown or of the wrong form."""
        options = _parsed(given, ReadOptions.__slots__, required=("store", "relation"))
        if options.get("annotations") and options.get("changes"):
            raise refused("changes have no annotations", "leave one of the options `annotations`, `changes` out")
        return ReadOptions(**options)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where updates go. `relation`: what rows are about, None if they say it themselves; `source` and `batch`: by which
    the store knows an update that it has applied already."""

    store: str
    relation: str | None = None
    source: str | None = None
    batch: str | None = None

    @staticmethod
    def of(given: Mapping[str, str]) -> WriteOptions:
        """The options of a writer. Raises ElastalogError where one is missing or unknown."""
        options = _parsed(given, WriteOptions.__slots__, required=("store",))
        if ("source" in options) is not ("batch" in options):
            there, missing = ("source", "batch") if "source" in options else ("batch", "source")
            told = f"option `{there}` is given, and `{missing}` is not"
            raise refused(told, "an update is known by the two together")
        return WriteOptions(**options)


def refused(message: str, advice: str) -> ElastalogError:
    """What is wrong with the options of a reader or writer."""
    return error("E0870", message=message, advice=advice)


def _parsed(given: Mapping[str, str], names: Sequence[str], required: Sequence[str]) -> dict[str, Any]:
    """The values of options, by their names in lower case, as Spark compares them. The argument of `load` and `save`,
    which Spark calls the path, is the store."""
    options = {name.lower(): text for name, text in given.items()}
    if "path" in options:
        path = options.pop("path")
        options.setdefault("store", path)
    for name in options:
        if name not in names:
            advice = did_you_mean(name, names) or f"the options are {', '.join(names)}"
            raise refused(f"the data source has no option `{name}`", advice)
    for name in required:
        if not options.get(name):
            raise refused(f"the data source needs the option `{name}`", f'give it by `.option("{name}", …)`')
    return {name: _value(name, text) for name, text in options.items()}


def _value(name: str, text: str) -> Any:
    match name:
        case "store":  # tasks may be at home elsewhere
            return absolute(path_of(text))
        case "columns":
            return tuple(column.strip() for column in text.split(","))
        case "epoch" | "partitions":
            if not text.isascii() or not text.isdigit() or int(text) < 1:
                raise refused(f"option `{name}` is `{text}`", "give a whole number from 1 on")
            return int(text)
        case "annotations" | "changes":
            if text.lower() not in ("true", "false"):
                raise refused(f"option `{name}` is `{text}`", "give true or false")
            return text.lower() == "true"
        case _:
            return text
