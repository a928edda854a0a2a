"""Queries: bodies of rules, asked once. Expected answers are computed here, from the facts."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from random import Random

import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.diagnostics.source import Source
from elastalog.settings import SETTINGS
from elastalog.syntax.parser import parse
from tests.reference.evaluator import evaluate
from tests.refusals import refused

PROGRAM = """
.type Node <: number
.decl edge(from: Node, to: Node)
.input edge
.decl name(x: Node, text: symbol)
.input name
.decl weight(x: Node, w: float)
.input weight
.decl path(from: Node, to: Node)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
.decl answer(x: Node)
answer(1).
"""
EDGES = [(1, 2), (2, 3), (3, 4), (10, 11), (11, 12)]
NAMES = [(1, "one"), (2, 'tw"o'), (3, "three")]


@pytest.fixture(scope="module")
def db() -> elastalog.Session:
    return elastalog.open(PROGRAM, {"edge": EDGES, "name": NAMES, "weight": [(1, 0.5), (2, 2.0)]})


def paths() -> set[tuple[int, int]]:
    found = set(EDGES)
    while more := {(a, d) for a, b in EDGES for c, d in found if b == c} - found:
        found |= more
    return found


def test_conjunctions_and_comparisons(db: elastalog.Session) -> None:
    found = db.query("path(?a, X), edge(X, Y), X > 2", a=1)
    assert found.schema.names == ("X", "Y")
    assert sorted(found) == sorted((x, y) for a, x in paths() if a == 1 for b, y in EDGES if b == x and x > 2)
    assert sorted(db.query("path(X, Y), path(Y, Z)")) == sorted(
        (x, y, z) for x, y in paths() for w, z in paths() if y == w
    )


def test_negation_and_wildcards_project(db: elastalog.Session) -> None:
    assert sorted(db.query("edge(X, _), !edge(_, X)")) == [(1,), (10,)]
    assert sorted(db.query("path(X, _)")) == sorted({(x,) for x, _ in paths()})


def test_aggregates(db: elastalog.Session) -> None:
    found = db.query("name(X, _), N = count : { path(X, _) }")
    assert found.schema.names == ("X", "N")
    assert sorted(found) == [(1, 3), (2, 2), (3, 1)]
    assert list(db.query("N = count : { edge(_, _) }")) == [(5,)]


def test_a_head_projects_and_computes(db: elastalog.Session) -> None:
    found = db.query("far(Y, X + 1, X) :- path(X, Y), X >= 10.")
    assert found.schema.names == ("Y", "c2", "X")
    assert sorted(found) == [(11, 11, 10), (12, 11, 10), (12, 12, 11)]


def test_disjunctions(db: elastalog.Session) -> None:
    assert sorted(db.query("edge(1, X) ; edge(X, 12)")) == [(2,), (11,)]
    with refused("E0618"):
        db.query("edge(1, X) ; edge(Y, 12)")


@pytest.mark.parametrize("text", ["", " \n", "."])
def test_an_empty_query_is_told_as_such(db: elastalog.Session, text: str) -> None:
    with pytest.raises(ElastalogError, match=r"E0618\]: the query is empty"):
        db.query(text)


def test_questions_without_variables_are_yes_or_no(db: elastalog.Session) -> None:
    assert len(db.query("edge(1, 2), edge(2, 3)")) == 1
    assert len(db.query("edge(1, 2), edge(2, 4)")) == 0
    assert list(db.query("edge(?a, ?b)", a=1, b=2)) == [()]


def test_values_of_parameters_are_bound_not_pasted(db: elastalog.Session) -> None:
    assert list(db.query("name(X, ?text)", text='tw"o')) == [(2,)]
    assert list(db.query("name(X, ?text)", text='", _), name(X, "')) == []
    assert list(db.query("path(?from, X)", parameters={"from": 3})) == [(4,)]
    assert list(db.query("path(?from, X)", parameters={"?from": 3})) == [(4,)]
    assert list(db.query("path(X, Y), X > ?least", least=-5, parameters={}))
    assert list(db.query("weight(X, W), W > ?w", w=1.5)) == [(2, 2.0)]
    assert list(db.query("weight(X, W), W > ?w", w=1)) == [(2, 2.0)]


@pytest.mark.parametrize(
    ("text", "values", "code", "start"),
    [
        ("path(?a, X)", {}, "E0619", 5),
        ("path(?a, X)", {"a": 1, "b": 2}, "E0619", None),
        ("path(X, Y), edg(X, Y)", {}, "E0204", 12),
        ("path(X, Y), Z > 3", {}, "E0320", 12),
        ('path(X, Y), X = "a"', {}, None, None),
        ("path(X, Y", {}, None, None),
        ("path(X, Y). path(X, Y)", {}, None, None),
        (".decl p(x: number)", {}, None, None),
        ("path(X, ?a), edge(X, Y)", {"a": "text"}, None, None),
    ],
)
def test_what_is_wrong_with_a_query_is_said_with_its_place(
    db: elastalog.Session, text: str, values: dict[str, object], code: str | None, start: int | None
) -> None:
    with pytest.raises(ElastalogError) as error:
        db.query(text, parameters=values)
    diagnostic = error.value.diagnostics[0]
    assert diagnostic.severity == "error"
    str(error.value)  # it can be shown
    if code is not None:
        assert diagnostic.code == code
    if start is not None:
        assert diagnostic.labels[0].span.start == start
        assert diagnostic.source.text == text


@pytest.mark.parametrize("text", ["path(X, Y", "path(X, Y),", "q(X) :- path(X,"])
def test_a_query_that_ends_too_early_says_so(db: elastalog.Session, text: str) -> None:
    with pytest.raises(ElastalogError, match=", found the end\n"):
        db.query(text)


@pytest.mark.parametrize("value", [True, b"a", {1}, (1, b"a"), "\ud800", ("a", "\ud800"), Fraction(10**400)])
def test_parameters_are_numbers_and_texts(db: elastalog.Session, value: object) -> None:
    with pytest.raises(TypeError):
        db.query("path(?a, X)", a=value)


@pytest.mark.parametrize("value", [None, (1,), math.nan, elastalog.Branch("A")])
def test_a_parameter_is_of_the_type_of_its_place(db: elastalog.Session, value: object) -> None:
    with pytest.raises(elastalog.ElastalogError) as error:
        db.query("path(?a, X)", parameters={"a": value})
    assert error.value.diagnostics[0].code in ("E0241", "E0302", "E0340")


def test_a_query_is_no_epoch_and_sees_the_latest_one() -> None:
    with elastalog.open(PROGRAM, {"edge": EDGES}) as db:
        before = db.query("path(1, X), edge(X, Y)")
        kept = sorted(before)
        db.apply({"edge": [(4, 5)]}, {"edge": [(1, 2)]})
        assert db.epoch == 2
        assert sorted(before) == kept
        assert sorted(db.query("path(2, X), edge(X, Y)")) == [(3, 4), (4, 5)]
        assert sorted(db.query("answer(X), edge(Y, 5)")) == [(1, 4)]
        assert db.epoch == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_any_float_may_be_bound(value: float) -> None:
    program = ".decl weight(x: number, w: float)"
    facts = {"weight": [(1, value), (2, 1.0)]}
    assert list(elastalog.query(program, facts, "weight(X, ?w)", parameters={"w": value})) == [(1,)]
    with elastalog.open(program, facts) as db:
        assert repr(list(db.query("weight(X, W), W = ?w", w=value))) == repr([(1, value)])


def test_a_lone_surrogate_in_a_query_is_told_of_where_it_stands(db: elastalog.Session) -> None:
    with refused("E0101", match="U\\+D800\n --> <query>:1:10"):
        db.query('name(X, "\ud800"), path(X, _)')


def test_a_head_without_arguments_asks_whether_there_is_an_answer(db: elastalog.Session) -> None:
    assert list(db.query("found() :- path(1, X), X > 3")) == [()]
    assert list(db.query("found() :- path(1, X), X > 4")) == []


def test_an_arrow_in_a_text_or_a_comment_makes_no_head() -> None:
    with elastalog.open(".decl sign(text: symbol)\n", {"sign": [(":-",), ("x",)]}) as signs:
        assert sorted(signs.query('sign(":-"), sign(X)')) == [(":-",), ("x",)]
        assert list(signs.query('sign(X), X = ":-"')) == [(":-",)]
        assert list(signs.query('sign(X), X != "x" // :- never')) == [(":-",)]


def test_the_name_of_a_column_that_is_computed_is_no_variable(db: elastalog.Session) -> None:
    found = db.query("far(1, c1) :- path(1, c1)")
    assert sorted(found) == [(1, 2), (1, 3), (1, 4)]
    assert len(set(found.to_arrow().column_names)) == 2
    assert sorted(db.query("next(c2, c1 + 1) :- edge(c1, c2), c1 < 3")) == [(2, 2), (3, 3)]


def test_the_head_may_ask_for_a_witness(db: elastalog.Session) -> None:
    assert list(db.query("least(y) :- w = min x : { edge(x, y) }")) == [(2,)]
    assert list(db.query("least(w, y + 1) :- w = max x : { edge(x, y) }")) == [(11, 13)]
    with pytest.raises(ElastalogError, match="E0320"):
        db.query("least(z) :- edge(1, _)")


# --- restriction ------------------------------------------------------------------------------------------------------


DECLARED = """
.decl a, b(x: number, y: number)
.decl c(x: number, s: symbol)
.decl f(x: float, y: number)
"""
QUERIES = {
    "X, Y": "a(1, X), b(X, Y)",
    "X, Z": "a(X, 2), a(Z, X), b(Z, _)",
    "X, Y, Z": "a(X, Y), b(Y, Z), X = 3",
    "X": "a(X, X), b(X, _)",
    "X, S": 'c(X, S), a(X, _), S != "t2"',
    "Y": 'c(X, "t1"), a(X, Y)',
    "Z": "a(1, X), !b(X, _), a(X, Z)",
    "X, N": "a(2, X), N = count : { b(X, Y), a(Y, _) }",
    "X, M": 'c(X, "t0"), M = max y : { b(X, y), !a(y, X) }',
    "P, Q": "(a(1, P), b(P, Q) ; b(P, Q), a(Q, 4))",
    "V, W": "f(V, X), a(X, W), V = 0.0",
    "K": "a(99, K), b(K, _)",
    "T": 'c(T, "nowhere"), a(T, _)',
    "U": "a(U, W), b(W, V), V = 77",
}


@pytest.mark.parametrize("limits", [(10_000, 8), (3, 1), (0, 0)])
@pytest.mark.parametrize("columns", QUERIES)
def test_answers_are_those_of_all_facts(columns: str, limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "most_values", limits[0])
    monkeypatch.setattr(SETTINGS, "few_values", limits[1])
    random = Random(f"{columns}{limits}")
    facts = {name: {(random.randrange(6), random.randrange(6)) for _ in range(random.choice((3, 12)))} for name in "ab"}
    given = {
        **facts,
        "c": {(x, f"t{random.randrange(3)}") for x in range(6)},
        "f": {(random.choice((0.0, -0.0, 1.5)), x) for x in range(6)},
    }
    kinds = {"S": "symbol", "V": "float"} if columns == "V, W" else {"S": "symbol"}
    names = columns.split(", ")
    declared = ", ".join(f"{name}: {kinds.get(name, 'number')}" for name in names)
    rule = f".decl answer({declared})\nanswer({columns}) :- {QUERIES[columns]}.\n"
    tree, _ = parse(Source("p.dl", DECLARED + rule))
    expected = {tuple(fact) for fact in evaluate(tree, {n: set(rows) for n, rows in given.items()})["answer"]}
    with elastalog.open(DECLARED, {name: sorted(rows) for name, rows in given.items()}) as db:
        found = db.query(f"answer({columns}) :- {QUERIES[columns]}")
        assert set(found) == expected
        # Facts that are gone are not read either.
        db.apply(deleted={"a": [next(iter(facts["a"]))]})
        left = {**given, "a": set(db["a"])}
        again = {tuple(fact) for fact in evaluate(tree, {n: set(rows) for n, rows in left.items()})["answer"]}
        assert set(db.query(f"answer({columns}) :- {QUERIES[columns]}")) == again


def test_a_relation_alone_is_told_of_with_its_attributes() -> None:
    with elastalog.open(".decl may_take(student: symbol, course: symbol)\n.input may_take", facts={}) as db:
        with pytest.raises(ElastalogError) as raised:
            db.query('may_take, !may_take("a", "b")')
        assert [(d.code, d.help) for d in raised.value.diagnostics] == [("E0114", "write `may_take(student, course)`")]


def test_a_parameter_under_another_name_is_named_the_right_way_round() -> None:
    with elastalog.open(PROGRAM, {"edge": EDGES, "name": [], "weight": []}) as db, refused("E0619") as caught:
        db.query("edge(?who, X)", whoo=1)
    assert caught.value.diagnostics[0].help == "`whoo` was given a value, and the query has no `?whoo`: is that `?who`?"


ROLES = """.decl may(who: symbol, what: symbol)
.input may
.decl can(who: symbol, what: symbol)
can(w, x) :- may(w, x).
can(w, "enter") :- may(w, _).
"""


@pytest.mark.parametrize("wanted", ['can(X, "raed")', 'may(X, W), W = "raed"', 'can("ada", "raed")'])
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_text_that_no_fact_has_is_named_where_nothing_answers(wanted: str, is_kept: bool) -> None:
    facts = {"may": [("ada", "read"), ("bob", "write")]}

    def answers(text: str, **values: str) -> list[str]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            if not is_kept:
                elastalog.query(ROLES, facts, text, parameters=values)
            else:
                with elastalog.open(ROLES, facts) as db:
                    db.query(text, **values)
        return [str(one.message) for one in found]

    (warned,) = answers(wanted)
    assert 'E0618]: no fact mentions "raed"' in warned
    assert 'did you mean `"read"`?' in warned
    assert 'did you mean `"bob"`?' in answers('can("Bob", X)')[0]
    assert answers('can("rob", X)') == [], "codes of a few letters are much alike, and mean different things"
    assert answers('can(X, "read")') == answers('can("bob", "read")') == answers('can(X, Y), Y != "raed"') == []
    assert answers("can(X, ?what)", what="raed") == []
    assert answers(wanted.replace("raed", "zzz")) == [], "nothing is like it: it may well be asked for"
    assert answers('may(X, "enter")') == []  # it is in a fact, though not in one of these
