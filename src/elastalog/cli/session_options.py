"""Options of the commands that open a session, of a program or a store, and how they open it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from elastalog.cli.exits import Console
from elastalog.cli.options import (
    Whole,
    click_option,
    duration,
    given,
    kept,
    memory_size,
    option,
    options_of,
    read_program,
    together,
)
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.messages import counted
from elastalog.folders.addresses import is_address
from elastalog.late import dataclass
from elastalog.session.settings import processors

if TYPE_CHECKING:
    from elastalog.pipeline.files.policy import BadRows, Mode, Report
    from elastalog.program import Program
    from elastalog.session import Session


def strategy_name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """The name of a strategy. Strategies are loaded only when one is given, because that takes a while."""
    if value == "elastic":
        return value
    from elastalog.diagnostics.nearest import nearest
    from elastalog.evaluation.strategies import STRATEGIES

    if value not in STRATEGIES:
        near = nearest(value, STRATEGIES)
        advice = f"did you mean '{near}'?" if near else f"there are {', '.join(STRATEGIES)}."
        raise click.BadParameter(f"'{value}' is not a strategy: {advice}", ctx, param)
    return value


FUNCTORS: Final = option(
    "--functors", type=click.Path(exists=True, dir_okay=False), metavar="FILE.py",
    help="Python file with the functions that `.functor` declares.",
)  # fmt: skip

library_options: Final = together(
    kept(
        "-L", "--library-dir", multiple=True, metavar="DIR",
        type=click.Path(exists=True, file_okay=False), help="Folder of C libraries.  [default: the current one]",
    ),
    kept(
        "-l", "--library", "--libraries", "library", multiple=True, metavar="NAME",
        help="C library, libNAME.so, with functions that `.functor` declares. It is run: use only what you trust.",
    ),
)  # fmt: skip
"""Where C libraries are; see `libraries_asked_for`."""


functors_option: Final = together(click_option(FUNCTORS), library_options)
"""`--functors`, and where C libraries are."""


def libraries_asked_for() -> tuple[str, ...]:
    """The library files named on the command line: the first that exists, or the first that would be tried."""
    folders = [Path(folder) for folder in given("library_dir", ())] or [Path()]
    files = []
    for name in given("library", ()):
        candidates = [folder / f"lib{name}{ending}" for folder in folders for ending in (".so", ".dylib", ".dll")]
        files.append(str(next((file for file in candidates if file.exists()), candidates[0])))
    return tuple(files)


class Jobs(Whole):
    """A number of threads, or `auto`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(processors() if value == "auto" else value, param, ctx)


class FactsFolder(click.Path):
    """An existing folder, or a URL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if is_address(value) else super().convert(value, param, ctx)


BAD_ROWS: Final = option(
    "--bad-rows", default="fail", show_default=True, type=click.Choice(["fail", "quarantine", "skip"]),
    help="How to handle invalid rows; quarantine: into NAME.bad.jsonl, where outputs go, or in the current folder.",
)  # fmt: skip
MAX_BAD_ROWS: Final = option(
    "--max-bad-rows", default=1000, show_default=True, type=Whole(0), metavar="N",
    help="Maximum number of rows to skip per relation.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options that say how to evaluate; see `elastalog.open`."""

    facts: str | Mapping[str, Any] = option(
        "-F", "--facts", "--fact-dir", default=".", metavar="DIR", type=FactsFolder(exists=True, file_okay=False),
        help="Folder of the fact files, also remote (s3://…).  [default: the current one]",
    )  # fmt: skip
    jobs: int = option(
        "-j", "--jobs", default="auto", show_default=True, type=Jobs(1, 1024), metavar="N",
        help="Number of threads; auto: one per processor, 16 at most.",
    )  # fmt: skip
    engine: str = option(
        "--engine", default="auto", show_default=True, type=click.Choice(["auto", "local", "spark", "gpu"]),
        help="Where to evaluate.",
    )  # fmt: skip
    strategy: str = option(
        "--strategy", default="elastic", show_default=True, callback=strategy_name, metavar="NAME",
        help="How to update: elastic, recompute, dense, dred, dredc, bf, bfc or counting.",
    )  # fmt: skip
    levels: str = option(
        "--levels", default="local", show_default=True, type=click.Choice(["local", "global"]),
        help="Levels within each stratum, or heights of whole proofs.",
    )  # fmt: skip
    bad_rows: Mode = BAD_ROWS
    max_bad_rows: int = MAX_BAD_ROWS
    max_memory: int | None = option(
        "--max-memory", callback=memory_size, metavar="SIZE", help="Memory limit, such as 512M or 2G."
    )
    device_memory: int | None = option(
        "--device-memory", callback=memory_size, metavar="SIZE",
        help="Memory limit on the GPU.  [default: half of what is free]",
    )  # fmt: skip
    functors: str | None = FUNCTORS
    arithmetic: str | None = option(
        "--arithmetic", type=click.Choice(["check", "wrap"]), help="Integer overflow: an error, or modulo 2^64."
    )
    timeout: float | None = option(
        "--timeout", callback=duration, metavar="TIME", help="Time limit of an evaluation, such as 30s or 5m."
    )
    max_expansion: int = option(
        "--max-expansion", default=200, show_default=True, type=Whole(1), metavar="N",
        help="Maximum expansion of a compressed fact file, as a multiple of its size.",
    )  # fmt: skip

    def bad_row_policy(self, quarantine: str = ".") -> BadRows:
        """How to handle invalid rows; those that are set aside go to the folder `quarantine`."""
        from elastalog.pipeline.files.policy import BadRows

        return BadRows(self.bad_rows, self.max_bad_rows, quarantine)


