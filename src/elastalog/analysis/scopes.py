"""Aggregates and ranges as literals of their own, the variables of each scope told apart.

A variable inside an aggregate that also occurs around it is shared, any other is the aggregate's own and is renamed
(`x@1`). Two kinds are the aggregate's own though their names occur around it, as in Soufflé: those of the target that
the body gives values, and those that get a value outside only by what the aggregate gives (`n = min n : { p(n) }`).

A *witness* is a variable inside a `min` or `max` that the rule uses outside, and that nothing outside gives a value:
`first(p, a) :- a = min y : { age(p, y) }.` means those `p` that have the least age. The aggregate ranges over
everything, and the body of the rule gets another copy of what it ranges over, in which the target is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from elastalog.analysis.draft import FlatBody, FlatLiteral, SeparatedAggregate
from elastalog.analysis.findings import Findings
from elastalog.analysis.functors import is_rewritten
from elastalog.analysis.negation import MOST_LITERALS, alternatives_of, without_groups
from elastalog.analysis.variables import (
    equal_name,
    fresh_name,
    given_by,
    grounded_by,
    substitute,
    variables_inside,
    variables_of,
)
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.tree import with_parts


class TooLargeError(Exception):
    """A clause stands for too many literals."""


class ScopeSeparator:
    """Takes the alternatives of one clause apart. New names are unique within each."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.fresh_names = 0
        self.literals_left = MOST_LITERALS

    def separate(self, head: tree.Atom, body: Sequence[tree.Literal]) -> tuple[tree.Atom, FlatBody]:
        """The clause with each aggregate before the literals that use it; the aggregates of the head come last."""
        self.fresh_names = 0
        visible = {v.name for v in variables_of((head, *body), is_deep=False)}
        complete = with_witnesses(body, visible, self.fresh)
        if complete is not body:
            visible.update(v.name for v in variables_of(complete, is_deep=False))
        scope = _Scope(self, {}, visible, complete, ())
        scope.add_all()
        new_head = scope.atom(head)
        return new_head, tuple(scope.literals)

    def spend(self) -> None:
        """Counts one more literal."""
        self.literals_left -= 1
        if self.literals_left < 0:
            raise TooLargeError

    def fresh(self, stem: str, span: Span, name: Callable[[str, int], str] = fresh_name) -> tree.Variable:
        self.fresh_names += 1
        return tree.Variable(name(stem, self.fresh_names), span)


