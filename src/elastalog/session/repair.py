"""Repairs without an update: which explicit facts to take away so that faults go. And faults that are patterns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from elastalog.analysis.pattern import Free, Pattern, parse_pattern
from elastalog.analysis.values import public_value
from elastalog.evaluation.update import Update
from elastalog.provenance.fact import Fact
from elastalog.session.history import History
from elastalog.session.questions import Questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Suggestion
    from elastalog.evaluation.changes import Changes
    from elastalog.relations.facts import Relation
    from elastalog.session.materialisation import Materialisation


def suggest_over_facts(
    now: Materialisation,
    undo: Callable[[Suggestion], Changes],
    unwanted: Sequence[Any],
    missing: Sequence[Any],
    rejected: Sequence[Any],
    weights: Mapping[Any, float] | None,
    time_limit: float | None,
    on_progress: Callable[[str], None] | None,
) -> Suggestion:
    """A smallest set of explicit facts whose deletion removes all faults: they are looked at as one update, from a
    world without facts."""
    apart = now.another(now.program, now.dictionary)
    past = History(apart)
    past.records.append(apart.bootstrap({}))
    explicit = {name: now.explicit_words(name) for name in now.schemas}
    everything = Update(inserted={name: words for name, words in explicit.items() if len(words)})
    past.add(apart.epochs.apply(everything), everything)
    debugger = Questions(apart, past, undo).debugger
    found = debugger.suggest(unwanted, missing, rejected, weights, time_limit=time_limit, news=on_progress)
    return replace(found, epochs=(0, now.epoch))


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
