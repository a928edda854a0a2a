"""The syntax tree: what was written, with the span of every node.

Nothing is resolved here: names are text, numbers keep the form they were written in, operators are calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from operator import is_
from typing import Any, TypeAlias, TypeVar

from elastalog.diagnostics.source import Source, Span
from elastalog.late import dataclass

# --- terms ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_`"""

    span: Span


@dataclass(frozen=True, slots=True)
class Integer:
    """`42`, `0x2a`, `0b101`, `1.2.3.4` (IPv4), `42u`. Its type follows from the context unless `is_unsigned` (suffix
    u)."""

    value: int
    is_unsigned: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Float:
    value: float
    span: Span


@dataclass(frozen=True, slots=True)
class String:
    """The value has its escapes resolved."""

    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A functor applied to arguments. Operators are calls too: `+ - * / % ^` and unary minus as `neg`; and so is what
    builds a value or takes it apart: a record `[a, b]` as `[]`, `nil`, a branch `$A(x)` as `$A`; a
    functor of the user `@f(x)` as `@f`."""

    functor: str
    arguments: tuple[Term, ...]
    functor_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Cast:
    """`as(term, type)`: the value of the term, taken to be of another type."""

    term: Term
    type_name: str
    type_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`sum x : { body }`; `operator` is count, sum, min, max or mean; `count` has no target. `@@f x : start, { body }`
    folds by a functor of the user: `operator` is `@f`, and the target the record `[start, x]`."""

    operator: str
    target: Term | None
    body: Body
    span: Span


Term: TypeAlias = Variable | Wildcard | Integer | Float | String | Call | Cast | Aggregate

# --- literals ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    relation: str
    arguments: tuple[Term, ...]
    relation_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Negation:
    """`!atom`"""

    atom: Atom
    span: Span


@dataclass(frozen=True, slots=True)
class NegatedGroup:
    """`!( a, b )`, `!x < y`: anything behind a `!` but a single atom."""

    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`, operator one of `= != < <= > >=`, or `match(left, right)`, `contains(left, right)`.
    Behind the parser also `not` and one of these, as in `not <`: the comparison does not hold, be it that it has no
    value (see `analysis.negation`)."""

    operator: str
    left: Term
    right: Term
    operator_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false`"""

    value: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Disjunction:
    """`( a, b ; c )`: at least two alternatives, each a conjunction."""

    alternatives: tuple[Body, ...]
    span: Span


Literal: TypeAlias = Atom | Negation | NegatedGroup | Comparison | Truth | Disjunction
Body: TypeAlias = tuple[Literal, ...]

# --- declarations and clauses --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Instance:
    """The instance of a component that an item was made for: `name` is all of its name, `span` that of its `.init`,
    `outer` the instance that holds it."""

    name: str
    component: str
    span: Span
    outer: Instance | None


@dataclass(frozen=True, slots=True)
class Attribute:
    """`x: number`. `improves`: of a column that keeps one value for all others of a fact, `min` or `max`, as written
    before the type, or `<>`, behind it."""

    name: str
    type_name: str
    name_span: Span
    type_span: Span
    improves: str = ""

    @property
    def written_type(self) -> str:
        """`number`, `min number` or `D<>`"""
        if self.improves == "<>":
            return self.type_name + "<>"
        return f"{self.improves} {self.type_name}" if self.improves else self.type_name


@dataclass(frozen=True, slots=True)
class RelationDeclaration:
    """`.decl a, b(x: number, y: symbol) btree`: one node per name, sharing attributes and qualifiers. `choices`: the
    keys of `choice-domain x, (x, y)`, by the names of attributes."""

    name: str
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[tuple[str, Span], ...]
    name_span: Span
    span: Span
    instance: Instance | None = None
    choices: tuple[tuple[tuple[str, Span], ...], ...] = ()

    @property
    def is_inline(self) -> bool:
        """Whether its rules stand wherever it is read, and it holds no facts."""
        return any(word == "inline" for word, _ in self.qualifiers)

    @property
    def improves(self) -> bool:
        """Whether a column of it keeps one value."""
        return any(attribute.improves for attribute in self.attributes)


@dataclass(frozen=True, slots=True)
class BranchDeclaration:
    """`A {x: number}` of an algebraic data type; without a name, the fields of a record type."""

    name: str
    fields: tuple[Attribute, ...]
    name_span: Span


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """`.type T <: base` (kind subtype), `.type T = base` (alias), `.type T = A | B` (union), `.type T = [x: number]`
    (record), `.type T = A {x: number} | B {}` (branches)."""

    name: str
    kind: str
    parents: tuple[tuple[str, Span], ...]
    name_span: Span
    span: Span
    instance: Instance | None = None
    branches: tuple[BranchDeclaration, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctorDeclaration:
    """`.functor f(x: number, y: symbol): symbol stateful`; parameters may have no names."""

    name: str
    parameters: tuple[Attribute, ...]
    result: tuple[str, Span]
    is_stateful: bool
    name_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input a, b(IO=file, filename="x.csv")`: one node per relation name. `kind` is input, output, printsize or
    limitsize; parameter values are text, spans are those of the values."""

    kind: str
    relation: str
    parameters: tuple[tuple[str, str, Span], ...]
    relation_span: Span
    span: Span
    instance: Instance | None = None


