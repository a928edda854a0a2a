"""The logical form of a program: rules as conjunctions of four kinds of goals, apart from how recursion is controlled.

Two constructs of the language have been rewritten into plain rules over hidden relations (their names start with `@`,
which no program can write), so that every strategy and backend handles them without knowing:

- a negated atom with wildcards, `!edge(x, _)`, negates a projection: `@edge/0(x) :- edge(x, _)`;
- an aggregate collects its members in a relation, an `AggregateRule` folds each group to one fact, and the rule joins
  with that; a second clause of the rule supplies the 0 of an empty count or sum.

A relation without attributes is stored with one column that always holds 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from elastalog.analysis.program import Base, CheckedProgram, Constant, Expression, Literal, Rule

Term: TypeAlias = str | Constant | None
"""An argument of an atom: a variable's name, a constant, or None where any value will do."""


HIDDEN = "@"
"""What the names of hidden relations start with, in stores too."""


def is_hidden_name(relation: str) -> bool:
    """Whether a relation was made by us: for names of programs that may be gone; `StoredRelation` knows of its own."""
    return relation.startswith(HIDDEN)


@dataclass(frozen=True, slots=True)
class Scan:
    """A positive atom. Its position among the scans of a clause identifies it in derivations."""

    relation: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """A negated atom; every term is a variable or a constant."""

    relation: str
    terms: tuple[str | Constant, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison. With operator `=` and one side an unbound variable it binds that variable."""

    operator: str
    base: Base
    left: Expression
    right: Expression


Goal: TypeAlias = Scan | Absent | Test


@dataclass(frozen=True, slots=True)
class Origin:
    """What was written that a clause stands for: the body of a rule, or one of those that an aggregate ranges over, by
    its number. `scans`: for each literal, the position among the clause's scans of the one that reads its fact; None
    for negations and comparisons, and for an aggregate over nothing."""

    literals: tuple[Literal, ...]
    scans: tuple[int | None, ...]
    body: int = 0


@dataclass(frozen=True, slots=True)
class Clause:
    """`head :- goals`. `rule` is the checked rule it comes from, None for hidden relations that serve a rule; `origin`
    is None where these only say which values there are. `recursive_goals`: the scans that read a relation of the head's
    own stratum. `wraps`: its integers are taken modulo 2^64."""

    number: int
    head: str
    head_terms: tuple[str | Constant, ...]
    goals: tuple[Goal, ...]
    recursive_goals: tuple[int, ...]
    rule: Rule | None
    origin: Origin | None = field(default=None, compare=False)
    wraps: bool = False

    @property
    def is_recursive(self) -> bool:
        return bool(self.recursive_goals)

    @property
    def scans(self) -> tuple[Scan, ...]:
        return tuple(goal for goal in self.goals if isinstance(goal, Scan))


@dataclass(frozen=True, slots=True)
class AggregateRule:
    """Folds the facts of `members` to one fact `relation(groups..., result)` a group. `target` is the column folded,
    None for count; `bases` are those of the target and of the result."""

    relation: str
    members: str
    groups: int
    operator: str
    target: int | None
    target_base: Base
    result_base: Base
    rule: Rule


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A relation as it is stored: the base type of every column. `is_hidden`: made by us, not declared. `is_flat`: its
    facts only say which values to consider, so they count as level 0 for whoever reads them. `rule`: the number of the
    rule that a hidden relation was made for, None where rules share it. `choices`: the keys, by columns, of which at
    most one fact has each value."""

    name: str
    bases: tuple[Base, ...]
    is_hidden: bool
    is_flat: bool = False
    rule: int | None = None
    choices: tuple[tuple[int, ...], ...] = ()

    @property
    def width(self) -> int:
        return len(self.bases)


@dataclass(frozen=True, slots=True)
class LogicalStratum:
    """Relations evaluated together. Either clauses, or one aggregate rule."""

    number: int
    relations: tuple[str, ...]
    clauses: tuple[Clause, ...]
    aggregate: AggregateRule | None
    is_recursive: bool
    dominance: tuple[Clause, ...] = ()
    """Clauses whose heads are pairs of facts of a relation, of which the first is dominated by the second."""

    @property
    def reads(self) -> frozenset[str]:
        """The relations of lower strata whose changes concern this one."""
        names = {
            goal.relation
            for clause in (*self.clauses, *self.dominance)
            for goal in clause.goals
            if not isinstance(goal, Test)
        }
        if self.aggregate is not None:
            names.add(self.aggregate.members)
        return frozenset(names.difference(self.relations))


@dataclass(frozen=True, slots=True)
class LogicalProgram:
    checked: CheckedProgram
    relations: Mapping[str, StoredRelation]
    strata: tuple[LogicalStratum, ...]

    @property
    def flat(self) -> frozenset[str]:
        """The relations whose facts count as level 0."""
        return frozenset(name for name, relation in self.relations.items() if relation.is_flat)
