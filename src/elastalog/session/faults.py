"""Facts and patterns by which users name faults, and what is to stay as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from elastalog.analysis.pattern import Pattern, parse_selection, require_fact
from elastalog.debugging.questions import facts_in, signed
from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import error
from elastalog.provenance.fact import Fact
from elastalog.provenance.reading import Reading
from elastalog.session.materialisation import Materialisation
from elastalog.session.questions import warn_of_terms

FACT_SIZE = 500
"""Approximate memory of a fault in a search, in bytes."""


class Faults(NamedTuple):
    """Unwanted and missing facts, as they were given, or found for the `patterns` among the unwanted ones."""

    unwanted: list[Any]
    missing: list[Any]
    patterns: list[Pattern]


def faults_named(unwanted: Any, missing: Any, now: Materialisation) -> Faults:
    """The faults of a question. An unwanted pattern such as `path(1, _)` stands for the facts that match it. Raises
    ElastalogError if nothing does, or if a missing fact is a pattern, which leaves open which fact is meant."""
    program = now.program.checked
    found = Faults([], [*facts_in("missing facts are given in a list", missing)], [])
    for one in found.missing:
        if isinstance(one, str):
            require_fact(one, program)
    named = facts_in("unwanted facts are given in a list", unwanted)
    warn_of_named((*named, *found.missing), now)
    for one in named:
        pattern = parse_selection(one, program) if isinstance(one, str) else None
        if pattern is None or pattern.is_fact:
            found.unwanted.append(one)
            continue
        facts = list(_fitting(pattern, now))
        if not facts:
            raise error("E1001.pattern", pattern=one, epoch=now.epoch)
        found.unwanted.extend(facts)
        found.patterns.append(pattern)
    return found


def warn_of_named(written: Iterable[Any], now: Materialisation) -> None:
    """Warns of texts that no fact has, and of bare names that may be meant as texts, in facts, patterns and elements
    given by the user."""
    for one in written:
        _, element = signed(one)
        if isinstance(element, str) and ":-" not in element:
            warn_of_terms(parse_selection(element, now.program.checked).terms, now.dictionary)
        elif isinstance(element, tuple):
            warn_of_terms(now.fact(element).values, now.dictionary)


def selected(written: Iterable[Any], now: Materialisation) -> list[Pattern]:
    """The facts and patterns among elements given by the user."""
    found = []
    for _, one in map(signed, written):
        if not isinstance(one, str):
            found.append(Pattern(*now.fact(one)))
        elif ":-" not in one:
            found.append(parse_selection(one, now.program.checked))
    return found


def _fitting(pattern: Pattern, now: Materialisation) -> Iterator[Fact]:
    """The facts that match a pattern, within the limits of memory."""
    for fact in Reading(now.backend, now.dictionary).fitting(pattern):
        quota.take(FACT_SIZE)
        yield fact
