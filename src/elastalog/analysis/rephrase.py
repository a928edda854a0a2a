"""Rephrases a rule (one head and one conjunction) so that it speaks of certain facts: what it derives from one fact,
what it derives besides one, and which of its facts hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.findings import Findings
from elastalog.analysis.negation import alternatives_of
from elastalog.analysis.program import Value
from elastalog.analysis.query import constant
from elastalog.analysis.variables import given_by, mentions, substitute, variables_of
from elastalog.diagnostics.source import Source
from elastalog.syntax import tree
from elastalog.syntax.keywords import AUTOINC
from elastalog.syntax.tree import mapped, nodes_of


def bound_to(rule: tree.Clause, place: int, values: Sequence[Value]) -> tree.Clause | None:
    """The rule with an atom of its body bound to a fact; None if the atom's constants exclude the fact."""
    atom = rule.body[place]
    assert isinstance(atom, tree.Atom)
    for argument, own in zip(atom.arguments, values, strict=True):
        if isinstance(argument, tree.String) and argument.value != own:
            return None
    terms = tuple([constant(value, atom.span) for value in values])
    bound = replace(atom, arguments=terms)
    equations = _arguments_equal(atom, terms, _unused_stem(rule))
    return replace(rule, body=(*rule.body[:place], bound, *rule.body[place + 1 :], *equations))


def _arguments_equal(atom: tree.Atom, values: tuple[tree.Term, ...], stem: str) -> Iterator[tree.Literal]:
    """Literals that say that the arguments of an atom have these values. Names of new variables begin with `stem`."""
    span = atom.span
    for place, (argument, value) in enumerate(zip(atom.arguments, values, strict=True)):
        if isinstance(argument, tree.Wildcard):
            continue
        if isinstance(value, tree.Call) and is_constructor(value.functor):
            # An argument of the relation says of which type both are. The others have names, too: wildcards at one
            # place would be taken for one.
            others = [tree.Variable(f"{stem}{place}_{other}", span) for other in range(len(values))]
            known = others[place]
            yield replace(atom, arguments=tuple(others))
            yield tree.Comparison("=", known, value, span, span)
            argument, value = known, argument
        yield tree.Comparison("=", argument, value, span, span)


def with_members(
    rule: tree.Clause, within: Sequence[tree.Literal] | None = None, depth: int = 0
) -> Iterator[tree.Clause]:
    """For every aggregate of the rule, including nested ones, the rule with the aggregate's body appended, so that each
    member is a fact of the body. The aggregate's own variables are renamed, and each alternative gives a rule of its
    own."""
    nodes = (*rule.heads, *rule.body) if within is None else tuple(within)
    around = {variable.name for variable in variables_of((*rule.heads, *rule.body), is_deep=False)}
    for number, aggregate in enumerate(nodes_of(tree.Aggregate, nodes, is_deep=False)):
        renamed: dict[str, tree.Term] = {
            variable.name: replace(variable, name=f"{variable.name}_member_{depth}_{number}")
            for variable in variables_of(aggregate.body, is_deep=True)
            if variable.name not in around
        }
        body = substitute(aggregate.body, renamed)
        for members in alternatives_of(body, 1, rule.span, Findings(Source("<rule>", ""))):
            wide = replace(rule, body=(*rule.body, *members), plan=None)
            yield wide
            yield from with_members(wide, members, depth + 1)


def is_numbered(rule: tree.Clause) -> bool:
    """Whether a rule asks for derivation numbers."""
    return bool(_with_names_for_numbers(rule)[1])


def among_what_holds(rule: tree.Clause) -> tree.Clause:
    """The rule restricted to those of its facts that are there, since not every candidate is chosen, and dominated
    facts leave. Derivation numbers are only known when the rule runs, so whatever depends on them is left to the facts:
    the result has all facts that the rule derives, and possibly others."""
    rule, numbers = _with_names_for_numbers(rule)
    reach: frozenset[str] = frozenset()
    while reach != numbers:
        reach = numbers
        numbers = reach.union(*(given_by(literal) for literal in rule.body if mentions(literal, reach)))
    head, stem = rule.heads[0], _unused_stem(rule)
    arguments = [
        tree.Variable(f"{stem}{place}", term.span)
        if not isinstance(term, tree.Variable) and mentions(term, numbers)
        else term
        for place, term in enumerate(head.arguments)
    ]
    head = replace(head, arguments=tuple(arguments))
    body = (literal for literal in rule.body if not mentions(literal, numbers))
    return replace(rule, heads=(head,), body=(*body, head))


def _with_names_for_numbers(rule: tree.Clause) -> tuple[tree.Clause, frozenset[str]]:
    """The rule with a variable in the place of every `autoinc()`, and their names."""
    stem = _unused_stem(rule)
    names: list[str] = []

    def named(node: object) -> object:
        if not isinstance(node, tree.Call) or node.functor != AUTOINC:
            return node
        names.append(f"{stem}number_{len(names)}")
        return tree.Variable(names[-1], node.span)

    return mapped(rule, named), frozenset(names)


def other_than(rule: tree.Clause, excluded: str) -> tree.Clause:
    """The rule restricted to facts that a relation does not have. Computed arguments of the head get names, so that
    both atoms have the same values, of the declared types."""
    head, stem = rule.heads[0], _unused_stem(rule)
    variables: list[tree.Term] = []
    equations: list[tree.Literal] = []
    for place, term in enumerate(head.arguments):
        variable = term if isinstance(term, tree.Variable) else tree.Variable(f"{stem}{place}", term.span)
        variables.append(variable)
        if variable is not term:
            equations.append(tree.Comparison("=", variable, term, term.span, term.span))
    head = replace(head, arguments=tuple(variables))
    none = tree.Negation(replace(head, relation=excluded), head.span)
    return replace(rule, heads=(head,), body=(*rule.body, *equations, none))


def _unused_stem(rule: tree.Clause) -> str:
    """A prefix that no variable name of a rule has."""
    names = {variable.name for variable in variables_of((*rule.heads, *rule.body), is_deep=True)}
    stem = "value_"
    while any(name.startswith(stem) for name in names):
        stem += "_"
    return stem
