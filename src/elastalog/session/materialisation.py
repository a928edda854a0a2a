"""A program, its facts and what maintains them, on which every part of a session works; and the explicit facts of its
first epoch, from the text of the program, given, or read from files."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from elastalog.analysis.pattern import parse_fact
from elastalog.backends.annotation import Support
from elastalog.backends.engines import backend_maker
from elastalog.backends.protocol import FactFiles
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, warn_of
from elastalog.diagnostics.quota import within
from elastalog.evaluation import needed_groups
from elastalog.evaluation.epochs import EpochRecord, Epochs
from elastalog.evaluation.rewriting import FACT
from elastalog.evaluation.strategies import make_strategy
from elastalog.evaluation.strategies.protocol import growing_rules
from elastalog.pipeline.files.allowance import reading_within
from elastalog.pipeline.files.loading import InputFiles, inputs_of
from elastalog.pipeline.files.policy import BadRows, Report, report_of
from elastalog.pipeline.files.read import place_of, read_given, said_of_text
from elastalog.pipeline.spark.for_sessions import is_spark_rows, sources
from elastalog.planning.equivalences import kept_as_classes
from elastalog.planning.lower import lower
from elastalog.planning.transition import Transition
from elastalog.provenance.fact import Fact, no_fact
from elastalog.provenance.metrics import metric_named
from elastalog.relations.checks import converted_values
from elastalog.relations.functions import functions_for, library_functions, with_records
from elastalog.relations.rows import values_of_fact
from elastalog.relations.schema import Schema, schema_named, schemas_of
from elastalog.relations.tables import as_table, to_words, words_of_few_tuples
from elastalog.relations.thread_lock import ThreadLock
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager

    from elastalog.analysis.query import Query
    from elastalog.backends.engines import BackendMaker
    from elastalog.backends.protocol import Backend, FactFiles
    from elastalog.evaluation.strategies.by_stratum import Strategy
    from elastalog.planning.logical import LogicalProgram
    from elastalog.program import Program
    from elastalog.provenance.explain import Setting
    from elastalog.provenance.fact import Written
    from elastalog.provenance.invalid_texts import InvalidTexts
    from elastalog.session.engine import Observer
    from elastalog.session.settings import Settings

log = logging.getLogger("elastalog.session")


class Materialisation:
    """The facts of a program at its latest epoch. `lock` is held while it is updated, or while several things are read
    that must belong to the same epoch. `watch`: limits of evaluation. Backend, dictionary and epochs never change;
    program and schemas change with the rules."""

    def __init__(
        self, program: Program, settings: Settings, dictionary: Dictionary | None = None, watch: Watch | None = None
    ) -> None:
        self._settings = settings
        self.watch = settings.watch() if watch is None else watch
        self.timeout = settings.limits.time
        self.spark = settings.spark
        self.lock = ThreadLock()
        self.observers: list[Observer] = []
        self.dictionary = Dictionary() if dictionary is None else dictionary
        functors = settings.functors
        if settings.libraries:
            functors = {**library_functions(program.checked, settings.libraries), **(functors or {})}
        functions_for(program.checked, functors, may_lack=settings.may_lack_functors)
        self.dictionary.functions = with_records(program.checked, functors or {})
        self.dictionary.wraps = program.checked.wraps
        strategy, self.backend = self._strategy_and_backend(self._lowered(program), settings.strategy)
        if settings.levels == "global" and strategy.annotation.support is not Support.LEVELS:
            told = f"strategy `{settings.strategy}` does not keep global levels"
            advice = "choose strategy `elastic`, or leave out levels"
            raise ElastalogError([Diagnostic("E0902", told, help=advice)])
        self._metric = metric_named(settings.metric)
        self.epochs = Epochs(self.backend, strategy)
        self._invalid_texts: InvalidTexts | None = None
        self.follow(program)

    def follow(self, program: Program) -> None:
        """Takes over the program that the backend has now."""
        self.program = program
        self.schemas = program.once("schemas", lambda: schemas_of(program.checked))

    def tell_of_growth(self) -> None:
        """Says of work that takes long which rules may keep it from ending."""
        for told in growing_rules(self.backend.program.strata, self.program.checked)[:3]:
            log.warning("still at work after %d seconds; should it not end: %s", SETTINGS.long_work, told)

    def tell_invalid_texts(self, query: Query | None = None) -> None:
        """Warns of texts that are not dates or numbers, where rules, or those of a query, derive nothing for that
        reason, or compare them."""
        from elastalog.provenance.invalid_texts import InvalidTexts

        if query is None:
            known = self._invalid_texts = self._invalid_texts or InvalidTexts()
            program, name = self.program.checked, None
        else:
            known, program, name = InvalidTexts(), query.program, query.name
        for ask in (known.compared, known.lost_dates, known.lost_numbers):
            if (found := ask(program, self.backend, self.dictionary, name)) is not None:
                warn_of(found)

    def another(
        self,
        program: Program,
        dictionary: Dictionary | None = None,
        equivalences: frozenset[str] | None = None,
        watch: Watch | None = None,
        strategy: str | None = None,
        make_backend: BackendMaker | None = None,
    ) -> Materialisation:
        """A new one with the same settings, in this process, still without facts. `equivalences`: those kept as
        classes, and `strategy`: as here unless given. `watch`: that of this one, for questions in the same thread.
        `make_backend`: how it is evaluated, by default by the kernel alone."""
        if equivalences is None:
            equivalences = self.backend.program.equivalences
        strategy = self._settings.strategy if strategy is None else strategy
        settings = replace(
            self._settings, make_backend=make_backend, on_cluster=False, equivalences=equivalences, strategy=strategy
        )
        other = Materialisation(program, settings, dictionary, watch)
        other.observers = self.observers
        return other

    def asking(self, *asked: object) -> AbstractContextManager[None]:
        """A block that evaluates or asks something, under the lock and within the limits of the settings. `asked`:
        texts and facts of the question, or lists of them."""
        each = [one for given in asked for one in (given[:10] if isinstance(given, list) else (given,)) if one]
        return self.within(self.timeout, None, _Asked(each) if each else None)

    @contextmanager
    def within(self, seconds: float | None, memory: int | None = None, asked: object = None) -> Iterator[None]:
        """A block that holds the lock, with limits of seconds and bytes. Limits within it may be lower, never
        higher."""
        with self.lock, self.watch.within(seconds, memory, asked):
            if asked is None or not self.observers:
                yield
                return
            with self.observed(str(asked)):
                yield

    @contextmanager
    def observed(self, asked: str) -> Iterator[None]:
        """A block that answers a question and reports it to observers."""
        began = time.time_ns()
        failed: BaseException | None = None
        try:
            yield
        except BaseException as error:
            failed = error
            raise
        finally:
            self.tell(lambda observer: observer.asked(asked, began, failed))

    def tell(self, told: Callable[[Observer], None]) -> None:
        """Notifies observers; their exceptions are logged."""
        for observer in tuple(self.observers):
            try:
                told(observer)
            except Exception:
                log.exception("%r failed when it was told", observer)

    def own_watch(self, seconds: float | None, asked: str) -> Watch:
        """The limits of a question that is answered without the lock."""
        return Watch(within(seconds, None, asked), self.watch.memory)

    @property
    def strategy_name(self) -> str:
        return self._settings.strategy

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block in which reading files obeys the limits of the settings, counted from now."""
        with self.watch.within(self.timeout), reading_within(self._settings.reading(self.watch)):
            yield

    @property
    def epoch(self) -> int:
        return self.epochs.number

    @property
    def setting(self) -> Setting:
        """What proofs of the present program are made from."""
        from elastalog.provenance.explain import Setting

        has_levels = self.epochs.strategy.annotation.has_levels_only
        is_global = self._settings.levels == "global"
        return Setting(self.program.checked, self.backend, self.dictionary, has_levels, is_global, self._metric)

    # --- facts in and out ------------------------------------------------------------------------------------------

    def bootstrap(self, explicit: dict[str, np.ndarray | FactFiles]) -> EpochRecord:
        """Makes the first epoch, of encoded explicit facts or of files with them, which are removed from the dict."""
        with self.watch.within(None):
            return self.epochs.bootstrap(explicit)

    def schema(self, name: str) -> Schema:
        """The schema of a relation; raises ElastalogError if there is no such relation."""
        return schema_named(self.schemas, name)

    def encode(self, name: str, rows: Any, schemas: Mapping[str, Schema] | None = None) -> np.ndarray:
        """Encodes facts of a relation; `schemas` are those of the program unless given."""
        known = self.schemas if schemas is None else schemas
        try:
            schema = known[name]
        except (KeyError, TypeError):
            schema = schema_named(known, name)
        if type(rows) is list:
            if (found := words_of_few_tuples(schema, rows, self.dictionary)) is not None:
                return found
        else:
            if isinstance(rows, str | os.PathLike):
                with self.reading():
                    said = said_of_text(self.program.checked, name) if schemas is None else None
                    rows = read_given(schema, rows, BadRows(), said).table
            elif is_spark_rows(rows):
                rows = sources.read_rows(self.spark, schema, rows, BadRows()).table
        words = to_words(schema, rows, self.dictionary)
        return words if schema.columns else np.zeros((len(words), 1), np.int32)

    def explicit_words(self, name: str) -> np.ndarray:
        """The explicit facts of a relation, encoded."""
        backend = self.backend
        if (given := backend.program.given.get(name)) is not None:
            return backend.facts(given).words
        is_by_classes = backend.program.relations[name].classes is not None
        words = backend.states.of(name).words if is_by_classes else backend.facts(name).words
        explicit: np.ndarray = words[self.backend.is_explicit(name, words)]
        return explicit

    def fact(self, written: Written) -> Fact:
        """A fact given by the user, checked against the declarations. Its values are plain numbers and texts, whatever
        was given. They are not interned."""
        given: Any = written
        match given:
            case str():
                return Fact(*parse_fact(given, self.program.checked))
            case (str() as name, tuple() | list() as values):
                return Fact(name, values_of_fact(self.schema(name), values))
        raise no_fact(given)

    def _lowered(self, program: Program) -> LogicalProgram:
        """The program in the form that the backend gets. Global levels are exact, and tasks divide facts among them,
        only where an equivalence is kept by its rules."""
        settings = self._settings
        by_rules = settings.levels == "global" or settings.on_cluster
        if by_rules and settings.equivalences:
            raise ElastalogError([_kept_as_classes(settings.equivalences)])
        asked: Collection[str] | None = () if by_rules else settings.equivalences
        # What `counting` refuses, it names as the rules have it.
        can_merge = settings.strategy != "counting"

        def lowered() -> LogicalProgram:
            equivalences = kept_as_classes(program.checked, can_merge=can_merge) if asked is None else asked
            return lower(program.checked, equivalences=equivalences)

        return program.once(("lowered", None if asked is None else frozenset(asked), can_merge), lowered)

    def with_levels(self) -> Setting:
        """What proofs are made from where a recursion forms classes and no levels are kept: the same program and facts,
        evaluated with levels."""
        if self._settings.strategy == "elastic":
            return self.setting
        again = self.another(self.program, self.dictionary, watch=self.watch, strategy="elastic")
        again.bootstrap({name: self.explicit_words(name) for name in self.schemas})
        return again.setting

    def written_out(self) -> Epochs:
        """Epochs of the same program and facts, but with all pairs of all equivalences, for the debugger."""
        program = lower(self.program.checked, equivalences=())
        return self.evaluate_anew(Transition(program, {}, frozenset()), {})

    # --- other programs --------------------------------------------------------------------------------------------

    def evaluate_anew(self, meanwhile: Transition, guards: Mapping[str, bool]) -> Epochs:
        """Epochs of another program over the present explicit facts, for the debugger."""
        # Written out, or with rules of several epochs, a program may be recursive that is not so by itself.
        name = "elastic" if self._settings.strategy == "counting" else self._settings.strategy
        strategy, backend = self._strategy_and_backend(meanwhile.program, name)
        backend.load({name: self.explicit_words(name) for name in self.schemas})
        backend.load({name: FACT[: int(is_on)] for name, is_on in guards.items()})
        needed_groups.bootstrap(backend, strategy)
        epochs = Epochs(backend, strategy)
        epochs.number = self.epoch
        return epochs

    def _strategy_and_backend(self, program: LogicalProgram, name: str) -> tuple[Strategy, Backend]:
        settings = self._settings
        strategy = make_strategy(name, self.watch, settings.budget)
        make = settings.make_backend or backend_maker("local")
        annotation = strategy.annotation
        if settings.levels == "global":
            annotation = replace(annotation, is_global=True)
        backend = make(program, self.dictionary, annotation=annotation, jobs=settings.jobs, watch=self.watch)
        return strategy, backend


