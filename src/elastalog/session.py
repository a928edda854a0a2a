"""The front door: open a program over facts, read its relations, update them.

import elastalog

with elastalog.open("reach.dl", facts="facts/") as db:
    with db.update() as update:
        update.insert("edge", [(1, 2)])
    print(update.changes["path"].inserted)
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from elastalog.analysis.pattern import parse_fact, parse_pattern
from elastalog.analysis.program import Value
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.sets import Support
from elastalog.backends.watch import Progress, Watch, most_of_memory
from elastalog.debugging.answers import Blame, Localisation, Suggestion
from elastalog.debugging.debugger import Debugger
from elastalog.debugging.faults import gone_on
from elastalog.debugging.past import Past
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import nearest
from elastalog.evaluation.answers import answers
from elastalog.evaluation.changes import Changes, RelationChanges
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.differences import Difference, Verification, compare, difference
from elastalog.evaluation.epochs import EpochRecord, Epochs
from elastalog.evaluation.pending import PendingUpdate
from elastalog.evaluation.statistics import Statistics, statistics_of
from elastalog.evaluation.stored import (
    DurableEpochs,
    create_store,
    is_store,
    refuse_to_create,
    restore,
    stored_program,
    unmoved,
)
from elastalog.evaluation.strategies import STRATEGIES, make_strategy, marks_of
from elastalog.evaluation.strategies.by_stratum import MaintainingStrategy
from elastalog.evaluation.strategies.marking import Marks
from elastalog.evaluation.strategies.protocol import Work
from elastalog.evaluation.update import Update
from elastalog.pipeline.files.policy import Mode, Policy, Report
from elastalog.pipeline.files.read import read_input
from elastalog.pipeline.spark.engine import (
    backend_maker,
    choose_spark,
    is_spark_rows,
    make_frame,
    read_facts_folder,
    read_spark_rows,
)
from elastalog.planning.lower import lower
from elastalog.program import Program
from elastalog.provenance.absence import Absence
from elastalog.provenance.explain import Explainer, Setting, metric_named
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Schema
from elastalog.relations.tables import to_words
from elastalog.relations.words import Dictionary
from elastalog.storage import faults
from elastalog.storage.batches import Batches
from elastalog.storage.entries import LogEntry
from elastalog.storage.history import Turn, turns
from elastalog.storage.manifest import Options
from elastalog.storage.store import Store

Relation.make_frame = staticmethod(make_frame)

Rows = Any
"""Facts of one relation: a list of tuples, or anything tabular (see `relations.tables.to_words`)."""


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

    `engine`: `local` evaluates in this process, `spark` in tasks, `auto` in this process while memory suffices and in
    tasks of
    `spark`, a Spark session, beyond. Facts may be Spark DataFrames or sources of `elastalog.spark`."""
    _require_one_of("engine", engine, ("auto", "local", "spark"))
    _require_one_of("strategy", strategy or "elastic", tuple(STRATEGIES))
    _require_one_of("levels", levels or "local", ("local", "global"))
    spark = choose_spark(engine, spark)
    settings: dict[str, Any] = {
        "metric": metric, "jobs": jobs or 1, "memory": memory, "timeout": timeout, "budget": budget,
        "on_progress": on_progress, "make_backend": backend_maker(engine, spark),
    }  # fmt: skip
    read_only = read_only or at is not None
    if store is not None and (program is None or read_only or is_store(Path(store))):
        if facts is not None:
            raise faults.already_there(Path(store))
        given = None if program is None else _program(program)
        with unmoved(Path(store)) if read_only else nullcontext():
            return Session._of_store(Path(store), given, read_only, at, strategy, levels, settings)
    if program is None:
        raise ElastalogError([Diagnostic("E0818", "neither a program nor a store was given", help="give one of them")])
    if store is not None:
        refuse_to_create(Path(store), strategy or "elastic")
    session = Session(_program(program), strategy=strategy or "elastic", levels=levels or "local", **settings)
    session._bootstrap(facts, Policy(bad_rows, max_bad_rows, Path(quarantine)), spark, engine)
    if store is not None:
        session._keep_in(Path(store), Options(strategy or "elastic", levels or "local", retention))
    return session


