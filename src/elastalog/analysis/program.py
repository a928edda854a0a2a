"""The checked program: what a program means. Every name is resolved, every expression typed, every variable grounded.

Rules are clauses: one head, a conjunction as body. Disjunctions, several heads and aggregates inside expressions have
been taken apart; `span` always leads back to what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import PurePath
from typing import TypeAlias

from elastalog.analysis.values import Base as Base
from elastalog.analysis.values import Structured
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Source, Span
from elastalog.late import dataclass
from elastalog.syntax.keywords import AUTOINC
from elastalog.syntax.tree import nodes_of

Value: TypeAlias = int | float | str | Structured

EQUIVALENCE = "eqrel"
"""The qualifier of relations that are closed."""

# --- expressions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """Names are unique within a rule, scopes of aggregates included (inner variables are renamed `x@1`, wildcards of
    positive atoms are fresh variables `_@2`)."""

    name: str
    base: Base
    span: Span


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value
    base: Base
    span: Span


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Only inside negated atoms, where it is existential under the negation."""

    span: Span


@dataclass(frozen=True, slots=True)
class Apply:
    """A functor applied to typed arguments. `functor` is a key of `analysis.functors.FUNCTORS`; `range` is the only one
    that has several results and stands only as one side of a Comparison `variable = range(...)`.

    A constructor, `[]` or `$A`, stands only as the right side of `variable = [parts]`, its parts variables and
    constants: with the parts it gives the variable, with the variable the parts."""

    functor: str
    arguments: tuple[Expression, ...]
    base: Base
    span: Span


Expression: TypeAlias = Variable | Constant | Apply

