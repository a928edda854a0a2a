"""Pass: the strata, and no relation that depends on its own negation or on an aggregate over itself.

Strata are the components of relations that depend on each other.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias
from typing import Literal as OneOf

from elastalog.analysis.draft import Draft, Outcome, TypedRule
from elastalog.analysis.findings import Findings, secondary
from elastalog.analysis.program import Aggregation, Atom, CheckedProgram, Literal, Negation, Rule, atoms_in, literals_in
from elastalog.analysis.subsumptions import MARK, is_of_pairs, keeping_best
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.printer import print_clause

_MOST_REPORTS_PER_COMPONENT: Final = 5
_MOST_LABELS: Final = 30


def stratify(draft: Draft) -> Outcome:
    """Order the components of relations; report every cycle through a negation or an aggregate."""
    findings = Findings(draft.tree.source)
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
        steps = _shortest_path(use.body, use.head, uses, set(ordered[component]))
        shown.update([use.span, *(span for _, _, span in steps)])
        labels = [secondary(span, f"{quoted(user)} uses {quoted(used)} here") for user, used, span in steps]
        key = "E0412" if use.manner == "negation" else "E0413"
        values = {"head": use.head, "body": use.body, "instead": _improving(use, draft)}
        findings.error(key, use.span, *labels[:_MOST_LABELS], **values)
    return replace(draft, components=tuple(ordered)), findings.diagnostics


def _shortest_path(start: str, end: str, uses: Uses, members: set[str]) -> list[tuple[str, str, Span]]:
    """The uses that lead from one relation of a component to another, as few as possible."""
    came_from: dict[str, tuple[str, Span]] = {}
    pending = deque([start])
    while pending and end not in came_from and start != end:
        name = pending.popleft()
        for used, span in uses[name].items():
            if used in members and used not in came_from and used != start:
                came_from[used] = (name, span)
                pending.append(used)
    steps: list[tuple[str, str, Span]] = []
    while end != start:
        name, span = came_from[end]
        steps.append((name, end, span))
        end = name
    return steps[::-1]


def _improving(use: Use, draft: Draft) -> str | None:
    """What a rule with a least or greatest value of its own recursion can be written as: the values themselves, and a
    column that keeps the best."""
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


Uses: TypeAlias = dict[str, dict[str, Span]]


def collect_dependencies(
    relations: Mapping[str, object], rules: Sequence[TypedRule | Rule]
) -> tuple[Uses, Iterable[Use]]:
    """The first place of every use, by head and body relation; and those that need the body complete: inside an
    aggregate, or negated."""
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
    """The relations that others depend on, these among them."""
    needs: dict[str, set[str]] = {}
    for rule in (*program.rules, *program.subsumptions):
        needs.setdefault(rule.head.relation.removesuffix(MARK), set()).update(a.relation for a in atoms_in(rule.body))
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(needs.get(name, ()))
    return found


def _strict_atoms(literal: Literal) -> Iterator[tuple[Atom, Manner, Span]]:
    if type(literal) is Negation:
        yield literal.atom, "negation", literal.span
    elif type(literal) is Aggregation:
        for inner in literals_in(*literal.bodies):
            if type(inner) is Atom:
                yield inner, "aggregate", inner.span
            elif type(inner) is Negation:
                yield inner.atom, "negation", inner.span


def components(uses: Uses) -> list[list[str]]:
    """The strongly connected components, each after those it depends on (Tarjan, with a stack of its own)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_names: list[str] = []
    found: list[list[str]] = []
    closed: set[str] = set()  # members of components that have been found
    for root in uses:
        if root in closed:
            continue
        closed.add(root)
        if uses[root].keys() <= closed:  # nearly always: what it uses was declared before it
            found.append([root])
            continue
        closed.discard(root)
        path: list[tuple[str, Iterator[str]]] = [(root, iter(uses[root]))]
        number[root] = lowest[root] = len(number)
        open_names.append(root)
        while path:
            name, successors = path[-1]
            for successor in successors:
                if successor in closed:
                    continue
                if successor not in number:
                    number[successor] = lowest[successor] = len(number)
                    open_names.append(successor)
                    path.append((successor, iter(uses[successor])))
                    break
                if number[successor] < lowest[name]:
                    lowest[name] = number[successor]
            else:
                path.pop()
                if path and lowest[name] < lowest[path[-1][0]]:
                    lowest[path[-1][0]] = lowest[name]
                if lowest[name] == number[name]:
                    component = []
                    while True:
                        member = open_names.pop()
                        closed.add(member)
                        component.append(member)
                        if member == name:
                            break
                    found.append(component)
    return found


def in_order(found: Sequence[Sequence[str]], uses: Uses) -> list[tuple[str, ...]]:
    """The components in an order in which each depends only on earlier ones; among those that may come next, the one
    declared first. Members are in the order of declaration."""
    position = {name: index for index, name in enumerate(uses)}
    members = [
        tuple(sorted(component, key=position.__getitem__)) if len(component) > 1 else (component[0],)
        for component in found
    ]
    owner = {name: index for index, component in enumerate(members) for name in component}
    users: list[list[int]] = [[] for _ in members]
    waiting = [0] * len(members)
    for index, component in enumerate(members):
        needed = {owner[used] for name in component for used in uses[name]} - {index}
        waiting[index] = len(needed)
        for other in needed:
            users[other].append(index)
    ready = [(position[members[index][0]], index) for index, count in enumerate(waiting) if count == 0]
    heapify(ready)
    ordered = []
    while ready:
        _, index = heappop(ready)
        ordered.append(members[index])
        for user in users[index]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heappush(ready, (position[members[user][0]], user))
    return ordered
