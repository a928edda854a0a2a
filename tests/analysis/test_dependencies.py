from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from elastalog.analysis.stratify import Uses, components, in_order
from elastalog.diagnostics.source import Span

EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30)


def uses_of(edges: list[tuple[int, int]]) -> Uses:
    uses: Uses = {f"r{i}": {} for i in range(8)}
    for head, body in edges:
        uses[f"r{head}"][f"r{body}"] = Span(0, 0)
    return uses


def reachable(uses: Uses) -> dict[str, set[str]]:
    """By squaring the relation until nothing is added; shares nothing with the code under test."""
    reach = {name: set(used) | {name} for name, used in uses.items()}
    while True:
        wider = {name: set().union(*(reach[other] for other in others)) for name, others in reach.items()}
        if wider == reach:
            return reach
        reach = wider


@given(EDGES)
def test_components_are_the_classes_of_mutual_reachability(edges: list[tuple[int, int]]) -> None:
    uses = uses_of(edges)
    reach = reachable(uses)
    expected = {frozenset(b for b in uses if b in reach[a] and a in reach[b]) for a in uses}
    found = components(uses)
    assert {frozenset(component) for component in found} == expected
    assert sum(map(len, found)) == len(uses)


@given(EDGES)
def test_order_is_the_least_by_declaration_among_those_that_respect_dependencies(edges: list[tuple[int, int]]) -> None:
    uses = uses_of(edges)
    reach = reachable(uses)
    ordered = in_order(components(uses), uses)
    left = list(ordered)
    done: set[str] = set()
    while left:
        ready = [c for c in left if all(reach[name] <= done | set(c) for name in c)]
        assert left[0] == min(ready, key=lambda component: int(component[0][1:]))
        done |= set(left.pop(0))
