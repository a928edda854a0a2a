"""What the commands on a store share: its argument, how it is opened."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from elastalog.cli.exits import Verbosity, show_diagnostics
from elastalog.cli.session_options import (
    SessionOptions,
    functions_in,
    libraries_asked_for,
    load_program,
    open_session,
)
from elastalog.folders.addresses import is_address

if TYPE_CHECKING:
    from elastalog.pipeline.files.policy import BadRows
    from elastalog.session import Session

store_argument: Final = click.argument("store", type=click.Path(), metavar="STORE")

at_option: Final = click.option(
    "--at", type=click.IntRange(1), metavar="N", help="The epoch to read.  [default: the last]"
)


def reading(
    store: str, at: int | None = None, functors: str | None = None, timeout: float | None = None
) -> AbstractContextManager[Session]:
    """A read-only session of a store, at its last epoch or an earlier one."""
    import elastalog

    return elastalog.open(
        store=elastalog.Store(store, read_only=True, at=at), limits=elastalog.Limits(time=timeout),
        functors=functions_in(functors), libraries=libraries_asked_for(),
    )  # fmt: skip


def folder_of(store: str) -> Path:
    """The folder of a store that is only read; of one at an address, a folder into which it is fetched."""
    if not is_address(store):
        return Path(store)
    from elastalog.storage.fetching import fetch_store

    return fetch_store(store).folder


def is_store(path: str) -> bool:
    """Whether a path is that of a store, not of a program. What has an address is one."""
    return is_address(path) or (Path(path) / "CURRENT").is_file()


def opened(path: str, options: SessionOptions, form: str, verbosity: Verbosity) -> AbstractContextManager[Session]:
    """A session of the program at a path as the options have it, or of the store there, read-only."""
    if is_store(path):
        return reading(path, functors=options.functors, timeout=options.timeout)
    return open_session(load_program(path, form, verbosity), options, form=form, verbosity=verbosity)


def opened_at(
    path: str, at: int | None, options: SessionOptions, form: str, verbosity: Verbosity
) -> AbstractContextManager[Session]:
    """The same, at an earlier epoch, which only a store has. A folder that is none is an error that says so."""
    if is_address(path) or Path(path).is_dir():
        return reading(path, at, options.functors, options.timeout)
    if at is not None:
        raise click.UsageError("--at is for stores")
    return opened(path, options, form, verbosity)


def writing(
    store: str, form: str, verbosity: Verbosity, functors: str | None = None, bad_rows: BadRows | None = None
) -> Session:
    """A session that writes a store. What was found after a crash
    is reported on standard error."""
    import elastalog

    session = elastalog.open(
        store=store, functors=functions_in(functors), libraries=libraries_asked_for(), bad_rows=bad_rows or "fail"
    )
    if session.engine.recovery:
        show_diagnostics(session.engine.recovery, form, verbosity)
    return session
