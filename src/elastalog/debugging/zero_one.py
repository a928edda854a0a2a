"""The 0/1 program: which switches to flip, at the least weight, so that all known conditions hold.

Most programs are easy: what a few clauses force is nearly all there is. The others are solved with HiGHS.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np

from elastalog.backends.protocol import Vector
from elastalog.debugging.graph import Model
from elastalog.diagnostics.quota import time_left
from elastalog.provenance.reading import WordFact

TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Choice:
    """Switches to flip. `bound`: no choice that fulfils the conditions weighs less. `is_best`: this one weighs it."""

    flipped: frozenset[int]
    bound: float
    is_best: bool


class OutOfTime(Exception):
    """The time given is over. `bound` is a lower bound found so far."""

    def __init__(self, bound: float) -> None:
        super().__init__(bound)
        self.bound = bound


@cache
def is_solver_installed() -> bool:
    """Whether HiGHS is there."""
    return find_spec("highspy") is not None


Clause: TypeAlias = Mapping[int, bool]
"""At least one variable must have the value given here."""


def solve(
    weights: Sequence[float],
    clauses: Sequence[Clause],
    deadline: float,
    model: Model | None = None,
    absent: Iterable[WordFact] = (),
) -> Choice | None:
    """The best choice, with one 0/1 variable for each switch, 1 when it is flipped; None if there is none. With a
    `model`, the derivations of its graph are stated as well, and that the facts in `absent` must not hold. Raises
    OutOfTime when no choice at all is found in time."""
    left = time_left(deadline - time.monotonic())
    if left <= 0:
        raise OutOfTime(0.0)
    if model is None:
        try:
            easy = easy_cover(clauses, weights)
        except Contradiction:
            return None
        if easy is not None:
            return easy
    highspy: Any = import_module("highspy")
    solver, number = highspy.Highs(), len(weights)
    for option, value in _OPTIONS.items():
        solver.setOptionValue(option, value)
    solver.setOptionValue("time_limit", left)
    _add_columns(solver, weights)
    whole = np.full(number, highspy.HighsVarType.kInteger)
    solver.changeColsIntegrality(number, np.arange(number, dtype=np.int32), whole)
    for clause in clauses:
        signs = np.where(list(clause.values()), 1.0, -1.0)
        least = 1.0 - float((signs < 0).sum())
        solver.addRow(least, highspy.kHighsInf, len(clause), np.array(list(clause), np.int32), signs)
    if model is not None:
        _state_derivations(solver, highspy.kHighsInf, number, model, absent)
    solver.run()
    status, kinds = solver.getModelStatus(), highspy.HighsModelStatus
    if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        return None
    info, values = solver.getInfo(), solver.getSolution().col_value
    if status not in (kinds.kOptimal, kinds.kTimeLimit):
        raise OutOfTime(0.0)
    is_best = status == kinds.kOptimal
    bound = max(0.0, float(info.objective_function_value if is_best else info.mip_dual_bound))
    if not is_best and not len(values):
        raise OutOfTime(bound)
    return Choice(frozenset(np.flatnonzero(np.array(values[:number]) > 0.5).tolist()), bound, is_best)


_OPTIONS: Mapping[str, Any] = {
    "output_flag": False, "threads": 1, "random_seed": 1, "mip_rel_gap": 0.0, "mip_abs_gap": TOLERANCE,
}  # fmt: skip


def _add_columns(solver: Any, costs: Sequence[float] | Vector) -> None:
    number, nothing = len(costs), np.empty(0, np.int32)
    bounds = np.zeros(number), np.ones(number)
    solver.addCols(number, np.array(costs, np.float64), *bounds, 0, nothing, nothing, np.empty(0, np.float64))


def _state_derivations(solver: Any, infinity: float, first: int, model: Model, absent: Iterable[WordFact]) -> None:
    """A variable for each fact of a positive graph, from column `first` on, and a constraint for each derivation: a
    body that holds makes its head hold, x(b1) + ... + x(bn) - x(head) <= n - 1. The facts in `absent` must not hold.
    The variables of facts need not be whole: once the switches are chosen, the least model is the least solution."""
    graph = model.graph
    _add_columns(solver, np.zeros(graph.size))
    for fact in absent:
        solver.changeColBounds(first + graph.node_of(fact), 0.0, 0.0)
    heads, bodies = graph.distinct_derivations()
    if number := len(heads):
        is_used = bodies >= 0
        width = is_used.sum(axis=1)
        start = np.zeros(number, np.int32)
        start[1:] = np.cumsum(width + 1)[:-1]
        columns = np.concatenate((np.where(is_used, bodies + first, -1), heads[:, None] + first), axis=1)
        signs = np.concatenate((np.ones(bodies.shape), np.full((number, 1), -1.0)), axis=1)
        kept = columns >= 0
        solver.addRows(
            number, np.full(number, -infinity), (width - 1).astype(np.float64), int(kept.sum()), start,
            columns[kept].astype(np.int32), signs[kept],
        )  # fmt: skip
    for node in np.flatnonzero(graph.switch_of >= 0).tolist():
        element = int(graph.switch_of[node])
        is_on = bool(model.base[element])
        switch = model.switch_of.get(element)
        if switch is None:
            solver.changeColBounds(first + node, float(is_on), 1.0)
        else:  # x >= 1 - u where the fact is in the base, otherwise x >= u
            pair, signs = np.array([switch, first + node], np.int32), np.array([1.0 if is_on else -1.0, 1.0])
            solver.addRow(float(is_on), infinity, 2, pair, signs)


# --- easy programs ---------------------------------------------------------------------------------------------------


MOST_OPEN = 200
"""Clauses that are compared with each other."""


class Contradiction(Exception):
    """No values fulfil all clauses."""


def easy_cover(clauses: Sequence[Clause], weights: Sequence[float]) -> Choice | None:
    """A best choice if it is easy to find, otherwise None. Raises Contradiction if there is none.

    What is forced belongs to every choice. The other clauses fall into groups without a common variable. A group costs
    no less than its dearest clause does at the least, and no more if one variable fulfils all of it.
    """
    forced = _forced(clauses)
    # A variable that nothing asks to be 1 is 0.
    unmet = [clause for clause in clauses if not any(forced.get(v, False) == value for v, value in clause.items())]
    open_sets = [frozenset(v for v, value in clause.items() if value and v not in forced) for clause in unmet]
    ones = {variable for variable, value in forced.items() if value}
    if len(open_sets) > MOST_OPEN:
        return None
    for group in _groups(open_sets):
        least = max(min(weights[variable] for variable in each) for each in group)
        common = frozenset.intersection(*group)
        chosen = min(common, key=lambda variable: (weights[variable], variable), default=None)
        if chosen is None or weights[chosen] > least:
            return None
        ones.add(chosen)
    if not all(any((variable in ones) == value for variable, value in clause.items()) for clause in clauses):
        return None
    return Choice(frozenset(ones), float(sum(weights[variable] for variable in sorted(ones))), is_best=True)


def _forced(clauses: Sequence[Clause]) -> dict[int, bool]:
    """The variables that have the same value in all choices because a clause leaves no other."""
    forced: dict[int, bool] = {}
    is_growing = True
    while is_growing:
        is_growing = False
        for clause in clauses:
            if any(forced.get(variable) == value for variable, value in clause.items()):
                continue
            left = [variable for variable in clause if variable not in forced]
            if not left:
                raise Contradiction
            if len(left) == 1:
                forced[left[0]] = clause[left[0]]
                is_growing = True
    return forced


def _groups(sets: Sequence[frozenset[int]]) -> list[list[frozenset[int]]]:
    """Sets, without those that contain another, by what is connected through common members."""
    smallest: list[frozenset[int]] = []
    for each in sorted(set(sets), key=lambda one: (len(one), sorted(one))):
        if not any(other <= each for other in smallest):
            smallest.append(each)
    groups: list[tuple[set[int], list[frozenset[int]]]] = []
    for each in smallest:
        touching = [group for group in groups if not group[0].isdisjoint(each)]
        members = set(each).union(*(group[0] for group in touching))
        groups = [group for group in groups if group not in touching]
        groups.append((members, [one for group in touching for one in group[1]] + [each]))
    return [group for _, group in groups]
