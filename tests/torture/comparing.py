# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""Sessions of one program, opened in many ways, compared with one evaluation by the reference after every epoch."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import elastalog
from elastalog.analysis.values import sort_key
from elastalog.backends.spark.backend import SparkBackend
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program.program import Program
from elastalog.provenance.check import check_proof
from elastalog.session import Session
from elastalog.syntax import tree as syntax
from tests.engine.judging import LEVEL_KINDS, Facts, Kind, comparable, facts_of, levels_of
from tests.generators.updates import Update
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import Numbered, evaluate, program_of
from tests.reference.levels import Levels, levels
from tests.reference.walking import walk
from tests.strategies.running import pending

Way = dict[str, Any]
"""How a session is opened: options of `open`, and `marks`, with which every update is announced one ahead."""

MARKED: tuple[Way, ...] = tuple(
    {"strategy": name, "marks": marks} for name in ("dred", "bf", "bfc") for marks in ("none", "eager", "linked")
)


@dataclass(frozen=True, slots=True)
class Lineup:
    """Ways that are always gone, and others, of which so many are drawn for every program."""

    always: tuple[Way, ...]
    others: tuple[Way, ...] = ()
    number: int = 0

    def drawn(self, random: Random) -> list[Way]:
        return [*self.always, *random.sample(self.others, self.number)]

    def on(self, **options: Any) -> Lineup:
        """The same ways with more options."""
        always, others = (tuple({**way, **options} for way in ways) for ways in (self.always, self.others))
        return Lineup(always, others, self.number)


HERE = Lineup(
    ({"strategy": "elastic"},),
    (
        {"strategy": "elastic", "levels": "global"},
        {"strategy": "elastic", "budget": None, "jobs": 2},
        {"strategy": "recompute"},
        {"strategy": "dense"},
        {"strategy": "dredc"},
        {"strategy": "counting"},
        *MARKED,
    ),
    6,
)


PATIENCE = 1.0
"""Seconds after which judging an epoch is given up: what brute force takes grows without bound."""


@dataclass(slots=True)
class Runner:
    """A session with the way in which it was opened. `is_cut`: a relation in it has been cut short by its limit.
    `has_tasks`: tasks of Spark have evaluated or maintained a stratum of it."""

    db: Session
    way: Way
    is_cut: bool = False
    has_tasks: bool = False

    @classmethod
    def open(cls, program: str | Program, facts: Any, way: Way) -> Runner:
        options = {name: value for name, value in way.items() if name != "marks"}
        return cls(elastalog.open(program, facts=facts, **options), way)

    @property
    def marks(self) -> str:
        return str(self.way.get("marks", "none"))

    @property
    def is_annotated(self) -> bool:
        return bool(self.way["strategy"] == "elastic")

    @property
    def levels(self) -> Kind:
        kind: Kind = self.way.get("levels", "local")
        return kind

    def is_counted(self) -> bool:
        """Whether its epoch is: on Spark, of sessions only in which tasks have had something to do."""
        backend = self.db._backend
        if not isinstance(backend, SparkBackend):
            return True
        self.has_tasks = self.has_tasks or any(placement.plan for placement in backend.placements.values())
        return self.has_tasks


