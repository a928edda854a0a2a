"""The 0/1 program: which switches to flip, at the least weight, so that all known conditions hold.

Easy programs are solved by thought alone, and most are easy: what a few clauses force is mostly all there is to it. The
others are solved with HiGHS.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from elastalog.debugging.graph import Model
from elastalog.provenance.reading import WordFact

TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Choice:
    """Switches to flip. `bound`: no choice that fulfils the conditions weighs less. `is_best`: this one weighs as
    little."""

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
    from importlib.util import find_spec

    return find_spec("highspy") is not None


class ZeroOneProgram:
    """One 0/1 variable for each switch: 1 when it is flipped. The solver is started when first needed."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._weights = np.array(weights, np.float64)
        self._bound = 0.0
        self._clauses: list[Clause] = []
        self._stated = 0
        self._columns = 0
        self._highspy: Any = None
        self._solver: Any = None

    def _start(self) -> None:
        if self._solver is not None:
            return
        import highspy

        self._highspy = highspy
        self._solver = self._highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("random_seed", 1),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", TOLERANCE),
        ):
            self._solver.setOptionValue(option, value)
        number = len(self._weights)
        self._add_columns(self._weights)
        whole = np.full(number, highspy.HighsVarType.kInteger)
        self._solver.changeColsIntegrality(number, np.arange(number, dtype=np.int32), whole)

    def _add_columns(self, costs: Any) -> int:
        first, number = self._columns, len(costs)
        nothing = np.empty(0, np.int32)
        self._solver.addCols(
            number, costs, np.zeros(number), np.ones(number), 0, nothing, nothing, np.empty(0, np.float64)
        )
        self._columns += number
        return first

    def add_clause(self, switches: Iterable[int], flipped: Collection[int]) -> None:
        """At least one of some switches must differ from how it stands in a state, where those in `flipped` are
        flipped."""
        self._clauses.append({switch: switch not in flipped for switch in sorted(switches)})

    def _state_clauses(self) -> None:
        for clause in self._clauses[self._stated :]:
            chosen = np.array(list(clause), np.int32)
            signs = np.array([1.0 if value else -1.0 for value in clause.values()])
            self._solver.addRow(1.0 - float((signs < 0).sum()), self._highspy.kHighsInf, len(chosen), chosen, signs)
        self._stated = len(self._clauses)

    def add_derivations(self, model: Model, absent: Iterable[WordFact]) -> None:
        """A variable for each fact of a positive graph, and a constraint for each derivation: a body that holds makes
        its head hold, x(b1) + ... + x(bn) - x(head) <= n - 1. The facts in `absent` must not hold. The variables of
        facts need not be whole: once the switches are chosen, the least model is the least solution."""
        graph = model.graph
        self._start()
        first = self._add_columns(np.zeros(graph.size))
        infinity = self._highspy.kHighsInf
        for fact in absent:
            self._solver.changeColBounds(first + graph.node_of(fact), 0.0, 0.0)
        heads, bodies = graph.distinct_derivations()
        is_used = bodies >= 0
        width = is_used.sum(axis=1)
        number = len(heads)
        if number:
            start = np.zeros(number, np.int32)
            start[1:] = np.cumsum(width + 1)[:-1]
            columns = np.concatenate((np.where(is_used, bodies + first, -1), heads[:, None] + first), axis=1)
            signs = np.concatenate((np.ones(bodies.shape), np.full((number, 1), -1.0)), axis=1)
            kept = columns >= 0
            self._solver.addRows(
                number, np.full(number, -infinity), (width - 1).astype(np.float64), int(kept.sum()), start,
                columns[kept].astype(np.int32), signs[kept],
            )  # fmt: skip
        for node in np.flatnonzero(graph.switch_of >= 0).tolist():
            element = int(graph.switch_of[node])
            is_on = bool(model.base[element])
            switch = model.switch_of.get(element)
            if switch is None:
                self._solver.changeColBounds(first + node, float(is_on), 1.0)
                continue
            pair = np.array([switch, first + node], np.int32)
            if is_on:
                self._solver.addRow(1.0, infinity, 2, pair, np.array([1.0, 1.0]))  # x >= 1 - u
            else:
                self._solver.addRow(0.0, infinity, 2, pair, np.array([-1.0, 1.0]))  # x >= u

    def solve(self, deadline: float) -> Choice | None:
        """The best choice; None if there is none. Raises OutOfTime when not even a choice is found in time."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime(self._bound)
        if self._solver is None:
            try:
                easy = easy_cover(self._clauses, self._weights.tolist())
            except Contradiction:
                return None
            if easy is not None:
                self._bound = max(self._bound, easy.weight)
                return Choice(easy.ones, self._bound, is_best=True)
        self._start()
        self._state_clauses()
        # HiGHS counts the time of all runs of a solver together.
        self._solver.setOptionValue("time_limit", self._solver.getRunTime() + left)
        self._solver.run()
        status = self._solver.getModelStatus()
        kinds = self._highspy.HighsModelStatus
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return None
        info = self._solver.getInfo()
        values = self._solver.getSolution().col_value
        if status != kinds.kOptimal and status != kinds.kTimeLimit:
            raise OutOfTime(self._bound)
        bound = info.objective_function_value if status == kinds.kOptimal else info.mip_dual_bound
        self._bound = max(self._bound, float(bound))  # conditions are only ever added
        if status == kinds.kTimeLimit and not len(values):
            raise OutOfTime(self._bound)
        chosen = np.array(values[: len(self._weights)]) > 0.5
        return Choice(frozenset(np.flatnonzero(chosen).tolist()), self._bound, status == kinds.kOptimal)


# --- easy programs ---------------------------------------------------------------------------------------------------


MOST_OPEN = 200
"""Clauses that are compared with each other."""

Clause = Mapping[int, bool]
"""At least one variable must have the value given here."""


class Contradiction(Exception):
    """No values fulfil all clauses."""


@dataclass(frozen=True, slots=True)
class Cover:
    """The variables to set to 1, at the least weight."""

    ones: frozenset[int]
    weight: float


def easy_cover(clauses: Sequence[Clause], weights: Sequence[float]) -> Cover | None:
    """A best choice, if it is easy to find; otherwise None. Raises Contradiction if there is none.

    What is forced belongs to every choice. Clauses left over fall into groups without a variable in common; a group
    costs no less than the dearest of its clauses does at the least, and that is enough if one variable fulfils all."""
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
    return Cover(frozenset(ones), float(sum(weights[variable] for variable in sorted(ones))))


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