session_options: Final = together(options_of(SessionOptions, "options"), library_options)
"""The command receives them as `options`."""


@contextmanager
def announcing(console: Console | None = None) -> Iterator[None]:
    """Reports on standard error if the kernel has to be compiled during the block, which happens once on a machine.
    With `-v` the log goes there too: what was chosen for every stratum, and why. With `-q` its warnings are hidden."""
    from elastalog.backends.kernel.compile.warm import shown_compilation

    log = logging.getLogger("elastalog")
    handler = logging.StreamHandler(sys.stderr)
    level = log.level
    is_quiet = console is not None and console.is_quiet
    if console is not None and console.is_verbose:
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    elif is_quiet:
        log.setLevel(logging.ERROR)
    try:
        with nullcontext() if is_quiet else shown_compilation(sys.stderr):
            yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def load_program(path: str, console: Console) -> Program:
    """The checked program, its warnings shown."""
    program = read_program(path)
    if program.warnings:
        console.show(program.warnings)
    return program


def open_session(
    program: Program, options: SessionOptions, console: Console, *, quarantine: str = ".", **more: Any
) -> Session:
    """The session that the options describe, with `more` options of `elastalog.open`. Shows progress on a terminal, and
    reports invalid rows that were skipped on standard error."""
    import elastalog
    from elastalog.cli.reports import progress_shown
    from elastalog.program import with_arithmetic

    limits = elastalog.Limits(options.max_memory, options.timeout, options.device_memory, options.max_expansion)
    store, facts = more.get("store"), options.facts
    if (path := getattr(store, "path", store)) is not None and is_store(str(path)) and not is_address(path):
        tell_unread_facts(str(path), console)
        facts = {}
    program = with_arithmetic(program, options.arithmetic)
    functors = functions_in(options.functors)  # before anything is shown: it may print
    with progress_shown(program.checked, console) as report:
        session = elastalog.open(
            program, facts, engine=options.engine, strategy=options.strategy, levels=options.levels,
            jobs=options.jobs, limits=limits, bad_rows=options.bad_row_policy(quarantine), functors=functors,
            libraries=libraries_asked_for(), on_progress=report, **more,
        )  # fmt: skip
    show_reports(session.reports, console)
    return session


def functions_in(path: str | None) -> dict[str, Any] | None:
    """What a Python file defines, by name; None without a file. Reading the file executes it."""
    if path is None:
        return None
    import runpy

    try:
        return {name: value for name, value in runpy.run_path(path).items() if callable(value)}
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ElastalogError.of("E0643", location=path, path=path, reason=reason) from None


