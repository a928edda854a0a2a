from __future__ import annotations

import pytest

import elastalog
from tests.analysis.checking import EDGES, accepted, check_text, labelled, only_error
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate


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


def test_chain_of_equations_in_the_wrong_order_is_quick() -> None:
    chain = ", ".join(f"v{i} = v{i + 1} + 1" for i in range(255))
    program, _ = check_text(EDGES + f"path(v0, v255) :- {chain}, edge(v255, _).")
    assert program is not None


@pytest.mark.parametrize(
    "rule",
    [
        "path(x, range(1, 3)) :- edge(x, _).",
        "path(x, x) :- edge(x, _), 2 = range(1, x).",
        "path(x, x) :- edge(x, _), edge(_, x), !edge(x, _), x > 0 ; edge(x, x).",
        "path(x, n) :- edge(x, _), n = count : { edge(x, y), edge(y, _) }, 0 < count : { edge(y, y) }.",
        "path(x, n) :- edge(x, _), n = max z : { edge(z, _), 0 < count : { edge(z, x) } }.",
        "path(x, y) :- edge(x, y), y = count : { edge(_, _) }, x = range(0, 9).",
        "path(0, n) :- n = count : { edge(x, _), (x > 1 ; x < 9), edge(_, x) }.",
    ],
)
def test_wildcards_ranges_and_aggregates_mean_what_the_judge_says(rule: str) -> None:
    """What each `_` and `range` stands for, the groups of aggregates, variables inside that are called alike, a result
    that has a value already."""
    facts = {"edge": {(1, 1), (1, 2), (2, 3), (3, 5), (4, 5)}}
    with elastalog.open(EDGES + rule, facts) as db:
        assert set(db["path"]) == evaluate(parse_accepted(EDGES + rule), facts)["path"] != set()
