"""Epochs: the materialisation of a program and its updates, each a transaction.

Between epochs the state is exactly the fixpoint of the rules over the explicit facts. An update that fails for whatever
reason (an error in a rule, a limit, Ctrl-C) is rolled back, and the previous epoch stands.

A *trial* finds what an update would do by doing it and taking it back: no epoch is made, nothing is recorded or stored.
The update is committed, so that its state can be asked anything, as any epoch can. Then the annotations that it changed
are written back; where a state is more than annotations, the inverse of the update leads back to the very same state,
because what a strategy keeps for a state does not depend on the way there.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from elastalog.backends.protocol import Backend, ChangedWords, FactFiles, ListedChanges, Matrix, Shifts, impact_of
from elastalog.backends.watch import BudgetExceeded, no_memory
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, InternalError, LimitReached, finding
from elastalog.diagnostics.interrupts import uninterrupted
from elastalog.diagnostics.messages import counted
from elastalog.evaluation import needed_groups
from elastalog.evaluation.changes import NO_RULES, RuleTexts, Update
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.rewriting import Rewriting
from elastalog.evaluation.strategies.by_stratum import Strategy
from elastalog.evaluation.strategies.elastic import Elastic, maintain
from elastalog.evaluation.strategies.protocol import Work, rebuilt, with_growing_rules
from elastalog.evaluation.transactions import go_back, transaction
from elastalog.late import dataclass

_MISTAKES = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
"""Exceptions that nothing a user does can raise in an update."""

_MOST_RECENT = 64
_MUCH_TOUCHED = 4_096
"""Epochs of which it is kept what they touched, and changes from which on it is not."""

MOST_KEPT = 1_000_000
"""Facts touched by an update of which the previous annotations are kept until the next, to look back at."""


@dataclass(slots=True)  # not frozen: that would take a twentieth of a small update
class EpochRecord:
    """What is remembered of an epoch: its number, the update as it took effect, what it changed and cost. Never changed
    afterwards."""

    epoch: int
    deleted: int
    inserted: int
    ignored: int
    changes: ChangedWords
    work: Work
    seconds: float
    source: str | None = None
    batch: str | int | None = None
    is_repeated: bool = False
    """The batch had been applied before: nothing was done."""
    is_unchanged: bool = False
    """The update changed no explicit fact and no rule: there is no epoch of it, and `epoch` is the one before."""
    update: Update | None = None
    """The explicit facts that went and came; None for the first epoch."""
    rules: RuleTexts = NO_RULES
    """The rules that went and came."""
    time: float = field(default_factory=time.time)
    """When it was complete, in seconds since 1970."""
    impact: int = 0
    """How many facts came or went; of the first epoch, how many it has."""

    def __str__(self) -> str:
        given = f"{self.inserted:,} inserted, {self.deleted:,} deleted"
        said = f"epoch {self.epoch}: {given}; {counted(self.impact, 'change')} in all, {self.seconds:.3f} s"
        return "\n  ".join((said, *map(str, self.work.strata)))

    def __repr__(self) -> str:
        return f"<{str(self).splitlines()[0]}>"


class Epochs:
    """The epochs of one backend under one strategy. Epoch 0 is empty; the bootstrap makes epoch 1. `make_durable` is
    called when an epoch is complete but not yet in force; it may make it durable, or raise to refuse it. `last`: the
    record of the last epoch made here, even if Ctrl-C was held back until its commit was done."""

    def __init__(self, backend: Backend, strategy: Strategy) -> None:
        self.backend = backend
        self.strategy = strategy
        self.number = 0
        self.last: EpochRecord | None = None
        self._way_back: Any = None
        """The shift from the last epoch to the one before."""
        # Those of the last epochs, if anybody wants to know what they touched.
        self._recent: deque[Any] | None = None
        self.make_durable: Callable[[EpochRecord, Rewriting | None], None] | None = None

    def bootstrap(self, facts: dict[str, Matrix | FactFiles]) -> EpochRecord:
        """Loads the explicit facts of the first epoch, or takes the files that tasks have written of them, and
        evaluates every stratum. The facts are taken out of the dict, so that they are not kept twice meanwhile."""
        began = time.perf_counter()
        filed = {name: given for name, given in facts.items() if not isinstance(given, np.ndarray)}
        here: dict[str, Any] = facts
        for name in filed:
            del here[name]
        inserted = sum(map(len, here.values()))
        self.backend.load(here)
        for relation, files in filed.items():
            elsewhere = self.backend.capabilities.elsewhere
            assert elsewhere is not None
            elsewhere.load(relation, files)
            inserted += sum(file.rows for file in files.base)
        work = needed_groups.bootstrap(self.backend, self.strategy)
        self.number = 1
        seconds = time.perf_counter() - began
        declared = [name for name, stored in self.backend.program.relations.items() if not stored.is_hidden]
        record = EpochRecord(1, 0, inserted, 0, {}, work, seconds, impact=sum(map(self.backend.size, declared)))
        self.last = record
        return record

    def forecast(self, update: Update) -> tuple[Forecast, ...]:
        """What would be chosen for the strata that an update reaches directly. Nothing is changed."""
        backend = self.backend
        with self._tentatively(update) as rewriting:
            changed = Counter[str]()
            sizes = [{name: len(words) for name, words in side.items()} for side in backend.changes.explicit()]
            for side in sizes:
                changed.update(side)
            is_loss = sum(sizes[0].values()) > sum(sizes[1].values())
            found: list[Forecast] = []
            for stratum in backend.program.strata:
                size = sum(changed[name] for name in (*stratum.relations, *stratum.reads))
                is_anew = rewriting is not None and not rewriting.anew.isdisjoint(stratum.relations)
                if is_anew or (size and backend.changes.must_rebuild(stratum)):
                    found.append(Forecast(stratum.number, stratum.relations, *rebuilt(backend, stratum), None, None))
                elif size:
                    found.append(self.strategy.forecast(backend, stratum, size, is_loss=is_loss))
            return tuple(found if rewriting is None else rewriting.in_new_program(found))

    def apply(self, update: Update, heartbeats: bool = True) -> EpochRecord:
        """Applies an update and commits it as the next epoch. Without `heartbeats`, there is no epoch if no explicit
        fact and no rule changes."""
        backend, strategy, change = self.backend, self.strategy, update.rules
        backend.watch.began = began = time.perf_counter()
        if backend.program.limits and not backend.is_complete:
            raise ElastalogError([finding("E0615")])
        rewriting = None if change is None else Rewriting(change, backend, strategy)
        may_be_idle = rewriting is None and not heartbeats
        record: EpochRecord | None = None
        coming: tuple[EpochRecord, Any] | None = None
        """What is in force as soon as the backend has committed it."""
        try:
            if rewriting is None:
                backend.begin(update.deleted, update.inserted)
            else:
                self._begin(update, rewriting)
            changes, is_plain = backend.changes, rewriting is None and not backend.program.needed
            # Elastic finds out by itself that there is nothing to do; others would remember that they were asked.
            if may_be_idle and not (is_plain and type(strategy) is Elastic) and not any(changes.explicit()):
                return self._without_effect(update, began)
            work = strategy.update(backend) if is_plain else self._evaluate(rewriting)
            deleted, inserted = changes.explicit() if is_plain else self._explicit(rewriting)
            if may_be_idle and not deleted and not inserted:
                return self._without_effect(update, began)
            went = sum(map(len, deleted.values())) if deleted else 0
            came = sum(map(len, inserted.values())) if inserted else 0
            took_effect, ignored = update, 0
            if change is not None or deleted is not update.deleted or inserted is not update.inserted:
                took_effect = Update(deleted, inserted, update.source, update.batch, digest=update.digest)
                ignored = update.size - went - came
            facts = changes.facts()
            record = EpochRecord(
                self.number + 1, went, came, ignored, facts, work, time.perf_counter() - began,
                update.source, update.batch, False, False, took_effect,
                NO_RULES if change is None else RuleTexts.of(change),
                time.time(), facts.impact if type(facts) is ListedChanges else impact_of(facts),
            )  # fmt: skip
            shifts = backend.capabilities.shifts if rewriting is None else None
            reused, self._way_back = self._way_back if self._recent is None else None, None
            shift = None if shifts is None else shifts.back(MOST_KEPT, reused)
            if shifts is not None and self.make_durable is None:
                coming = record, shift
                backend.commit()
                self.number, self.last, self._way_back = record.epoch, record, shift  # nothing comes in between
            else:
                # Neither memory alone nor the store alone may have the epoch, whenever Ctrl-C comes.
                with uninterrupted():
                    if self.make_durable is not None:
                        self.make_durable(record, rewriting)
                    backend.commit()
                    if rewriting is not None:
                        rewriting.commit()
                    self.number, self.last, self._way_back = record.epoch, record, shift
            if self._recent is not None:
                self._recent.append(shift if record.impact < _MUCH_TOUCHED else None)
        except BaseException as error:
            if record is None or self.last is not record:
                with uninterrupted():
                    if coming is not None and shifts is not None and not shifts.is_under_way:
                        (self.last, self._way_back), self.number = coming, coming[0].epoch
                    else:
                        backend.rollback()
                        if rewriting is not None:
                            rewriting.rollback()
            if isinstance(error, MemoryError):
                raise no_memory() from None
            if isinstance(error, _MISTAKES):
                stands = f"epoch {self.number} stands"
                raise InternalError("an update", f"{type(error).__name__}: {error}; {stands}") from error
            if isinstance(error, LimitReached):
                raise with_growing_rules(error, backend.program.strata, backend.program.checked) from None
            raise
        return record

    def touched_since(self, number: int) -> list[Mapping[str, Matrix]] | None:
        """The facts that the updates since an epoch have touched, even if only their derivations at their level are
        others. None if that is not known: it is noted for a while after this was last asked."""
        recent, self._recent = self._recent, deque(maxlen=_MOST_RECENT)
        shifts = self.backend.capabilities.shifts
        if shifts is None or recent is None or len(recent) != self.number - number:
            return None
        found: list[Mapping[str, Matrix]] = []
        for shift in recent:
            touched = None if shift is None else shifts.touched(shift)
            if touched is None:
                return None
            found.append(touched)
        return found

    def _explicit(self, rewriting: Rewriting | None) -> tuple[dict[str, Matrix], dict[str, Matrix]]:
        """The explicit facts that the update under way deletes and inserts, of relations that users know."""
        guards = () if rewriting is None else (*rewriting.deleted, *rewriting.inserted)
        own = {*self.backend.program.needed, *guards}
        deleted, inserted = self.backend.changes.explicit()
        return _without(deleted, own), _without(inserted, own)

    def preview(self, update: Update) -> tuple[ChangedWords, int]:
        """What an update would change, and how many of its facts would change nothing. Nothing is changed."""
        if not self.backend.is_complete:
            raise ElastalogError([finding("E0615")])
        with self._tentatively(update) as rewriting:
            self._evaluate(rewriting)
            effective = sum(len(words) for side in self._explicit(rewriting) for words in side.values())
            return self.backend.changes.facts(), update.size - effective

    @contextmanager
    def _tentatively(self, update: Update) -> Iterator[Rewriting | None]:
        """Within the block an update is begun; afterwards all is as before."""
        rewriting = None if update.rules is None else Rewriting(update.rules, self.backend, self.strategy)
        try:
            self._begin(update, rewriting)
            yield rewriting
        except LimitReached as error:
            raise with_growing_rules(error, self.backend.program.strata, self.backend.program.checked) from None
        finally:
            with uninterrupted():
                self.backend.rollback()
                if rewriting is not None:
                    rewriting.rollback()

    def _without_effect(self, update: Update, began: float) -> EpochRecord:
        """Takes back an update that has been begun and changes nothing."""
        with uninterrupted():
            self.backend.rollback()
        seconds, size = time.perf_counter() - began, update.size
        return EpochRecord(self.number, 0, 0, size, {}, Work(), seconds, update.source, update.batch, is_unchanged=True)

    def _evaluate(self, rewriting: Rewriting | None) -> Work:
        """Brings the backend to the new fixpoint, not yet committed. Returns what was done."""
        if rewriting is None:
            return needed_groups.update(self.backend, self.strategy)
        return rewriting.end(needed_groups.update(self.backend, self.strategy, rewriting.anew))

    def _begin(self, update: Update, rewriting: Rewriting | None) -> None:
        """Tells the backend what changes."""
        if rewriting is None:
            self.backend.begin(update.deleted, update.inserted)
            return
        with uninterrupted():
            rewriting.begin()
        self.backend.begin(
            {**update.deleted, **rewriting.deleted}, {**update.inserted, **rewriting.inserted}, rewriting.anew
        )

    def trial(self, update: Update, limits: TrialLimits | None = None) -> Trial:
        """A trial of an update: within its block the update is in force, and the backend answers for that state;
        afterwards all is as before."""
        return Trial(self.backend, self.strategy, update, limits)

    def trial_of_previous(self) -> Trial | None:
        """A trial in which the previous epoch is in force, if the way there is at hand."""
        last, shift, shifts = self.last, self._way_back, self.backend.capabilities.shifts
        if last is None or last.epoch != self.number or last.update is None:
            return None
        if shift is None or shifts is None or not shifts.can_make(shift):
            return None
        back = Update(last.update.inserted, last.update.deleted)  # by a shift: its block gets no changes
        return Trial(self.backend, self.strategy, back, _inverse=last.update, _shift=shift)


def _without(side: Mapping[str, Matrix], names: Collection[str]) -> dict[str, Matrix]:
    return {name: side[name] for name in side if name not in names}


# --- trials ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """A trial of some strata, given by number, each maintained within a number of derivations and never evaluated anew.
    Strata above a relation are told that facts of it are absent or present, whatever its rules say. See `can_limit`."""

    strata: Collection[int]
    derivations: int
    absent: Mapping[str, Matrix] = field(default_factory=dict)
    present: Mapping[str, Matrix] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Trial:
    """Within a block the update is in force; the block gets what it changed, hidden relations included. The same trial
    can be made again in the same state, and then costs only what it changed, if nothing was committed meanwhile.

    Within the block of a trial with `limits`, only such trials may be made. Raises BudgetExceeded beyond them, and
    where a stratum cannot be maintained.
    """

    _backend: Backend
    _strategy: Strategy
    _update: Update
    _limits: TrialLimits | None = None
    _inverse: Update | None = None
    _shift: Any | None = None
    _changes: ChangedWords = field(default_factory=dict)
    _is_in_force: bool = False

    def __enter__(self) -> ChangedWords:
        try:
            if self._can_shift():
                with uninterrupted():
                    self._shifts.make(self._shift)
                    self._shifts.depart()
                    self._is_in_force = True
            else:
                self._evaluate()
        except BaseException:
            self.__exit__()
            raise
        return self._changes

    def __exit__(self, *_: object) -> None:
        # Neither Ctrl-C nor a limit of the user may leave a state that is no epoch.
        with uninterrupted():
            if self._is_in_force:
                self._is_in_force = False
                if self._can_shift():
                    self._shifts.make(self._shift)
                else:
                    self._evaluate_inverse()
                if self._shift is not None:
                    self._shifts.arrive()

    def _can_shift(self) -> bool:
        return self._shift is not None and self._shifts.can_make(self._shift)

    @property
    def _shifts(self) -> Shifts:
        """Where there is a shift, the backend has them."""
        shifts = self._backend.capabilities.shifts
        assert shifts is not None
        return shifts

    def _evaluate(self) -> None:
        """Applies the update. The backend stays as it was if that fails, or if a `.limitsize` cuts the new state short,
        from which no update leads back."""
        backend = self._backend
        was_complete = backend.is_complete
        with transaction(backend, self._update.deleted, self._update.inserted, commit=self._commit):
            if self._limits is None:
                needed_groups.update(backend, self._strategy)
            else:
                self._update_within(self._limits)
            deleted, inserted = backend.changes.explicit()
            if was_complete and not backend.is_complete:
                raise ElastalogError([Diagnostic("E0615", "`.limitsize` cuts the state that was tried short")])
            self._changes = backend.changes.facts(with_hidden=True)
            self._inverse = Update(inserted, deleted)

    def _commit(self) -> None:
        if self._backend.capabilities.shifts is not None:
            self._shift = self._shifts.back()
        if self._shift is not None:
            self._shifts.depart()
        self._backend.commit()
        self._is_in_force = True

    def _evaluate_inverse(self) -> None:
        if self._limits is not None or self._inverse is None:
            raise InternalError("evaluation", "a trial with limits cannot be taken back")
        backend, taken_back = self._backend, self._inverse
        bring = partial(needed_groups.update, backend, self._strategy)
        go_back(backend, taken_back.inserted, taken_back.deleted, bring)

    def _update_within(self, limits: TrialLimits) -> None:
        backend = self._backend
        backend.watch.allow(limits.derivations)
        try:
            for stratum in backend.program.strata:
                if stratum.number not in limits.strata:
                    continue
                reach = backend.changes.reached(stratum)
                if reach is not None:
                    if reach.must_rebuild or stratum.dominance or stratum.merges:
                        raise BudgetExceeded  # it is not monotone either, and callers that set limits reckon with that
                    if stratum.is_folded:
                        backend.refold(stratum)
                    else:
                        backend.maintain(stratum, maintain, is_portable=False)
                for name in stratum.relations:
                    if name in limits.absent or name in limits.present:
                        self._shifts.pretend(name, limits.absent.get(name), limits.present.get(name))
        finally:
            backend.watch.allow(None)


def can_limit(backend: Backend, strategy: Strategy) -> bool:
    """Whether trials may have limits: where a state is nothing but levels and counts, and one pass through the strata
    is enough."""
    has_levels_only = backend.capabilities.shifts is not None and isinstance(strategy, Elastic)
    return has_levels_only and not backend.program.needed