@dataclass(slots=True, eq=False)
class _Scope:
    """One conjunction being rewritten: the rule's own, or an alternative of an aggregate's body."""

    separator: ScopeSeparator
    renaming: Mapping[str, str]
    visible: set[str]
    body: Sequence[tree.Literal]
    known: Collection[str]  # variables of the scopes around it
    current: tree.Literal | None = None
    literals: list[FlatLiteral] = field(default_factory=list)

    def add_all(self) -> None:
        for literal in self.body:
            self.current = literal
            self.add(literal)
        self.current = None

    def add(self, literal: tree.Literal) -> None:
        self.separator.spend()
        match literal:
            case tree.Atom():
                self.literals.append(self.atom(literal))
            case tree.Negation():
                self.literals.append(tree.Negation(self.atom(literal.atom), literal.span))
            case tree.Comparison():
                self.comparison(literal)
            case tree.Truth():  # only `false` is left, and only inside an aggregate
                zero, one = tree.Integer(0, False, literal.span), tree.Integer(1, False, literal.span)
                self.literals.append(tree.Comparison("=", zero, one, literal.span, literal.span))
            case tree.Disjunction() | tree.NegatedGroup():
                raise InternalError("scopes", "a group is left")

    def atom(self, atom: tree.Atom) -> tree.Atom:
        return with_parts(atom, self.term)

    def comparison(self, comparison: tree.Comparison) -> None:
        left, right = comparison.left, comparison.right
        if comparison.operator == "=":
            if _is_special(left) and type(right) is tree.Variable:
                left, right = right, left
            if type(left) is tree.Variable and type(right) is tree.Aggregate:
                result = self.result(left)
                self.literals.append(self.aggregate(result, right))
                self.meet(left, result, comparison)
                return
            if type(left) is tree.Variable and _is_special(right):
                assert isinstance(right, tree.Call)
                result = self.result(left)
                self.generate(result, with_parts(right, self.term))
                self.meet(left, result, comparison)
                return
        left, right, comparison_span = self.term(left), self.term(right), comparison.span
        self.literals.append(
            tree.Comparison(comparison.operator, left, right, comparison.operator_span, comparison_span)
        )

    def result(self, variable: tree.Variable) -> tree.Variable:
        """The variable itself if nothing else gives it a value; otherwise a new one, to be compared with it."""
        if _definers(self.body, self.known).get(variable.name, 0) > 1:
            return self.separator.fresh(variable.name, variable.span, equal_name)
        return self.variable(variable)

    def meet(self, variable: tree.Variable, result: tree.Variable, comparison: tree.Comparison) -> None:
        renamed = self.variable(variable)
        if result.name != renamed.name:
            self.literals.append(replace(comparison, left=renamed, right=result))

    def term(self, term: Any) -> Any:
        """A term, or several, with the variables of this scope; whatever becomes a literal of its own is taken out."""
        if type(term) is tree.Variable:
            return self.variable(term)
        if type(term) is tree.Aggregate:
            result = self.separator.fresh(term.operator, term.span)
            self.literals.append(self.aggregate(result, term))
            return result
        made = with_parts(term, self.term)
        if type(made) is not tree.Call or not is_rewritten(made.functor):
            return made
        if made.functor == "format":
            return formatted(made)
        result = self.separator.fresh(made.functor, made.span)
        self.generate(result, made)
        return result

    def variable(self, variable: tree.Variable) -> tree.Variable:
        if not self.renaming:
            return variable
        name = self.renaming.get(variable.name)
        return variable if name is None else tree.Variable(name, variable.span)

    def aggregate(self, result: tree.Variable, aggregate: tree.Aggregate) -> SeparatedAggregate:
        inside: dict[str, tree.Variable] = {}
        for variable in variables_of((aggregate,), is_deep=True):
            inside.setdefault(variable.name, variable)
        alternatives = alternatives_of(aggregate.body, 1, aggregate.span, self.separator.findings)
        around = self.visible - self.hidden(aggregate, alternatives)
        own = {variable.name for variable in variables_inside(aggregate)} - around
        renaming = {**self.renaming, **{name: self.separator.fresh(name, aggregate.span).name for name in sorted(own)}}
        shared = [name for name in inside if name in around]
        bodies: list[FlatBody] = []
        around_target = _Scope(self.separator, renaming, around | own, (), ())
        target = None if aggregate.target is None else around_target.term(aggregate.target)
        for alternative in alternatives:
            scope = _Scope(self.separator, renaming, around | own, alternative, shared)
            scope.add_all()
            bodies.append((*scope.literals, *around_target.literals))
        groups = tuple([self.variable(inside[name]) for name in shared])
        return SeparatedAggregate(result, aggregate.operator, target, tuple(bodies), groups, aggregate.span)

    def hidden(self, aggregate: tree.Aggregate, alternatives: Iterable[Sequence[tree.Literal]]) -> set[str]:
        """The names outside an aggregate that mean other variables inside it."""
        found: set[str] = set()
        target = aggregate.target
        if aggregate.operator[0] == "@" and isinstance(target, tree.Call):
            target = target.arguments[-1]  # what a functor of the user starts with belongs to the rule around
        if target is not None:
            given = {name for body in alternatives for literal in body for name in given_by(literal)}
            found = given & {variable.name for variable in variables_of((target,), is_deep=False)}
        if self.current is not None:
            others = [literal for literal in self.body if literal is not self.current]
            found |= grounded_by(self.body, self.known) - grounded_by(others, self.known)
        return found

    def generate(self, result: tree.Variable, call: tree.Call) -> None:
        """Lets a variable range over the values of a generator. Those of `split` are the parts whose numbers are in a
        range."""
        if call.functor == "split":
            number = self.separator.fresh("split", call.span)
            count = replace(call, functor="split_count")
            numbers = replace(call, functor="range", arguments=(tree.Integer(0, False, call.span), count))
            self.generate(number, numbers)
            call = replace(call, functor="split_part", arguments=(*call.arguments, number))
        self.literals.append(tree.Comparison("=", result, call, call.span, call.span))


