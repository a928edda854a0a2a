"""Repairs without an update: which explicit facts to take away or to give so that faults go. And faults that are
patterns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from elastalog.analysis.pattern import Free, Pattern, parse_pattern
from elastalog.analysis.values import public_value
from elastalog.debugging import faults
from elastalog.debugging.elements import Element
from elastalog.diagnostics.arguments import listed
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.update import Update
from elastalog.late import dataclass
from elastalog.provenance.fact import Fact
from elastalog.session.candidates import candidates_by_why_not, given_candidates
from elastalog.session.history import History
from elastalog.session.questions import Questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Suggestion
    from elastalog.relations.facts import Relation
    from elastalog.session.materialisation import Materialisation


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


def suggest_over_facts(now: Materialisation, questions: Questions, asked: Repair) -> Suggestion:
    """A smallest set of changes of explicit facts that removes all faults: for unwanted facts, those to delete; for
    missing ones, those among the candidates to insert or to delete."""
    explicit = {name: words for name in now.schemas if len(words := now.explicit_words(name))}
    if not asked.missing:
        # Looked at as one update, from a world without facts.
        world = questions.apart(lambda: _world(now, questions, {}, Update(inserted=explicit)))
        return _suggested(now, world, asked)
    if asked.unwanted:
        raise faults.two_kinds_of_faults()
    missing = [now.fact(fact) for fact in listed("missing facts are given in a list", asked.missing, "give them so")]
    for fact in missing:
        if now.backend.contains(fact.relation, now.encode(fact.relation, [fact.values]))[0]:
            raise faults.not_a_fault(fact, False, now.epoch)
    if asked.candidates is None:
        candidates = candidates_by_why_not(missing, now.program.checked, questions.explainer)
    else:
        candidates = given_candidates(asked.candidates, now)
    # Looked at as one update, from a world in which all candidates have been taken.
    came, went = _words_of(now, candidates, "+"), _words_of(now, candidates, "-")
    before = {name: _less(words, went.get(name)) for name, words in explicit.items()}
    for name, words in came.items():
        before[name] = np.concatenate([before[name], words]) if name in before else words
    update = Update(deleted=came, inserted=went)
    try:
        found = _suggested(now, _world(now, questions, before, update), replace(asked, missing=missing))
    except ElastalogError as error:
        if {diagnostic.code for diagnostic in error.diagnostics} & {"E1002", "E1004"}:
            raise faults.no_candidates(missing, candidates, asked.candidates is None) from None
        raise
    if asked.candidates is None and found.minimum and len(found.elements) > 1:
        return replace(found, minimum=False, bound=1.0, why_not_proven="the candidates were found by why-not")
    return found


def _world(now: Materialisation, questions: Questions, before: dict[str, np.ndarray], update: Update) -> Questions:
    """Questions to a session that began with some explicit facts and has had an update."""
    apart = now.another(now.program, now.dictionary, watch=now.watch)
    past = History(apart)
    past.records.append(apart.bootstrap(before))
    past.add(apart.epochs.apply(update), update)
    return Questions(apart, past, questions.undo)


def _suggested(now: Materialisation, world: Questions, asked: Repair) -> Suggestion:
    found = world.debugger.suggest(
        asked.unwanted,
        asked.missing,
        asked.rejected,
        asked.weights,
        time_limit=asked.time_limit,
        news=asked.on_progress,
    )
    return replace(found, epochs=(0, now.epoch), over="facts")


def _words_of(now: Materialisation, candidates: Sequence[Element], sign: str) -> dict[str, np.ndarray]:
    """The facts to insert, or to delete, of which that is a change."""
    rows: dict[str, list[tuple[Value, ...]]] = {}
    for element in dict.fromkeys(candidates):
        if element.sign == sign and isinstance(element.fact, Fact):
            rows.setdefault(element.fact.relation, []).append(element.fact.values)
    found = {}
    for name, values in rows.items():
        words = now.encode(name, values)
        words = words[now.backend.is_explicit(name, words) == (sign == "-")]
        if len(words):
            found[name] = words
    return found


def _less(words: np.ndarray, gone: np.ndarray | None) -> np.ndarray:
    """Rows without some of them."""
    if gone is None:
        return words
    kept = set(map(tuple, gone.tolist()))
    return words[[tuple(row) not in kept for row in words.tolist()]]


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
            found.extend(_fitting(pattern, relation(pattern.relation)))
    return found


def _fitting(pattern: Pattern, relation: Relation) -> Iterator[Fact]:
    for values in relation:
        if _fits(pattern, values):
            yield Fact(pattern.relation, tuple(values))


def _fits(pattern: Pattern, values: tuple[Value, ...]) -> bool:
    known: dict[str, Value] = {}
    for term, value in zip(pattern.terms, values, strict=True):
        if not isinstance(term, Free):
            if public_value(term) != value:
                return False
        elif term.name is not None and known.setdefault(term.name, value) != value:
            return False
    return True
