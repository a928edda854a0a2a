"""What users write in questions, checked, and as the backend holds it: faults, elements of updates, weights. And the
errors of questions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from elastalog.analysis.pattern import Pattern, parse_selection
from elastalog.backends.protocol import Backend
from elastalog.debugging.history import RuleElements
from elastalog.debugging.sandbox import are_present
from elastalog.debugging.search import WHAT_MAY_HELP
from elastalog.diagnostics.arguments import listed, require_mapping
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.program import single_rule
from elastalog.provenance.fact import Fact
from elastalog.provenance.reading import Reading, WordFact

_FAULTS = 'write facts as in the language, `["path(1, 4)"]`, or as pairs, `[("path", (1, 4))]`'
_ELEMENTS = 'write facts or patterns: `["edge(1, 2)", "edge(3, _)"]`'

Written: TypeAlias = str | tuple[str, Any]
"""A fact as text or as relation and values; an element in the same ways, with `+` or `-` before it, or alone."""

ReadFact: TypeAlias = Callable[[Any], tuple[str, tuple[Any, ...]]]

Sides: TypeAlias = tuple[tuple[Fact, ...], tuple[Fact, ...]]
"""Unwanted facts and missing ones."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is to be explained or mended, and how to search for it; see `Session.suggest`. Nothing may fit `patterns`
    afterwards; what fits now is among the unwanted facts. `is_baseline`: by delta debugging, for comparison in
    benchmarks."""

    unwanted: Sequence[Any]
    missing: Sequence[Any]
    rejected: Sequence[Any] = ()
    weights: Mapping[Any, float] | None = None
    time_limit: float | None = None
    on_progress: Callable[[str], None] | None = None
    epochs: tuple[int, int] | None = None
    patterns: Sequence[Pattern] = ()
    is_baseline: bool = False


@dataclass(frozen=True, slots=True)
class Elements:
    """What may be undone or changed. `came`: whether a fact came or went, None if it is no element. `of_relation`: the
    elements of a relation. `refuse`: the error that something, of a relation or a rule (None), is no element; None if
    naming it does no harm. `is_any_sign`: signs do not matter, since an explicit fact can only be deleted, and an
    absent one only inserted."""

    came: Callable[[WordFact], bool | None]
    of_relation: Callable[[str], Iterable[WordFact]]
    refuse: Callable[[str | None, str], ElastalogError | None]
    is_any_sign: bool = False


@dataclass(frozen=True, slots=True)
class Asking:
    """`_read_fact` checks facts as users write them. `_rules`: those among the elements."""

    _backend: Backend
    _reading: Reading
    _read_fact: ReadFact
    _rules: RuleElements | None

    # --- facts -----------------------------------------------------------------------------------------------------

    def sides(self, unwanted: Sequence[Written], missing: Sequence[Written]) -> Sides:
        """Faults, each once."""
        unwanted_facts, missing_facts = (
            tuple(dict.fromkeys(map(self.fact, facts_in(f"{name} facts are given in a list", side))))
            for name, side in (("unwanted", unwanted), ("missing", missing))
        )
        if not unwanted_facts and not missing_facts:
            raise error("E1003")
        for fact in unwanted_facts:
            if fact in missing_facts:
                raise error("E1003.both", fact=fact)
        return unwanted_facts, missing_facts

    def fact(self, written: Written) -> Fact:
        self._reading.look()
        return Fact(*self._read_fact(written))

    def words(self, facts: Iterable[Fact]) -> tuple[WordFact, ...]:
        """The words of those facts whose values all occur somewhere."""
        return tuple(words for words in map(self._reading.words, facts) if words is not None)

    def hold(self, facts: Iterable[Fact]) -> list[bool]:
        """Which facts hold in the present state."""
        known = list(map(self._reading.words, facts))
        present = iter(are_present(self._backend, [words for words in known if words is not None]))
        return [words is not None and next(present) for words in known]

    # --- elements --------------------------------------------------------------------------------------------------

    def rejected(self, given: Sequence[Written], known: Elements) -> tuple[WordFact, ...]:
        """Elements that stay applied, each once."""
        return tuple(dict.fromkeys(fact for element in rejected_in(given) for fact in self._fitting(element, known)))

    def weights(self, given: Mapping[Any, Any], known: Elements) -> dict[WordFact, float]:
        """What elements weigh; one that several patterns fit, or that is named besides, weighs what the last says."""
        require_mapping("weights are numbers by element", given, 'give a mapping, such as `{"edge(1, 2)": 2}`')
        found = {}
        for element, weight in given.items():
            is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not is_number or not 0 < weight < math.inf:
                raise error("E1009", element=element, weight=weight)
            found.update(dict.fromkeys(self._fitting(element, known), float(weight)))
        return found

    def _fitting(self, written: Written, known: Elements) -> list[WordFact]:
        """The facts of an element, for a rule its guard. The sign can be left out, since only one change of a fact is
        possible."""
        sign, written = signed(written)
        fact: Fact | str
        relation: str | None = None
        program = self._backend.program.checked
        if isinstance(written, str) and ":-" in written:
            # Also as in diff files: `-rule: path(x, y) :- edge(x, y).`
            fact = single_rule(re.sub(r"^\s*rule\s*:(?!-)", "", written))
            words = None if self._rules is None else self._rules.fact_of(str(fact))
            elements = [] if words is None else [words]
        elif isinstance(written, str) and not (pattern := parse_selection(written, program)).is_fact:
            fact, relation = written.strip(), pattern.relation
            elements = [
                words for words in known.of_relation(relation) if pattern.fits(self._reading.fact(words).values)
            ]
        else:
            fact = self.fact(written)
            relation, words = fact.relation, self._reading.words(fact)
            elements = [] if words is None else [words]
        is_any_sign = sign is None or known.is_any_sign
        found = [
            one for one in elements if (came := known.came(one)) is not None and (is_any_sign or came == (sign == "+"))
        ]
        shown = f"{'' if known.is_any_sign else sign or ''}{fact}"
        if not found and (refused := known.refuse(relation, shown)) is not None:
            raise refused
        return found


def signed(written: Any) -> tuple[str | None, Any]:
    """The sign of an element as it is written, None if it has none, and what stands behind it."""
    if isinstance(written, str) and (text := written.strip())[:1] in ("+", "-"):
        return text[0], text[1:]
    if isinstance(written, tuple | list) and len(written) == 2 and written[0] in ("+", "-"):
        return written[0], written[1]
    return None, written


def rejected_in(given: Any) -> tuple[Any, ...]:
    """What must stay, as given."""
    return listed("rejected elements are given in a list", given, _ELEMENTS)


def facts_in(told: str, given: Any) -> tuple[Any, ...]:
    """Faults as given: several, or a fact alone in either notation. A tuple is a fact alone if it begins with the bare
    name of a relation."""
    match given:
        case (str() as name, tuple() | list()) if isinstance(given, tuple) and "(" not in name:
            return (given,)
    return listed(told, given, _FAULTS)


# --- what can be wrong -----------------------------------------------------------------------------------------------


def not_repaired(
    unwanted: Sequence[Fact], missing: Sequence[Fact], rejected: Sequence[Fact], why_not_proven: str | None
) -> ElastalogError:
    """No change of explicit facts removes all faults, or none was found."""
    wanted = " and ".join(
        ", ".join(map(str, facts)) + said for facts, said in ((unwanted, " absent"), (missing, " present")) if facts
    )
    if why_not_proven is not None:
        return error("E1006.repair", wanted=wanted, why=why_not_proven, more=WHAT_MAY_HELP[why_not_proven])
    kept = ", ".join(map(str, rejected)) or None
    if not unwanted:
        return error("E0712.given", missing=", ".join(map(str, missing)), rejected=kept)
    if missing:
        return error("E0713", wanted=wanted, rejected=kept)
    reason = "it follows from rules and from facts that must stay" if rejected else "deletions do not change that"
    less = "reject less, " if rejected else ""
    return error("E0714", wanted=wanted, rejected=kept, reason=reason, less=less)
