"""The front door: open a program over facts, read its relations, update them.

import elastalog

with elastalog.open("reach.dl", facts="facts/") as db:
    with db.update() as update:
        update.insert("edge", [(1, 2)])
    print(update.changes["path"].inserted)
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from elastalog.analysis.functor_values import INVALID_TEXTS
from elastalog.analysis.program import Atom, Constant
from elastalog.analysis.query import Query, check_query, parameter_values
from elastalog.backends.engines import ENGINES
from elastalog.backends.kernel.compile.warm import announced_compilation
from elastalog.backends.watch import Progress, Within
from elastalog.deprecated import takes_old_options
from elastalog.diagnostics.arguments import require_number, require_one_of, require_place, require_text, wrong_kind
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, finding, warn_of
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.quota import within
from elastalog.evaluation.costs import AUTO, Budget
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.folders.addresses import is_address, without_secrets
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import is_json_text, reading_within
from elastalog.pipeline.files.loading import (
    InputFiles,
    Source,
    edited_since,
    inputs_of,
    is_newer,
    look_for_unread,
    sources_at,
    sources_in,
)
from elastalog.pipeline.files.policy import BadRows, Mode, as_bad_rows
from elastalog.pipeline.spark.for_sessions import backend_maker, choose_spark
from elastalog.planning.demand import with_demand
from elastalog.planning.needed_groups import may_await_groups
from elastalog.program import Program, as_program, with_arithmetic
from elastalog.relations.facts import Relation
from elastalog.relations.functions import Functions, digests_of
from elastalog.session.history import History
from elastalog.session.materialisation import Materialisation, Rows, initial_facts
from elastalog.session.questions import texts_asked
from elastalog.session.session import Session
from elastalog.session.settings import Limits, Settings, Store, processors
from elastalog.storage.manifest import RETENTION, Options, is_store
from elastalog.syntax.tree import nodes_of

if TYPE_CHECKING:
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.pipeline.files.policy import Report
    from elastalog.storage.filesystem import FileSystem

log = logging.getLogger("elastalog.session")

_LISTENING = ExitStack()
"""Holds the listener for the life of the process: the first update compiles too."""
_is_listening = False

_unlimited, _unstored = cache(Limits), cache(Store)
"""What is meant where nothing is given, made once."""


def as_store(given: str | os.PathLike[str] | Store | None) -> Store:
    """Where epochs are kept, as it may be given."""
    return given if isinstance(given, Store) else _unstored() if given is None else Store(given)


def _with_options(program: str | os.PathLike[str] | Program, **options: Any) -> Program:
    """A program with options that `open` once took."""
    arithmetic = options.pop("arithmetic", None)
    return with_arithmetic(as_program(program, **options), arithmetic)


takes_options = takes_old_options(
    limits=lambda given: given or Limits(), bad_rows=as_bad_rows, store=as_store, program=_with_options
)
"""A decorator of a function with the options of `open`: their earlier names are taken, too."""


@takes_options
def open(  # noqa: A001  # its public name
    program: str | os.PathLike[str] | Program | None = None,
    facts: str | os.PathLike[str] | Mapping[str, Rows] | None = None,
    *,
    store: str | os.PathLike[str] | Store | None = None,
    engine: str = "auto",
    strategy: str | None = None,
    levels: str | None = None,
    metric: str = "height",
    jobs: int | Literal["auto"] = "auto",
    limits: Limits | None = None,
    budget: Budget = AUTO,
    bad_rows: Mode | BadRows = "fail",
    on_progress: Callable[[Progress], None] | None = None,
    spark: Any = None,
    functors: Functions | None = None,
    libraries: Iterable[str | os.PathLike[str]] = (),
) -> Session:
    """Evaluates a program over facts and returns the session that keeps it up to date.

    `program`: a path, a program text, or a `Program`, which `Program.load` makes with folders to include files from,
    macros, and another arithmetic. `facts`: a folder with a file for every `.input`, by default that of the program; or
    a mapping of relation names to rows, tables, or paths of files, which are looked at to see how they are written.
    `strategy`: how updates are done, one of `STRATEGIES`. `levels`: `local`, or `global` for exact heights of proofs.
    `metric`: which proofs are the best, by `height` or by `size`. `jobs`: threads, by default as many as there are
    processors, 16 at most; small programs start none. `limits`: memory and time, beyond which evaluation stops with an
    error; see `Limits`.
    `budget`: what an update may cost before a stratum is recomputed: `auto`, chosen so that neither costs much more
    than the other would have; a fraction of a bootstrap; None for no limit.
    `bad_rows`: how to handle invalid rows, of files, of rows given and of updates: `fail`, `quarantine` or `skip`; see
    `BadRows`.

    `store`: a folder that keeps all epochs, or a `Store`. It is made if it is not there; if it is, the session
    continues where it was left, and needs neither program nor facts. Folders of facts and stores may be addresses
    (`s3://bucket/folder`): their files are fetched first, and what a store gains is put there. `strategy` and `levels`
    are those of the store, without one `elastic` and `local`. If it is there, `facts` are not read, and a warning says
    so, of files if they were written since it was made.

    `functors`: the functions that `.functor` declares, by name; `elastalog.vectorised(function)` for one over Arrow
    arrays. They must be pure. A store remembers their sources and refuses others; to read facts, none are needed.
    `libraries`: files of shared C libraries that have some of them; they run in this process, so name only those that
    you trust.

    `engine`: `local` evaluates in this process, `spark` in tasks, `gpu` on a device, `auto` in this process while
    memory suffices and in tasks of `spark`, a Spark session, beyond; without one, large strata on a device, if there is
    one. Facts may be Spark DataFrames or sources of `elastalog.spark`."""
    require_one_of("engine", engine, ENGINES)
    require_one_of("strategy", strategy or "elastic", tuple(STRATEGIES))
    require_one_of("value of `levels`", levels or "local", ("local", "global"))
    if jobs != AUTO:
        require_number("jobs", jobs, 1, whole=True, usual='"auto"')
    if budget != AUTO:
        require_number("budget", budget, 0)
    if limits is None:
        limits = _unlimited()
    policy, kept = as_bad_rows(bad_rows), as_store(store)
    _require_kinds(facts, limits, on_progress, spark)
    _announce_compilation()
    cluster = choose_spark(engine, spark)
    threads = processors() if jobs == AUTO or jobs is None else jobs
    settings = Settings(
        strategy=strategy or "elastic", levels=levels or "local", metric=metric, jobs=threads, limits=limits,
        budget=budget, on_progress=on_progress, make_backend=backend_maker(engine, cluster, limits.device_memory),
        functors=functors, libraries=tuple(libraries), on_cluster=cluster is not None, spark=spark or cluster,
    )  # fmt: skip
    parsed: Callable[[], Program] | None = None
    if program is not None:  # of what is a program already nothing is made
        parsed = (lambda: program) if isinstance(program, Program) else cache(lambda: _read(program))
    given = Given(parsed, facts, kept, policy, engine, strategy, levels, isinstance(program, Program))
    with within(limits.time):
        if not is_address(kept.path):
            folder = None if kept.path is None else Path(kept.path)
            return _session(given, folder, None, settings)
        folder, files = _copy_of(str(kept.path), kept.is_read)
        try:
            return _session(given, folder, files, settings)
        except BaseException:
            if files is not None:
                files.release()
            raise


def _read(program: str | os.PathLike[str]) -> Program:
    """A program, with warnings of names that may be meant as texts, and of rules that may grow without end."""
    found = as_program(program)
    for warning in found.warnings:
        if warning.code == "E0324" and re.match(r'write `"\w\w', warning.help or ""):
            warn_of(warning)
    if any(stratum.is_recursive for stratum in found.checked.strata):
        from elastalog.analysis.growth import warnings_of_growth

        for warning in warnings_of_growth(found.checked):
            warn_of(warning)
    return found


@dataclass(frozen=True, slots=True)
class Given:
    """What a session is made of. `strategy` and `levels` are None where those of a store would do. `is_program`: the
    program was read before, and its warnings with it."""

    program: Callable[[], Program] | None
    facts: str | os.PathLike[str] | Mapping[str, Rows] | None
    store: Store
    policy: BadRows
    engine: str
    strategy: str | None
    levels: str | None
    is_program: bool


def _session(given: Given, store: Path | None, files: FileSystem | None, settings: Settings) -> Session:
    """A session of what is given, or of an existing store. `files`: through which the store is written."""
    facts, retention, heartbeats = given.facts, given.store.retention, bool(given.store.heartbeats)
    read_only = given.store.is_read
    if store is not None and (given.program is None or read_only or is_store(store)):
        from elastalog.evaluation.stored import unmoved

        if read_only and (facts is not None or retention is not None):
            option = "facts" if facts is not None else "retention"
            raise ElastalogError(
                [Diagnostic("E0612", f"only the writer of a store may give `{option}`", help=f"leave `{option}` out")]
            )
        with unmoved(store) if read_only else nullcontext():
            materialisation, history = _open_store(given, store, files, settings)
        if retention is not None and history.store is not None:
            history.store.keep_epochs(retention)
        if not read_only and (unread := _unread(given, materialisation, history)):
            place = without_secrets(str(given.store.path))
            told = f"the store {place} is there, at epoch {materialisation.epoch}, so {unread}"
            warnings.warn(f"{told}add or remove facts with `db.apply(…)` or `db.update()`", UserWarning, stacklevel=4)
        return Session(materialisation, history, heartbeats=heartbeats, policy=given.policy)
    if given.program is None:
        raise ElastalogError([Diagnostic("E0818", "neither a program nor a store was given", help="give one of them")])
    if store is not None:
        from elastalog.storage.store import refuse_existing

        refuse_existing(store)
    materialisation, record, reports = _first_epoch(given, given.program(), settings)
    history = History(materialisation, retention=retention or RETENTION)
    history.records.append(record)
    if store is not None:
        kept = digests_of(materialisation.program.checked, materialisation.dictionary.functions)
        options = Options(settings.strategy, settings.levels, retention or RETENTION, functors=kept)
        history.keep_in(store, options, files)
    return Session(materialisation, history, reports, heartbeats=heartbeats, policy=given.policy)


def compile_program(program: Program) -> None:
    """See `Program.compile`: evaluates the program over no facts, and plans updates."""
    settings = Settings(
        strategy="elastic", levels="local", metric="height", jobs=1, limits=Limits(), budget=AUTO, on_progress=None,
        may_lack_functors=True,
    )  # fmt: skip
    _announce_compilation()
    empty = Materialisation(program, settings)
    if not program.checked.functors:
        empty.bootstrap({})
    for stratum in empty.backend.program.strata:
        empty.backend.prepare(stratum)


def _first_epoch(
    given: Given, program: Program, settings: Settings
) -> tuple[Materialisation, EpochRecord, list[Report]]:
    """The first epoch of what is given, and how reading its facts went. Where several threads may read, files are read
    from now on, while this one imports what evaluates, and plans."""
    watch = settings.watch()
    named = given.facts
    if named is None and inputs_of(program.checked):
        named = Path(program.tree.source.name).parent  # of a text, the current folder
    facts: InputFiles | str | os.PathLike[str] | Mapping[str, Rows] | None = named
    if given.engine == "auto" and not settings.on_cluster:
        from elastalog.backends.gpu.starting import begin_ahead

        is_recursive = program.once("is recursive", lambda: any(each.is_recursive for each in program.checked.strata))
        begin_ahead(is_recursive, lambda: _about_how_many(named))
    with ExitStack() as reading:

        def begin(sources: Sequence[Source]) -> InputFiles:
            with reading_within(settings.reading(watch)):
                files = InputFiles(sources, given.policy)
                reading.callback(files.close)
                files.begin()
                return files

        checked, files, unread = program.checked, None, set[str]()
        rows = named if isinstance(named, Mapping) else None
        folder = None if isinstance(named, Mapping) or given.engine == "spark" else named
        if folder is not None and not is_address(folder):
            if given.facts is not None:
                unread = look_for_unread(checked, Path(folder))
            facts = begin(sources_in(checked, Path(folder), given.policy))
        if not (given.is_program or rows is not None or given.store.path):
            if folder is not None and given.facts is not None:
                _warn_of_nothing(program, unread)
            elif named is None and Path(checked.source.name).is_file():
                look_for_unread(checked, Path(checked.source.name).parent)
        if rows and given.facts is not None:
            _warn_of_missing(program, rows)
        if rows is not None and (sources := sources_at(checked, rows, given.policy)):
            files = begin(sources)
        materialisation = Materialisation(program, settings, watch=watch)
        if folder is not None and is_address(folder):
            from elastalog.folders.remote import RemoteFolder

            fetched = RemoteFolder(str(folder)).fetch_all()
            facts = begin(sources_in(checked, Path(fetched), given.policy))
        with materialisation.lock, Within(watch, materialisation.timeout, on_long=materialisation.tell_of_growth):
            is_read = not rows or any(type(one) is not list for one in rows.values())
            with materialisation.reading() if is_read else nullcontext():
                explicit, reports = initial_facts(materialisation, facts, given.policy, files)
            reading.close()
            INVALID_TEXTS.clear()
            record = materialisation.epochs.bootstrap(explicit)
    if INVALID_TEXTS:
        materialisation.tell_invalid_texts()
    return materialisation, record, reports


def _warn_of_nothing(program: Program, told: Collection[str]) -> None:
    """Warns of relations that nothing fills, where none is and facts were expected, since a folder was given; without
    one, updates fill them. `told`: relations of which it was told already."""
    checked = program.checked
    is_filled = checked.facts or any(d.kind == "input" for one in checked.relations.values() for d in one.directives)
    if not is_filled and all(any(isinstance(literal, Atom) for literal in rule.body) for rule in checked.rules):
        for found in program.warnings:
            if found.code == "E0223" and not any(quoted(name) in found.message for name in told):
                warn_of(found)


def _warn_of_missing(program: Program, facts: Mapping[str, Rows]) -> None:
    """Warns of relations with `.input` for which no facts are given, nor in the text."""
    checked = program.checked
    needed = program.once("needs facts", lambda: {each.name: None for each in inputs_of(checked)})
    if needed.keys() <= facts.keys() or not facts.keys() <= checked.relations.keys():  # which is an error
        return
    written = {fact.relation for fact in checked.facts}
    names = [name for name in needed if name not in facts and name not in written]
    if names:
        listed = ", ".join(f"`{name}`" for name in names)
        warn_of(finding("E0510.empty", severity="warning", listed=listed, name=names[0]))


_BYTES_OF_A_FACT = {".parquet": 5}
_BYTES_OF_TEXT = 10


def _about_how_many(named: object) -> int:
    """About how many facts there are in a folder, or in what is given by relation, as far as that is seen at once."""
    if isinstance(named, Mapping):
        return sum(map(_about_how_many, named.values()))
    if not isinstance(named, str | os.PathLike):
        return len(named) if isinstance(named, Sized) else 0
    path, size = Path(named), 0
    with suppress(OSError, ValueError):
        for file in [path] if path.is_file() else path.iterdir():
            size += file.stat().st_size // _BYTES_OF_A_FACT.get(file.suffix, _BYTES_OF_TEXT)
    return size


def _require_kinds(facts: object, limits: object, on_progress: object, spark: object) -> None:
    if facts is not None and not isinstance(facts, Mapping):
        what = "facts are a folder or a mapping"
        if is_json_text(facts):
            raise wrong_kind(what, facts, "this looks like JSON: give the path of a file, or `json.loads` of the text")
        require_place(what, facts, 'give the path of a folder, or say whose facts they are: `{"edge": [(1, 2)]}`')
    if not isinstance(limits, Limits):
        raise wrong_kind("`limits` are `Limits`", limits, "give `elastalog.Limits(memory=…, time=…)`")
    if on_progress is not None and not callable(on_progress):
        raise wrong_kind("`on_progress` is a function", on_progress, "give a function of one argument, a `Progress`")
    if spark is not None and not hasattr(spark, "conf"):
        raise wrong_kind("`spark` is a Spark session", spark, "give one, as `elastalog.spark.session()` makes it")


def _copy_of(address: str, read_only: bool) -> tuple[Path, FileSystem | None]:
    """The folder with the copy of a store at an address, and the files through which it is written, if it is."""
    if read_only:
        from elastalog.storage.fetching import fetch_store

        return fetch_store(address).folder, None
    from elastalog.storage.objects.writing import writable_copy

    files = writable_copy(address)
    return files.folder, files


def _require_same_functors(path: Path, options: Options, given: Mapping[str, str]) -> None:
    """Facts that another function has made would not be those of this one."""
    for name, kept in options.functors.items():
        if given.get(name, kept) != kept:
            raise ElastalogError.of("E0840", location=path, name=name)


def _open_store(
    given: Given, path: Path, files: FileSystem | None, settings: Settings
) -> tuple[Materialisation, History]:
    """What a store holds, as it was left or at an earlier epoch."""
    from elastalog.evaluation.stored import restore, stored_program
    from elastalog.storage import store as stores
    from elastalog.storage.history import equivalences_in

    program = None if given.program is None else given.program()
    store = stores.Store.open(path, read_only=given.store.is_read, until=given.store.at, files=files)
    try:
        state = store.state(given.store.at)
        stored, options = stored_program(store, state, program, given.strategy, given.levels)
        settings = replace(
            settings, strategy=options.strategy, levels=options.levels, may_lack_functors=given.store.is_read,
            equivalences=equivalences_in(state.layout),
        )  # fmt: skip
        materialisation = Materialisation(stored, settings)
        _require_same_functors(path, options, digests_of(stored.checked, materialisation.dictionary.functions))
        is_as_stored = restore(state, materialisation.epochs, materialisation.dictionary)
    except BaseException:
        store.close()
        raise
    return materialisation, History(materialisation, store, is_as_stored=is_as_stored)


def _unread(given: Given, materialisation: Materialisation, history: History) -> str:
    """What an existing store does not have of the facts that are given, or stand beside the program: rows, and files
    that were written since it was made, as far as it goes back."""
    facts, program = given.facts, materialisation.program.checked
    if history.store is None or (facts is None and given.program is None):
        return ""
    made = history.store.manifest.snapshots[0].entry.timestamp
    if isinstance(facts, Mapping):
        paths = [one for one in facts.values() if type(one) is not list and isinstance(one, str | os.PathLike)]
        is_unknown = len(paths) < len(facts) or any(map(is_address, paths))
        names = [] if is_unknown else [Path(one).name for one in paths if is_newer(Path(one), made)]
    else:
        is_unknown = facts is not None and is_address(facts)
        folder = Path(given.program().tree.source.name).parent if facts is None else Path(facts)  # type: ignore[misc]
        names = edited_since(program, folder, made)
    if is_unknown:
        return "`facts` were not read: leave them out, and "
    listed = ", ".join(f"`{name}`" for name in names)
    return f"{listed}, edited since, {'was' if len(names) == 1 else 'were'} not read again: " if names else ""


def _announce_compilation() -> None:
    """The first session on a machine compiles what evaluates. The log says so, and standard error of a terminal or a
    notebook, once in a process."""
    global _is_listening
    if not _is_listening:
        _is_listening = True
        _LISTENING.enter_context(announced_compilation(_tell))


def _tell(message: str) -> None:
    log.info(message)
    is_watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    click = sys.modules.get("click")
    is_command = click is not None and click.get_current_context(silent=True) is not None  # it says so itself
    if is_watched and not is_command:
        print(f"elastalog: {message}", file=sys.stderr, flush=True)


# --- a query without a session ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and the program that derives its answers and what they need, and nothing else."""

    query: Query
    program: Program
    texts: Collection[str]
    """Those that it compares facts with, and that the program did not have."""

    def answers(self, session: Session) -> Relation:
        """The answers, from a session of the program, which is not needed any more."""
        return session._reader.answers_in(self.query, self.texts)


