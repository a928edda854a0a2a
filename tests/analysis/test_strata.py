"""Which relation depends on which, strata, and rules that may grow without end."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import elastalog
from elastalog.analysis.graphs import Uses, components, in_order
from elastalog.analysis.growth import growing, warnings_of_growth
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.diagnostics.source import Span
from elastalog.settings import SETTINGS
from tests.analysis.checking import EDGES, accepted, check_text, codes, labelled, only_error
from tests.tables import table


def test_every_step_of_the_cycle_is_labelled() -> None:
    error = only_error(
        ".decl edge(x: number, y: number)\n.decl node(x: number)\n.input edge, node\n"
        ".decl reach(x: number, y: number)\n.decl ok(x: number)\n"
        "reach(x, y) :- edge(x, y), ok(y).\nok(y) :- node(y), !reach(y, y)."
    )
    assert (error.code, error.message) == ("E0412", "relation `reach` depends on its own negation")
    assert labelled(error) == [
        ("!reach(y, y)", "`ok` uses the negation of `reach` here", True),
        ("ok(y)", "`reach` uses `ok` here", False),
    ]
    assert error.notes == ("a negated relation must be complete before it is read",)
    assert error.help == "split the rule so that `ok` negates a relation outside this cycle"


def test_aggregate_over_itself() -> None:
    error = only_error(EDGES + "path(x, n) :- edge(x, _), n = sum m : { path(_, m) }.")
    assert (error.code, error.message) == ("E0413", "relation `path` depends on an aggregate over itself")
    assert labelled(error) == [("path(_, m)", "`path` aggregates over `path` here", True)]


def test_aggregate_and_negation_of_lower_strata() -> None:
    accepted(
        EDGES + ".decl far(x: number, n: number)\npath(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
        "far(x, n) :- edge(x, _), n = count : { path(x, _) }, !path(x, x)."
    )


def test_a_cycle_of_two_negations_is_reported_once() -> None:
    text = ".decl n(x: number)\n.input n\n.decl a(x: number)\n.decl b(x: number)\n"
    assert codes(text + "a(x) :- n(x), !b(x).\nb(x) :- n(x), !a(x).") == ["E0412"]


def test_strata_are_in_order_of_dependency_then_of_declaration() -> None:
    program = accepted(
        ".decl d, c, b, a, z(x: number)\n.input a, z\nd(x) :- c(x).\nc(x) :- b(x).\nb(x) :- c(x), a(x).\nb(x) :- a(x)."
    )
    assert [stratum.relations for stratum in program.strata] == [("a",), ("c", "b"), ("d",), ("z",)]
    assert [stratum.number for stratum in program.strata] == [0, 1, 2, 3]
    assert [stratum.is_recursive for stratum in program.strata] == [False, True, False, False]
    assert [[rule.number for rule in stratum.rules] for stratum in program.strata] == [[], [2, 3, 4], [1], []]


def test_numbers_of_rules_and_recursion() -> None:
    program = accepted(
        EDGES + ".decl node(x: number)\npath(x, y) :- edge(x, y).\n"
        "node(x), node(y) :- edge(x, y) ; path(x, y), x > y.\npath(x, z) :- path(x, y), edge(y, z).\nedge(1, 2)."
    )
    assert [(r.number, r.head.relation, r.number_in_relation, r.is_recursive) for r in program.rules] == [
        (1, "path", 1, False),
        (2, "node", 1, False),
        (3, "node", 2, False),
        (4, "node", 3, False),
        (5, "node", 4, False),
        (6, "path", 2, True),
    ]
    assert [(fact.relation, fact.values) for fact in program.facts] == [("edge", (1, 2))]


def test_plan_is_kept() -> None:
    rule = accepted(EDGES + "path(x, z) :- path(x, y), edge(y, z).\n.plan 0:(2,1)\npath(x, y) :- edge(x, y).").rules[0]
    assert dict(rule.plan) == {0: (2, 1)}


def test_too_many_alternatives() -> None:
    groups = ", ".join(f"(edge(x, {i}) ; edge({i}, x))" for i in range(10))
    error = only_error(EDGES + f"path(x, x) :- {groups}.")
    assert (error.code, error.message) == ("E0221", "this stands for 1024 rules")
    groups = ", ".join(f"(edge(x, {i}) ; edge({i}, x))" for i in range(9))
    assert len(accepted(EDGES + f"path(x, x) :- {groups}.").rules) == 512


def test_too_many_alternatives_inside_an_aggregate() -> None:
    groups = ", ".join(f"(edge(x, {i}) ; edge({i}, x))" for i in range(60))
    error = only_error(EDGES + f"path(0, n) :- n = count : {{ {groups} }}.")
    assert (error.code, error.message) == ("E0221", "this stands for billions of rules")


def test_alternatives_of_nested_aggregates_multiply() -> None:
    groups = ", ".join(f"(edge(x, {i}) ; edge({i}, x))" for i in range(9))
    text = f"0 < count : {{ {groups} }}"
    for _ in range(3):
        text = f"0 < count : {{ {groups}, {text} }}"
    error = only_error(EDGES + f"path(x, x) :- edge(x, _), {text}.")
    assert (error.code, error.message) == ("E0221", "this stands for too many rules")


@pytest.mark.parametrize("nested", table(__file__, "deep nesting"))
def test_deep_nesting(nested: str) -> None:
    accepted(EDGES + f"path(x, x) :- edge(x, _), {nested}.")


@pytest.mark.parametrize("size", [20_000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.long])])
def test_a_long_chain_of_relations_does_not_recurse(size: int) -> None:
    lines = [f".decl r{i}(x: number)" for i in range(size)]
    lines += [f"r{i}(x) :- r{i + 1}(x)." for i in range(size - 1)] + [f"r{size - 1}(1)."]
    program = accepted("\n".join(lines))
    assert [stratum.relations for stratum in program.strata[:2]] == [(f"r{size - 1}",), (f"r{size - 2}",)]
    assert len(program.strata) == size


def test_one_component_of_ten_thousand_rules() -> None:
    size = 10_000
    lines = [f".decl r{i}(x: number)" for i in range(size)] + ["r0(1)."]
    lines += [f"r{(i + 1) % size}(x) :- r{i}(x)." for i in range(size)]
    program = accepted("\n".join(lines))
    assert len(program.strata) == 1
    assert all(rule.is_recursive for rule in program.rules)


def test_negation_in_a_component_of_ten_thousand_relations() -> None:
    size = 10_000
    lines = [f".decl r{i}(x: number)" for i in range(size)] + ["r0(1)."]
    lines += [f"r{(i + 1) % size}(x) :- r{i}(x), !r{i // 2}(x)." for i in range(size)]
    _, found = check_text("\n".join(lines))
    assert {d.code for d in found} == {"E0412"}
    assert len(found) == 5, "a bound on the cycles shown of one component"


GRAPHS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30)


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


@given(GRAPHS)
def test_components_are_the_classes_of_mutual_reachability(edges: list[tuple[int, int]]) -> None:
    uses = uses_of(edges)
    reach = reachable(uses)
    expected = {frozenset(b for b in uses if b in reach[a] and a in reach[b]) for a in uses}
    found = components(uses)
    assert {frozenset(component) for component in found} == expected
    assert sum(map(len, found)) == len(uses)


@given(GRAPHS)
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


DECLARATIONS = """
.type L = [h: number, t: L]
.decl e(x: number, y: number) .input e
.decl p(x: number) p(0).
.decl s(x: symbol) s("a").
.decl l(x: L) l(nil).
.decl c(x: L, n: number) c(nil, 0).
.decl t(x: symbol) .input t
.decl w(r: symbol, n: number) w("a", 1).
"""


@pytest.mark.parametrize(("rules", "grown"), table(__file__, "what nothing bounds"))
def test_what_nothing_bounds(rules: str, grown: str) -> None:
    program = accepted(DECLARATIONS + rules)
    (found,) = warnings_of_growth(program)
    span = found.labels[0].span
    assert (found.code, found.severity) == ("E0414", "warning")
    assert program.source.text[span.start : span.end] == grown


@pytest.mark.parametrize("rules", table(__file__, "what is bounded or no recursion"))
def test_what_is_bounded_or_no_recursion(rules: str) -> None:
    assert warnings_of_growth(accepted(DECLARATIONS + rules)) == []


def test_a_greatest_value_that_a_cycle_makes_greater_may_grow() -> None:
    text = (
        ".decl e(x: number, y: number)\n.decl n(x: number, d: {} number)\nn(1, 0).\nn(y, d + 1) :- n(x, d), e(x, y).\n"
    )
    assert [found.code for found in warnings_of_growth(accepted(text.format("max")))] == ["E0414"]
    assert warnings_of_growth(accepted(text.format("min"))) == []
    assert warnings_of_growth(accepted(text.format("max").replace("+", "-"))) == []
    around = {"e": [(1, 2)]}
    with elastalog.open(text.format("min").replace("d + 1", "d - 1"), around, limits=elastalog.Limits(time=0.5)) as db:
        for ask in (db.apply, db.preview):
            with pytest.raises(LimitReached, match="this rule may grow without end: n"):
                ask({"e": [(2, 1)]})


def test_a_best_value_is_bounded_from_the_side_to_which_it_improves() -> None:
    text = (
        ".decl e(x: number, y: number, d: number)\n.decl n(x: number, d: {} number)\n"
        "n(1, 0).\nn(y, {}) :- n(x, a), e(x, y, b), a {} 9.\n"
    )
    for best, computed, order, is_told in (
        ("max", "a + b", ">", True),
        ("max", "a + b", "<", False),
        ("max", "a - 1", ">", False),
        ("min", "a - b", "<", True),
        ("min", "a - b", ">", False),
        ("min", "a + 1", "<", False),
        ("min", "a + b", "<", True),
        ("min", "a + b", "<= b, 0 <= b, b >", False),
        ("min", "a + a", "<= b, 0 <= b, b >", True),
    ):
        program = accepted(text.format(best, computed, order))
        found = [each for stratum in program.strata for each in growing(program, stratum.rules)]
        assert bool(found) == is_told
        if found:
            end = "`b >= 0`" if computed == "a + b" and best == "min" else "`a > 0`" if best == "min" else "`a < 1000`"
            assert found[0].advice.endswith(end)


@pytest.mark.parametrize("ask", ["apply", "preview"])
def test_what_makes_a_shortest_path_grow_is_logged_before_a_limit_ends_it(
    ask: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SETTINGS, "long_work", 0.1)
    text = (
        ".decl road(x: symbol, y: symbol, km: number)\n.input road(IO=updates)\n.decl far(x: symbol, km: min number)\n"
        'far("a", 0).\nfar(y, d + k) :- far(x, d), road(x, y, k).\n'
    )
    roads = {"road": [("a", "b", 10), ("b", "a", 10)]}
    with elastalog.open(text, roads) as db:
        with pytest.raises(LimitReached, match="add nothing below 0, as by `k >= 0`"), db.engine.within(1):
            getattr(db, ask)({"road": [("a", "b", -11)]})
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert "this rule may grow without end: far(y, d + k)" in record.message
        db.change_rules(removed="far(y, d + k) :- far(x, d), road(x, y, k).",
                        added="far(y, d + k) :- far(x, d), road(x, y, k), k >= 0.")  # fmt: skip
        getattr(db, ask)({"road": [("a", "b", -11)]})
        time.sleep(0.2)
        assert sorted(db.query("far(X, K)")) == [("a", 0), ("b", 10)]
    assert len(caplog.records) == 1


def test_texts_that_grow_are_bounded_by_their_length() -> None:
    text = '.decl s(x: symbol)\ns("a").\ns(cat(t, "b")) :- s(t).'
    (found,) = warnings_of_growth(accepted(text))
    assert "`strlen(t) < 1000`" in str(found.help)
    assert warnings_of_growth(accepted(text.replace("s(t).", "s(t), strlen(t) < 1000."))) == []


def test_the_limit_that_ends_it_names_the_rule() -> None:
    text = ".decl far(x: number, n: number)\nfar(0, 0).\nfar(x, n + 1) :- far(x, n).\n"
    with pytest.raises(LimitReached) as raised:
        elastalog.open(text, facts={}, limits=elastalog.Limits(time=0.5))
    (found,) = raised.value.diagnostics
    (note,) = found.notes
    assert found.code == "E0603"
    assert note.startswith("this rule may grow without end: far(x, n + 1) :- far(x, n). (<text>:3); ")
    assert note.endswith("keep the least by `.decl far(x: number, n: min number)`")
