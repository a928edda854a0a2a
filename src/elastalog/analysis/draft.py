"""The program between two passes. Each pass fills in some fields and leaves the others alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from elastalog.analysis.program import Atom, Base, CheckedProgram, Fact, Literal, Relation, StructuredType, UserFunctor
from elastalog.analysis.structures import Kind, Structure
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.tree import Clause, RelationDeclaration, Tree


@dataclass(frozen=True, slots=True)
class TypeMeaning:
    """A type by name: its base, and the types directly above it (an alias stands for its one `same_as`); of a
    union, its `members`."""

    name: str
    base: Base
    above: tuple[str, ...]
    same_as: str | None = None
    structure: Structure | None = None
    members: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """What inference knows of values of the type."""
        return self.base if self.structure is None else self.structure


class Shape(Enum):
    """How much work a clause is."""

    FLAT = "one head, a conjunction without aggregates and ranges"
    SPLIT = "several heads or alternatives, still without aggregates and ranges"
    NESTED = "anything else"


@dataclass(frozen=True, slots=True)
class SeparatedAggregate:
    """`result = aggregate` as a literal of its own, its inner variables renamed, its body as alternatives. `groups` are
    the variables shared with the rule around it, at their first place inside."""

    result: tree.Variable
    operator: str
    target: tree.Term | None
    bodies: tuple[FlatBody, ...]
    groups: tuple[tree.Variable, ...]
    span: Span


FlatLiteral: TypeAlias = tree.Atom | tree.Negation | tree.Comparison | SeparatedAggregate
FlatBody: TypeAlias = tuple[FlatLiteral, ...]


@dataclass(frozen=True, slots=True)
class FlatClause:
    """One head and one conjunction. `is_flat`: there are no aggregates and ranges. `is_fact`: no body was written."""

    head: tree.Atom
    body: FlatBody
    plan: tree.Plan | None
    is_flat: bool
    is_fact: bool
    span: Span
    instance: tree.Instance | None = None


@dataclass(frozen=True, slots=True)
class TypedRule:
    """A rule before it has a number."""

    head: Atom
    body: tuple[Literal, ...]
    plan: tree.Plan | None
    span: Span
    instance: tree.Instance | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known so far. `is_strict`: what earlier versions accepted and this one refuses (as a value in a column of
    a subtype that it need not have) is an error, not a warning."""

    tree: Tree
    is_strict: bool = True
    types: Mapping[str, TypeMeaning] = field(default_factory=dict)
    structures: Mapping[str, StructuredType] = field(default_factory=dict)
    functors: Mapping[str, UserFunctor] = field(default_factory=dict)
    declarations: Mapping[str, RelationDeclaration] = field(default_factory=dict)
    relations: Mapping[str, Relation] = field(default_factory=dict)
    pragmas: Mapping[str, str] = field(default_factory=dict)
    clauses: tuple[tuple[Clause, Shape], ...] = ()
    flat_clauses: tuple[FlatClause, ...] = ()
    facts: tuple[Fact, ...] = ()
    typed_rules: tuple[TypedRule, ...] = ()
    components: tuple[tuple[str, ...], ...] = ()
    program: CheckedProgram | None = None


Outcome: TypeAlias = tuple[Draft, list[Diagnostic]]
