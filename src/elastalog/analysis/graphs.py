"""Relations, types and components that depend on each other, as graphs: what is reached from where, by which way, and
which depend on themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeAlias, TypeVar

from elastalog.diagnostics.source import Span

_Node = TypeVar("_Node", bound=Hashable)

Uses: TypeAlias = dict[str, dict[str, Span]]
"""What each name uses, with the place where it does."""


def reached(starts: Iterable[_Node], further: Callable[[_Node], Iterable[_Node]]) -> set[_Node]:
    """All nodes that some lead to, these among them; `further` gives those that a node leads to directly."""
    found = set(starts)
    pending = list(found)
    while pending:
        for node in further(pending.pop()):
            if node not in found:
                found.add(node)
                pending.append(node)
    return found


def shortest_path(start: str, end: str, uses: Mapping[str, Iterable[str]]) -> list[str]:
    """The names on the shortest way from one to another, both included. There must be one."""
    came_from = {start: start}
    pending = [start]
    for name in pending:
        if end in came_from:
            break
        for used in uses[name]:
            if used not in came_from:
                came_from[used] = name
                pending.append(used)
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]


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
