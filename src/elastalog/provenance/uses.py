"""What a fact is used for: the facts that follow from it in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from elastalog.analysis.alternatives import alternatives_of
from elastalog.analysis.findings import Findings
from elastalog.analysis.program import Value
from elastalog.analysis.query import Query, check_clause, constant
from elastalog.analysis.structures import is_constructor
from elastalog.analysis.substitute import substitute
from elastalog.analysis.variables import variables_of
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.program import Program, judged_in, removable_rules, rule_texts
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from elastalog.relations.facts import Relation
from elastalog.syntax import tree as syntax
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_clause


class Uses:
    """Knows the rules of a program by the relations that they read."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._judged = judged_in(program.tree.items)
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

    def direct(
        self,
        fact: Fact,
        ask: Callable[[Query], Relation],
        derivations: Callable[[Fact], Iterable[Proof]],
    ) -> list[Fact]:
        """The facts that a rule derives from a fact, which holds, and others: it stands in the body, or among what an
        aggregate of the body ranges over. Each once; those that only negate it are none."""
        program = self._program
        found: dict[str, Fact] = {}  # by text: NaN is not equal to itself
        for clause, place in self._reading.get(fact.relation, ()):
            bound = _with_fact(clause, place, fact)
            if bound is None:
                continue
            is_numbered = any(map(_is_number, clause.heads[0].arguments))
            if is_numbered or clause.heads[0].relation in self._judged:
                bound = _among_what_holds(bound)
            for values in ask(check_clause(bound, program.tree, program.checked)):
                other = Fact(clause.heads[0].relation, values)
                if not is_numbered or _rests_on(fact, derivations(other)):
                    found.setdefault(str(other), other)
        found.pop(str(fact), None)
        return list(found.values())


def _is_number(term: syntax.Term) -> bool:
    return isinstance(term, syntax.Call) and term.functor == "autoinc"


def _among_what_holds(clause: syntax.Clause) -> syntax.Clause:
    """The clause for those of its facts only that are there: not every candidate is chosen, what is dominated leaves,
    and which number a derivation has only its fact tells."""
    head, stem = clause.heads[0], _unused_stem(clause)
    arguments = [
        syntax.Variable(f"{stem}{place}", term.span) if _is_number(term) else term
        for place, term in enumerate(head.arguments)
    ]
    head = replace(head, arguments=tuple(arguments))
    return replace(clause, heads=(head,), body=(*clause.body, head))


def _rests_on(fact: Fact, derivations: Iterable[Proof]) -> bool:
    premises = (child for proof in derivations for child in proof.children)
    return any(isinstance(child, Proof) and child.fact == fact for child in premises)


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


@dataclass(frozen=True, slots=True)
class World:
    """An update to a world in which a fact does not follow: rules that go, program text that comes, and the facts that
    come with it."""

    removed: list[str]
    added: list[str]
    inserted: dict[str, list[tuple[Value, ...]]]


def world_without(fact: Fact, program: Program) -> World:
    """In the place of the rules that may derive a fact stand others that derive the same but for it. That an `eqrel` is
    closed stays so."""
    excluded = "excluded"
    while excluded in program.checked.relations:
        excluded += "_"
    removed: list[str] = []
    attributes = ", ".join(f"{a.name}: {a.type_name}" for a in program.checked.relations[fact.relation].attributes)
    added = [f".decl {excluded}({attributes})"]
    for text in removable_rules(program):
        tree, _ = parse(Source("<rule>", text))
        clause = tree.items[0]
        assert isinstance(clause, syntax.Clause)
        if clause.heads[0].relation == fact.relation:
            removed.append(text)
            added.append(print_clause(_other_than(clause, excluded)))
    return World(removed, added, {excluded: [fact.values]})


def _other_than(clause: syntax.Clause, excluded: str) -> syntax.Clause:
    """The clause for facts only that a relation has not. What its head computes gets a name, so that both have the same
    value, of the declared type."""
    head, stem = clause.heads[0], _unused_stem(clause)
    variables: list[syntax.Term] = []
    equations: list[syntax.Literal] = []
    for place, term in enumerate(head.arguments):
        variable = term if isinstance(term, syntax.Variable) else syntax.Variable(f"{stem}{place}", term.span)
        variables.append(variable)
        if variable is not term:
            equations.append(syntax.Comparison("=", variable, term, term.span, term.span))
    head = replace(head, arguments=tuple(variables))
    none = syntax.Negation(replace(head, relation=excluded), head.span)
    return replace(clause, heads=(head,), body=(*clause.body, *equations, none))


def _with_fact(clause: syntax.Clause, place: int, fact: Fact) -> syntax.Clause | None:
    """The clause with an atom of its body bound to a fact; None where that is none of it, going by its constants."""
    atom = clause.body[place]
    assert isinstance(atom, syntax.Atom)
    for argument, own in zip(atom.arguments, fact.values, strict=True):
        if isinstance(argument, syntax.String) and argument.value != own:
            return None
    values = tuple([constant(value, atom.span) for value in fact.values])
    bound = replace(atom, arguments=values)
    equations = _arguments_equal(atom, values, _unused_stem(clause))
    return replace(clause, body=(*clause.body[:place], bound, *clause.body[place + 1 :], *equations))


def _unused_stem(clause: syntax.Clause) -> str:
    """With what the name of no variable of a clause begins."""
    names = {variable.name for variable in variables_of((*clause.heads, *clause.body), is_deep=True)}
    stem = "value_"
    while any(name.startswith(stem) for name in names):
        stem += "_"
    return stem


def _arguments_equal(atom: syntax.Atom, values: tuple[syntax.Term, ...], stem: str) -> Iterator[syntax.Literal]:
    """That the arguments of an atom have these values; variables of its own begin with a stem."""
    span = atom.span
    for place, (argument, value) in enumerate(zip(atom.arguments, values, strict=True)):
        if isinstance(argument, syntax.Wildcard):
            continue
        if isinstance(value, syntax.Call) and is_constructor(value.functor):
            # An argument of the relation says of which type both are.
            known = syntax.Variable(f"{stem}{place}", span)
            others = tuple([syntax.Wildcard(span) for _ in values])
            yield replace(atom, arguments=(*others[:place], known, *others[place + 1 :]))
            yield syntax.Comparison("=", known, value, span, span)
            argument, value = known, argument
        yield syntax.Comparison("=", argument, value, span, span)
