"""Texts that are not the dates or numbers that functions need, told where rules derive nothing for that reason: all
other goals of a rule hold."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, Final

from elastalog.analysis.functor_values import DATE, INVALID_TEXTS, MOST_INVALID, NUMBER, is_other_date, moment_of
from elastalog.analysis.functors import CONVERTING, DATED
from elastalog.analysis.listing import show_value
from elastalog.analysis.pattern import Free, Pattern
from elastalog.analysis.program import Apply, Atom, Base, CheckedProgram, Comparison, Rule, Value, Variable, literals_in
from elastalog.backends.protocol import Backend
from elastalog.diagnostics.diagnostic import Diagnostic, finding
from elastalog.provenance.fact import Fact
from elastalog.provenance.ground import Ordinal
from elastalog.provenance.joins import LookUp
from elastalog.provenance.reading import Reading
from elastalog.provenance.why_not import WhyNot
from elastalog.relations.words import Dictionary
from elastalog.syntax.tree import nodes_of

_ORDERS = ("<", "<=", ">", ">=")
_TAKING: Final = {DATE: DATED, NUMBER: CONVERTING}
_SPARED = 20
"""How many times as long as it took to judge texts again, nothing is judged again."""


class InvalidTexts:
    """What a session has met and told of them."""

    def __init__(self) -> None:
        self._judged = set[str]()
        self._told = set[str]()
        self._again = 0.0
        """When texts may be judged again."""
        self._has_compared = False

    def compared(
        self, program: CheckedProgram, backend: Backend, dictionary: Dictionary, query: str | None = None
    ) -> Diagnostic | None:
        """Warns, once, of a date just met that a rule compares, and whose form does not sort by time. `query` as for
        `_lost`."""
        texts = [] if self._has_compared else sorted(filter(is_other_date, INVALID_TEXTS))
        reading = Reading(backend, dictionary)
        places = dict.fromkeys(place for rule in program.rules if texts for place in _compared_columns(rule))
        for text, (name, place, operator) in product(texts, places):
            columns = program.relations[name].attributes
            pattern = [text if i == place else None for i in range(len(columns))]
            values = None if name == query else next(reading.select(name, pattern), None)
            if values is not None:
                self._has_compared = True
                told = {
                    "text": show_value(text[:60]),
                    "operator": operator,
                    "column": columns[place].name,
                    "fact": Fact(name, values),
                }
                return finding("E0621.compared", severity="warning", **told)
        return None

    def lost_dates(self, *asked: Any) -> Diagnostic | None:
        """See `_lost`."""
        return self._lost(DATE, *asked)

    def lost_numbers(self, *asked: Any) -> Diagnostic | None:
        """See `_lost`."""
        return self._lost(NUMBER, *asked)

    def _lost(
        self, wanted: str, program: CheckedProgram, backend: Backend, dictionary: Dictionary, query: str | None
    ) -> Diagnostic | None:
        """Warns of texts that functions of dates, or conversions, just met and that keep a rule from deriving
        something: once for each text, when it first matters. A function may be computed before a goal that excludes its
        row. That is no reason to warn; but the row is judged again when it is met again, as long as that takes little
        of the time. `query`: if the program is a query, the relation of its answers, which the backend does not
        have."""
        began = time.monotonic()
        is_again = began > self._again
        known = self._told if is_again else self._judged
        texts = sorted(text for text, kind in INVALID_TEXTS.items() if kind == wanted and text not in known)
        functors = _TAKING[wanted]
        reading = Reading(backend, dictionary)

        def look_up(relation: str, known: Sequence[Value | None]) -> Iterator[tuple[Value, ...]]:
            return iter(()) if relation == query else reading.select(relation, known)

        written = (rule for rule in program.rules if not rule.head.relation.startswith("@"))  # not what demand adds
        rules = [rule for rule in written if _has_functors((rule.head, *rule.body), functors)] if texts else []
        losses = [(t, r.head.relation, _loss(r, t, functors, look_up, reading.ordinal)) for t in texts for r in rules]
        lost = {text: {name: loss for of, name, loss in losses if of == text and loss} for text in texts}
        for text in [text for text, kind in INVALID_TEXTS.items() if kind == wanted]:  # asking meets them again
            del INVALID_TEXTS[text]
        if not self._judged.isdisjoint(texts):
            ended = time.monotonic()
            self._again = ended + _SPARED * (ended - began)
        self._judged.update(texts)
        told = [text for text in texts if lost[text]]
        self._told.update(told)
        if not told:
            return None
        relations = sorted({name for text in told for name in lost[text]})
        derivers = f"rules for {', '.join(f'`{name}`' for name in relations)} derive nothing from"
        number = f"{len(told):,}{' or more' * (len(told) == MOST_INVALID)}"
        first = next((fact for fact in lost[told[0]].values() if isinstance(fact, Fact)), None)
        attributes = () if first is None else program.relations[first.relation].attributes
        column = None if first is None else attributes[first.values.index(told[0])].name
        keys = ("E0621.one", "E0621.several") if wanted == DATE else ("E0621.number", "E0621.numbers")
        return finding(
            keys[len(told) > 1],
            severity="warning",
            number=number,
            first=show_value(told[0][:60]),
            fact=first,
            column=column,
            loss="the query leaves out" if query is not None else derivers,
        )


def _loss(rule: Rule, text: str, functors: Collection[str], look_up: LookUp, ordinal: Ordinal) -> Fact | bool:
    """Whether a rule would derive more if some functors had a value for a text: the fact of its body that has the text,
    if there is one. True also if this cannot be asked, since the text is computed or stands in an aggregate."""
    calls = _calls_in((*rule.head.arguments, *(one for one in rule.body if isinstance(one, Comparison))), functors)
    given = (one for call in calls for one in call.arguments)
    names = {one.name for one in given if isinstance(one, Variable) and one.base is Base.SYMBOL}
    if not names:
        return True
    pattern = Pattern(rule.head.relation, (Free(None),) * len(rule.head.arguments))
    for name in names:
        asked = WhyNot((rule,), look_up, ordinal, 1, {name: text}, None)
        found = asked.pattern(pattern, "", 0)
        for near in found.instantiations:
            # Behind those of the body are the arguments that the head computes.
            literals = (*rule.body, *[rule.head] * (len(near.literals) - len(rule.body)))
            states = zip(literals, near.literals, strict=True)
            if all(_has_functors(literal, functors) for literal, state in states if state.status == "fails"):
                facts = (state.fact for state in near.literals if state.fact is not None)
                return next((fact for fact in facts if text in fact.values), True)
        if not found.instantiations and not found.is_exhaustive:
            return True
    return False


_CALL = re.compile(rf"\b(?:{'|'.join(sorted(DATED))})\(([^()]*)\)")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def invalid_dates_in(literals: Iterable[str]) -> list[str]:
    """What is said of texts that functions of dates are given in literals, as they are shown, and that are no dates."""
    texts = (text for literal in literals for call in _CALL.findall(literal) for text in _TEXT.findall(call))
    return [f'"{text}" is not a valid date or time' for text in dict.fromkeys(texts) if moment_of(text) is None]


def _has_functors(literals: object, functors: Collection[str]) -> bool:
    """Whether some functors are applied in a literal, or in an aggregate that it is, or in some of several literals."""
    return any(True for _ in _calls_in(literals, functors))


def _compared_columns(rule: Rule) -> Iterator[tuple[str, int, str]]:
    """The relations and columns whose texts a rule compares by their order, and the operators."""
    literals = list(literals_in(rule.body))
    compared = [one for one in literals if isinstance(one, Comparison) and one.operator in _ORDERS]
    sides = ((side, one.operator) for one in compared for side in (one.left, one.right))
    names = {side.name: by for side, by in sides if isinstance(side, Variable) and side.base is Base.SYMBOL}
    for atom in literals:
        if isinstance(atom, Atom):
            for place, term in enumerate(atom.arguments):
                if isinstance(term, Variable) and term.name in names:
                    yield atom.relation, place, names[term.name]


def _calls_in(tree: object, functors: Collection[str]) -> Iterator[Apply]:
    """Where some functors are applied in a tree."""
    return (node for node in nodes_of(Apply, tree) if node.functor in functors)
