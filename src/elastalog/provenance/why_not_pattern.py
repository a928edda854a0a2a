"""Finds the nearest failing derivations of whatever fact fits a pattern and does not hold.

The search is that for one fact (`why_not`), with values for some arguments of the head only: the body gives the others
values, or leaves them open, as where no fact at all fits an atom. What would derive a fact that holds is no answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from elastalog.analysis.pattern import Free, Pattern
from elastalog.analysis.program import Atom, Comparison, Constant, Expression, Rule, Value, Wildcard
from elastalog.analysis.values import NIL
from elastalog.provenance.absence import AbsenceSource, Instantiation, PatternAbsence
from elastalog.provenance.comparisons import compare
from elastalog.provenance.fact import Bindings, Fact
from elastalog.provenance.ground import NoValue, Ordinal, Unbound
from elastalog.provenance.instantiate import ground_values, match_atom, show
from elastalog.provenance.joins import LookUp
from elastalog.provenance.why_not import KEPT, Search, equations_of


def explain_pattern(
    pattern: Pattern,
    written: str,
    present: int,
    rules: tuple[Rule, ...],
    look_up: LookUp,
    ordinal: Ordinal,
    limit: int,
    given: Bindings,
    source: AbsenceSource,
) -> PatternAbsence:
    """The nearest failing instantiations of the rules that would derive a fact of the pattern which does not hold, at
    most `limit`, one for each such fact first. `present`: how many hold. `given`: values of variables that are fixed
    beforehand."""
    found: list[tuple[Instantiation, str]] = []
    impossible: list[tuple[Rule, str]] = []
    is_exhaustive = True
    for rule in rules:
        bindings: dict[str, Value] = {}
        deferred: list[tuple[Expression, Value]] = []
        known = [(a, t) for a, t in zip(rule.head.arguments, pattern.terms, strict=True) if not isinstance(t, Free)]
        part = Atom(rule.head.relation, tuple(argument for argument, _ in known), rule.head.span)
        if not match_atom(part, [value for _, value in known], bindings, deferred):
            impossible.append((rule, f"its head is `{show(rule.head, {})}`"))
            continue
        if any(not compare("=", bindings.setdefault(name, value), value) for name, value in given.items()):
            impossible.append((rule, "the values given for its variables do not fit the pattern"))
            continue
        wanted = _wanted(rule.head, pattern)
        literals = [*rule.body, *equations_of(deferred), *_same(rule.head, pattern)]

        def is_absent(values: Bindings, wanted: Atom = wanted) -> bool:
            try:
                fact = ground_values(wanted, values, ordinal)
            except Unbound:
                return True
            except NoValue:
                return False
            return next(iter(look_up(wanted.relation, fact)), None) is None

        search = Search(rule, literals, look_up, ordinal, limit * KEPT, is_wanted=is_absent)
        search.run(bindings, least=1)
        is_exhaustive = is_exhaustive and not search.is_cut
        found += [(one, show(wanted, one.bindings)) for one in search.found.values()]
    found.sort(key=lambda pair: pair[0].rank)
    shown = [*_distinct(found)][:limit]
    fact = Fact(pattern.relation, tuple(NIL if isinstance(term, Free) else term for term in pattern.terms))
    return PatternAbsence(
        fact, tuple(one for one, _ in shown), tuple(impossible), is_exhaustive, source,
        pattern=written, present=present, conclusions=tuple(conclusion for _, conclusion in shown),
    )  # fmt: skip


def _wanted(head: Atom, pattern: Pattern) -> Atom:
    """What a rule is to derive: its head, with the values that the pattern has."""
    places = zip(head.arguments, pattern.terms, strict=True)
    arguments = [
        a if isinstance(t, Free) or isinstance(a, Wildcard) else Constant(t, a.base, a.span) for a, t in places
    ]
    return Atom(head.relation, tuple(arguments), head.span)


def _same(head: Atom, pattern: Pattern) -> Iterator[Comparison]:
    """That arguments of the head are equal where the pattern has the same variable."""
    places: dict[str, list[Expression]] = {}
    for argument, term in zip(head.arguments, pattern.terms, strict=True):
        if isinstance(term, Free) and term.name is not None and not isinstance(argument, Wildcard):
            places.setdefault(term.name, []).append(argument)
    for arguments in places.values():
        for one, other in pairwise(arguments):
            yield Comparison("=", one.base, one, other, one.span)


def _distinct(found: Sequence[tuple[Instantiation, str]]) -> Iterator[tuple[Instantiation, str]]:
    """The best for every conclusion, then the others."""
    met: set[str] = set()
    later: list[tuple[Instantiation, str]] = []
    for one, conclusion in found:
        if conclusion in met:
            later.append((one, conclusion))
        else:
            met.add(conclusion)
            yield one, conclusion
    yield from later
