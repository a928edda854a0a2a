"""A plain Spark evaluator to compare with: semi-naive evaluation as DataFrame joins, `distinct` and anti-joins.

What somebody would write with Spark alone: no levels, no counts. The lineage is cut in every iteration, since plans
that grow would be the end of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from elastalog.analysis.program import Apply, CheckedProgram, Constant, Expression, Variable
from elastalog.planning.logical import Absent, Clause, LogicalStratum, Scan, Test
from elastalog.planning.lower import lower

Frames = dict[str, Any]


class NotExpressibleError(Exception):
    """The program uses something that the loop has no plan for."""


def evaluate(program: CheckedProgram, spark: Any, facts: Mapping[str, Any]) -> Frames:
    """All relations as DataFrames; columns are called c0, c1, …"""
    logical = lower(program)
    frames: Frames = {}
    for name, relation in logical.relations.items():
        columns = [f"c{i} {_TYPES[base.value]}" for i, base in enumerate(relation.bases)]
        own = [fact.values for fact in program.facts if fact.relation == name]
        frames[name] = spark.createDataFrame(own, ", ".join(columns))
        if name in facts:
            given = facts[name].toDF(*(f"c{i}" for i in range(relation.width)))
            frames[name] = given.union(frames[name]) if own else given
    for stratum in logical.strata:
        if stratum.aggregate is not None:
            raise NotExpressibleError("an aggregate")
        if stratum.clauses:
            _stratum(stratum, frames)
    return frames


_TYPES = {"number": "bigint", "unsigned": "decimal(20,0)", "float": "double", "symbol": "string"}


def _stratum(stratum: LogicalStratum, frames: Frames) -> None:
    found: dict[str, list[Any]] = {name: [frames[name]] for name in stratum.relations}
    for clause in stratum.clauses:
        if not clause.is_recursive:
            found[clause.head].append(_body(clause, frames, None, {}))
    delta = {name: _union(parts).distinct().localCheckpoint() for name, parts in found.items()}
    frames.update(delta)
    iteration = 0
    while stratum.is_recursive and any(not frame.isEmpty() for frame in delta.values()):
        iteration += 1
        found = {name: [] for name in stratum.relations}
        for clause in stratum.clauses:
            for goal in clause.recursive_goals:
                found[clause.head].append(_body(clause, frames, goal, delta))
        delta = {}
        for name, parts in found.items():
            columns = frames[name].columns
            new = _union(parts).distinct() if parts else frames[name].limit(0)
            delta[name] = new.join(frames[name], columns, "left_anti").localCheckpoint()
        for name in stratum.relations:
            total = frames[name].union(delta[name])
            frames[name] = total.localCheckpoint() if iteration % 20 == 0 else total


def _body(clause: Clause, frames: Frames, at: int | None, delta: Frames) -> Any:
    from pyspark.sql import functions as sql

    joined: Any = None
    later: list[Absent | Test] = []
    for i, goal in enumerate(clause.goals):
        if not isinstance(goal, Scan):
            later.append(goal)
            continue
        right = _bindings(goal, delta[goal.relation] if i == at else frames[goal.relation])
        if joined is None:
            joined = right
        else:
            shared = [column for column in right.columns if column in joined.columns]
            joined = joined.join(right, shared) if shared else joined.crossJoin(right)
    for goal in later:
        if isinstance(goal, Absent):
            right = _bindings(goal, frames[goal.relation])
            joined = joined.join(right, list(right.columns), "left_anti")
        elif goal.operator == "=" and isinstance(goal.left, Variable) and goal.left.name not in joined.columns:
            joined = joined.withColumn(goal.left.name, _value(goal.right, joined))
        elif goal.operator in ("=", "!="):
            left, right = _value(goal.left, joined), _value(goal.right, joined)
            joined = joined.filter(left == right if goal.operator == "=" else left != right)
        else:
            raise NotExpressibleError(f"a comparison by {goal.operator}")
    if joined is None:
        raise NotExpressibleError("a rule without atoms")
    terms = [sql.col(t) if isinstance(t, str) else sql.lit(t.value) for t in clause.head_terms]
    return joined.select(*(term.alias(f"c{i}") for i, term in enumerate(terms)))


def _value(expression: Expression, joined: Any) -> Any:
    """An expression over the columns of a DataFrame."""
    from pyspark.sql import functions as sql

    match expression:
        case Constant(value=value):
            return sql.lit(value)
        case Variable(name=name) if name in joined.columns:
            return sql.col(f"`{name}`")
        case Variable():
            raise NotExpressibleError("a variable bound by an equation")
        case Apply(functor="cat", arguments=arguments):
            return sql.concat(*(_value(argument, joined) for argument in arguments))
        case Apply(functor=functor):
            raise NotExpressibleError(f"the functor {functor}")


def _bindings(goal: Scan | Absent, frame: Any) -> Any:
    """The facts of a relation that fit an atom, a column for every variable."""
    from pyspark.sql import functions as sql

    places: dict[str, int] = {}
    for i, term in enumerate(goal.terms):
        if isinstance(term, Constant):
            frame = frame.filter(sql.col(f"c{i}") == sql.lit(term.value))
        elif term is not None and term in places:
            frame = frame.filter(sql.col(f"c{i}") == sql.col(f"c{places[term]}"))
        elif term is not None:
            places[term] = i
    return frame.select(*(sql.col(f"c{i}").alias(name) for name, i in places.items()))


def _union(parts: list[Any]) -> Any:
    return reduce(lambda left, right: left.union(right), parts)
