"""Repairs: which explicit facts to insert or delete, or which part of an update to undo, so that faults disappear with
the fewest side effects; and how a suggestion is applied."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from elastalog.analysis.listing import show_value
from elastalog.analysis.program import Atom, CheckedProgram, Variable
from elastalog.analysis.values import sort_key
from elastalog.debugging.answers import Element, SideEffects
from elastalog.debugging.debugger import TIME_LIMIT
from elastalog.debugging.questions import Inquiry, rejected_in
from elastalog.diagnostics.arguments import require_number
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached, error
from elastalog.program import shown_rule
from elastalog.provenance.fact import Fact
from elastalog.session.candidates import Candidates, Combinations, Given, Likely, combinations, words_of
from elastalog.session.faults import faults_named, selected, warn_of_named
from elastalog.session.pending import PendingUpdate
from elastalog.session.questions import is_mentioned
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from elastalog.analysis.pattern import Pattern
    from elastalog.debugging.answers import Sign, Suggestion
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


class Attempt(NamedTuple):
    """A search among some candidates, and the seconds that it may take."""

    candidates: Sequence[Element]
    seconds: float


@dataclass(eq=False)
class RepairSearch:
    """Searches for the repair that a user asks for at the last epoch of a session. `over`: `update` or `facts`; None:
    the update, if the faults came with it. `given`: the candidates for missing facts; None: those that why-not
    finds."""

    now: Materialisation
    answerers: Answerers
    likely: Likely
    updates: Updates
    history: History
    over: str | None
    given: Any
    asked: Inquiry

    def __post_init__(self) -> None:
        asked = self.asked
        require_number("time_limit", asked.time_limit, 0)
        unwanted, missing, patterns = faults_named(asked.unwanted, asked.missing, self.now)
        rejected = [*rejected_in(asked.rejected)]
        self.asked = replace(asked, unwanted=unwanted, missing=missing, patterns=patterns, rejected=rejected)
        weighed = asked.weights if isinstance(asked.weights, Mapping) else ()
        warn_of_named((*rejected, *weighed), self.now)
        self._tried: Sequence[Element] | None = None
        """The candidates of the last attempt, None if explicit facts have not been looked at."""

    def suggestion(self) -> Suggestion:
        """A smallest repair; of several, the one with the fewest side effects that is found in time."""
        clock = _clock(self.asked)
        try:
            found = self._with_side_effects(self.asked)
        except ElastalogError as failed:
            told = self._explained(failed)
            if told is failed:
                raise
            raise told from None
        comparing = Clock(min(max(2 * SETTINGS.search_seconds, clock.spent), clock.left))
        return self._with_replaced(self._with_fewest_side_effects(found, comparing))

    def _with_replaced(self, found: Suggestion) -> Suggestion:
        """Where a rule is to go, those that its epoch removed are told too: often it stood for one of them."""
        first, last = found.epochs
        if not found.rules_to_remove or last > first + 1:
            return found
        gone = map(shown_rule, self.history.changed_rules(first, last).alone.removed)
        return replace(found, replaced=tuple(rule for rule in gone if rule not in found.rules_to_add))

    # --- of equally small repairs the one that changes least -------------------------------------------------------

    def _with_fewest_side_effects(self, found: Suggestion, clock: Clock) -> Suggestion:
        """Compares repairs of the same size: one with the likeliest candidates, one with the most that the user offered
        or that were deleted lately, then others that insert nothing into a relation, or avoid an element of those
        found."""
        asked, offered = self.asked, self._offered_facts if found.over == "facts" else frozenset()
        best, rejected = found, list(asked.rejected)
        compared = {frozenset(found.elements)}
        searches: deque[Callable[[Inquiry], Suggestion]] = deque()
        if self._missing and self._tried and not asked.weights:
            searches.append(partial(self._likeliest_of, self._tried, len(found.elements)))
        if offered and not asked.weights:
            preferring = dict.fromkeys(offered, PREFERRED)
            searches.append(lambda wanted: self._smallest(replace(wanted, weights=preferring)))
        others = {one.relation: f"{one.relation}({', '.join('_' * len(one.values))})" for one in found.insert}
        avoided: deque[Element | str] = deque([*others.values(), *found.elements])
        for _ in range(1, SETTINGS.repairs_compared):  # so that it seldom depends on the time what is found
            if not ((searches or avoided) and any(self._drawbacks(best) or ()) and clock.left):
                break
            if asked.on_progress is not None and len(compared) == 1:
                asked.on_progress("found one; comparing others of its size")
            element = None if searches else avoided.popleft()
            search = searches.popleft() if searches else self._smallest
            wanted = replace(asked, rejected=[*rejected, *([] if element is None else [element])], on_progress=None)
            if not self._missing:  # it need not be proven that there is none
                wanted = replace(wanted, time_limit=min(asked.time_limit or math.inf, SETTINGS.search_seconds / 2))
            try:
                with self.now.within(clock.left, None):  # not a limit of the question: what is tried depends on that
                    other = self._with_side_effects(wanted, search)
            except ElastalogError:
                self.now.watch.check()  # raises if it is a limit of the user
                continue
            if not _is_as_small(other, found, bool(asked.weights)):
                continue
            rejected += [element] * isinstance(element, Element)
            if other.side_effects is not None:
                compared.add(frozenset(other.elements))
            avoided += [element for element in other.elements if element not in avoided]
            best = min(best, other, key=lambda one: self._drawbacks(one) or (math.inf,))
        if best.side_effects is None:
            return best
        # What is proven without the rejected elements says nothing of the question without them.
        return replace(
            best,
            **{name: getattr(found, name) for name in ("minimum", "bound", "why_not_proven", "rejected")},
            side_effects=best.side_effects._replace(compared=len(compared)),
        )

    def _likeliest_of(self, tried: Sequence[Element], size: int, asked: Inquiry) -> Suggestion:
        """Of repairs of a size, one with the candidates that come first."""
        weights = {one: 1 - 0.1 / size * (len(tried) - i) / len(tried) for i, one in enumerate(tried)}
        return self._among(tried, replace(asked, missing=self._missing, weights=weights))

    def _drawbacks(self, one: Suggestion) -> tuple[int, ...] | None:
        """What speaks against a repair, in order of importance: side effects, in the output if there is one; facts to
        insert that are unlike the present ones and neither offered by the user nor deleted lately; those that were not
        deleted lately, if others were; elements that were not offered, if any were; facts that do not say what the
        faults are about, which is their first value: `member("dan", "dev")` is for `may("dan", "push")` before
        `grants("qa", "push")`, which is about all of a group; with a missing fact, side effects in other relations;
        values that are new to their columns. None if side effects are not known."""
        if one.side_effects is None:
            return None
        if one.over != "facts":
            return (one.side_effects.number,)
        offered = self._offered_facts
        new = [fact for fact in one.insert if fact not in offered] if self.given is None else []
        subjects = {value for fault in (*one.unwanted, *one.missing) for value in fault.values[:1]}
        return (
            one.side_effects.number,
            sum(not self.likely.is_one(fact) for fact in new),
            len(new) if offered else 0,
            sum(element.fact not in offered for element in one.elements) if offered else 0,
            sum(subjects.isdisjoint(fact.values) for fact in (*one.insert, *one.delete)),
            one.side_effects.elsewhere if one.missing else 0,
            sum(map(self.likely.new_values, new)),
        )

    def _with_side_effects(self, asked: Inquiry, search: Callable[[Inquiry], Suggestion] | None = None) -> Suggestion:
        """A smallest repair, with its side effects unless these take longer to find than there is time."""
        clock = _clock(asked)
        found = (search or self._smallest)(asked)
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
        first.sort(key=lambda one: numbers[one.sign])  # what comes is not to be hidden behind all that goes
        return SideEffects(numbers["+"], numbers["-"], tuple(first[:SHOWN]), bool(output), elsewhere=elsewhere)

    # --- a smallest repair -----------------------------------------------------------------------------------------

    def _smallest(self, asked: Inquiry) -> Suggestion:
        is_new = asked.epochs is None and self.history.oldest == self.now.epoch
        if self.over == "update" or (self.over is None and self.given is None and not is_new):
            try:
                return self.answerers.debugger.suggest(asked)
            except ElastalogError as failed:
                is_older = any(found.code == "E1002" for found in failed.diagnostics)
                if not is_older or self.over is not None or asked.epochs is not None:
                    raise
        asked = replace(asked, missing=self._missing)
        is_free = self.given is None and self._missing
        if self._filled_in and asked.time_limit is None:
            asked = replace(asked, time_limit=self._usual_seconds)
        found = self._best_attempt(asked) if is_free else self._among(self._offered, asked)
        least = min([1.0, *(asked.weights or {}).values()])  # of a change that is not a candidate
        if found.minimum and found.bound > least and self._asks_why_not:
            told = "only candidates that why-not finds were tried"
            return replace(found, minimum=False, bound=least, why_not_proven=told)
        return found

    def _best_attempt(self, asked: Inquiry) -> Suggestion:
        """The smallest repair of several attempts; what was only deleted lately is tried if nothing else does."""
        found: Suggestion | None = None
        failed: ElastalogError | None = None
        for candidates, seconds in self._attempts(asked):
            if found is not None and len(candidates) > len(self._candidates.related.candidates):
                break
            try:
                other = self._among(candidates, replace(asked, time_limit=seconds))
            except LimitReached:
                raise
            except ElastalogError as error:
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

    def _attempts(self, asked: Inquiry) -> Iterator[Attempt]:
        """First among what resembles the present facts: with others rules may not terminate. Then among the likeliest
        candidates, all that are related, and at last those, too, that were only deleted lately. Each attempt has a
        quarter of the time, the last one what is left. Unless the user says otherwise, the time is a multiple of that
        of the states in which it was asked why not."""
        clock, is_free, ours = Clock(asked.time_limit or 0.0), asked.time_limit is None, self._candidates
        if ours.plain and not asked.weights:
            yield Attempt(ours.plain, SETTINGS.search_seconds if is_free else clock.allowed / 4)
        if is_free:
            clock = Clock(self._usual_seconds)
        every, related = [*dict.fromkeys([*ours.related.candidates, *ours.lately])], len(ours.related.candidates)
        likeliest = related if asked.weights else min(SETTINGS.likeliest_candidates, related)
        for number in (numbers := sorted({likeliest, related, len(every)})):
            if not asked.weights and number < numbers[-1] and {*every[:number]} == {*ours.plain}:
                continue  # has been tried
            yield Attempt(every[:number], clock.left if number == numbers[-1] else clock.allowed / 4)

    @property
    def _usual_seconds(self) -> float:
        """What a search among many candidates may take, unless the user says otherwise."""
        seconds = self._candidates.related.seconds if self._missing else 0.0
        trials = SETTINGS.search_trials * (seconds or SETTINGS.state_seconds)
        return min(max(SETTINGS.search_seconds, trials), TIME_LIMIT)

    def _among(self, candidates: Sequence[Element], asked: Inquiry) -> Suggestion:
        self._tried = candidates
        return self.answerers.debugger.repair(asked, self._changes(candidates))

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

    # --- candidates ------------------------------------------------------------------------------------------------

    @cached_property
    def _missing(self) -> list[Fact]:
        """The missing facts; they have words."""
        found = list(map(self.now.fact, self.asked.missing))
        for fact in found:
            words_of(fact, self.now)
        return found

    @cached_property
    def _given(self) -> Given | None:
        return None if self.given is None else Given.read(self.given, self.now)

    @cached_property
    def _filled_in(self) -> dict[str, Combinations]:
        """What the patterns that the user gives stand for, beside what why-not finds."""
        faults = *map(self.now.fact, self.asked.unwanted), *self._missing
        named, most = dict.fromkeys(value for fact in faults for value in fact.values), SETTINGS.combinations_tried
        patterns = {} if self._given is None else self._given.patterns
        return {text: combinations(pattern, self.now, most, named) for text, pattern in patterns.items()}

    @property
    def _asks_why_not(self) -> bool:
        """Whether candidates are found by why-not."""
        return bool(self._missing) and (self._given is None or bool(self._given.patterns))

    @cached_property
    def _candidates(self) -> Candidates:
        """Those that why-not finds, and what was deleted lately."""
        given = None if self._given is None else self._given.candidates
        past = self.history.past
        return Candidates(self._missing, self.now, self.answerers, self.likely, past, self._must_stay, given)

    @cached_property
    def _offered(self) -> list[Element]:
        """The changes that the user offers for missing facts, otherwise those that revert recent deletions. A pattern
        to insert stands for what why-not finds, and for facts with values that are there."""
        if self._given is None:
            return self._candidates.lately if self._missing else []
        ours = self._candidates
        known = [*ours.lately, *ours.related.candidates] if self._given.patterns and self._missing else []
        fits = [
            one
            for one in known
            if one.sign == "+" and isinstance(one.fact, Fact) and _is_among(one.fact, self._given.patterns.values())
            if not self.likely.is_below(one.fact)
        ]
        filled = (Element("+", fact) for found in self._filled_in.values() for fact in found.facts)
        return [*dict.fromkeys([*self._given.candidates, *ours.likeliest_first([*fits, *filled])])]

    @cached_property
    def _offered_facts(self) -> frozenset[Fact | str]:
        return frozenset(one.fact for one in self._offered)

    @cached_property
    def _kept(self) -> list[Pattern]:
        return selected(self.asked.rejected, self.now)

    def _must_stay(self, fact: Fact | str) -> bool:
        """Whether the user rejects a fact."""
        return isinstance(fact, Fact) and _is_among(fact, self._kept)

    # --- if there is none ------------------------------------------------------------------------------------------

    def _explained(self, failed: ElastalogError) -> ElastalogError:
        """The error when why-not finds no facts to insert or delete, or the given candidates do not suffice, from that
        of the last attempt: with what was tried, what is lacking and what may help."""
        codes, is_free = {found.code for found in failed.diagnostics}, self.given is None
        if "E1006" in codes and self._tried is not None and self._filled_in:
            told, number = failed.diagnostics[0], sum(len(found.facts) for found in self._filled_in.values())
            return error("E1006.filled", why=told.notes[0], number=number, more=told.help)
        is_proven = "E0712" in codes
        if self._tried is None or not (is_proven or (is_free and self._missing and codes & {"E1006", "E0713"})):
            return failed
        left_open, chosen = self._chosen if self._asks_why_not else ((), [])
        if "E0713" in codes:
            if not chosen:
                return failed
            is_proven = True  # values to be chosen are what is lacking
        told = failed.diagnostics[0]
        cut = [f"{len(found.facts):,} for {text}" for text, found in self._filled_in.items() if not found.are_all]
        free = [one for one in dict.fromkeys(self._tried) if not self._must_stay(one.fact)]
        return error(
            ("E0712.found" if is_free else "E0712.cut" if cut else "E0712.given") if is_proven else "E1006.candidates",
            missing=", ".join(map(str, self._missing)),
            tried=", ".join(map(str, free[:5])) + ", …" * (len(free) > 5) or None,
            rejected=", ".join(map(str, self.asked.rejected)) or None,
            cut=" and ".join(cut) or None,
            left_open=(" and ".join(left_open) or None) if chosen or is_free else None,
            chosen=", ".join(f"'{one}'" for one in chosen) or None,
            unknown=None if left_open else self._unheard(),
            why=None if is_proven else told.notes[0],
            more=told.help,
        )

    @cached_property
    def _chosen(self) -> tuple[tuple[str, ...], list[str]]:
        """The facts that derivations lack with values to be chosen, as texts, and the changes that a trial showed to be
        a repair where these facts have some value. Without changes if none of the trials did."""
        clock = Clock(min(SETTINGS.search_seconds, _clock(self.asked).allowed))
        openings = self._candidates.related.openings
        free = self._candidates.related.candidates if self._given is None else self._offered
        for one in openings[: SETTINGS.repairs_compared]:
            if not clock.left:
                break
            tried = self._changes([*free, *(Element("+", fact) for fact in one.examples)])
            with suppress(ElastalogError):
                wanted = replace(self.asked, missing=self._missing, time_limit=clock.left, on_progress=None)
                found = self.answerers.debugger.repair(wanted, tried)
                return one.texts, [*map(str, found.insert), *(f"-{fact}" for fact in found.delete)]
        return next((one.texts for one in openings if one.is_nearest), ()), []

    def _unheard(self) -> str | None:
        """A value of a missing fact that no fact mentions and no candidate has, unless rules may compute it."""
        relations, program = self.now.backend.program.relations, self.now.program.checked
        tried = {value for one in self._tried or () if isinstance(one.fact, Fact) for value in one.fact.values}
        for fact in self._missing:
            _, words = words_of(fact, self.now)
            made = made_columns(program, fact.relation)
            for base, word, value, is_made in zip(
                relations[fact.relation].bases, words, fact.values, made, strict=True
            ):
                if value not in tried and not is_made and not is_mentioned(word, base, relations, self.now.backend):
                    return show_value(value)
        return None


def made_columns(program: CheckedProgram, relation: str) -> list[bool]:
    """Whether the values of each column of a relation may be computed: they need not occur in facts."""
    made = [False] * program.relations[relation].arity
    for rule in program.rules:
        if rule.head.relation == relation:
            atoms = (one for one in rule.body if isinstance(one, Atom))
            read = {term.name for atom in atoms for term in atom.arguments if isinstance(term, Variable)}
            taken = (isinstance(term, Variable) and term.name in read for term in rule.head.arguments)
            made = [before or not is_taken for before, is_taken in zip(made, taken, strict=True)]
    return made


def _is_among(fact: Fact, patterns: Iterable[Pattern]) -> bool:
    return any(fact.relation == one.relation and one.fits(fact.values) for one in patterns)


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
