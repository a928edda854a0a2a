from __future__ import annotations

import pytest

from elastalog.analysis.listing import show_rule
from elastalog.analysis.program import Aggregation, Atom, Comparison, Negation, Variable, Wildcard
from tests.analysis.checking import EDGES, accepted, check_text, labelled, only_error


def test_ungrounded_variable_shows_every_use() -> None:
    error = only_error(EDGES + "path(x, y) :- edge(x, _), x < y.")
    assert (error.code, error.message) == ("E0320", "variable `y` is not grounded")
    assert labelled(error) == [("y", "its value is needed here", True), ("y", "and here", False)]


@pytest.mark.parametrize(
    ("body", "variable"),
    [
        ("edge(x, _), y = z + 1", "z"),
        ("edge(x, _), x = y + 1", "y"),
        ("edge(x, _), !edge(x, y)", "y"),
        ("edge(x, _), y = y", "y"),
        ("edge(x, _), y = z, z = y", "y"),
        ("edge(x, _), edge(x, y + 1)", "y"),
        ("edge(x, _), y = range(1, z)", "z"),
        ("edge(x, _), y = count : { edge(z, _), z < w }", "w"),
        ("edge(x, _), y = count : { edge(_, _), !edge(_, w) }", "w"),
    ],
)
def test_ungrounded(body: str, variable: str) -> None:
    error = only_error(EDGES + f"path(x, y) :- {body}.")
    assert (error.code, error.message) == ("E0320", f"variable `{variable}` is not grounded")


@pytest.mark.parametrize(
    "body",
    [
        "edge(x, _), y = x",
        "edge(x, _), x = y",
        "edge(x, _), x + 1 = y",
        "y = z * 2, z = w - x, w = 7, edge(x, _)",
        "x = 1, y = 2",
        "x = range(1, 5), y = range(0, x, 2)",
        "edge(x, _), range(0, x) = y",
        "edge(x, _), y = count : { edge(x, _) }",
        "x = count : { edge(_, _) }, y = sum z : { edge(z, x) }",
        "edge(x, y), !edge(y, _)",
        "edge(x, y), edge(x + 1, y)",
        "edge(x, y), x != y ; x = 1, y = 2",
        "edge(x, _), y = sum z : { edge(w, v), z = w * v + x }",
        "edge(x, _), y = max z : { edge(z, _), 0 < count : { edge(z, x) } }",
    ],
)
def test_grounded(body: str) -> None:
    accepted(EDGES + f"path(x, y) :- {body}.")


def test_target_must_be_grounded_inside() -> None:
    error = only_error(EDGES + "path(x, n) :- edge(x, _), n = sum x : { edge(_, _) }.")
    assert error.code == "E0323"
    assert labelled(error) == [("x", "its value is needed here", True)]


def test_null_is_no_value() -> None:
    assert str(only_error(EDGES + "path(x, y) :- edge(x, y), y != NULL.").help).startswith("there is no null")


def test_every_alternative_must_ground() -> None:
    assert only_error(EDGES + "path(x, y) :- edge(x, _), (edge(x, y) ; x > 1).").code == "E0320"


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        ("path(x, _) :- edge(x, _).", "the head of a rule"),
        ("path(x, x) :- edge(x, _), _ < 3.", "a comparison"),
        ("path(x, x) :- edge(x, _), x = _ + 3.", "an argument of `+`"),
        ("path(x, x) :- edge(x, x), 3 = sum _ : { edge(_, _) }.", "the target of `sum`"),
    ],
)
def test_wildcard_where_a_value_is_needed(rule: str, where: str) -> None:
    error = only_error(EDGES + rule)
    assert (error.code, error.message) == ("E0321", f"`_` has no value in {where}")


@pytest.mark.parametrize(
    ("rule", "advice"),
    [
        ("p([x, _]) :- edge(x, _).", "name a variable here and bind it in a positive atom"),
        ("path(x, x) :- edge(x, _), !p([x, _]).", "take the value apart in a rule of its own, and negate what that"),
        ("path(x, x) :- edge(x, _), !p([x, _]), p([_, _]).", "take the value apart in a rule of its own, and negate"),
    ],
)
def test_wildcard_in_a_record_that_is_built(rule: str, advice: str) -> None:
    error = only_error(EDGES + ".type P = [x: number, y: number]\n.decl p(r: P)\n.input p\n" + rule)
    assert (error.code, error.message) == ("E0321", "`_` has no value in a record that is built")
    assert error.help.startswith(advice)
    assert labelled(error) == [("_", "a value is needed here", True)]