def _kept_as_classes(equivalences: frozenset[str]) -> Diagnostic:
    listed = ", ".join(f"`{name}`" for name in sorted(equivalences))
    return Diagnostic(
        "E0661",
        f"the store keeps {listed} as equivalence classes, which tasks of Spark do not",
        help='open it with `engine="local"`, and hand the relations over with `to_spark`',
    )


class _Asked(tuple[object, ...]):
    """A question, formatted only if it is shown."""

    __slots__ = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self))[:1000]


Rows: TypeAlias = Any
"""Facts of one relation: a list of tuples, anything tabular (see `relations.tables.to_words`), or the path of a
file."""


def initial_facts(
    target: Materialisation,
    facts: InputFiles | str | os.PathLike[str] | Mapping[str, Rows] | None,
    policy: BadRows,
    files: InputFiles | None = None,
) -> tuple[dict[str, np.ndarray | FactFiles], list[Report]]:
    """The facts by relation, and reports on reading them. `facts`: files, a folder that Spark reads, or rows. `files`:
    of rows that are given as paths."""
    explicit: dict[str, list[np.ndarray]] = {}
    filed: dict[str, FactFiles] = {}
    spark = target.spark
    elsewhere = target.backend.capabilities.elsewhere
    into = None if elsewhere is None else sources.Destination(elsewhere.folder, target.dictionary)
    reports: list[Report] = []
    written: dict[str, list[tuple[Any, ...]]] = {}
    for fact in target.program.checked.facts:
        written.setdefault(fact.relation, []).append(fact.values)
    for name, rows in written.items():
        explicit[name] = [target.encode(name, rows)]
    if isinstance(facts, Mapping):
        loading = iter(()) if files is None else files.facts(target.dictionary, target.encode)
        is_strict = not policy.lets_pass
        for name, rows in facts.items():
            if type(rows) is list and is_strict:  # first: to ask whether something is a path takes longer
                explicit.setdefault(name, []).append(target.encode(name, rows))
                continue
            if isinstance(rows, str | os.PathLike):
                target.schema(name)  # there may be none
                _, loaded = next(loading)
                reports.append(loaded.report)
                explicit.setdefault(name, []).extend(loaded.parts)
                continue
            if is_spark_rows(rows):
                read = sources.read_rows(spark, target.schema(name), rows, policy, None if name in explicit else into)
                reports.append(read.report)
                if read.files is not None:
                    filed[name] = read.files
                    continue
                rows = read.table
            elif policy.lets_pass:
                read = read_given(target.schema(name), rows, policy)
                rows = read.table
                reports.append(read.report)
            elif (table := as_table(rows)) is not None:
                rows, schema = table, target.schema(name)
                converted = converted_values(schema, table)
                reports.append(report_of(policy, name, [place_of(schema)], table.num_rows, [], converted))
            explicit.setdefault(name, []).append(target.encode(name, rows))
        next(loading, None)  # it has something to give back
    elif isinstance(facts, InputFiles):
        for name, loaded in facts.facts(target.dictionary, target.encode):
            reports.append(loaded.report)
            explicit.setdefault(name, []).extend(loaded.parts)
    elif facts is not None:
        for relation in inputs_of(target.program.checked):
            name = relation.name
            read = sources.read_inputs(spark, relation, Path(facts), policy, None if name in explicit else into)
            reports.append(read.report)
            if read.files is not None:
                filed[name] = read.files
                continue
            explicit.setdefault(relation.name, []).append(target.encode(relation.name, read.table))
    joined = {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in explicit.items()}
    return {**joined, **filed}, reports