class Comparison:
    """Sessions of a program. Those that refuse it do so for a reason that the program gives. `epochs` were judged, and
    so many sessions in all were `compared` in them. `like`: another one of the same program and updates, which has
    judged every epoch before this one does."""

    def __init__(self, text: str, facts: Any, ways: Sequence[Way], like: Comparison | None = None) -> None:
        self.tree = parse_accepted(text)
        self.limits = {
            item.relation: int({key: value for key, value, _ in item.parameters}["n"])
            for item in self.tree.items
            if isinstance(item, syntax.Directive) and item.kind == "limitsize"
        }
        self.has_subsumption = bool(program_of(self.tree).subsumptions)
        self.has_negated_groups = any(True for _ in walk(self.tree, syntax.NegatedGroup))
        self.has_choices = any(program_of(self.tree).choices.values())
        self.numbers: dict[Any, int] = {}
        self.first = like or self
        self.annotated: dict[Any, Levels] = {}
        self.epochs = self.compared = 0
        self.runners = []
        checked = Program.parse(text)
        for way in ways:
            try:
                runner = Runner.open(checked, facts, way)
            except ElastalogError as error:
                self._require_reason(error.diagnostics[0].code, way)
            else:
                # Tasks share facts out, and global levels are exact, only where equivalences are kept by their rules.
                by_rules = way.get("levels") == "global" or way.get("engine") == "spark"
                classes = () if by_rules else program_of(self.tree).classes
                kept = runner.db._backend.program.equivalences
                # Those that take part in their own recursion are classes, too.
                assert kept >= set(classes), way
                assert not (by_rules and kept), way
                runner.is_counted()  # a change of rules makes the backend forget what was where
                self.runners.append(runner)

    def _require_reason(self, code: str, way: Way) -> None:
        # `counting` accepts no recursion; only local levels choose and subsume.
        is_global, strategy = way.get("levels") == "global", way["strategy"]
        is_choosing = self.has_subsumption or self.has_choices
        allowed = {
            "E0901": strategy == "counting",
            "E0902": is_global and bool(self.limits),
            "E0905": is_choosing and is_global,
        }
        assert allowed.get(code), (code, way)

    def apply(self, change: Callable[[Runner], object]) -> None:
        """Changes every session; one that a limit has cut short refuses it."""
        kept = []
        for runner in self.runners:
            sizes = {name: len(runner.db[name]) for name in self.limits}
            try:
                change(runner)
            except ElastalogError as error:
                assert error.diagnostics[0].code == "E0615", error
                assert any(sizes[name] >= limit for name, limit in self.limits.items()), error
            else:
                assert not runner.is_cut, f"an answer cut short was maintained: {runner.way}"
                kept.append(runner)
        self.runners = kept

    def advance(self, update: Update, following: Update | None = None) -> None:
        """Every session goes on with an update; where facts are marked, the one that follows is announced before."""

        def change(runner: Runner) -> None:
            if following is not None and runner.marks != "none":
                runner.db.engine.announce(pending(runner.db, following), runner.marks)
            runner.db.apply(update.inserted, update.deleted)

        self.apply(change)

    def follow(self, explicit: Facts, updates: Sequence[Update], seconds: float = PATIENCE) -> bool:
        """Goes through updates as long as epochs can be judged in this time each: whether all were."""
        is_judged = self.judge(explicit, seconds=seconds)
        for update, following in zip(updates, (*updates[1:], None), strict=True):
            if is_judged:
                self.advance(update, following)
                explicit = update.apply_to(explicit)
                is_judged = self.judge(explicit, seconds=seconds)
        return is_judged

    def judge(self, explicit: Facts, kinds: Sequence[Kind] = LEVEL_KINDS, seconds: float = PATIENCE) -> bool:
        """The facts of every session are those of the reference, and so are levels and counts where they are kept, of
        these kinds. False if brute force takes too long to say so: that does not count."""
        self.explicit = explicit
        try:
            with patience(seconds):
                self._judge(explicit, kinds)
        except TooLong:
            return False
        self.epochs += 1
        self.compared += sum(runner.is_counted() for runner in self.runners)
        return True

    def _judge(self, explicit: Facts, kinds: Sequence[Kind]) -> None:
        if self.first is self:
            self.known = evaluate(self.tree, explicit, with_text_facts=False, numbers=self.numbers)
            self.annotated = {}
        known, annotated = self.first.known, self.first.annotated
        wanted = {name: set(map(comparable, facts)) for name, facts in known.items()}
        for runner in self.runners:
            found = facts_of(runner.db)
            self._require_place(runner)
            if found != wanted:
                runner.is_cut = self._is_cut(found, wanted)
                assert runner.is_cut, (runner.way, found, wanted)
            elif runner.is_annotated and runner.levels in kinds and not self.has_subsumption:  # of that there are none
                # What was kept by rules stays so when a change of rules would allow classes.
                key = runner.levels, runner.db._backend.program.equivalences
                if key not in annotated:
                    annotated[key] = self._levels(explicit, known, *key)
                kept, pairs = levels_of(runner.db), annotated[key]
                # A negated group that computes has one alternative more for each part without a value, and what they
                # count together depends on how they overlap: of these, levels alone are compared.
                kinds_compared = slice(0, 1 if self.has_negated_groups else 2)
                different = {
                    fact: (kept[fact], pair)
                    for fact, pair in pairs.items()
                    if kept[fact][kinds_compared] != pair[kinds_compared]
                }
                assert not different, (runner.way, different)

    def prove(self, most: int = 1) -> None:
        """So many facts of every relation have proofs in every session that the checker accepts."""
        for runner in self.runners:
            if not runner.is_cut:
                facts = {name: set(runner.db[name]) for name in runner.db}
                for name in runner.db:
                    for values in sorted(runner.db[name], key=sort_key)[:most]:
                        proof = runner.db.explain((name, values))
                        verdict = check_proof(proof, runner.db.program.checked, self.explicit, facts)
                        assert verdict.accepted, (runner.way, verdict.reason)

    def close(self) -> None:
        for runner in self.runners:
            runner.db.close()

    def _levels(self, explicit: Facts, known: Numbered, kind: Kind, classes: frozenset[str]) -> Levels:
        found = levels(self.tree, explicit, kind, with_text_facts=False, classes=classes, known=known)
        return {(name, comparable(fact)): pair for (name, fact), pair in found.items()}

    def _is_cut(self, found: Facts, wanted: Facts) -> bool:
        """Whether a limit explains the difference: it was reached, by facts that there are."""
        return any(found[name] <= wanted[name] and len(found[name]) >= limit for name, limit in self.limits.items())

    def _require_place(self, runner: Runner) -> None:
        """On Spark a stratum is followed in the driver only for a reason that the program or the strategy gives."""
        backend = runner.db._backend
        if isinstance(backend, SparkBackend):
            kept_here = runner.way["strategy"] == "dense"  # vectors of counts, which files of tasks do not hold
            for placement in backend.placements.values():
                assert placement.plan is not None or kept_here, (placement.why, runner.way)


class TooLong(Exception):
    """Brute force takes longer than an attack is worth."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """A block that raises TooLong after so many seconds of the processor; in the main thread only."""

    def end(*_: object) -> None:
        raise TooLong

    usual = signal.signal(signal.SIGVTALRM, end)
    try:
        # Again and again: what is raised while something is finalised is lost.
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.1)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, usual)
