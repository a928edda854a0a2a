"""Which facts of a share an update can concern, in a stratum that decomposes.

Facts with the same word at the preserved argument are a *group*: what is derived in a group follows from that group
and from relations that every task holds whole. So only groups matter that a changed fact falls into, or that have a
fact which a clause may join with a changed fact of a whole relation. All others need not even become relations of the
kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.protocol import StateChanges
from elastalog.planning.decompose import SharedClause, SharePlan
from elastalog.planning.logical import Goal, Scan, Test
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

Held = tuple[FactWords, list[StateChanges]]
"""What a task holds of a copy: a state, and changes of it."""


def groups_concerned(
    plan: SharePlan,
    held: Mapping[str, Held],
    below: Mapping[str, StateChanges],
    explicit: Mapping[str, np.ndarray],
    dictionary: Dictionary,
) -> np.ndarray | None:
    """The words of the groups that an update may concern; None: any. By copy: what is `held`, what changed `below`, and
    the `explicit` facts of own relations that go or come."""
    columns = {copy.name: copy.column for copy in plan.copies}
    found = [words[:, column] for name, words in explicit.items() if (column := columns[name]) is not None]
    for name, changes in below.items():
        column = columns[name]
        if column is not None:
            found.append(changes.words[:, column])
            continue
        for shared in plan.clauses:
            for goal in shared.clause.goals:
                if not isinstance(goal, Test) and goal.relation == name:
                    words = _groups_joined(shared, goal, changes.words, held, columns, dictionary)
                    if words is None:
                        return None
                    found.append(words)
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int32)


def _groups_joined(
    shared: SharedClause,
    goal: Goal,
    changed: np.ndarray,
    held: Mapping[str, Held],
    columns: Mapping[str, int | None],
    dictionary: Dictionary,
) -> np.ndarray | None:
    """The groups with a fact that a clause may join with changed facts of a whole relation."""
    assert not isinstance(goal, Test)
    if isinstance(shared.pivot, Constant):
        return np.array([dictionary.encode_value(shared.pivot.base, shared.pivot.value)], np.int32)
    for other in shared.clause.goals:
        if not isinstance(other, Scan) or columns.get(other.relation) is None:
            continue
        common = [term for term in other.terms if isinstance(term, str) and term in goal.terms]
        if common:
            wanted = np.unique(changed[:, goal.terms.index(common[0])])
            place, column = other.terms.index(common[0]), columns[other.relation]
            facts, changes = held[other.relation]
            parts = [words[np.isin(words[:, place], wanted), column] for words in _words(facts, changes)]
            return np.concatenate(parts)
    return None


def only_groups(held: Held, column: int, groups: np.ndarray) -> Held:
    """The facts of some groups."""
    facts, changes = held
    kept = np.isin(facts.words[:, column], groups)
    assert facts.level is not None
    assert facts.count is not None
    fewer = []
    for change in changes:
        own = np.isin(change.words[:, column], groups)
        fewer.append(StateChanges(change.words[own], change.was[own], change.level[own], change.count[own]))
    return FactWords(facts.words[kept], facts.level[kept], facts.count[kept]), fewer


def _words(facts: FactWords, changes: list[StateChanges]) -> list[np.ndarray]:
    return [facts.words, *(change.words for change in changes)]
