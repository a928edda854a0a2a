"""The program between two passes. Each pass fills in some fields of the draft and leaves the others alone.

Where other packages know only that a value is a record (`Base.RECORD`), inference must know which: the type says what
the parts of a pattern are. A *kind* is either one of the plain base types or a structure: a record type or an algebraic
data type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, TypeAlias

from elastalog.analysis import program as checked
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.tree import Clause, RelationDeclaration, Tree

Kind: TypeAlias = checked.Base | checked.StructuredType


def base_of(kind: Kind) -> checked.Base:
    """What the later passes and packages see of a kind."""
    return checked.Base.RECORD if isinstance(kind, checked.StructuredType) else kind


def is_constructor(functor: str) -> bool:
    """Whether a functor builds a value from parts, or takes one apart."""
    return functor == "[]" or functor == "nil" or functor[0] == "$"


@dataclass(frozen=True, slots=True)
class TypeMeaning:
    """A type by name: its base, and the types directly above it (an alias stands for its one `same_as`); of a
    union, its `members`."""

    name: str
    base: checked.Base
    above: tuple[str, ...]
    same_as: str | None = None
    structure: checked.StructuredType | None = None
    members: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """What inference knows of values of the type."""
        return self.base if self.structure is None else self.structure


@dataclass(frozen=True, slots=True)
class SeparatedAggregate:
    """`result = aggregate` as a literal of its own: inner variables are renamed, and the body is split into
    alternatives. `groups` are the variables shared with the surrounding rule, each at its first place inside."""

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
    """One head and one conjunction of a clause as it was written."""

    head: tree.Atom
    body: FlatBody
    written: Clause


@dataclass(frozen=True, slots=True)
class TypedRule:
    """A rule before it has a number."""

    head: checked.Atom
    body: tuple[checked.Literal, ...]
    written: Clause


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known so far. With `is_strict`, what earlier versions accepted and this one rejects (such as a value in a
    column of a subtype that it need not belong to) is an error; otherwise it is a warning."""

    tree: Tree
    is_strict: bool = True
    types: Mapping[str, TypeMeaning] = field(default_factory=dict)
    structures: Mapping[str, checked.StructuredType] = field(default_factory=dict)
    functors: Mapping[str, checked.UserFunctor] = field(default_factory=dict)
    declarations: Mapping[str, RelationDeclaration] = field(default_factory=dict)
    relations: Mapping[str, checked.Relation] = field(default_factory=dict)
    pragmas: Mapping[str, str] = field(default_factory=dict)
    clauses: tuple[tuple[Clause, bool], ...] = ()
    """Those whose names are known, and whether each has aggregates or ranges."""
    flat_clauses: tuple[FlatClause, ...] = ()
    facts: tuple[checked.Fact, ...] = ()
    typed_rules: tuple[TypedRule, ...] = ()
    components: tuple[tuple[str, ...], ...] = ()
    program: checked.CheckedProgram | None = None


# --- constants as values of a base type ------------------------------------------------------------------------------

LIMITS: Final = {
    checked.Base.NUMBER: (-(2**63), 2**63 - 1),
    checked.Base.UNSIGNED: (0, 2**64 - 1),
    checked.Base.FLOAT: (-(2**1000), 2**1000),
}
"""The least and the greatest integer literal of each numeric type."""


def constant_value(term: tree.Term, base: checked.Base) -> checked.Value | None:
    """The value of a constant, including a minus before it, as one of a base type; None if it is none."""
    if type(term) is tree.String:
        return term.value if base is checked.Base.SYMBOL else None
    if type(term) is tree.Integer:
        return _integer(term.value, term.is_unsigned, base)
    if type(term) is tree.Float:
        return term.value if base is checked.Base.FLOAT else None
    negated = negated_literal(term)
    if type(negated) is tree.Integer:
        return _integer(-negated.value, negated.is_unsigned, base)
    if type(negated) is tree.Float:
        return -negated.value if base is checked.Base.FLOAT else None
    return None


def negated_literal(term: tree.Term) -> tree.Integer | tree.Float | None:
    """The number under a unary minus, if the term is one."""
    if type(term) is tree.Call and term.functor == "neg":
        argument = term.arguments[0]
        if type(argument) is tree.Integer or type(argument) is tree.Float:
            return argument
    return None


def _integer(value: int, is_unsigned: bool, base: checked.Base) -> checked.Value | None:
    if base in (checked.Base.SYMBOL, checked.Base.RECORD) or (is_unsigned and base is not checked.Base.UNSIGNED):
        return None
    least, greatest = LIMITS[base]
    if not least <= value <= greatest:
        return None
    return float(value) if base is checked.Base.FLOAT else value