@pytest.mark.parametrize("rule", ["path(x, range(1, 2)) :- edge(x, _).", "path(x, x) :- edge(x, _), 1 = range(1, x)."])
def test_range_elsewhere_gets_a_variable(rule: str) -> None:
    (checked,) = accepted(EDGES + rule).rules
    assert "range@1 = range(1, " in show_rule(checked)


def test_wildcards_are_fresh_variables_in_positive_atoms_and_stay_in_negated_ones() -> None:
    body = accepted(EDGES + "path(x, x) :- edge(x, _), edge(_, x), !edge(x, _).").rules[0].body
    first, second, third = body
    assert isinstance(first, Atom)
    assert isinstance(second, Atom)
    assert isinstance(third, Negation)
    assert [a.name for a in (first.arguments[1], second.arguments[0]) if isinstance(a, Variable)] == ["_@1", "_@2"]
    assert isinstance(third.atom.arguments[1], Wildcard)


def test_scopes_of_aggregates() -> None:
    rule = accepted(
        EDGES + "path(x, n) :- edge(x, _), n = count : { edge(x, y), edge(y, _) }, 0 < count : { edge(y, y) }."
    ).rules[0]
    first, second = [lit for lit in rule.body if isinstance(lit, Aggregation)]
    assert [group.name for group in first.groups] == ["x"]
    assert second.groups == ()
    inner = {
        argument.name
        for aggregate in (first, second)
        for literal in aggregate.bodies[0]
        if isinstance(literal, Atom)
        for argument in literal.arguments
        if isinstance(argument, Variable) and argument.name.startswith("y")
    }
    assert len(inner) == 2, "the two `y` are different variables"
    assert all("@" in name for name in inner)


def test_shared_variable_of_an_inner_aggregate_is_a_group_of_the_outer_one() -> None:
    rule = accepted(EDGES + "path(x, n) :- edge(x, _), n = max z : { edge(z, _), 0 < count : { edge(z, x) } }.").rules[
        0
    ]
    outer = next(lit for lit in rule.body if isinstance(lit, Aggregation))
    inner = next(lit for lit in outer.bodies[0] if isinstance(lit, Aggregation))
    assert [group.name for group in outer.groups] == ["x"]
    assert {group.name.partition("@")[0] for group in inner.groups} == {"x", "z"}


def test_result_that_has_a_value_already_is_compared() -> None:
    rule = accepted(EDGES + "path(x, y) :- edge(x, y), y = count : { edge(_, _) }, x = range(0, 9).").rules[0]
    _, aggregate, meet, generated, meet_range = rule.body
    assert isinstance(aggregate, Aggregation)
    assert aggregate.result.name.startswith("y@")
    assert isinstance(meet, Comparison)
    assert [side.name for side in (meet.left, meet.right) if isinstance(side, Variable)] == ["y", aggregate.result.name]
    assert isinstance(generated, Comparison)
    assert isinstance(generated.left, Variable)
    assert generated.left.name.startswith("x@")
    assert isinstance(meet_range, Comparison)


def test_chain_of_equations_in_the_wrong_order_is_quick() -> None:
    chain = ", ".join(f"v{i} = v{i + 1} + 1" for i in range(255))
    program, _ = check_text(EDGES + f"path(v0, v255) :- {chain}, edge(v255, _).")
    assert program is not None


def test_wildcard_before_a_disjunction_is_one_variable_in_all_alternatives() -> None:
    rule = accepted(EDGES + "path(0, n) :- n = count : { edge(x, _), (x > 1 ; x < 9), edge(_, x) }.").rules[0]
    aggregate = rule.body[0]
    assert isinstance(aggregate, Aggregation)
    names = [
        [a.name for lit in body if isinstance(lit, Atom) for a in lit.arguments if isinstance(a, Variable)]
        for body in aggregate.bodies
    ]
    assert names[0] == names[1]
    assert len(set(names[0])) == 3