# --- literals ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    relation: str
    arguments: tuple[Expression | Wildcard, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Negation:
    atom: Atom
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides have base type `base`; operator one of `= != < <= > >= match contains`, or `not` and one of them."""

    operator: str
    base: Base
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Aggregation:
    """`result = operator target : { bodies }`, where `bodies` are the alternatives of the aggregate's body.

    `groups` are the variables shared with the rule around it; they are grounded outside. The aggregate ranges over the
    distinct assignments of all variables of an alternative (wildcards included). An empty range gives 0 for count and
    sum and no result for the others. The operator `@f` is a functor of the user, whose target is the record of what it
    starts with and of a value; values go in ascending order."""

    result: Variable
    operator: str
    target: Expression | None
    bodies: tuple[tuple[Literal, ...], ...]
    groups: tuple[Variable, ...]
    span: Span


Literal: TypeAlias = Atom | Negation | Comparison | Aggregation

# --- the program ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attribute:
    """`type_name` as declared, `base` what it comes down to; of a record, `structures` are the types made of parts."""

    name: str
    type_name: str
    base: Base
    structures: Mapping[str, StructuredType] | None = field(default=None, compare=False, repr=False)
    improves: str = ""
    """For a column that keeps one value: `min`, `max` or `<>`."""


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input`, `.output`, `.printsize` or `.limitsize` of one relation, with its parameters as written. A confined one
    names no file outside of the folder that is given."""

    kind: str
    parameters: Mapping[str, str]
    span: Span
    is_confined: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    name: str
    attributes: tuple[Attribute, ...]
    directives: tuple[Directive, ...]
    qualifiers: tuple[str, ...]
    span: Span
    choices: tuple[tuple[int, ...], ...] = ()
    """The keys of `choice-domain`, by columns: at most one fact for every value of each."""

    @property
    def arity(self) -> int:
        return len(self.attributes)

    @property
    def is_equivalence(self) -> bool:
        """Whether it is kept reflexive, symmetric and transitive."""
        return EQUIVALENCE in self.qualifiers

    @property
    def inputs(self) -> tuple[Directive, ...]:
        """The `.input` directives that are read: not those of `IO=updates`, for a relation that only updates fill."""
        inputs = (directive for directive in self.directives if directive.kind == "input")
        return tuple(directive for directive in inputs if directive.parameters.get("IO") != "updates")


@dataclass(frozen=True, slots=True)
class Rule:
    """`number` counts from 1 through the program, `number_in_relation` from 1 among the rules of the head's relation,
    both in the order written (alternatives and heads from left to right). `is_recursive`: a positive body atom belongs
    to the stratum of the head. `plan`: orders of the positive atoms by version, from 0, from `.plan`. `source`: what
    `span` is a place in."""

    number: int
    number_in_relation: int
    head: Atom
    body: tuple[Literal, ...]
    is_recursive: bool
    plan: Mapping[int, tuple[int, ...]]
    span: Span
    source: Source | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The rule as it was written, on one line, without the comments that end its lines."""
        if self.source is None:
            return ""
        lines = self.source.text[self.span.start : self.span.end].splitlines()
        # A line with a text in it may have `//` there: such a comment is better kept than half a text lost.
        text = " ".join(" ".join(line if '"' in line else line.split("//", 1)[0] for line in lines).split())
        return f"{text}: {self._closure()}" if self.is_closure else text

    @property
    def is_closure(self) -> bool:
        """Whether it is one of the rules that `eqrel` stands for; their place is that of the word."""
        return self.source is not None and self.source.text[self.span.start : self.span.end] == EQUIVALENCE

    def _closure(self) -> str:
        """The text of a rule that `eqrel` stands for, whose literals are atoms of variables."""
        head, *body = (
            f"{atom.relation}({', '.join(v.name.partition('@')[0] for v in atom.arguments if isinstance(v, Variable))})"
            for atom in (self.head, *self.body)
            if isinstance(atom, Atom)
        )
        return f"{head} :- {', '.join(body)}."

    @property
    def line(self) -> int:
        """The line of its file that it begins on, from 1; 0 if that is not known."""
        return 0 if self.source is None else self.source.line_written(self.span)[1]

    @property
    def place(self) -> str:
        """File and line, as `reach.dl:7`; empty if that is not known."""
        if self.source is None:
            return ""
        name, line = self.source.line_written(self.span)
        return f"{PurePath(name).name}:{line}"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact written in the program text: an explicit fact of the first epoch."""

    relation: str
    values: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Stratum:
    """A strongly connected component of relations. Strata are listed in an order in which every one depends only on
    earlier ones; relations without rules form strata of their own."""

    number: int
    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    is_recursive: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a record: `type_name` as declared, `structure` the name of the type if that is made of parts too."""

    name: str
    type_name: str
    base: Base
    structure: str | None


@dataclass(frozen=True, slots=True)
class StructuredType:
    """A record type or an algebraic data type: the parts by constructor, which is `[]` or `$A`."""

    name: str
    branches: Mapping[str, tuple[Part, ...]]

    @property
    def value(self) -> str:
        """Its name, as `Base` has one."""
        return self.name

    @property
    def article(self) -> str:
        """What messages call a value of it."""
        return f"a value of type {quoted(self.name)}"

    @property
    def is_record(self) -> bool:
        """Whether it is a record type, to which `nil` belongs."""
        return "[]" in self.branches

    @property
    def is_ordered(self) -> bool:
        """Whether `<` means something: the branches have no fields and go by their names."""
        return not any(self.branches.values())


@dataclass(frozen=True, slots=True)
class UserFunctor:
    """A functor that the user implements. An `Apply` of it has the functor `@name`."""

    name: str
    parameters: tuple[Base, ...]
    result: Base
    is_stateful: bool
    span: Span
    parameter_types: tuple[str, ...] = ()
    """As declared."""
    result_type: str = ""
    """As declared."""

    @property
    def signature(self) -> str:
        """`f(number, symbol): symbol`"""
        return f"{self.name}({', '.join(base.value for base in self.parameters)}): {self.result.value}"

    @property
    def has_records(self) -> bool:
        """Whether it takes or gives values that are made of values."""
        return Base.RECORD in (*self.parameters, self.result)


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """`structures`: the types made of parts, by every name that leads to one."""

    source: Source
    relations: Mapping[str, Relation]
    rules: tuple[Rule, ...]
    facts: tuple[Fact, ...]
    strata: tuple[Stratum, ...]
    pragmas: Mapping[str, str]
    structures: Mapping[str, StructuredType] = field(default_factory=dict)
    functors: Mapping[str, UserFunctor] = field(default_factory=dict)
    subsumptions: tuple[Rule, ...] = ()
    """Rules whose heads are pairs of facts of one relation, `R<=`: the first is dominated by the second."""

    @property
    def wraps(self) -> bool:
        """Whether integers are taken modulo 2^64 instead of being checked."""
        return self.pragmas.get("arithmetic") == "wrap"

    @property
    def ignores_extra_fields(self) -> bool:
        """Whether text files may have more columns than their relations."""
        return self.pragmas.get("extra-fields") == "ignore"

    def is_given(self, relation: str) -> bool:
        """Whether facts of a relation are given, and not only derived by rules."""
        is_derived = any(rule.head.relation == relation for rule in self.rules)
        return not is_derived or any(directive.kind == "input" for directive in self.relations[relation].directives)

    def has_facts(self, relation: str) -> bool:
        """Whether the text has facts of a relation. Those that a subsumption may dominate are rules without a body."""
        written = {fact.relation for fact in self.facts}
        return relation in written | {rule.head.relation for rule in self.rules if not rule.body}


def variables_of(*terms: Expression | Wildcard) -> Iterator[Variable]:
    """The variables of terms, from left to right, with repetitions."""
    pending = list(terms)[::-1]
    while pending:
        term = pending.pop()
        # Not by `match`, which takes longer: every rule is looked at several times.
        if type(term) is Variable:
            yield term
        elif type(term) is Apply:
            pending.extend(term.arguments[::-1])


def terms_of_sum(expression: Expression, sign: int = 1) -> Iterator[tuple[int, Expression]]:
    """The terms of a sum or difference, with their signs; an expression that is neither is one."""
    if isinstance(expression, Apply) and expression.functor in ("+", "-"):
        left, right = expression.arguments
        yield from terms_of_sum(left, sign)
        yield from terms_of_sum(right, sign if expression.functor == "+" else -sign)
    else:
        yield sign, expression


def names_of(*terms: Expression | Wildcard) -> Iterator[str]:
    """The names of the variables of terms."""
    return (variable.name for variable in variables_of(*terms))


def variables_in(literals: Iterable[Literal], is_deep: bool) -> Iterator[Variable]:
    """The variables of literals, in the order written. Of an aggregate, that is its result and the variables shared
    with it, or all variables inside it if `is_deep`."""
    for literal in literals:
        if type(literal) is Atom:
            yield from variables_of(*literal.arguments)
        elif type(literal) is Negation:
            yield from variables_of(*literal.atom.arguments)
        elif type(literal) is Comparison:
            yield from variables_of(literal.left, literal.right)
        elif type(literal) is Aggregation:
            yield literal.result
            if is_deep:
                for body in literal.bodies:
                    yield from variables_in(body, is_deep)
            else:
                yield from literal.groups


def literals_in(*bodies: Iterable[Literal]) -> Iterator[Literal]:
    """The literals of bodies, and of the aggregates in them."""
    for body in bodies:
        for literal in body:
            yield literal
            if type(literal) is Aggregation:
                yield from literals_in(*literal.bodies)


def atoms_in(body: Iterable[Literal]) -> Iterator[Atom]:
    """The atoms of a body, including those that are negated or inside aggregates."""
    return nodes_of(Atom, tuple(body))


def inner_atoms(literal: Literal) -> Iterator[Atom]:
    """The atoms that a literal negates, or that are inside it."""
    return iter(()) if type(literal) is Atom else nodes_of(Atom, literal)


def numbered_variable(literal: Literal) -> Variable | None:
    """The variable of a literal `variable = autoinc()`; None for any other."""
    if isinstance(literal, Comparison) and isinstance(literal.left, Variable):
        right = literal.right
        if isinstance(right, Apply) and right.functor == AUTOINC:
            return literal.left
    return None
