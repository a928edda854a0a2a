"""Which variants several threads may run at once."""

from __future__ import annotations

from typing import assert_never

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.planning.steps import Action, Compute, Copy, Fill, Generate, Keep, KeepConstant, KeepEqual, TakeApart


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
