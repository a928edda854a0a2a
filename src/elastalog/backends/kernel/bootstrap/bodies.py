"""Rules with several heads: what is written once is run once.

Such a rule is a clause for each head, which differ in nothing else. Where these heads are of one stratum, their
variants that start at the same goal enumerate the same rows: one variant gives the terms of all heads, and each head
takes its own. Some bodies may be run by several threads at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, assert_never

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable
from elastalog.backends.kernel.execution.bound_variant import Binder, BoundVariant
from elastalog.late import dataclass
from elastalog.planning.steps import Action, Compute, Copy, Fill, Generate, Keep, KeepConstant, KeepEqual, TakeApart
from elastalog.planning.variants import plan_heads


@dataclass(frozen=True, slots=True)
class StratumBodies:
    """The bodies of a stratum, whose relations are `own`: variants, some of which are run for several heads. `number`:
    of the stratum; -1 if the caller tells how far it is. `codes`: code that evaluations have left, of other sessions
    too, by what its bodies are known by; `key`: by what these are, None if only this session has such."""

    number: int
    own: Sequence[str]
    bodies: Sequence[BoundVariant]
    binder: Binder
    codes: dict[Any, Any] = field(default_factory=dict)
    key: object = None


def bodies_of(
    variants: Sequence[BoundVariant], binder: Binder, before: Iterable[BoundVariant] = ()
) -> list[BoundVariant]:
    """Variants that follow a delta, in order, but that one stands for those which share a body, where the first of them
    did. Those that there were `before` of the same variants stay."""
    known = {variant.members: variant for variant in before}
    return [known.get(tuple(members)) or for_all_heads(members, binder) for members in sharing(variants)]


def sharing(variants: Iterable[BoundVariant]) -> Iterable[list[BoundVariant]]:
    """Variants in order, those together that may be run as one."""
    groups: dict[object, list[BoundVariant]] = {}
    for variant in variants:
        groups.setdefault(_what_is_shared(variant), []).append(variant)
    return groups.values()


def for_all_heads(members: Sequence[BoundVariant], binder: Binder) -> BoundVariant:
    """The variant that is run for some which differ in their heads only."""
    goal = members[0].gather.goal
    if len(members) == 1:
        return members[0]
    assert goal is not None
    return binder.bind(plan_heads([member.clause for member in members], goal, binder.statistics), members)


def _what_is_shared(variant: BoundVariant) -> object:
    """Equal for variants that may be run as one."""
    clause = variant.clause
    if clause.rule is None or clause.rule.plan or not clause.head_terms:
        return id(variant)
    return clause.goals, clause.wraps, variant.gather.goal


def is_shareable(variant: BoundVariant) -> bool:
    """Whether threads may run a variant at once. Actions on texts remember what they computed, and new symbols should
    get their ids in an order that does not depend on the threads; wide numbers have no order, and their table lets
    several threads add to it."""
    planned = variant.planned
    if planned.gather.relation is None:
        return False
    actions = [*planned.gather.actions, *(action for probe in planned.probes for action in probe.actions)]
    return all(_is_without_text(action) for action in actions)


def _is_without_text(action: Action) -> bool:
    match action:
        case Fill() | Copy() | KeepEqual() | KeepConstant() | TakeApart():
            return True
        case Compute(expression=expression):
            return _has_no_text(expression)
        case Keep(operator=operator, left=left, right=right):
            is_plain = not isinstance(left, Apply) and not isinstance(right, Apply)
            return (is_plain and operator in ("=", "!=")) or (_has_no_text(left) and _has_no_text(right))
        case Generate():
            # Its blocks may be of any length.
            return False
        case _:
            assert_never(action)


def _has_no_text(expression: Expression) -> bool:
    match expression:
        case Variable() | Constant():
            return expression.base is not Base.SYMBOL
        case Apply() if is_constructor(expression.functor):
            # Parts are words: records lie among the wide numbers, and have no order either.
            return not any(isinstance(argument, Apply) for argument in expression.arguments)
        case Apply() if expression.functor[0] == "@":
            return False  # what a user wrote was hardly written for threads
        case Apply():
            return expression.base is not Base.SYMBOL and all(_has_no_text(a) for a in expression.arguments)
        case _:
            assert_never(expression)
