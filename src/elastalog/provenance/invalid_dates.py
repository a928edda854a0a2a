"""Texts that are not dates, told where rules derive nothing for that reason: all other goals of a rule hold."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from elastalog.analysis.functor_values import INVALID_DATES, MOST_INVALID
from elastalog.analysis.listing import show_rule, show_value
from elastalog.analysis.pattern import Free, Pattern
from elastalog.analysis.program import Apply, Base, CheckedProgram, Comparison, Expression, Rule, Variable, Wildcard
from elastalog.backends.protocol import Backend
from elastalog.diagnostics.diagnostic import Diagnostic, finding
from elastalog.provenance.reading import Reading
from elastalog.provenance.why_not import WhyNot
from elastalog.relations.words import Dictionary

_FUNCTIONS = ("date_of", "year", "month", "day", "weekday", "hour", "minute", "second", "add_days", "add_seconds",
              "days_between", "seconds_between")  # fmt: skip
_SPARED = 20
"""How many times as long as it took to judge texts again, nothing is judged again."""
_DATED = re.compile(rf"\b({'|'.join(_FUNCTIONS)})\(")


class InvalidDates:
    """What a session has met and told of them."""

    def __init__(self) -> None:
        self._judged = set[str]()
        self._told = set[str]()
        self._again = 0.0
        """When texts may be judged again."""

    def lost(self, program: CheckedProgram, backend: Backend, dictionary: Dictionary) -> Diagnostic | None:
        """Tells of texts that functions of dates just met, and that keep a rule from deriving something: once of each,
        when it first matters. A function may be computed before a goal that excludes its row: that is no reason to tell
        anybody, but the row is judged again when it is met again, as long as that takes little of the time."""
        began = time.monotonic()
        is_again = began > self._again
        texts = sorted(INVALID_DATES - (self._told if is_again else self._judged))
        reading = Reading(backend, dictionary)
        written = (rule for rule in program.rules if not rule.head.relation.startswith("@"))  # not what demand adds
        rules = [rule for rule in written if _DATED.search(show_rule(rule))] if texts else []
        lost = {text: [rule for rule in rules if _loses(rule, text, reading)] for text in texts}
        INVALID_DATES.clear()  # asking meets them again
        if not self._judged.isdisjoint(texts):
            ended = time.monotonic()
            self._again = ended + _SPARED * (ended - began)
        self._judged.update(texts)
        told = [text for text in texts if lost[text]]
        self._told.update(told)
        if not told:
            return None
        relations = sorted({rule.head.relation for text in told for rule in lost[text]})
        return finding(
            "E0621.one" if len(told) == 1 else "E0621.several",
            severity="warning",
            number=f"{len(told):,}{' or more' * (len(told) == MOST_INVALID)}",
            first=show_value(told[0][:60]),
            relations=", ".join(f"`{name}`" for name in relations),
        )


def _loses(rule: Rule, text: str, reading: Reading) -> bool:
    """Whether a rule would derive more if a text were a date. Where that can't be asked, since the text is computed or
    stands in an aggregate, it may."""
    names = set(_dated_variables(rule))
    if not names:
        return True
    pattern = Pattern(rule.head.relation, (Free(None),) * len(rule.head.arguments))
    for name in names:
        asked = WhyNot((rule,), reading.select, reading.ordinal, 1, {name: text}, None)
        found = asked.pattern(pattern, "", 0)
        if any(all(_DATED.search(one.text) for one in near.failing) for near in found.instantiations):
            return True
        if not found.instantiations and not found.is_exhaustive:
            return True
    return False


def _dated_variables(rule: Rule) -> Iterator[str]:
    """The variables whose values functions of dates are given."""
    comparisons = [literal for literal in rule.body if isinstance(literal, Comparison)]
    pending: list[Expression | Wildcard] = [*rule.head.arguments]
    pending += [side for one in comparisons for side in (one.left, one.right)]
    while pending:
        term = pending.pop()
        if isinstance(term, Apply):
            pending += term.arguments
            if term.functor in _FUNCTIONS:
                yield from (one.name for one in term.arguments if isinstance(one, Variable) and one.base is Base.SYMBOL)
