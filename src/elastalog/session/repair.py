"""Repairs: which explicit facts to insert or delete, or which part of an update to undo, so that faults disappear with
the fewest side effects; and how a suggestion is applied."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from elastalog.analysis.listing import show_value
from elastalog.analysis.pattern import parse_selection
from elastalog.analysis.values import sort_key
from elastalog.debugging.answers import Element, SideEffects
from elastalog.debugging.debugger import TIME_LIMIT
from elastalog.debugging.questions import Inquiry, facts_in, rejected_in, signed
from elastalog.diagnostics.arguments import require_number
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached, error
from elastalog.program import shown_rule
from elastalog.provenance.fact import Fact
from elastalog.session.candidates import (
    MISSING,
    Candidates,
    Likely,
    faults_named,
    given_candidates,
    made_columns,
    named,
    warn_of_named,
    words_of,
)
from elastalog.session.pending import PendingUpdate
from elastalog.session.questions import is_mentioned
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from elastalog.debugging.answers import Sign, Suggestion
    from elastalog.diagnostics.diagnostic import Diagnostic
    from elastalog.evaluation.changes import Changes
    from elastalog.provenance.reading import WordFact
    from elastalog.session.history import History
    from elastalog.session.materialisation import Materialisation
    from elastalog.session.questions import Answerers
    from elastalog.session.updating import Updates
    from elastalog.storage.entries import LogEntry

    Log: TypeAlias = Callable[[], tuple[LogEntry, ...]]

PREFERRED = 1 - 1e-3
"""The weight of candidates offered by the user, so that among equally small repairs those with most of them are
preferred."""
SHOWN = 8
"""Side effects that are listed."""


class Clock:
    """Seconds that something may take from now on."""

    def __init__(self, allowed: float) -> None:
        self.allowed, self._begun = allowed, time.monotonic()

    @property
    def spent(self) -> float:
        return time.monotonic() - self._begun

    @property
    def left(self) -> float:
        return max(self.allowed - self.spent, 0.0)


@dataclass(frozen=True, slots=True)
class RepairSearch:
    """Searches for repairs at the last epoch of a session. `over`: `update` or `facts`; None: the update, if the faults
    came with it. `given`: the candidates for missing facts; None: those that why-not finds."""

    now: Materialisation
    answerers: Answerers
    likely: Likely
    updates: Updates
    history: History
    over: str | None
    given: Any
    known: dict[tuple[Fact, ...], Candidates] = field(default_factory=dict)

    def suggest(self, asked: Inquiry) -> Suggestion:
        """A smallest repair; of several, the one with the fewest side effects that is found in time."""
        require_number("time_limit", asked.time_limit, 0)
        unwanted, patterns = faults_named(asked.unwanted, asked.missing, self.now)
        asked = replace(asked, unwanted=unwanted, patterns=patterns, rejected=[*rejected_in(asked.rejected)])
        weighed = asked.weights if isinstance(asked.weights, Mapping) else ()
        warn_of_named((*(named(asked.rejected) or ()), *weighed), self.now)
        clock = _clock(asked)
        found = self._with_side_effects(asked)
        comparing = Clock(min(max(SETTINGS.search_seconds, clock.spent), clock.left))
        return self._with_replaced(self._with_fewest_side_effects(found, asked, comparing))

    def _with_replaced(self, found: Suggestion) -> Suggestion:
        """Where a rule is to go, those that its epoch removed are told too: often it stood for one of them."""
        first, last = found.epochs
        if not found.rules_to_remove or last > first + 1:
            return found
        gone = map(shown_rule, self.history.changed_rules(first, last).removed)
        return replace(found, replaced=tuple(rule for rule in gone if rule not in found.rules_to_add))

    def _with_fewest_side_effects(self, found: Suggestion, asked: Inquiry, clock: Clock) -> Suggestion:
        """Compares repairs of the same size: first one with the most candidates that the user offered or that were
        deleted lately, then others that avoid an element of those found."""
        is_over_facts, is_ours = found.over == "facts", self.given is None
        offered = {one.fact for one in self._offered(found.missing, asked)} if is_over_facts else set()

        subjects = {value for fault in (*found.unwanted, *found.missing) for value in fault.values[:1]}

        def drawbacks(one: Suggestion) -> tuple[int, ...] | None:
            """What speaks against a repair, in order of importance: side effects, in the output if there is one; facts
            to insert that are unlike the present ones and neither offered by the user nor deleted lately; those that
            were not deleted lately, if others were; elements that were not offered, if any were; facts that do not say
            what the faults are about, which is their first value: `member("dan", "dev")` is for `may("dan", "push")`
            before `grants("qa", "push")`, which is about all of a group; with a missing fact, side effects in other
            relations; values that are new to their columns."""
            if one.side_effects is None:
                return None
            new = [fact for fact in one.insert if fact not in offered] if is_over_facts and is_ours else []
            return (
                one.side_effects.number,
                sum(not self.likely.is_one(fact) for fact in new),
                len(new) if offered else 0,
                sum(element.fact not in offered for element in one.elements) if offered else 0,
                sum(subjects.isdisjoint(fact.values) for fact in (*one.insert, *one.delete)) if is_over_facts else 0,
                one.side_effects.elsewhere if is_over_facts and one.missing else 0,
                sum(map(self.likely.new_values, new)),
            )

        best, rejected = found, list(asked.rejected)
        compared = {frozenset(found.elements)}
        preferring = None if asked.weights or not offered else replace(asked, weights=dict.fromkeys(offered, PREFERRED))
        avoided: deque[Element | None] = deque([*[None] * bool(preferring), *found.elements])
        while avoided and len(compared) < SETTINGS.repairs_compared and any(drawbacks(best) or ()) and clock.left:
            element = avoided.popleft()
            wanted = preferring if element is None else replace(asked, rejected=[*rejected, element])
            assert wanted is not None
            try:
                other = self._with_side_effects(replace(wanted, time_limit=clock.left, on_progress=None))
            except ElastalogError:
                self.now.watch.check()  # raises if it is a limit of the user
                continue
            if not _is_as_small(other, found, bool(asked.weights)):
                continue
            rejected = list(wanted.rejected)
            compared.add(frozenset(other.elements))
            avoided += [element for element in other.elements if element not in avoided]
            best = min(best, other, key=lambda one: drawbacks(one) or (math.inf,))
        if best.side_effects is None:
            return best
        # What is proven without the rejected elements says nothing of the question without them.
        return replace(
            best,
            **{name: getattr(found, name) for name in ("minimum", "bound", "why_not_proven", "rejected")},
            side_effects=best.side_effects._replace(compared=len(compared)),
        )

    def _with_side_effects(self, asked: Inquiry) -> Suggestion:
        """A smallest repair, with its side effects unless these take longer to find than there is time."""
        clock = _clock(asked)
        found = self._smallest(asked)
        if found.epochs[1] != self.now.epoch:
            return found
        update = PendingUpdate(self.updates)
        fill_undoing(update, found, self.now.epoch, self.history.log)
        try:
            with self.now.within(max(SETTINGS.search_seconds, min(clock.spent, clock.left)), None):
                changes = self.updates.preview(update)
        except LimitReached:
            self.now.watch.check()  # raises if it is a limit of the user
            return found
        return replace(found, side_effects=self._side_effects(found, changes))

    def _smallest(self, asked: Inquiry) -> Suggestion:
        is_new = asked.epochs is None and self.history.oldest == self.now.epoch
        if self.over == "update" or (self.over is None and self.given is None and not is_new):
            try:
                return self.answerers.debugger.suggest(asked)
            except ElastalogError as failed:
                is_older = any(found.code == "E1002" for found in failed.diagnostics)
                if not is_older or self.over is not None or asked.epochs is not None:
                    raise
        return self._over_facts(asked)

    def _over_facts(self, asked: Inquiry) -> Suggestion:
        """A smallest set of changes of explicit facts that removes all faults: deletions for unwanted facts, changes
        among the candidates for missing ones."""
        now = self.now
        missing = [now.fact(fact) for fact in facts_in(MISSING, asked.missing)]
        for fact in missing:
            words_of(fact, now)  # so that it has words
        asked = replace(asked, missing=missing)
        is_free = self.given is None and missing
        found = self._among_ours(asked) if is_free else self._among(self._offered(missing, asked), asked)
        least = min([1.0, *(asked.weights or {}).values()])  # of a change that is not a candidate
        if found.minimum and found.bound > least and tuple(missing) in self.known:
            told = "only candidates that why-not finds were tried"
            return replace(found, minimum=False, bound=least, why_not_proven=told)
        return found

    def _among_ours(self, asked: Inquiry) -> Suggestion:
        """The smallest of what is found in several searches, at last also among what was only deleted lately."""
        ours, found, failed = self._ours(asked.missing, asked), None, None
        for candidates, seconds in self._searches(ours, asked):
            if found is not None and len(candidates) > len(ours.related):
                break
            try:
                other = self._among(candidates, replace(asked, time_limit=seconds))
            except ElastalogError as error:
                if isinstance(error, LimitReached):
                    raise
                failed = error
                continue
            if found is None or len(other.elements) < len(found.elements):
                found = other
            if len(found.elements) == 1:
                break
        if found is None:
            assert failed is not None
            raise failed
        return found

    def _searches(self, ours: Candidates, asked: Inquiry) -> Iterator[tuple[list[Element], float]]:
        """The candidates of one search after the other, with the seconds that it may take. First those that resemble
        the present facts: with others rules may not terminate. Then the likeliest, all that are related, and at last
        those, too, that were only deleted lately. Each search has a quarter of the time, the last one what is left."""
        clock, is_free = Clock(asked.time_limit or 0.0), asked.time_limit is None
        if ours.plain and not asked.weights:
            yield ours.plain, SETTINGS.search_seconds if is_free else clock.allowed / 4
        if is_free:
            clock = Clock(ours.seconds)
        every, related = list(dict.fromkeys([*ours.related, *ours.lately])), len(ours.related)
        likeliest = related if asked.weights else min(SETTINGS.likeliest_candidates, related)
        for number in (searches := sorted({likeliest, related, len(every)})):
            yield every[:number], clock.left if number == searches[-1] else clock.allowed / 4

    def _among(self, candidates: Sequence[Element], asked: Inquiry) -> Suggestion:
        try:
            return self.answerers.debugger.repair(asked, self._changes(candidates))
        except ElastalogError as failed:
            codes = {diagnostic.code for diagnostic in failed.diagnostics}
            if "E0713" in codes and self.given is None and self.filled(asked, candidates)[1]:
                codes = {"E0712"}  # values to be chosen are what is lacking
            if "E0712" in codes or ("E1006" in codes and asked.missing and self.given is None):
                raise self._none_does(asked, candidates, failed.diagnostics[0], is_proven="E0712" in codes) from None
            raise

    def _offered(self, missing: Sequence[Fact], asked: Inquiry) -> list[Element]:
        """The changes that the user offers for missing facts, otherwise those that revert recent deletions."""
        if self.given is None:
            return self._ours(missing, asked).lately if missing else []

        def known(given: list[Element]) -> list[Element]:
            ours = self._ours(missing, asked, given)
            return [*ours.lately, *ours.related]

        return given_candidates(self.given, self.now, known)

    def _ours(self, missing: Sequence[Fact], asked: Inquiry, given: Sequence[Element] | None = None) -> Candidates:
        """The changes that may bring about missing facts; only the user's question says what must stay."""
        key, past = tuple(missing), self.history.past
        if key not in self.known:
            stays = partial(self._must_stay, rejected=asked.rejected)
            self.known[key] = Candidates(missing, self.now, self.answerers, self.likely, past, stays, given)
        return self.known[key]

    def _none_does(
        self, asked: Inquiry, candidates: Sequence[Element], told: Diagnostic, is_proven: bool
    ) -> ElastalogError:
        """The error when why-not finds no facts to insert or delete, or the given candidates do not suffice. `told`:
        what the search says."""
        now, missing = self.now, asked.missing
        relations = now.backend.program.relations
        left_open, chosen = self.filled(asked, candidates) if tuple(missing) in self.known else ((), [])
        free = [one for one in dict.fromkeys(candidates) if not self._must_stay(one.fact, asked.rejected)]
        tried = {value for one in candidates if isinstance(one.fact, Fact) for value in one.fact.values}
        unknown = (
            show_value(value)
            for fact in missing
            for base, word, value, is_made in zip(
                relations[fact.relation].bases, words_of(fact, now)[1], fact.values,
                made_columns(now.program.checked, fact.relation), strict=True,
            )
            if value not in tried and not is_made and not is_mentioned(word, base, relations, now.backend)
        )  # fmt: skip
        return error(
            "E1006.candidates" if not is_proven else "E0712.found" if self.given is None else "E0712.given",
            missing=", ".join(map(str, missing)),
            tried=", ".join(map(str, free[:5])) + ", …" * (len(free) > 5) or None,
            rejected=", ".join(map(str, asked.rejected)) or None,
            left_open=(" and ".join(left_open) or None) if chosen or self.given is None else None,
            chosen=", ".join(f"'{one}'" for one in chosen) or None,
            unknown=None if left_open else next(unknown, None),
            why=None if is_proven else told.notes[0],
            more=told.help,
        )

    def filled(self, asked: Inquiry, candidates: Sequence[Element]) -> tuple[tuple[str, ...], list[str]]:
        """The facts that derivations lack with values to be chosen, as texts, and the changes that a trial showed to be
        a repair where these facts have some value. Without changes if none of the trials did."""
        ours = self._ours(asked.missing, asked)
        if ours.worked is None:
            clock, openings = Clock(min(SETTINGS.search_seconds, asked.time_limit or math.inf)), ours.openings
            ours.worked = next((one.texts for one in openings if one.is_nearest), ()), []
            free = [*(ours.related if self.given is None else candidates)]
            for one in openings[: SETTINGS.repairs_compared] if clock.left else ():
                tried = self._changes([*free, *(Element("+", fact) for fact in one.examples)])
                with suppress(ElastalogError):
                    wanted = replace(asked, time_limit=clock.left, on_progress=None)
                    found = self.answerers.debugger.repair(wanted, tried)
                    changes = [*map(str, found.insert), *(f"-{fact}" for fact in found.delete)]
                    ours.worked = one.texts, changes
                    break
        return ours.worked

    def _must_stay(self, fact: Fact | str, rejected: Sequence[Any]) -> bool:
        """Whether a fact is rejected, or fits a pattern that is."""
        for _, written in map(signed, rejected):
            if not isinstance(written, str):
                stays = self.now.fact(written) == fact
            elif stays := ":-" not in written and isinstance(fact, Fact):
                pattern = parse_selection(written, self.now.program.checked)
                stays = pattern.relation == fact.relation and pattern.fits(fact.values)
            if stays:
                return True
        return False

    def _changes(self, candidates: Sequence[Element]) -> dict[WordFact, bool]:
        """The facts of candidates that are changes, and whether each is explicit."""
        found: dict[WordFact, bool] = {}
        for element in candidates:
            assert isinstance(element.fact, Fact)
            relation, words = words_of(element.fact, self.now)
            is_there = bool(self.now.backend.is_explicit(relation, np.array([words], np.int32))[0])
            if is_there == (element.sign == "-"):
                found[relation, words] = is_there
        return found

    def _side_effects(self, found: Suggestion, changes: Changes) -> SideEffects:
        """What a suggestion changes besides its own elements and the faults."""
        relations = self.now.program.checked.relations.values()
        output = {one.name for one in relations if any(directive.kind == "output" for directive in one.directives)}
        numbers: dict[Sign, int] = {"+": 0, "-": 0}
        elsewhere = 0
        first: list[Element] = []
        for name in changes:
            came, went = changes[name].inserted, changes[name].deleted
            sides: Any = (("+", came, found.missing, found.insert), ("-", went, found.unwanted, found.delete))
            for sign, facts, faults, done in sides:
                meant = {*faults, *(fact for fact in done if fact.relation == name and fact.values in facts)}
                others = len(facts) - sum(fact.relation == name for fact in meant)
                if output and name not in output:
                    elsewhere += others
                elif others:
                    numbers[sign] += others
                    named = (fact for fact in (Fact(name, tuple(values)) for values in facts) if fact not in meant)
                    some = sorted(islice(named, SETTINGS.facts_examined), key=lambda fact: sort_key(fact.values))
                    first += [Element(sign, fact) for fact in some[:SHOWN]]
        return SideEffects(numbers["+"], numbers["-"], tuple(first[:SHOWN]), bool(output), elsewhere=elsewhere)


