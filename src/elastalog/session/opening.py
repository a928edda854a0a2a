"""The front door: open a program over facts, read its relations, update them.

import elastalog

with elastalog.open("reach.dl", facts="facts/") as db:
    with db.update() as update:
        update.insert("edge", [(1, 2)])
    print(update.changes["path"].inserted)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from elastalog.backends.watch import Progress
from elastalog.diagnostics.arguments import require_number, require_one_of, require_path, wrong_kind
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.evaluation.stored import (
    DurableEpochs,
    is_store,
    refuse_to_create,
    restore,
    stored_program,
    unmoved,
)
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.pipeline.files.policy import Mode, Policy
from elastalog.pipeline.spark.engine import (
    backend_maker,
    choose_spark,
)
from elastalog.program import Program
from elastalog.relations.functions import Functions, digests_of
from elastalog.session.initial_facts import Rows
from elastalog.session.session import Session
from elastalog.storage import faults
from elastalog.storage.manifest import Options
from elastalog.storage.store import Store


def open(  # noqa: A001  # its public name
    program: str | os.PathLike[str] | Program | None = None,
    facts: str | os.PathLike[str] | Mapping[str, Rows] | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    at: int | None = None,
    retention: int = 1000,
    engine: str = "auto",
    strategy: str | None = None,
    levels: str | None = None,
    metric: str = "height",
    jobs: int | None = None,
    memory: int | None = None,
    timeout: float | None = None,
    budget: float | None = 0.2,
    bad_rows: Mode = "fail",
    max_bad_rows: int = 1000,
    quarantine: str | os.PathLike[str] = ".",
    on_progress: Callable[[Progress], None] | None = None,
    spark: Any = None,
    functors: Functions | None = None,
    arithmetic: str | None = None,
) -> Session:
    """Evaluates a program over facts and returns the session that keeps it up to date.

    `program`: a path, a program text, or a `Program`. `facts`: a folder with a file for every `.input`, or a mapping of
    relation names to rows. `strategy`: how updates are done, one of `STRATEGIES`. `levels`: `local`, or `global`
    for exact heights of proofs. `metric`: which proofs are the best, by `height` or by `size`. `jobs`: threads.
    `memory` (bytes) and `timeout` (seconds): limits, beyond which evaluation stops with an error.
    `budget`: the fraction of a bootstrap that an update may cost before a stratum is evaluated anew; None for no limit.
    `bad_rows`: what happens to rows of fact files that are no facts.

    `store`: a folder that keeps all epochs. It is made if it is not there; if it is, the session continues where it was
    left, and needs neither program nor facts. `read_only` opens one beside its writer, and so does `at`, at an earlier
    epoch. `retention`: how many epochs of a new store can be gone back. `strategy` and `levels` are those of the store,
    without one `elastic` and `local`.

    `functors`: the functions that `.functor` declares, by name; `elastalog.vectorised(function)` for one over Arrow
    arrays. They must be pure. A store remembers their sources and refuses others.

    `arithmetic`: `wrap` takes integers modulo 2^64, as `.pragma "arithmetic" "wrap"` in the program does; `check`, the
    default, makes a result outside its type an error.

    `engine`: `local` evaluates in this process, `spark` in tasks, `auto` in this process while memory suffices and in
    tasks of `spark`, a Spark session, beyond. Facts may be Spark DataFrames or sources of `elastalog.spark`."""
    require_one_of("engine", engine, ("auto", "local", "spark"))
    require_one_of("strategy", strategy or "elastic", tuple(STRATEGIES))
    require_one_of("levels", levels or "local", ("local", "global"))
    require_one_of("arithmetic", arithmetic or "check", ("check", "wrap"))
    require_one_of("bad_rows", bad_rows, ("fail", "quarantine", "skip"))
    require_number("jobs", jobs, 1, whole=True)
    require_number("memory", memory, 0, whole=True)
    require_number("timeout", timeout, 0)
    require_number("budget", budget, 0)
    require_number("max_bad_rows", max_bad_rows, 0, whole=True, or_none=False)
    require_number("retention", retention, 1, whole=True, or_none=False)
    require_number("at", at, 1, whole=True)
    _require_kinds(facts, store, quarantine, on_progress, spark)
    spark = choose_spark(engine, spark)
    settings: dict[str, Any] = {
        "metric": metric, "jobs": jobs or 1, "memory": memory, "timeout": timeout, "budget": budget,
        "on_progress": on_progress, "make_backend": backend_maker(engine, spark), "functors": functors,
    }  # fmt: skip
    read_only = bool(read_only) or at is not None
    if read_only and store is None:
        option = "read_only" if at is None else "at"
        raise ElastalogError([Diagnostic("E0612", f"`{option}` is for stores", help="give `store=PATH`, too")])
    if store is not None and (program is None or read_only or is_store(Path(store))):
        if facts is not None:
            raise faults.already_there(Path(store))
        given = None if program is None else _program(program, arithmetic)
        with unmoved(Path(store)) if read_only else nullcontext():
            return open_store(Path(store), given, read_only, at, strategy, levels, settings)
    if program is None:
        raise ElastalogError([Diagnostic("E0818", "neither a program nor a store was given", help="give one of them")])
    if store is not None:
        refuse_to_create(Path(store), strategy or "elastic")
    session = Session(
        _program(program, arithmetic), strategy=strategy or "elastic", levels=levels or "local", **settings
    )
    session._bootstrap(facts, Policy(bad_rows, max_bad_rows, Path(quarantine)), spark, engine)
    if store is not None:
        kept = digests_of(session.program.checked, session._dictionary.functions)
        session._keep_in(Path(store), Options(strategy or "elastic", levels or "local", retention, functors=kept))
    return session


def _require_kinds(facts: object, store: object, quarantine: object, on_progress: object, spark: object) -> None:
    if facts is not None and not isinstance(facts, Mapping):
        advice = 'give the path of a folder, or rows by relation: `{"edge": [(1, 2)]}`'
        require_path("facts are a folder or a mapping", facts, advice)
    if store is not None:
        require_path("a store is a folder", store, "give its path")
    require_path("`quarantine` is a folder", quarantine, "give its path")
    if on_progress is not None and not callable(on_progress):
        raise wrong_kind("`on_progress` is a function", on_progress, "give a function of one argument, a `Progress`")
    if spark is not None and not hasattr(spark, "conf"):
        raise wrong_kind("`spark` is a Spark session", spark, "give one, as `elastalog.spark.session()` makes it")


def _program(program: str | os.PathLike[str] | Program, arithmetic: str | None) -> Program:
    """The program; what the caller says of its arithmetic becomes part of it, so that a store keeps it."""
    found = _read_program(program)
    if arithmetic is None or found.checked.pragmas.get("arithmetic", "check") == arithmetic:
        return found
    source = found.tree.source
    return Program.parse(f'{source.text.rstrip()}\n.pragma "arithmetic" "{arithmetic}"\n', source.name)


def _read_program(program: str | os.PathLike[str] | Program) -> Program:
    if isinstance(program, Program):
        return program
    require_path("a program is a path, a text, or a `Program`", program, "give one of these")
    if isinstance(program, str) and ("\n" in program or ":-" in program or program.lstrip().startswith(".decl")):
        return Program.parse(program)
    return Program.load(program)


def _require_same_functors(path: Path, options: Options, given: Mapping[str, str]) -> None:
    """Facts that another function has made would not be those of this one."""
    for name, kept in options.functors.items():
        if given.get(name, kept) != kept:
            raise faults.other_functor(path, name)


def open_store(
    path: Path,
    program: Program | None,
    read_only: bool,
    epoch: int | None,
    strategy: str | None,
    levels: str | None,
    settings: Mapping[str, Any],
) -> Session:
    """The session of a store, as it was left or at an earlier epoch."""
    store = Store.open(path, read_only=read_only, until=epoch)
    try:
        state = store.state(epoch)
        stored, options = stored_program(store, state, program, strategy, levels)
        session = Session(stored, strategy=options.strategy, levels=options.levels, **settings)
        _require_same_functors(path, options, digests_of(stored.checked, session._dictionary.functions))
        restore(state, session._epochs, session._backend, session._dictionary)
    except BaseException:
        store.close()
        raise
    session._store, session._batches, session._is_read_only = store, store.batches, read_only
    if not read_only:
        session._durable = DurableEpochs(session._epochs, session._backend, session._dictionary, store)
    return session