def _is_special(term: tree.Term) -> bool:
    is_generator = type(term) is tree.Call and term.functor != "format" and is_rewritten(term.functor)
    return is_generator or type(term) is tree.Aggregate


def formatted(call: tree.Call) -> tree.Call:
    """`format("{} of {}", a, b)` as the parts joined, each value as a text."""
    template, *values = call.arguments
    assert isinstance(template, tree.String)
    texts = pieces(template.value)
    parts: list[tree.Term] = [tree.String(texts[0], template.span)]
    for value, text in zip(values, texts[1:], strict=True):
        parts.append(tree.Call("to_string", (value,), call.functor_span, value.span))
        parts.append(tree.String(text, template.span))
    kept = [part for part in parts if not (isinstance(part, tree.String) and not part.value)]
    return replace(call, functor="cat", arguments=tuple(kept) or (template,))


def pieces(template: str) -> list[str]:
    """The texts between the places `{}` of a template; `{{` and `}}` stand for braces."""
    return [
        piece.replace("\0", "{").replace("\1", "}")
        for piece in template.replace("{{", "\0").replace("}}", "\1").split("{}")
    ]


def _definers(body: Sequence[tree.Literal], shared: Iterable[str]) -> dict[str, int]:
    """How many literals may give each variable a value. A variable of the surrounding scope counts as one more."""
    found = dict.fromkeys(shared, 1)
    for literal in body:
        for name in given_by(literal):
            found[name] = found.get(name, 0) + 1
    return found


# --- witnesses -------------------------------------------------------------------------------------------------------


Fresh = Callable[[str, Span], tree.Variable]


def with_witnesses(body: Sequence[tree.Literal], visible: set[str], fresh: Fresh) -> Sequence[tree.Literal]:
    """A conjunction in which every witness gets its values from an atom; the same object if there are no witnesses.
    `visible`: the variables outside aggregates, including those of the head."""
    if all(_aggregate_in(literal) is None for literal in body):
        return body
    found: list[tree.Literal] = []
    grounded: set[str] | None = None
    for literal in body:
        found.append(literal)
        place = _aggregate_in(literal)
        if place is None:
            continue
        result, aggregate = place[0], replace(place[1], body=without_groups(place[1].body))
        grounded = grounded_by(body) if grounded is None else grounded
        own = {variable.name for variable in variables_inside(aggregate)}
        witnesses = (own & visible) - grounded
        if witnesses and not any(isinstance(inner, tree.Disjunction) for inner in aggregate.body):
            found[-1:] = _taken_apart(literal, result, aggregate, witnesses, own - visible, fresh)
    return found


def _aggregate_in(literal: tree.Literal) -> tuple[tree.Term, tree.Aggregate] | None:
    """The result and the aggregate of a literal `result = min …` or `result = max …`."""
    if type(literal) is tree.Comparison and literal.operator == "=":
        for aggregate, result in ((literal.right, literal.left), (literal.left, literal.right)):
            if isinstance(aggregate, tree.Aggregate) and aggregate.operator in ("min", "max"):
                return result, aggregate
    return None


def _taken_apart(
    literal: tree.Literal,
    result: tree.Term,
    aggregate: tree.Aggregate,
    witnesses: set[str],
    own: set[str],
    fresh: Fresh,
) -> Iterator[tree.Literal]:
    assert isinstance(literal, tree.Comparison)
    assert aggregate.target is not None
    inner = {name: fresh(name, aggregate.span) for name in sorted(witnesses)}
    over = replace(
        aggregate,
        target=substitute(aggregate.target, inner),
        body=substitute(aggregate.body, inner),
    )
    yield replace(literal, left=result, right=over)
    copies = {name: fresh(name, aggregate.span) for name in sorted(own)}
    yield from substitute(aggregate.body, copies)
    target = substitute(aggregate.target, copies)
    yield replace(literal, left=target, right=result)
