"""Which relation depends on which, and the components of relations that depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Literal as OneOf
from typing import TypeAlias

from elastalog.analysis.draft import TypedRule
from elastalog.analysis.program import Aggregation, Atom, CheckedProgram, Literal, Negation, Rule
from elastalog.analysis.subsumptions import MARK, is_of_pairs
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass

Manner: TypeAlias = OneOf["positive", "negation", "aggregate"]


@dataclass(frozen=True, slots=True)
class Use:
    """A place where a rule of one relation reads another."""

    head: str
    body: str
    manner: Manner
    span: Span


Uses: TypeAlias = dict[str, dict[str, Span]]


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The first place of every use: all of them by head and body relation, and those that need the body complete."""

    uses: Uses
    strict_uses: tuple[Use, ...]


def collect_dependencies(relations: Mapping[str, object], rules: Sequence[TypedRule | Rule]) -> Dependencies:
    """Read the uses off the rules. A use inside an aggregate, or negated, needs the relation complete."""
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
    return Dependencies(uses, tuple(strict.values()))


def needed_for(program: CheckedProgram, names: Iterable[str]) -> set[str]:
    """The relations that others depend on, these among them."""
    needs: dict[str, set[str]] = {}
    for rule in (*program.rules, *program.subsumptions):
        own = needs.setdefault(rule.head.relation.removesuffix(MARK), set())
        for literal in rule.body:
            own.update(
                [literal.relation] if type(literal) is Atom else [a.relation for a, _, _ in _strict_atoms(literal)]
            )
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
        pending: list[Literal] = [inner for body in literal.bodies for inner in body]
        while pending:
            inner = pending.pop()
            if type(inner) is Atom:
                yield inner, "aggregate", inner.span
            elif type(inner) is Negation:
                yield inner.atom, "negation", inner.span
            elif type(inner) is Aggregation:
                pending.extend([deeper for body in inner.bodies for deeper in body])


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
