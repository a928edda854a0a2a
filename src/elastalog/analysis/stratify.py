"""Pass: the strata. No relation may depend on its own negation or on an aggregate over itself.

Strata are the strongly connected components of relations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, TypeAlias
from typing import Literal as OneOf

from elastalog.analysis.draft import Draft, TypedRule
from elastalog.analysis.findings import Findings, secondary
from elastalog.analysis.graphs import Uses, components, in_order, reached, shortest_path
from elastalog.analysis.program import Aggregation, Atom, CheckedProgram, Literal, Negation, Rule, atoms_in, literals_in
from elastalog.analysis.subsumptions import MARK, is_of_pairs, keeping_best
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.printer import print_clause

_MOST_REPORTS_PER_COMPONENT: Final = 5
_MOST_LABELS: Final = 30


def stratify(draft: Draft, findings: Findings) -> Draft:
    """Orders the components of relations; reports every cycle through a negation or an aggregate."""
    uses, strict_uses = collect_dependencies(draft.relations, draft.typed_rules)
    ordered = in_order(components(uses), uses)
    component_of = {name: index for index, component in enumerate(ordered) for name in component}
    reported: Counter[int] = Counter()
    shown: set[Span] = set()  # every cycle once, whichever of its uses is at fault
    for use in strict_uses:
        component = component_of[use.head]
        if component_of[use.body] != component:
            continue
        if use.span in shown or reported[component] >= _MOST_REPORTS_PER_COMPONENT:
            continue
        reported[component] += 1
        way = shortest_path(use.body, use.head, uses)
        steps = [(uses[user][used], user, used) for user, used in pairwise(way)]
        shown.update([use.span, *(span for span, _, _ in steps)])
        labels = [secondary(span, f"{quoted(user)} uses {quoted(used)} here") for span, user, used in steps]
        key = "E0412" if use.manner == "negation" else "E0413"
        values = {"head": use.head, "body": use.body, "instead": _improving(use, draft)}
        findings.error(key, use.span, *labels[:_MOST_LABELS], **values)
    return replace(draft, components=tuple(ordered))


def _improving(use: Use, draft: Draft) -> str | None:
    """How to write a rule that takes the least or greatest value of its own recursion: as a rule for the values
    themselves, and a column that keeps the best one."""
    rules = [c for c, _ in draft.clauses if c.span.start <= use.span.start < c.span.end and len(c.heads) == 1]
    for literal in rules[0].body if use.manner == "aggregate" and rules else ():
        result, aggregate = (literal.left, literal.right) if type(literal) is tree.Comparison else (None, None)
        if not isinstance(result, tree.Variable) or not isinstance(aggregate, tree.Aggregate):
            continue
        head = rules[0].heads[0]
        places = [
            i for i, term in enumerate(head.arguments) if isinstance(term, tree.Variable) and term.name == result.name
        ]
        if aggregate.operator not in ("min", "max") or aggregate.target is None or len(places) != 1:
            continue
        arguments = [aggregate.target if i in places else term for i, term in enumerate(head.arguments)]
        body = (*[other for other in rules[0].body if other is not literal], *aggregate.body)
        rule = replace(rules[0], heads=(replace(head, arguments=tuple(arguments)),), body=body, plan=None)
        columns = [(attribute.name, attribute.type_name) for attribute in draft.relations[head.relation].attributes]
        declared = keeping_best(head.relation, columns, places[0], aggregate.operator)
        return f"{declared}` and `{print_clause(rule)}"
    return None


Manner: TypeAlias = OneOf["positive", "negation", "aggregate"]


@dataclass(frozen=True, slots=True)
class Use:
    """A place where a rule of one relation reads another."""

    head: str
    body: str
    manner: Manner
    span: Span


def collect_dependencies(
    relations: Mapping[str, object], rules: Sequence[TypedRule | Rule]
) -> tuple[Uses, Iterable[Use]]:
    """The first place of every use, by head and body relation, and the uses that need the body relation complete: in a
    negation or inside an aggregate."""
    uses: Uses = {name: {} for name in relations}
    strict: dict[tuple[str, str, Manner], Use] = {}
    for rule in rules:
        head = rule.head.relation
        of_head = uses[head]
        for literal in rule.body:
            if type(literal) is Atom:
                if literal.relation not in of_head:
                    of_head[literal.relation] = literal.span
            else:
                for atom, manner, span in _strict_atoms(literal):
                    of_head.setdefault(atom.relation, span)
                    key = (head, atom.relation, manner)
                    if key not in strict:
                        strict[key] = Use(head, atom.relation, manner, span)
    for name in [name for name in uses if is_of_pairs(name)]:
        # A relation is complete only when what is dominated has left it.
        base = name.removesuffix(MARK)
        uses[base].setdefault(name, next(iter(uses[name].values()), Span(0, 0)))
    return uses, strict.values()


def needed_for(program: CheckedProgram, names: Iterable[str]) -> set[str]:
    """Some relations and all those that they depend on."""
    needs: dict[str, set[str]] = {}
    for rule in (*program.rules, *program.subsumptions):
        needs.setdefault(rule.head.relation.removesuffix(MARK), set()).update(a.relation for a in atoms_in(rule.body))
    return reached(names, lambda name: needs.get(name, ()))


def _strict_atoms(literal: Literal) -> Iterator[tuple[Atom, Manner, Span]]:
    if type(literal) is Negation:
        yield literal.atom, "negation", literal.span
    elif type(literal) is Aggregation:
        for inner in literals_in(*literal.bodies):
            if type(inner) is Atom:
                yield inner, "aggregate", inner.span
            elif type(inner) is Negation:
                yield inner.atom, "negation", inner.span