@dataclass(frozen=True, slots=True)
class Pragma:
    name: str
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Plan:
    """`.plan 0:(2,1), 1:(1,2)`: for each version of the rule before it, an order of its atoms, from 1. Without a
    version it is `.strict`, which leaves the order to the planner, as it is a hint."""

    versions: tuple[tuple[int, tuple[int, ...]], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Clause:
    """`heads :- body.` A fact has an empty body. Alternatives at the top of the body are one Disjunction literal."""

    heads: tuple[Atom, ...]
    body: Body
    plan: Plan | None
    span: Span
    instance: Instance | None = None


# --- components ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComponentType:
    """`C<number, T>`"""

    name: str
    arguments: tuple[tuple[str, Span], ...]
    name_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Component:
    """`.comp C<T> : B<T>, D { items }`"""

    name: str
    parameters: tuple[tuple[str, Span], ...]
    bases: tuple[ComponentType, ...]
    items: tuple[Item, ...]
    name_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Init:
    """`.init i = C<number>`"""

    name: str
    component: ComponentType
    name_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Override:
    """`.override a, b` in a component: one node per relation, whose inherited rules do not count."""

    relation: str
    relation_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Lattice:
    """`.lattice D<> { Bottom -> 0, Lub -> @lub(_, _) }`: what the values of a type are joined by. `operators`: by name
    a term, and where the name stands."""

    type_name: str
    operators: tuple[tuple[str, Term, Span], ...]
    type_span: Span
    span: Span
    instance: Instance | None = None

    def operator(self, name: str) -> Term | None:
        """The term for an operator, if it has one."""
        return next((term for own, term, _ in self.operators if own == name), None)


@dataclass(frozen=True, slots=True)
class Subsumption:
    """`R(x, a) <= R(x, b) :- body.`: the first fact leaves the relation where it has the second and the body holds."""

    dominated: Atom
    dominating: Atom
    body: Body
    span: Span
    instance: Instance | None = None


Item: TypeAlias = (
    RelationDeclaration
    | TypeDeclaration
    | FunctorDeclaration
    | Directive
    | Pragma
    | Clause
    | Lattice
    | Subsumption
    | Component
    | Init
    | Override
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole program text, items in the order written. `annotations`: where the `@[…]` of items are, which mean
    nothing to the program."""

    source: Source
    items: tuple[Item, ...]
    annotations: tuple[Span, ...] = ()


# --- walking through trees -------------------------------------------------------------------------------------------

_Node = TypeVar("_Node")


def nodes_of(kind: type[_Node], tree: object, *, is_deep: bool = True) -> Iterator[_Node]:
    """The nodes of a kind in a tree, in the order written, each before those inside it, which are only looked at where
    `is_deep`."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, kind):
            yield node
            if not is_deep:
                continue
        pending.extend(reversed(parts_of(node)))


class _Parts(dict[type, tuple[str, ...]]):
    """The fields of a class of nodes in which there may be others; none of what is no node."""

    def __missing__(self, kind: Any) -> tuple[str, ...]:
        parts = [part.name for part in fields(kind) if part.type not in _PLAIN] if is_dataclass(kind) else ()
        found = self[kind] = tuple(parts)
        return found


_PLAIN = frozenset(("str", "bool", "int", "float", "Span", "Base", "Instance | None"))
_PARTS = _Parts()


def parts_of(node: object) -> tuple[Any, ...]:
    """What a node is made of, or a tuple of nodes."""
    return node if type(node) is tuple else tuple([getattr(node, name) for name in _PARTS[type(node)]])


def with_parts(tree: _Node, change: Callable[[Any], Any]) -> _Node:
    """A node, or a tuple of nodes, with its parts changed. Where nothing changes it is itself."""
    node: Any = tree
    kind: Any = type(node)
    if kind is tuple:
        parts: Any = tuple([change(part) for part in node])
        return tree if all(map(is_, parts, node)) else parts
    changed = {}
    for name in _PARTS[kind]:
        part = getattr(tree, name)
        other = change(part)
        if other is not part:
            changed[name] = other
    if not changed:
        return tree
    # `replace` takes several times as long.
    return kind(**{name: changed[name] if name in changed else getattr(tree, name) for name in kind.__match_args__})  # type: ignore[no-any-return]


def mapped(tree: _Node, change: Callable[[Any], Any]) -> _Node:
    """A tree with every node changed, from below. Where nothing changes it is itself."""

    def whole(node: Any) -> Any:
        if type(node) is tuple:
            return with_parts(node, whole)
        return change(with_parts(node, whole) if _PARTS[type(node)] else node)

    made: _Node = whole(tree)
    return made
