"""Changes of explicit facts that may bring missing facts about: given by the user, or found by asking why not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from elastalog.debugging.elements import Element
from elastalog.diagnostics.arguments import listed
from elastalog.provenance.fact import Fact
from elastalog.relations.rows import values_of_fact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from elastalog.analysis.program import CheckedProgram
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.explain import Explainer
    from elastalog.session.materialisation import Materialisation

MOST_QUESTIONS = 200
"""Absent facts that are looked into."""
NEAREST = 10
"""Failing derivations of each that are looked at."""
_ADVICE = "give facts in a list, those to delete as `-edge(1, 2)`; or rows by relation"


def given_candidates(given: Any, now: Materialisation) -> list[Element]:
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


def candidates_by_why_not(missing: Sequence[Fact], program: CheckedProgram, explainer: Explainer) -> list[Element]:
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
        if _may_be_given(fact, program, derived):
            found[Element("+", fact)] = None
        if fact.relation in derived:
            for kind, other in _in_the_way(explainer.explain_absence(fact, NEAREST)):
                if kind == "atom":
                    pending.append(other)
                else:
                    found.update({Element("-", leaf): None for leaf in explainer.explain(other).explicit_facts})
    return list(found)


def _may_be_given(fact: Fact, program: CheckedProgram, derived: set[str]) -> bool:
    """Whether facts of its relation are given: a fact that only rules derive is not mended by asserting it."""
    directives = program.relations[fact.relation].directives
    return fact.relation not in derived or any(directive.kind == "input" for directive in directives)


def _in_the_way(absence: Absence) -> Iterator[tuple[str, Fact]]:
    """The facts that a derivation lacks, as atoms, and those that it negates, all values known."""
    for instantiation in absence.instantiations:
        for literal in instantiation.failing:
            if literal.fact is not None and literal.kind in ("atom", "negation"):
                yield literal.kind, literal.fact
