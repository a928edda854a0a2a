"""What a fact is used for: the facts that follow from it in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from elastalog.analysis.alternatives import alternatives_of
from elastalog.analysis.findings import Findings
from elastalog.analysis.query import Query, check_clause, constant
from elastalog.analysis.scopes import variables_of
from elastalog.analysis.substitute import substitute
from elastalog.diagnostics.source import Source
from elastalog.program import Program, rule_texts, shown_rule
from elastalog.provenance.fact import Fact
from elastalog.relations.facts import Relation
from elastalog.syntax import tree as syntax
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_clause


class Uses:
    """Knows the rules of a program by the relations that they read."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._reading: dict[str, list[tuple[syntax.Clause, int]]] = {}
        for text in rule_texts(program):
            tree, _ = parse(Source("<rule>", text))
            clause = tree.items[0]
            assert isinstance(clause, syntax.Clause)
            for wide in (clause, *_with_members(clause, (*clause.heads, *clause.body))):
                first = 0 if wide is clause else len(clause.body)
                for place, literal in enumerate(wide.body[first:], first):
                    if isinstance(literal, syntax.Atom):
                        self._reading.setdefault(literal.relation, []).append((wide, place))

    def direct(self, fact: Fact, ask: Callable[[Query], Relation]) -> list[Fact]:
        """The facts that a rule derives from a fact, which holds, and others: it stands in the body, or among what an
        aggregate of the body ranges over. Each once; those that only negate it are none."""
        program = self._program
        found: dict[Fact, None] = {}
        for clause, place in self._reading.get(fact.relation, ()):
            bound = _with_fact(clause, place, fact)
            if bound is not None:
                for values in ask(check_clause(bound, program.tree, program.checked)):
                    found.setdefault(Fact(clause.heads[0].relation, values))
        found.pop(fact, None)
        return list(found)


def _with_members(clause: syntax.Clause, nodes: Sequence[syntax.Literal], depth: int = 0) -> Iterator[syntax.Clause]:
    """The clause with the body of an aggregate in some of its nodes added, so that a member of it is a fact of the
    body. Names that are the aggregate's own are changed; of alternatives there is a clause each."""
    around = {variable.name for variable in variables_of((*clause.heads, *clause.body), is_deep=False)}
    for number, aggregate in enumerate(_aggregates(nodes)):
        renamed: dict[str, syntax.Term] = {
            variable.name: replace(variable, name=f"{variable.name}_member_{depth}_{number}")
            for variable in variables_of(aggregate.body, is_deep=True)
            if variable.name not in around
        }
        body = substitute(aggregate.body, renamed, lambda _, span: syntax.Wildcard(span))
        for members in alternatives_of(body, 1, clause.span, Findings(Source("<rule>", ""))):
            wide = replace(clause, body=(*clause.body, *members), plan=None)
            yield wide
            yield from _with_members(wide, members, depth + 1)


def _aggregates(nodes: Iterable[syntax.Term | syntax.Literal]) -> Iterator[syntax.Aggregate]:
    """The aggregates in nodes, not those inside of others."""
    for node in nodes:
        match node:
            case syntax.Aggregate():
                yield node
            case syntax.Call() | syntax.Atom():
                yield from _aggregates(node.arguments)
            case syntax.Negation():
                yield from _aggregates((node.atom,))
            case syntax.Cast():
                yield from _aggregates((node.term,))
            case syntax.Comparison():
                yield from _aggregates((node.left, node.right))
            case syntax.Disjunction():
                for alternative in node.alternatives:
                    yield from _aggregates(alternative)
            case _:
                pass


def rules_without(fact: Fact, program: Program) -> tuple[list[str], list[str]]:
    """The rules that may derive a fact, and others that derive the same but for it: what to remove and to add for a
    world in which it does not follow."""
    removed: list[str] = []
    added: list[str] = []
    for text in map(shown_rule, rule_texts(program)):
        tree, _ = parse(Source("<rule>", text))
        clause = tree.items[0]
        assert isinstance(clause, syntax.Clause)
        head = clause.heads[0]
        if head.relation == fact.relation:
            removed.append(text)
            if head.arguments:
                added.append(print_clause(replace(clause, body=(*clause.body, _other_than(head, fact)))))
    return removed, added


def _other_than(head: syntax.Atom, fact: Fact) -> syntax.Literal:
    """That a head is not a fact."""
    span = head.span
    differences = [
        syntax.Comparison("!=", argument, constant(value, span), span, span)
        for argument, value in zip(head.arguments, fact.values, strict=True)
    ]
    if len(differences) == 1:
        return differences[0]
    return syntax.Disjunction(tuple((literal,) for literal in differences), span)


def _with_fact(clause: syntax.Clause, place: int, fact: Fact) -> syntax.Clause | None:
    """The clause with an atom of its body bound to a fact; None where that is none of it, going by its constants."""
    atom = clause.body[place]
    assert isinstance(atom, syntax.Atom)
    for argument, own in zip(atom.arguments, fact.values, strict=True):
        if isinstance(argument, syntax.String) and argument.value != own:
            return None
    values = [constant(value, atom.span) for value in fact.values]
    equations = tuple(
        syntax.Comparison("=", argument, value, atom.span, atom.span)
        for argument, value in zip(atom.arguments, values, strict=True)
        if not isinstance(argument, syntax.Wildcard)
    )
    bound = replace(atom, arguments=tuple(values))
    return replace(clause, body=(*clause.body[:place], bound, *clause.body[place + 1 :], *equations))
