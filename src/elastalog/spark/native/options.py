"""What `.option(…)` says to the data source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.folders.addresses import is_address
from elastalog.late import dataclass
from elastalog.pipeline.spark.frames import path_of
from elastalog.pipeline.spark.refusals import absolute

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
    return ElastalogError([Diagnostic("E0870", message, help=advice)])


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