def question(program: Program, text: str, parameters: Mapping[str, object]) -> Question:
    """A query about a program. Raises ElastalogError if it is not one."""
    require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
    checked = program.checked
    values = parameter_values(parameters)
    query = check_query(text, program.tree, checked, values)
    own = next(stratum for stratum in query.program.strata if query.name in stratum.relations)
    together = replace(
        checked,
        relations={**checked.relations, query.name: query.program.relations[query.name]},
        rules=(*checked.rules, *query.program.rules),
        strata=(*checked.strata, replace(own, number=len(checked.strata))),
    )
    known = {one.value for one in nodes_of(Constant, checked.rules)}.union(*(fact.values for fact in checked.facts))
    texts = [text for text in texts_asked(query, values) if text not in known]
    return Question(query, replace(program, checked=with_demand(together, (query.name,))), texts)


@takes_options
def query(
    program: str | os.PathLike[str] | Program,
    facts: str | os.PathLike[str] | Mapping[str, Rows] | None,
    text: str,
    *,
    parameters: Mapping[str, object] | None = None,
    **options: Any,
) -> Relation:
    """The answers to a query, `path(1, X)` or literals as in the body of a rule, over a program and facts. Only what
    they need is read and derived: of `path`, what starts at 1. `parameters` are the values of `?name` in the query,
    and the other options are those of `elastalog.open`.

    To ask more than once over the same facts, open a session (`elastalog.open`) and use its `query`."""
    asked = question(as_program(program), text, parameters or {})
    strategy = "elastic" if may_await_groups(asked.program.checked) else "recompute"
    with open(asked.program, facts, **{"strategy": strategy, **options}) as session:
        return asked.answers(session)