class Session:
    """A program, its facts, and everything that follows from them. Made by `elastalog.open`."""

    def __init__(
        self,
        program: Program,
        *,
        strategy: str,
        levels: str,
        metric: str,
        jobs: int,
        memory: int | None,
        timeout: float | None,
        budget: float | None,
        on_progress: Callable[[Progress], None] | None,
        dictionary: Dictionary | None = None,
        make_backend: Callable[..., KernelBackend] = KernelBackend,
    ) -> None:
        self.program = program
        self.schemas = {name: Schema.of(relation) for name, relation in program.checked.relations.items()}
        self._dictionary = Dictionary() if dictionary is None else dictionary
        self._timeout = timeout
        self._watch = Watch(memory=most_of_memory() if memory is None else memory, on_progress=on_progress)
        chosen = make_strategy(strategy, self._watch, budget)
        if levels == "global" and chosen.support is not Support.LEVELS:
            advice = "choose strategy `elastic`, or leave out levels"
            raise ElastalogError(
                [Diagnostic("E0902", f"strategy `{strategy}` does not keep global levels", help=advice)]
            )
        self._backend = make_backend(
            lower(program.checked), self._dictionary, is_annotated=chosen.is_annotated, is_global=levels == "global",
            support=chosen.support, jobs=jobs, watch=self._watch,
        )  # fmt: skip
        self._epochs = Epochs(self._backend, chosen)
        has_levels = chosen.is_annotated and chosen.support is Support.LEVELS
        setting = Setting(
            program.checked, self._backend, self._dictionary, has_levels, levels == "global", metric_named(metric)
        )
        self._explainer = Explainer(setting, lambda: self.epoch)
        self._lock = threading.RLock()
        self._history: list[EpochRecord] = []
        past = Past(self._history, lambda: self._store, lambda: self.epoch)
        self._debugger = Debugger(setting, self._epochs, past, self.fact, self._undo_suggested)
        self._batches = Batches()
        self._store: Store | None = None
        self._durable: DurableEpochs | None = None
        self._is_read_only = False
        self._settings: dict[str, Any] = {
            "strategy": strategy, "levels": levels, "metric": metric, "jobs": jobs, "memory": memory,
            "timeout": timeout, "budget": budget, "on_progress": on_progress,
        }  # fmt: skip
        self.reports: list[Report] = []
        self._is_closed = False

    # --- life ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session. Relations taken from it can no longer be read."""
        self._is_closed = True
        if self._store is not None:
            self._store.close()

    def __repr__(self) -> str:
        facts = sum(self._backend.size(name) for name in self.schemas)
        return f"<Session of {self.program.tree.source.name}: epoch {self.epoch}, {facts:,} facts>"

    def _bootstrap(
        self, facts: str | os.PathLike[str] | Mapping[str, Rows] | None, policy: Policy, spark: Any, engine: str
    ) -> None:
        self._start_clock()
        explicit: dict[str, list[np.ndarray]] = {}
        for fact in self.program.checked.facts:
            bases = [column.base for column in self.schemas[fact.relation].columns]
            words = [self._dictionary.encode_value(base, v) for base, v in zip(bases, fact.values, strict=True)]
            explicit.setdefault(fact.relation, []).append(np.array([words or [0]], np.int32))
        if isinstance(facts, Mapping):
            for name, rows in facts.items():
                if is_spark_rows(rows):
                    rows, report = read_spark_rows(self._schema(name), rows, policy, spark)
                    self.reports.append(report)
                explicit.setdefault(name, []).append(self.encode(name, rows))
        elif facts is not None:
            for relation in self.program.checked.relations.values():
                if any(directive.kind == "input" for directive in relation.directives):
                    read = (
                        read_facts_folder(relation, facts, policy, spark)
                        if engine == "spark"
                        else read_input(relation, Path(facts), policy)
                    )
                    self.reports.append(read.report)
                    explicit.setdefault(relation.name, []).append(self.encode(relation.name, read.table))
        joined = {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in explicit.items()}
        self._history.append(self._epochs.bootstrap(joined))

    def _start_clock(self) -> None:
        self._watch.deadline = None if self._timeout is None else time.monotonic() + self._timeout

    def encode(self, name: str, rows: Rows) -> np.ndarray:
        """Facts of a relation as words."""
        if is_spark_rows(rows):
            rows, _ = read_spark_rows(self._schema(name), rows, Policy(), None)
        words = to_words(self._schema(name), rows, self._dictionary)
        return words if words.shape[1] else np.zeros((len(words), 1), np.int32)

    def _schema(self, name: str) -> Schema:
        schema = self.schemas.get(name)
        if schema is None:
            close = nearest(name, self.schemas)
            advice = f"did you mean `{close}`?" if close else "the program declares: " + ", ".join(self.schemas)
            raise ElastalogError([Diagnostic("E0606", f"there is no relation `{name}`", help=advice)])
        return schema

    # --- reading ---------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The number of the latest epoch; the bootstrap is epoch 1."""
        return self._epochs.number

    def __getitem__(self, name: str) -> Relation:
        schema = self._schema(name)
        return Relation(
            schema,
            self._dictionary,
            lambda: self._backend.facts(name),
            size=lambda: self._backend.size(name),
            contains=lambda words: bool(self._backend.contains(name, words)[0]),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.schemas)

    def __contains__(self, name: object) -> bool:
        return name in self.schemas

    def query(self, text: str) -> Relation:
        """The facts that fit a pattern such as `path(1, X)`: a relation with one column per variable."""
        pattern = parse_pattern(text, self.program.checked)
        return answers(pattern, self.schemas[pattern.relation], self._dictionary, self._backend)

    def explicit(self, name: str) -> Relation:
        """The explicit facts of a relation: those that were given, whether or not they also follow from rules."""
        words = self._backend.facts(self._schema(name).name).words
        return Relation.of(self.schemas[name], self._dictionary, words[self._backend.is_explicit(name, words)])

    def statistics(self) -> Statistics:
        """What rules and relations cost: time and derivations of the last bootstrap, facts and memory now."""
        return statistics_of(self._backend)

    def fact(self, written: str | tuple[str, tuple[Value, ...]]) -> tuple[str, tuple[Value, ...]]:
        """A fact, from text (`path(1,4)`) or from relation and values, checked against the declarations."""
        if isinstance(written, str):
            return parse_fact(written, self.program.checked)
        name, values = written
        self.encode(name, [values])
        return name, tuple(values)

    # --- explaining ------------------------------------------------------------------------------------------------

    def explain(self, fact: str | tuple[str, tuple[Value, ...]], depth: int | None = None) -> Proof:
        """Why a fact holds: its best proof, to a depth (all the way by default), as a tree that can be expanded."""
        return self._explainer.explain(Fact(*self.fact(fact)), depth)

    def derivations(self, fact: str | tuple[str, tuple[Value, ...]]) -> tuple[Proof, ...]:
        """Every derivation of a fact that holds, as proofs of one level."""
        return self._explainer.derivations(Fact(*self.fact(fact)))

    def proofs(self, fact: str | tuple[str, tuple[Value, ...]], limit: int = 10) -> Iterator[Proof]:
        """Distinct proofs of a fact, lowest first, found as they are asked for. In none is a fact below itself."""
        return self._explainer.proofs(Fact(*self.fact(fact)), limit)

    def explain_absence(
        self,
        fact: str | tuple[str, tuple[Value, ...]],
        limit: int = 5,
        *,
        rule: int | None = None,
        bindings: Mapping[str, Value] | None = None,
    ) -> Absence:
        """Why a fact does not hold: the derivations of it that fail nearest to success, best first. `rule`, by its
        number in the relation, and `bindings`, values of its variables, restrict the search."""
        return self._explainer.explain_absence(Fact(*self.fact(fact)), limit, rule, bindings)

    # --- debugging -------------------------------------------------------------------------------------------------

    def localise(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        *,
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Localisation:
        """A smallest part of the last update, or of what happened between two epochs, that alone shows all faults:
        facts that hold and are unwanted, facts that do not and are missing. After `time_limit` seconds (60) a small
        part that shows them."""
        with self._lock:
            self._start_clock()
            return self._debugger.localise(unwanted, missing, epochs, time_limit, on_progress)

    def suggest(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        rejected: Sequence[Any] = (),
        weights: Mapping[Any, float] | None = None,
        time_limit: float | None = None,
        *,
        epochs: tuple[int, int] | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Suggestion:
        """A smallest part of the last update, or of what happened between two epochs, whose undoing removes all faults.
        `rejected` elements (`+edge(1,2)`) stay applied; `weights` say how dear it is to undo an element, 1 by
        default."""
        with self._lock:
            self._start_clock()
            return self._debugger.suggest(unwanted, missing, rejected, weights, epochs, time_limit, on_progress)

    def blame(self, fact: str | tuple[str, tuple[Value, ...]]) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""
        with self._lock:
            self._start_clock()
            return self._debugger.blame(fact)

    def _undo_suggested(self, suggestion: Suggestion) -> Changes:
        if suggestion.epochs[1] != self.epoch:
            raise gone_on(suggestion.epochs[1], self.epoch)
        with self.update() as update:
            for sign, (name, values) in suggestion.elements:
                (update.delete if sign == "+" else update.insert)(name, [values])
        return update.changes

    # --- updating --------------------------------------------------------------------------------------------------

    def update(self, source: str | None = None, batch: str | int | None = None) -> PendingUpdate:
        """An update to fill, as a context manager: it is committed on leaving, or dropped if an exception passes. An
        update that carries a batch that its source has sent before does nothing."""
        return PendingUpdate(self, source, None if batch is None else str(batch))

    def apply(
        self,
        inserted: Mapping[str, Rows] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Applies an update, given as rows by relation or as the path of a diff file, and returns what it changed."""
        update = self.update(source, batch)
        if isinstance(inserted, str | os.PathLike):
            update.read(inserted)
            inserted = None
        for name, rows in (deleted or {}).items():
            update.delete(name, rows)
        for name, rows in (inserted or {}).items():
            update.insert(name, rows)
        return update.commit()

    def announce(self, upcoming: PendingUpdate, marks: str = "eager") -> None:
        """Says which update will follow the next one, so that the next one can prepare for it. `marks`: `eager` (dred,
        bf, bfc) or
        `linked` (bf, bfc). Results never depend on it, nor on whether that update comes."""
        strategy = self._epochs.strategy
        _require_one_of("marks", marks, tuple(kind.value for kind in Marks))
        if Marks(marks) not in marks_of(strategy):
            advice = "`eager` marks are for dred, bf and bfc, `linked` ones for bf and bfc"
            raise ElastalogError([Diagnostic("E0903", f"strategy `{strategy.name}` has no {marks} marks", help=advice)])
        if isinstance(strategy, MaintainingStrategy):
            strategy.announce(upcoming.as_update(), Marks(marks))

    def prepare(self) -> None:
        """Plans updates and makes the indexes that they need now, instead of when the first update needs them."""
        with self._lock:
            for stratum in self._backend.program.strata:
                self._backend.prepare(stratum)

    def forecast(
        self, inserted: Mapping[str, Rows] | None = None, deleted: Mapping[str, Rows] | None = None
    ) -> tuple[Forecast, ...]:
        """What the strategy would choose for an update, by the strata that would be affected first: those that read a
        changed relation or hold one. Strata further up depend on what these change."""
        update = self.update()
        for name, rows in (deleted or {}).items():
            update.delete(name, rows)
        for name, rows in (inserted or {}).items():
            update.insert(name, rows)
        return self._epochs.forecast(update.as_update())

    def log(self) -> tuple[EpochRecord, ...] | tuple[LogEntry, ...]:
        """What is known of every epoch: of this session, or of the store, back to its retention."""
        if self._store is None:
            return tuple(self._history)
        with self._lock, self._stored() as store:
            return store.log()

    # --- the store -------------------------------------------------------------------------------------------------

    @classmethod
    def _of_store(
        cls,
        path: Path,
        program: Program | None,
        read_only: bool,
        epoch: int | None,
        strategy: str | None,
        levels: str | None,
        settings: Mapping[str, Any],
    ) -> Session:
        store = Store.open(path, read_only=read_only, until=epoch)
        try:
            stored, options = stored_program(store, program, strategy, levels)
            session = cls(stored, strategy=options.strategy, levels=options.levels, **settings)
            state = store.state(epoch)
            state.fill(session._dictionary)
            restore(state, session._epochs, session._backend)
        except BaseException:
            store.close()
            raise
        session._store, session._batches, session._is_read_only = store, store.batches, read_only
        if not read_only:
            session._durable = DurableEpochs(session._epochs, session._backend, session._dictionary, store)
        return session

    def _keep_in(self, path: Path, options: Options) -> None:
        self._durable = create_store(
            path, self.program, self._epochs, self._backend, self._dictionary, options, self._history[-1]
        )
        self._store, self._batches = self._durable.store, self._durable.store.batches

    @property
    def recovery(self) -> tuple[Diagnostic, ...]:
        """What opening the store found and repaired after a crash: nothing, as a rule."""
        return () if self._store is None else tuple(self._store.discarded)

    def at(self, epoch: int) -> Session:
        """A read-only session of an earlier epoch, kept by the store back to its retention."""
        with self._lock, self._stored() as store:
            state = store.state(epoch)
            earlier = Session(self.program, dictionary=self._dictionary, **self._settings)
            restore(state, earlier._epochs, earlier._backend)
            earlier._is_read_only = True
            return earlier

    def diff(self, first: int, last: int) -> dict[str, Difference]:
        """What the epochs after one until another did together: facts that came and went, and those that have other
        levels. The other way round when `last` is the earlier one."""
        with self._lock, self._stored() as store:
            return difference(store, first, last, self.schemas, self._dictionary)

    def turns(self, fact: str | tuple[str, tuple[Value, ...]]) -> tuple[Turn, ...]:
        """The epochs in which a fact appeared, disappeared or changed its level, oldest first, as far back as the store
        goes."""
        name, values = self.fact(fact)
        with self._lock, self._stored() as store:
            return turns(store.records(store.first_epoch, store.epoch), name, self.encode(name, [values]))

    def verify(self) -> Verification:
        """Evaluates the program anew over the explicit facts, and compares all facts, levels and counts."""
        again = Session(self.program, **self._settings)
        explicit = {name: self.explicit(name).to_arrow() for name in self.schemas}
        again._epochs.bootstrap({name: again.encode(name, table) for name, table in explicit.items()})
        return compare(self.schemas, self._dictionary, self._backend, again._dictionary, again._backend)

    @contextmanager
    def _stored(self) -> Iterator[Store]:
        """The store, to read history from. A reader looks again at what its files are now."""
        if self._store is None:
            raise faults.no_history()
        if not self._store.is_read_only:
            yield self._store
            return
        with unmoved(self._store.root):
            yield Store.open(self._store.root, read_only=True, until=self.epoch)

    def commit(self, update: Update) -> EpochRecord:
        """Applies an update made of words: the next epoch. `update` and `apply` are the ways to make one."""
        with self._lock:
            if self._is_read_only:
                raise faults.read_only("it cannot be updated")
            if (update.source, update.batch) in self._batches:
                return EpochRecord(
                    self.epoch, 0, 0, update.size, {}, Work(), 0.0, update.source, update.batch, is_repeated=True
                )
            self._start_clock()
            before = self.epoch
            try:
                record = self._epochs.apply(update)
            finally:
                if self.epoch > before:  # even when Ctrl-C was held back until the commit was done
                    self._batches.add(update.source, update.batch)
            self._history.append(record)
            if self._durable is not None:
                del self._history[:-1]  # the store has the others
                self._durable.after_commit()
            return record

    def changes_of(self, record: EpochRecord) -> Changes:
        """What an epoch changed, as relations."""

        def relation(name: str, words: np.ndarray) -> Relation:
            return Relation.of(self.schemas[name], self._dictionary, words)

        nothing = np.empty((0, 1), np.int32)
        changed = {
            name: RelationChanges(relation(name, inserted), relation(name, deleted))
            for name, (inserted, deleted) in record.changes.items()
        }
        return Changes(changed, lambda name: RelationChanges(relation(name, nothing), relation(name, nothing)))


def _program(program: str | os.PathLike[str] | Program) -> Program:
    if isinstance(program, Program):
        return program
    if isinstance(program, str) and ("\n" in program or ":-" in program or program.lstrip().startswith(".decl")):
        return Program.parse(program)
    return Program.load(program)


def _require_one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        close = nearest(value, allowed)
        advice = f"did you mean `{close}`?" if close else "one of " + ", ".join(f"`{name}`" for name in allowed)
        raise ElastalogError([Diagnostic("E0612", f"`{value}` is not a known {option}", help=advice)])