def _is_as_small(other: Suggestion, found: Suggestion, is_weighed: bool) -> bool:
    if is_weighed:
        return other.minimum and found.minimum and other.bound <= found.bound
    return len(other.elements) <= len(found.elements)


def _clock(asked: Inquiry) -> Clock:
    return Clock(TIME_LIMIT if asked.time_limit is None else asked.time_limit)


# --- applying a suggestion ------------------------------------------------------------------------------------------


def undo(suggestion: Suggestion, updates: Updates, history: History) -> Changes:
    """Applies a suggestion. Raises ElastalogError if there have been other epochs since it was made."""
    with PendingUpdate(updates) as update:
        fill_undoing(update, suggestion, updates.now.epoch, history.log)
    return update.changes


def fill_undoing(update: PendingUpdate, suggestion: Suggestion, epoch: int, log: Log) -> None:
    """Stages the repair of a suggestion in an update. Raises ElastalogError if it was made for another epoch."""
    if suggestion.epochs[1] != epoch:
        raise error("E1007", made=suggestion.epochs[1], now=epoch)
    update.comes_from("repair")
    for rule in suggestion.rules_to_remove:
        update.remove_rules(_as_written(rule, log))
    for rule in suggestion.rules_to_add:
        update.add_rules(_as_written(rule, log))
    for fact in suggestion.delete:
        update.delete(fact.relation, [fact.values])
    for fact in suggestion.insert:
        update.insert(fact.relation, [fact.values])


def _as_written(rule: str, log: Log) -> str:
    """The text of a rule that was removed, with its plan if it had one."""
    gone = (text for entry in reversed(log()) for text in entry.removed_rules)
    return next((text for text in gone if shown_rule(text) == rule), rule)