def show_reports(reports: Iterable[Report], console: Console) -> None:
    """Reports, as a note (with `-v`), where values of tables had another type."""
    from elastalog.pipeline.files.policy import converted_diagnostic

    if found := [converted_diagnostic(report) for report in reports if report.converted]:
        console.show(found)


def tell_facts(session: Session, console: Console) -> None:
    """Reports how many facts a new store has."""
    console.say(f"epoch {session.epoch}: {counted(sum(len(session[name]) for name in session), 'fact')}")


store_argument: Final = click.argument("store", type=click.Path(), metavar="STORE")


class Moment(Whole):
    """The number of an epoch, or a time at which it was current, as text."""

    name = "epoch"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not value.isdecimal():
            try:
                datetime.fromisoformat(value)
            except ValueError:
                self.fail(f"'{value}' is no epoch: give its number, or a time such as 2026-11-18T09:30.", param, ctx)
            return value
        return super().convert(value, param, ctx)


at_option: Final = click.option(
    "--at", type=Moment(1), metavar="N|TIME",
    help="The epoch to read, or that which was in force at a time.  [default: the last]",
)  # fmt: skip


def reading(
    store: str, at: int | str | None = None, functors: str | None = None, timeout: float | None = None
) -> AbstractContextManager[Session]:
    """A read-only session of a store, at its last epoch or an earlier one."""
    import elastalog

    if isinstance(at, str):
        from elastalog.storage.administration import read_log
        from elastalog.storage.entries import epoch_in_force

        at = epoch_in_force(read_log(folder_of(store)), at)
    return elastalog.open(
        store=elastalog.Store(store, read_only=True, at=at), limits=elastalog.Limits(time=timeout),
        functors=functions_in(functors), libraries=libraries_asked_for(),
    )  # fmt: skip


def folder_of(store: str) -> Path:
    """The folder of a store that is only read; a store at a URL is copied into a folder."""
    if not is_address(store):
        return Path(store)
    from elastalog.storage.fetching import fetch_store

    return fetch_store(store).folder


def is_store(path: str) -> bool:
    """Whether a path is that of a store, not of a program. Every URL is."""
    from elastalog.storage import manifest

    return is_address(path) or manifest.is_store(Path(path))


def tell_unread_facts(store: str, console: Console) -> None:
    """Warns that fact files were not read although they were written since the store was made: the store has its own
    facts."""
    context = click.get_current_context()
    if context.get_parameter_source("facts") is not ParameterSource.COMMANDLINE:
        return
    from elastalog.pipeline.files.loading import is_newer
    from elastalog.storage.administration import read_log

    folder, made = Path(context.params["facts"]), 0.0 if is_address(store) else read_log(store)[0].timestamp
    if not folder.is_dir() or any(is_newer(file, made) for file in folder.iterdir()):
        # While a service or a shell runs it alone writes the store.
        ways = {"serve": "`POST /updates`", "workbench": "`POST /updates`", "shell": "`load`"}
        how = ways.get(context.info_name or "", "`elastalog apply`")
        console.say(f"note: {store} has its own facts, so -F was not read; {how} adds and removes facts")


def opened_at(
    path: str, at: int | str | None, options: SessionOptions, console: Console
) -> AbstractContextManager[Session]:
    """A session of the program at a path, with these options, or of the store there, read-only, at its last epoch or an
    earlier one. A folder that is not a store is an error."""
    if is_address(path) or Path(path).is_dir():
        tell_unread_facts(path, console)
        return reading(path, at, options.functors, options.timeout)
    if at is not None:
        raise click.UsageError("--at is for stores")
    return open_session(load_program(path, console), options, console)


def writing(store: str, console: Console, functors: str | None = None, bad_rows: BadRows | None = None) -> Session:
    """A session that writes a store. Reports on standard error what was recovered after a crash."""
    import elastalog

    session = elastalog.open(
        store=store, functors=functions_in(functors), libraries=libraries_asked_for(), bad_rows=bad_rows or "fail"
    )
    if session.engine.recovery:
        console.show(session.engine.recovery)
    return session


def opened_to_write(store: str, options: SessionOptions, console: Console) -> Session:
    """A session that writes a store, with these options."""
    tell_unread_facts(store, console)
    return writing(store, console, options.functors, options.bad_row_policy())
