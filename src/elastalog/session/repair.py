"""Repairs without an update: which explicit facts to take away or to give so that faults go. And faults that are
patterns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from elastalog.analysis.pattern import Free, Pattern, parse_pattern
from elastalog.analysis.values import sort_key
from elastalog.debugging import faults
from elastalog.debugging.asking import facts_in
from elastalog.debugging.elements import Element
from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.late import dataclass
from elastalog.provenance.fact import Fact
from elastalog.session.candidates import candidates_by_why_not, given_candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np

    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Suggestion
    from elastalog.provenance.reading import WordFact
    from elastalog.relations.facts import Relation
    from elastalog.session.answerers import Answerers
    from elastalog.session.materialisation import Materialisation


FACT_SIZE = 500
"""Bytes that a fault takes in a search, about."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What is to be mended, and how it is searched for; see `Session.suggest`."""

    unwanted: Sequence[Any]
    missing: Sequence[Any]
    rejected: Sequence[Any]
    weights: Mapping[Any, float] | None
    time_limit: float | None
    on_progress: Callable[[str], None] | None
    candidates: Any


def suggest_over_facts(now: Materialisation, answerers: Answerers, asked: Repair) -> Suggestion:
    """A smallest set of changes of explicit facts that removes all faults: for unwanted facts, deletions; for missing
    ones, changes among the candidates."""
    missing = [now.fact(fact) for fact in facts_in("missing facts are given in a list", asked.missing)]
    for fact in missing:
        now.encode(fact.relation, [fact.values])  # so that it has words
    candidates = _candidates(now, answerers, missing, asked.candidates)
    try:
        found = answerers.debugger.mend(
            asked.unwanted,
            missing,
            _changes(now, candidates),
            asked.rejected,
            asked.weights,
            time_limit=asked.time_limit,
            news=asked.on_progress,
        )
    except ElastalogError as error:
        if any(diagnostic.code == "E0712" for diagnostic in error.diagnostics):
            raise faults.no_candidates(missing, candidates, asked.candidates is None) from None
        raise
    if missing and asked.candidates is None and found.minimum and len(found.elements) > 1:
        return replace(found, minimum=False, bound=1.0, why_not_proven="the candidates were found by why-not")
    return found


def with_facts(asked: Repair, now: Materialisation, relation: Callable[[str], Relation]) -> Repair:
    """The same, with facts in the place of patterns."""
    return replace(asked, unwanted=as_facts(asked.unwanted, now, relation))


def _candidates(now: Materialisation, answerers: Answerers, missing: Sequence[Fact], given: Any) -> list[Element]:
    """The changes that may bring missing facts about."""
    if given is not None:
        return given_candidates(given, now)
    absent = [fact for fact in missing if not now.backend.contains(fact.relation, _words(now, fact))[0]]
    return candidates_by_why_not(absent, now.program.checked, answerers.explainer) if absent else []


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


def as_facts(written: Any, now: Materialisation, relation: Callable[[str], Relation]) -> Any:
    """Facts as the user names them, one or several, with the facts that fit it in the place of each pattern, such as
    `path(1, _)`."""
    if not isinstance(written, str | list | set) and not (
        isinstance(written, tuple) and all(isinstance(one, str) for one in written)
    ):
        return written  # whatever it is, there is no pattern in it
    found: list[Any] = []
    for one in [written] if isinstance(written, str) else written:
        pattern = parse_pattern(one, now.program.checked) if isinstance(one, str) else None
        if pattern is None or pattern.is_fact:
            found.append(one)
        else:
            fitting = list(_fitting(pattern, relation(pattern.relation)))
            if not fitting:
                raise faults.nothing_fits(one, now.epoch)
            found.extend(fitting)
    return found


def _fitting(pattern: Pattern, relation: Relation) -> Iterator[Fact]:
    for values in relation:
        quota.look()
        if _fits(pattern, values):
            quota.take(FACT_SIZE)
            yield Fact(pattern.relation, tuple(values))


def _fits(pattern: Pattern, values: tuple[Value, ...]) -> bool:
    known: dict[str, Value] = {}
    for term, value in zip(pattern.terms, values, strict=True):
        if not isinstance(term, Free):
            if sort_key(term) != sort_key(value):  # by which NaN equals NaN
                return False
        elif term.name is not None and sort_key(known.setdefault(term.name, value)) != sort_key(value):
            return False
    return True
