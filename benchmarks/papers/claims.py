"""What the papers claim, and how it is decided from the records whether it holds here.

A claim has rules on named values of records. A rule is kept if its value lies between two bounds. The bounds are far
from what is usually measured, so that two runs come to the same verdict; values that an algorithm determines are
compared with the printed ones exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from benchmarks.papers.record import RESULTS, Record, kept


class Verdict(Enum):
    """From the best to the worst: the verdict on a claim is the worst one of its rules."""

    HOLDS = "holds here"
    OTHER = "holds with other numbers"
    FAILS = "does not hold"
    OPEN = "not measured yet"
    UNTESTABLE = "not testable with public data"


_ORDER = (Verdict.HOLDS, Verdict.OTHER, Verdict.FAILS, Verdict.OPEN)


@dataclass(frozen=True, slots=True)
class Rule:
    """`value` is `ITEM:KEY`. `printed`: the paper's figure, if it gives one: if ours is another, but within bounds, the
    claim holds with other numbers."""

    value: str
    low: float = -math.inf
    high: float = math.inf
    printed: float | None = None

    def __str__(self) -> str:
        name = f"`{self.value}`"
        if self.low == self.high:
            return f"{name} = {shown(self.low)}"
        parts = [f"{shown(self.low)} ≤ "] if self.low > -math.inf else []
        return "".join([*parts, name, *([f" ≤ {shown(self.high)}"] if self.high < math.inf else [])])


def exactly(value: str, printed: float) -> Rule:
    return Rule(value, printed, printed, printed)


@dataclass(frozen=True, slots=True)
class Claim:
    """`note`: the counter-example, or why it cannot be tested; then there are no rules."""

    paper: str
    text: str
    rules: tuple[Rule, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """`values` are in the order of the rules; None: there is none."""

    claim: Claim
    verdict: Verdict
    values: tuple[float | None, ...]


def judge(claim: Claim, record_of: Callable[[str], Record | None]) -> Judgement:
    values = tuple(_value(rule, record_of) for rule in claim.rules)
    if not claim.rules:
        return Judgement(claim, Verdict.UNTESTABLE, ())
    verdicts = [_of_rule(rule, value) for rule, value in zip(claim.rules, values, strict=True)]
    return Judgement(claim, max(verdicts, key=_ORDER.index), values)


def judge_all(claims: Sequence[Claim], folder: Path = RESULTS) -> list[Judgement]:
    return [judge(claim, lambda name: kept(name, folder)) for claim in claims]


def _value(rule: Rule, record_of: Callable[[str], Record | None]) -> float | None:
    name, _, key = rule.value.partition(":")
    record = record_of(name)
    return None if record is None else record.figures.values.get(key)


def _of_rule(rule: Rule, value: float | None) -> Verdict:
    if value is None:
        return Verdict.OPEN
    if not rule.low <= value <= rule.high:
        return Verdict.FAILS
    return Verdict.HOLDS if rule.printed is None or value == rule.printed else Verdict.OTHER


def shown(value: float) -> str:
    """A number as tables have it: whole ones with separators, others with three digits that count."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
