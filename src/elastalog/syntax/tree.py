"""The syntax tree: what was written, with the span of every node.

Nothing is resolved here: names are text, numbers keep the form they were written in, operators are calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter, is_
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
    """`as(term, type)`: the value of the term, treated as one of another type."""

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
    """`!( a, b )`, `!x < y`: a `!` before anything other than a single atom."""

    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right` with an operator `= != < <= > >=`, or `match(left, right)`, `contains(left, right)`. After
    the parser, the operator may also be `not` and one of these, as in `not <`: the comparison does not hold, possibly
    because a side has no value (see `analysis.negation`)."""

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
    """The instance of a component that an item was made for: `name` is its full name, `span` the place of its `.init`,
    `outer` the instance that contains it."""

    name: str
    component: str
    span: Span
    outer: Instance | None


@dataclass(frozen=True, slots=True)
class Attribute:
    """`x: number`. For a column that keeps one value per combination of the others, `improves` is `min` or `max`,
    written before the type, or `<>`, written after it."""

    name: str
    type_name: str
    name_span: Span
    type_span: Span
    improves: str = ""


def written_type(column: Any) -> str:
    """The type of an attribute, of a tree or of a checked program, as `number`, `min number` or `D<>`."""
    if column.improves == "<>":
        return f"{column.type_name}<>"
    return f"{column.improves} {column.type_name}".lstrip()


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
        """Whether its rules replace it wherever it is read, so that it holds no facts."""
        return self.qualifier("inline") is not None

    def qualifier(self, word: str) -> Span | None:
        """The place of a qualifier, if the declaration has it."""
        return next((span for own, span in self.qualifiers if own == word), None)

    @property
    def improves(self) -> bool:
        """Whether one of its columns keeps one value."""
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
    """`.override a, b` in a component, with one node per relation: the inherited rules of the relation are dropped."""

    relation: str
    relation_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Lattice:
    """`.lattice D<> { Bottom -> 0, Lub -> @lub(_, _) }`: how values of a type are joined. `operators`: for each name, a
    term and the place of the name."""

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
    """`R(x, a) <= R(x, b) :- body.`: the first fact leaves the relation if the relation has the second and the body
    holds."""

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
    """A whole program text, with its items in the order written. `annotations`: the places of the `@[…]` of items,
    which mean nothing to the program."""

    source: Source
    items: tuple[Item, ...]
    annotations: tuple[Span, ...] = ()


# --- walking through trees -------------------------------------------------------------------------------------------

_Node = TypeVar("_Node")


def nodes_of(
    kind: type[_Node], tree: object, *, is_deep: bool = True, closed: tuple[type, ...] = ()
) -> Iterator[_Node]:
    """The nodes of one class in a tree, in the order written, each before those inside it. With `is_deep=False`, nodes
    inside a found node are skipped, as are those inside nodes of the classes `closed`."""
    pending = [tree]
    while pending:
        node = pending.pop()
        own = type(node)
        if own is tuple:
            pending.extend(node[::-1])  # type: ignore[index]
            continue
        if isinstance(node, kind):
            yield node
            if not is_deep:
                continue
        inner = _SHAPES[own][2]
        if inner is not None and own not in closed:
            pending.extend(inner(node))


_Values: TypeAlias = Callable[[Any], tuple[Any, ...]]
"""What gives the values of some fields of a node."""


class _Shapes(dict[type, tuple[_Values, tuple[int, ...], _Values | None]]):
    """For each class of nodes: a function for the values that an instance is made with, the positions that may hold
    other nodes, and a function for the values at these positions, last first (None if there are none)."""

    def __missing__(self, kind: Any) -> tuple[_Values, tuple[int, ...], _Values | None]:
        parts = [part for part in fields(kind) if part.init] if is_dataclass(kind) else []
        places = [i for i, part in enumerate(parts) if not _PLAIN.issuperset(_WORD.findall(str(part.type)))]
        inner = _values([parts[place].name for place in places[::-1]]) if places else None
        found = self[kind] = _values([part.name for part in parts]), tuple(places), inner
        return found


def _values(names: Sequence[str]) -> _Values:
    if len(names) == 1:
        value = attrgetter(*names)
        return lambda node: (value(node),)
    return attrgetter(*names) if names else lambda _: ()


_PLAIN = frozenset(("tuple", "str", "bool", "int", "float", "Span", "Source", "Base", "Instance", "None"))
"""What the types of fields consist of in which there are no nodes."""
_WORD = re.compile(r"\w+")
_SHAPES = _Shapes()


def parts_of(node: object) -> tuple[Any, ...]:
    """The nodes directly inside a node, or inside a tuple of nodes."""
    if type(node) is tuple:
        return node
    inner = _SHAPES[type(node)][2]
    return () if inner is None else inner(node)[::-1]


def with_parts(tree: _Node, change: Callable[[Any], Any], **others: Any) -> _Node:
    """A node, or a tuple of nodes, with its parts changed and with other values for some fields; the same object if
    nothing changes. `replace` would take several times as long."""
    node: Any = tree
    kind: Any = type(node)
    if kind is tuple:
        parts: Any = tuple([change(part) for part in node])
        return tree if all(map(is_, parts, node)) else parts
    whole, places, _ = _SHAPES[kind]
    if not places and not others:
        return tree
    values = list(whole(node))
    is_same = not others
    for place in places:
        part = values[place]
        other = values[place] = change(part)
        is_same = is_same and other is part
    for name, value in others.items():
        values[kind.__match_args__.index(name)] = value
    return tree if is_same else kind(*values)


def mapped(tree: _Node, change: Callable[[Any], Any]) -> _Node:
    """A tree with every node changed, from the bottom up; the same object if nothing changes."""

    def whole(node: Any) -> Any:
        found = with_parts(node, whole)
        return found if type(node) is tuple else change(found)

    made: _Node = whole(tree)
    return made
