"""A session: a program, its facts, and everything that follows from them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np

from elastalog.analysis.pattern import parse_fact, parse_pattern
from elastalog.analysis.program import Value
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.sets import Support
from elastalog.backends.watch import Progress, Watch, most_of_memory
from elastalog.debugging.answers import Suggestion
from elastalog.debugging.debugger import Debugger
from elastalog.debugging.faults import gone_on
from elastalog.debugging.past import Past
from elastalog.diagnostics.arguments import require_text, wrong_kind
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.evaluation.answers import answers
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.epochs import EpochRecord, Epochs
from elastalog.evaluation.rewriting import FACT
from elastalog.evaluation.statistics import Statistics, statistics_of
from elastalog.evaluation.stored import DurableEpochs
from elastalog.evaluation.strategies import make_strategy
from elastalog.evaluation.strategies.protocol import Strategy
from elastalog.pipeline.files.policy import Policy, Report
from elastalog.pipeline.spark.engine import filed_in, is_spark_rows, make_frame, read_spark_rows
from elastalog.planning.logical import LogicalProgram
from elastalog.planning.lower import lower
from elastalog.planning.transition import Transition
from elastalog.program import Program, shown_rule
from elastalog.provenance.explain import Explainer, Setting, metric_named
from elastalog.relations.facts import Relation
from elastalog.relations.functions import Functions, functions_for
from elastalog.relations.schema import Schema, schema_named, schemas_of
from elastalog.relations.tables import to_words
from elastalog.relations.words import Dictionary
from elastalog.session.history import KeptEpochs
from elastalog.session.initial_facts import Rows, first_facts
from elastalog.session.questions import Questions
from elastalog.session.updating import Updates
from elastalog.storage.batches import Batches
from elastalog.storage.store import Store

Relation.make_frame = staticmethod(make_frame)

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


class Session(KeptEpochs, Updates, Questions):
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
        functors: Functions | None = None,
    ) -> None:
        self._dictionary = Dictionary() if dictionary is None else dictionary
        functions_for(program.checked, functors)
        self._dictionary.functions = dict(functors or {})
        self._dictionary.wraps = program.checked.wraps
        self._timeout = timeout
        self._watch = Watch(memory=most_of_memory() if memory is None else memory, on_progress=on_progress)
        self._settings: dict[str, Any] = {
            "strategy": strategy, "levels": levels, "metric": metric, "jobs": jobs, "memory": memory,
            "timeout": timeout, "budget": budget, "on_progress": on_progress, "functors": functors,
        }  # fmt: skip
        self._make_backend = make_backend
        chosen, self._backend = self._strategy_and_backend(lower(program.checked))
        if levels == "global" and chosen.support is not Support.LEVELS:
            advice = "choose strategy `elastic`, or leave out levels"
            raise ElastalogError(
                [Diagnostic("E0902", f"strategy `{strategy}` does not keep global levels", help=advice)]
            )
        self._epochs = Epochs(self._backend, chosen)
        self._has_levels = chosen.is_annotated and chosen.support is Support.LEVELS
        self._is_global = levels == "global"
        self._metric = metric_named(metric)
        self._lock = threading.RLock()
        self._history: list[EpochRecord] = []
        self._batches = Batches()
        self._store: Store | None = None
        self._durable: DurableEpochs | None = None
        self._is_read_only = False
        self.reports: list[Report] = []
        self._is_closed = False
        self._follow(program)

    def _strategy_and_backend(self, program: LogicalProgram) -> tuple[Strategy, KernelBackend]:
        settings = self._settings
        strategy = make_strategy(settings["strategy"], self._watch, settings["budget"])
        backend = self._make_backend(
            program, self._dictionary, is_annotated=strategy.is_annotated, is_global=settings["levels"] == "global",
            support=strategy.support, jobs=settings["jobs"], watch=self._watch,
        )  # fmt: skip
        return strategy, backend

    def _follow(self, program: Program) -> None:
        """Everything that depends on the program which the backend has now."""
        self.program = program
        self.schemas = schemas_of(program.checked)
        setting = Setting(
            program.checked, self._backend, self._dictionary, self._has_levels, self._is_global, self._metric
        )
        self._explainer = Explainer(setting, lambda: self.epoch, self._lock)
        past = Past(self._history, self._store_if_any, lambda: self.epoch)
        self._debugger = Debugger(
            program, setting, self._epochs, past, self.fact, self._undo_suggested, self._evaluate_anew
        )

    def _another(self, program: Program, dictionary: Dictionary | None) -> Self:
        return type(self)(program, dictionary=dictionary, **self._settings)

    # --- life ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session: it cannot be updated any more. Its store, if it has one, is free for another writer."""
        with self._lock:
            self._is_closed = True
            if self._store is not None:
                self._store.close()

    def __repr__(self) -> str:
        with self._lock:
            facts = sum(self._backend.size(name) for name in self.schemas)
        return f"<Session of {self.program.tree.source.name}: epoch {self.epoch}, {facts:,} facts>"

    def _bootstrap(
        self, facts: str | os.PathLike[str] | Mapping[str, Rows] | None, policy: Policy, spark: Any, engine: str
    ) -> None:
        self._start_clock()
        explicit, self.reports = first_facts(self, facts, policy, spark, engine)
        self._history.append(self._epochs.bootstrap(explicit))

    def _start_clock(self) -> None:
        self._watch.deadline = None if self._timeout is None else time.monotonic() + self._timeout

    def encode(self, name: str, rows: Rows, schemas: Mapping[str, Schema] | None = None) -> np.ndarray:
        """Facts of a relation as words; `schemas` are those of the session unless given."""
        schema = schema_named(self.schemas if schemas is None else schemas, name)
        if is_spark_rows(rows):
            rows, _ = read_spark_rows(schema, rows, Policy(), None)
        words = to_words(schema, rows, self._dictionary)
        return words if words.shape[1] else np.zeros((len(words), 1), np.int32)

    def _schema(self, name: str) -> Schema:
        return schema_named(self.schemas, name)

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
            self._between_updates(lambda: self._backend.facts(name)),
            size=self._between_updates(lambda: self._backend.size(name)),
            contains=self._between_updates(lambda words: bool(self._backend.contains(name, words)[0])),
            filed=self._between_updates(lambda annotations: filed_in(self._backend, name, annotations)),
        )

    def _between_updates(self, read: Callable[Asked, Found]) -> Callable[Asked, Found]:
        """A way to read that waits for updates of other threads: what an update is writing must not be read."""

        def reading(*asked: Asked.args, **options: Asked.kwargs) -> Found:
            with self._lock:
                return read(*asked, **options)

        return reading

    def __iter__(self) -> Iterator[str]:
        return iter(self.schemas)

    def __contains__(self, name: object) -> bool:
        return name in self.schemas

    def query(self, text: str) -> Relation:
        """The facts that fit a pattern such as `path(1, X)`: a relation with one column per variable."""
        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        with self._lock:
            pattern = parse_pattern(text, self.program.checked)
            return answers(pattern, self.schemas[pattern.relation], self._dictionary, self._backend)

    def explicit(self, name: str) -> Relation:
        """The explicit facts of a relation: those that were given, whether or not they also follow from rules."""
        with self._lock:
            words = self._backend.facts(self._schema(name).name).words
            return Relation.of(self.schemas[name], self._dictionary, words[self._backend.is_explicit(name, words)])

    def statistics(self) -> Statistics:
        """What rules and relations cost: time and derivations of the last bootstrap, facts and memory now."""
        with self._lock:
            return statistics_of(self._backend)

    def fact(self, written: str | tuple[str, tuple[Value, ...]]) -> tuple[str, tuple[Value, ...]]:
        """A fact, from text (`path(1,4)`) or from relation and values, checked against the declarations. Its values are
        those that facts have: plain numbers and texts, whatever was given."""
        given: Any = written
        match given:
            case str():
                return parse_fact(given, self.program.checked)
            case (str() as name, tuple() | list() as values):
                schema = self._schema(name)
                apart = Dictionary()  # a fact that is only asked about must not make that of the session larger
                words = to_words(schema, [tuple(values)], apart)[0].tolist()
                bases = (column.base for column in schema.columns)
                return name, tuple(apart.decode_value(base, word) for base, word in zip(bases, words, strict=True))
        advice = 'write it as in the language, `path(1, 4)`, or as a pair, `("path", (1, 4))`'
        raise wrong_kind("a fact is a text, or a relation and its values", given, advice)

    # --- what debugging does to the session ------------------------------------------------------------------------

    def _undo_suggested(self, suggestion: Suggestion) -> Changes:
        if suggestion.epochs[1] != self.epoch:
            raise gone_on(suggestion.epochs[1], self.epoch)
        with self.update() as update:
            for sign, what in suggestion.elements:
                if isinstance(what, str):
                    (update.remove_rules if sign == "+" else update.add_rules)(self._as_written(what))
                else:
                    (update.delete if sign == "+" else update.insert)(what.relation, [what.values])
        return update.changes

    def _as_written(self, rule: str) -> str:
        """A rule that has been removed, with its plan if it had one."""
        gone = (text for entry in reversed(self.log()) for text in entry.removed_rules)
        return next((text for text in gone if shown_rule(text) == rule), rule)

    def _evaluate_anew(self, meanwhile: Transition, guards: Mapping[str, bool]) -> Epochs:
        """Epochs of another program over the explicit facts of now, to look for faults in."""
        strategy, backend = self._strategy_and_backend(meanwhile.program)
        for name in self.schemas:
            words = self._backend.facts(name).words
            backend.load(name, words[self._backend.is_explicit(name, words)])
        for name, is_on in guards.items():
            backend.load(name, FACT[: int(is_on)])
        strategy.bootstrap(backend)
        epochs = Epochs(backend, strategy)
        epochs.number = self.epoch
        return epochs
