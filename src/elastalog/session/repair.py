"""Repairs: which explicit facts to delete or insert so that faults go, the candidates for that, and how a suggestion is
applied. And faults that are patterns."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from elastalog.analysis.listing import show_value
from elastalog.analysis.pattern import Pattern, parse_pattern
from elastalog.analysis.values import sort_key
from elastalog.debugging.answers import Element, SideEffects
from elastalog.debugging.debugger import TIME_LIMIT
from elastalog.debugging.questions import Inquiry, facts_in
from elastalog.diagnostics import quota
from elastalog.diagnostics.arguments import listed, require_number
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached, error
from elastalog.program import shown_rule
from elastalog.provenance.fact import Fact
from elastalog.relations.rows import values_of_fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    import numpy as np

    from elastalog.analysis.program import Base, CheckedProgram, Value
    from elastalog.debugging.answers import Sign, Suggestion
    from elastalog.evaluation.changes import Changes
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.explain import Explainer
    from elastalog.provenance.reading import WordFact
    from elastalog.relations.facts import Relation
    from elastalog.session.history import History
    from elastalog.session.materialisation import Materialisation
    from elastalog.session.pending import PendingUpdate
    from elastalog.session.questions import Answerers
    from elastalog.session.updating import Updates
    from elastalog.storage.entries import LogEntry

    Log: TypeAlias = Callable[[], tuple[LogEntry, ...]]

FACT_SIZE = 500
"""Bytes that a fault takes in a search, about."""
MOST_QUESTIONS = 200
"""Absent facts that are looked into."""
FIRST = 8
"""Candidates that are tried before all: the likeliest come first, and with others rules may have no end. And side
effects that are named."""
A_MOMENT = 0.1
"""Seconds that side effects may always take; otherwise as many as the search has."""
NEAREST = 40
"""Failing derivations of each that are looked at."""
ENOUGH_ROWS = 10_000
"""Facts of a relation by which its values are known."""
_ADVICE = "give facts in a list, those to delete as `-edge(1, 2)`; or rows by relation"


def suggest_over_facts(
    now: Materialisation, answerers: Answerers, asked: Inquiry, given: Any, relation: Callable[[str], Relation]
) -> Suggestion:
    """A smallest set of changes of explicit facts that removes all faults: for unwanted facts, deletions; for missing
    ones, changes among the candidates that are given, or, for None, that why-not finds."""
    missing = [now.fact(fact) for fact in facts_in("missing facts are given in a list", asked.missing)]
    for fact in missing:
        now.encode(fact.relation, [fact.values])  # so that it has words
    candidates = _candidates(now, answerers, missing, relation) if given is None else _given_candidates(given, now)

    def repaired(candidates: Sequence[Element], seconds: float | None) -> Suggestion:
        wanted = replace(asked, missing=missing, time_limit=seconds)
        return answerers.debugger.repair(wanted, _changes(now, candidates))

    found: Suggestion | None = None
    if given is None and not asked.weights and len(candidates) > FIRST:
        try:
            found = repaired(candidates[:FIRST], (TIME_LIMIT if asked.time_limit is None else asked.time_limit) / 4)
        except LimitReached:
            raise
        except ElastalogError:
            pass
    try:
        found = found or repaired(candidates, asked.time_limit)
    except ElastalogError as failed:
        if any(diagnostic.code == "E0712" for diagnostic in failed.diagnostics):
            raise _none_does(now, missing, candidates, given is None, asked.rejected) from None
        raise
    if missing and given is None and found.minimum and len(found.elements) > 1:
        return replace(found, minimum=False, bound=1.0, why_not_proven="only candidates that why-not finds were tried")
    return found


def _none_does(
    now: Materialisation,
    missing: Sequence[Fact],
    candidates: Sequence[Element],
    are_found: bool,
    rejected: Sequence[Any],
) -> ElastalogError:
    """Why-not finds no facts to insert or to delete, or those that were given are not enough."""
    relations = now.backend.program.relations

    def is_mentioned(base: Base, word: int) -> bool:
        columns = ((name, i) for name, one in relations.items() for i, other in enumerate(one.bases) if other == base)
        return any((now.backend.facts(name).words[:, i] == word).any() for name, i in columns)

    unknown = (
        show_value(value)
        for fact in missing
        for base, word, value in zip(relations[fact.relation].bases, _words(now, fact)[0], fact.values, strict=False)
        if not is_mentioned(base, word)
    )
    return error(
        "E0712.found" if are_found else "E0712.given",
        missing=", ".join(map(str, missing)),
        tried=", ".join(map(str, candidates[:5])) + ", …" * (len(candidates) > 5) or None,
        rejected=", ".join(map(str, rejected)) or None,
        unknown=next(unknown, None),
    )


def _candidates(
    now: Materialisation, answerers: Answerers, missing: Sequence[Fact], relation: Callable[[str], Relation]
) -> list[Element]:
    """The changes that may bring missing facts about."""
    absent = [fact for fact in missing if not now.backend.contains(fact.relation, _words(now, fact))[0]]
    if not absent:
        return []
    return _candidates_by_why_not(absent, now.program.checked, answerers.explainer, relation)


def _changes(now: Materialisation, candidates: Sequence[Element]) -> dict[WordFact, bool]:
    """The facts of candidates that are changes, and whether each is explicit."""
    found: dict[WordFact, bool] = {}
    for element in candidates:
        assert isinstance(element.fact, Fact)
        words = _words(now, element.fact)
        is_there = bool(now.backend.is_explicit(element.fact.relation, words)[0])
        if is_there == (element.sign == "-"):
            found[element.fact.relation, tuple(words[0].tolist())] = is_there
    return found


def _words(now: Materialisation, fact: Fact) -> np.ndarray:
    return now.encode(fact.relation, [fact.values])


def leaving_nothing(
    patterns: Sequence[Pattern],
    suggest: Callable[[Sequence[Fact]], Suggestion],
    now: Materialisation,
    updates: Updates,
    history: History,
    seconds: float | None,
) -> Suggestion:
    """A suggestion with its side effects, after which nothing fits patterns that are unwanted: while one brings other
    facts about that do, these are to stay absent too. When the time is over, one that is not called verified."""
    require_number("time_limit", seconds, 0)
    absent: list[Fact] = []
    begun = time.monotonic()
    end = begun + (TIME_LIMIT if seconds is None else seconds)
    while True:
        found = suggest(absent)
        if found.epochs[1] != now.epoch:
            return found
        update = updates.begin()
        fill_undoing(update, found, now.epoch, history.log)
        try:
            with now.within(None if patterns else max(A_MOMENT, time.monotonic() - begun), None):
                changes = updates.preview(update)
        except LimitReached:
            now.watch.check()  # raises if it is a limit of the user
            return found
        came = [fact for one in patterns for fact in _fitting(one, changes[one.relation].inserted)]
        if not came:
            return replace(found, side_effects=_side_effects(found, changes, now.program.checked))
        if time.monotonic() > end:
            return replace(found, verified=False, minimum=False, why_not_proven="other facts come to fit the pattern")
        for fact in came:
            now.encode(fact.relation, [fact.values])  # so that it has words
        absent += came


def _side_effects(found: Suggestion, changes: Changes, program: CheckedProgram) -> SideEffects:
    """What changes besides what a suggestion is for, and what it does itself."""
    relations = program.relations.values()
    output = {one.name for one in relations if any(directive.kind == "output" for directive in one.directives)}
    numbers: dict[Sign, int] = {"+": 0, "-": 0}
    first: list[Element] = []
    for name in changes:
        came, went = changes[name].inserted, changes[name].deleted
        sides: Any = (("+", came, found.missing, found.insert), ("-", went, found.unwanted, found.delete))
        for sign, facts, faults, done in sides:
            meant = {*faults, *(fact for fact in done if fact.relation == name and fact.values in facts)}
            others = len(facts) - sum(fact.relation == name for fact in meant)
            if others and (name in output or not output):
                numbers[sign] += others
                named = (fact for fact in (Fact(name, tuple(values)) for values in facts) if fact not in meant)
                some = sorted(islice(named, MOST_QUESTIONS), key=lambda fact: sort_key(fact.values))
                first += [Element(sign, fact) for fact in some[:FIRST]]
    return SideEffects(numbers["+"], numbers["-"], tuple(first[:FIRST]), bool(output))


def patterns_in(written: Any, now: Materialisation) -> list[Pattern]:
    """The patterns among facts as the user names them."""
    found = [parse_pattern(one, now.program.checked) for one in _named(written) or () if isinstance(one, str)]
    return [one for one in found if not one.is_fact]


def _named(written: Any) -> Iterable[Any] | None:
    """Facts as the user names them, among which there may be patterns; None: whatever it is, there is none in it."""
    if isinstance(written, str):
        return [written]
    is_several = isinstance(written, tuple) and all(isinstance(one, str) for one in written)
    return written if is_several or isinstance(written, list | set) else None


def as_facts(written: Any, now: Materialisation, relation: Callable[[str], Relation]) -> Any:
    """Facts as the user names them, one or several, with the facts that fit it in the place of each pattern, such as
    `path(1, _)`."""
    named = _named(written)
    if named is None:
        return written
    found: list[Any] = []
    for one in named:
        pattern = parse_pattern(one, now.program.checked) if isinstance(one, str) else None
        if pattern is None or pattern.is_fact:
            found.append(one)
        else:
            fitting = list(_fitting(pattern, relation(pattern.relation)))
            if not fitting:
                raise error("E1001.pattern", pattern=one, epoch=now.epoch)
            found.extend(fitting)
    return found


def _fitting(pattern: Pattern, relation: Iterable[tuple[Value, ...]]) -> Iterator[Fact]:
    for values in relation:
        quota.look()
        if pattern.fits(values):
            quota.take(FACT_SIZE)
            yield Fact(pattern.relation, tuple(values))


# --- candidates -----------------------------------------------------------------------------------------------------


def _given_candidates(given: Any, now: Materialisation) -> list[Element]:
    """Candidates as the user names them: rows by relation, or facts, those to delete with a minus."""
    if isinstance(given, Mapping):
        return [
            Element("+", Fact(name, values_of_fact(now.schema(name), row)))
            for name, rows in given.items()
            for row in rows
        ]
    found = []
    for one in listed("candidates are facts", given, _ADVICE):
        sign, written = ("+", one)
        if isinstance(one, str) and one.strip()[:1] in ("+", "-"):
            sign, written = one.strip()[0], one.strip()[1:]
        found.append(Element("-" if sign == "-" else "+", now.fact(written)))
    return found


def _candidates_by_why_not(
    missing: Sequence[Fact], program: CheckedProgram, explainer: Explainer, relation: Callable[[str], Relation]
) -> list[Element]:
    """The explicit facts that the nearest failing derivations lack, however deep, and those that stand in their way."""
    found: dict[Element, None] = {}
    asked: set[Fact] = set()
    pending = deque(missing)
    derived = {rule.head.relation for rule in program.rules}
    while pending and len(asked) < MOST_QUESTIONS:
        fact = pending.popleft()
        if fact in asked:
            continue
        asked.add(fact)
        if program.is_given(fact.relation):  # a fact that only rules derive is not mended by asserting it
            found[Element("+", fact)] = None
        if fact.relation in derived:
            for kind, other in _in_the_way(explainer.explain_absence(fact, NEAREST), program, relation):
                if kind == "atom":
                    pending.append(other)
                else:
                    found.update({Element("-", leaf): None for leaf in explainer.explain(other).explicit_facts})
    likely = _Likely(relation)
    return sorted(found, key=lambda element: not likely.is_one(element))


class _Likely:
    """Whether a fact that is to be inserted is like those that are there: no number is beyond zero, or twice those of
    its column."""

    def __init__(self, relation: Callable[[str], Relation]) -> None:
        self._relation = relation
        self._ranges: dict[str, list[tuple[float, float] | None]] = {}

    def is_one(self, element: Element) -> bool:
        fact = element.fact
        if element.sign == "-" or not isinstance(fact, Fact):
            return True
        known = self._ranges.get(fact.relation)
        if known is None:
            columns = zip(*islice(self._relation(fact.relation), ENOUGH_ROWS), strict=True)
            known = self._ranges[fact.relation] = [_range(column) for column in columns]
        pairs = zip(fact.values, known or [None] * len(fact.values), strict=True)
        return all(ends is None or ends[0] <= value <= ends[1] for value, ends in pairs)  # type: ignore[operator]


def _range(column: tuple[Value, ...]) -> tuple[float, float] | None:
    numbers = [value for value in column if isinstance(value, int | float)]
    return (2 * min(*numbers, 0), 2 * max(*numbers, 0)) if len(numbers) == len(column) else None


def _in_the_way(
    absence: Absence, program: CheckedProgram, relation: Callable[[str], Relation]
) -> Iterator[tuple[str, Fact]]:
    """The facts that a derivation lacks, as atoms, all values known, and those that fit what it negates."""
    for instantiation in absence.instantiations:
        for literal in instantiation.failing:
            if literal.fact is not None and literal.kind in ("atom", "negation"):
                yield literal.kind, literal.fact
            elif literal.kind == "negation":
                pattern = parse_pattern(literal.text.removeprefix("!"), program)
                for fact in islice(_fitting(pattern, relation(pattern.relation)), MOST_QUESTIONS):
                    yield literal.kind, fact


# --- applying a suggestion ------------------------------------------------------------------------------------------


def undo(suggestion: Suggestion, updates: Updates, history: History) -> Changes:
    """Applies a suggestion. Raises ElastalogError if the session has gone on since it was made."""
    with updates.begin() as update:
        fill_undoing(update, suggestion, updates.now.epoch, history.log)
    return update.changes


def fill_undoing(update: PendingUpdate, suggestion: Suggestion, epoch: int, log: Log) -> None:
    """Puts into an update what undoes the elements of a suggestion. Raises ElastalogError if that was made for another
    epoch."""
    if suggestion.epochs[1] != epoch:
        raise error("E1007", made=suggestion.epochs[1], now=epoch)
    for rule in suggestion.rules_to_remove:
        update.remove_rules(_as_written(rule, log))
    for rule in suggestion.rules_to_add:
        update.add_rules(_as_written(rule, log))
    for fact in suggestion.delete:
        update.delete(fact.relation, [fact.values])
    for fact in suggestion.insert:
        update.insert(fact.relation, [fact.values])


def _as_written(rule: str, log: Log) -> str:
    """A rule that has been removed, with its plan if it had one."""
    gone = (text for entry in reversed(log()) for text in entry.removed_rules)
    return next((text for text in gone if shown_rule(text) == rule), rule)
