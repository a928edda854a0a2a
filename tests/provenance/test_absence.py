from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import elastalog
from elastalog import ElastalogError, Session
from elastalog.analysis.program import Atom, Constant, Rule, Variable
from elastalog.cli.main import cli
from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import Proof
from tests.closures import RIGHT_CLOSURE as EDGES
from tests.generators.choices import SeededChoices
from tests.generators.construction import Features, build_fact
from tests.generators.seeded import seeded_program
from tests.provenance.databases import facts_of
from tests.refusals import refused
from tests.tables import table

POSITIVE = Features(negation=False, aggregates=False, arithmetic=False)
Facts = dict[str, set[tuple[Any, ...]]]


def statuses(absence: Absence, position: int = 0) -> list[tuple[str, str]]:
    return [(literal.text, literal.status) for literal in absence.instantiations[position].literals]


def absent_facts(
    seed: int, features: Features, most: int
) -> tuple[elastalog.Session, list[tuple[str, tuple[Any, ...]]]]:
    program = seeded_program(seed, features)
    db = elastalog.open(program.text, facts=program.facts)
    facts = facts_of(db)
    found: dict[tuple[str, tuple[Any, ...]], None] = {}
    for number in range(most):
        for name, schema in program.schemas.items():
            values = build_fact(SeededChoices(1000 * seed + number), schema)
            if name not in program.inputs and values not in facts[name]:
                found[name, values] = None
    return db, list(found)


# --- properties ----------------------------------------------------------------------------------------------------


def test_every_instantiation_fails_exactly_where_it_says() -> None:
    checked = 0
    for seed in range(2000, 2025):
        db, absent = absent_facts(seed, Features(), 3)
        facts = facts_of(db)
        for fact in absent:
            for found in db.why_not(fact).instantiations:
                assert found.failing
                for literal in found.literals:
                    if literal.fact is not None:
                        is_present = literal.fact.values in facts[literal.fact.relation]
                        assert (literal.status == "holds") == (is_present == (literal.kind == "atom"))
                        checked += 1
    assert checked > 300


def test_inserting_the_facts_that_fail_makes_the_fact_appear() -> None:
    appeared = 0
    for seed in range(2000, 2025):
        db, absent = absent_facts(seed, POSITIVE, 3)
        for fact in absent:
            for found in db.why_not(fact, limit=3).instantiations:
                missing = [literal.fact for literal in found.failing if literal.kind == "atom"]
                if None in missing or len(missing) < len(found.failing) or found.free:
                    continue
                rows: dict[str, list[tuple[Any, ...]]] = {}
                for each in missing:
                    rows.setdefault(each.relation, []).append(each.values)
                db.apply(inserted=rows)
                assert fact[1] in db[fact[0]], (seed, fact, found)
                db.apply(deleted=rows)
                assert fact[1] not in db[fact[0]]
                appeared += 1
    assert appeared > 100


def test_no_instantiation_fails_at_fewer_places_than_the_first() -> None:
    """By brute force over all values, for rules that consist of atoms."""
    compared = 0
    for seed in range(2000, 2030):
        db, absent = absent_facts(seed, POSITIVE, 2)
        facts = facts_of(db)
        for relation, values in absent:
            for rule in db.program.checked.rules:
                if rule.head.relation != relation or not is_simple(rule):
                    continue
                absence = db.why_not((relation, values), rule=rule.number_in_relation)
                fewest = fewest_failures(rule, values, facts)
                assert absence.is_exhaustive
                assert [len(found.failing) for found in absence.instantiations[:1]] == [fewest] * (fewest is not None)
                compared += 1
    assert compared > 60


def is_simple(rule: Rule) -> bool:
    atoms = [rule.head, *rule.body]
    return all(
        isinstance(atom, Atom) and all(isinstance(a, Variable | Constant) for a in atom.arguments) for atom in atoms
    )


def fewest_failures(rule: Rule, values: tuple[Any, ...], facts: Facts) -> int | None:
    domains = {"number": [*range(6), 77], "symbol": ["a", "b", "c", "d", "new"]}
    head: dict[str, Any] = {}
    for argument, value in zip(rule.head.arguments, values, strict=True):
        if isinstance(argument, Variable):
            if head.setdefault(argument.name, value) != value:
                return None
        elif isinstance(argument, Constant) and argument.value != value:
            return None
    atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
    free = {
        argument.name: domains[argument.base.value]
        for atom in atoms
        for argument in atom.arguments
        if isinstance(argument, Variable) and argument.name not in head
    }
    least = len(atoms)
    for chosen in product(*free.values()):
        known = {**head, **dict(zip(free, chosen, strict=True))}
        ground = [
            tuple(known[a.name] if isinstance(a, Variable) else a.value for a in atom.arguments) for atom in atoms
        ]
        least = min(least, sum(g not in facts[atom.relation] for atom, g in zip(atoms, ground, strict=True)))
    return least


# --- by hand -------------------------------------------------------------------------------------------------------


def test_a_negation_that_fails_is_explained_by_the_fact_that_is_there() -> None:
    text = """
    .decl edge, path, apart(x: number, y: number)
    path(x, y) :- edge(x, y).
    path(x, z) :- edge(x, y), path(y, z).
    apart(x, y) :- edge(x, _), edge(_, y), !path(x, y).
    """
    absence = elastalog.open(text, facts={"edge": [(1, 2), (2, 3)]}).why_not("apart(1, 3)")
    assert statuses(absence) == [("edge(1, 2)", "holds"), ("edge(2, 3)", "holds"), ("!path(1, 3)", "fails")]
    below = absence.expand()
    assert isinstance(below, Proof)
    assert str(below.fact) == "path(1, 3)"


def test_going_down_into_a_missing_fact() -> None:
    db = elastalog.open(EDGES, facts={"edge": [(1, 2), (3, 4)]})
    absence = db.why_not("path(1, 4)", rule=2)
    assert statuses(absence) == [("edge(1, 2)", "holds"), ("path(2, 4)", "fails")]
    below = absence.expand()
    assert isinstance(below, Absence)
    assert statuses(below)[0] == ("edge(2, 3)", "fails")


def test_an_equation_of_the_head_is_solved_for_its_variable() -> None:
    text = ".decl step(n: number)\n.decl limit(n: number)\nstep(0).\nstep(n + 1) :- step(n), limit(m), n < m."
    absence = elastalog.open(text, facts={"limit": [(3,)]}).why_not("step(7)")
    assert statuses(absence) == [
        ("step(6)", "fails"),
        ("limit(3)", "holds"),
        ("6 < 3", "fails"),
        ("7 = 6 + 1", "holds"),
    ]


def test_aggregates_are_evaluated() -> None:
    rule = "busy(x) :- edge(x, _), n = count : { edge(x, y) }, n > 2."
    text = f".decl edge(x: number, y: number)\n.decl busy(x: number)\n{rule}"
    absence = elastalog.open(text, facts={"edge": [(1, 2), (1, 3)]}).why_not("busy(1)")
    assert statuses(absence) == [("edge(1, 2)", "holds"), ("count : { edge(1, y) } = 2", "holds"), ("2 > 2", "fails")]


def test_free_variables_keep_their_names_and_leave_constraints_open() -> None:
    text = ".decl a(x: number)\n.decl b(x: number, y: number)\nb(x, y) :- a(x), a(y), a(z), z < y."
    (found,) = elastalog.open(text).why_not("b(1, 2)").instantiations
    assert [(literal.text, literal.status) for literal in found.literals] == [
        ("a(1)", "fails"),
        ("a(2)", "fails"),
        ("a(z)", "fails"),
        ("z < 2", "open"),
    ]
    assert found.free == ("z",)


def test_a_rule_whose_head_clashes_is_listed_with_the_reason() -> None:
    text = ".decl a(x: symbol)\n.decl b(x: symbol, y: number)\nb(x, 1) :- a(x)."
    absence = elastalog.open(text, facts={"a": [("p",)]}).why_not('b("p", 2)')
    assert not absence.instantiations
    assert [(rule.number, why) for rule, why in absence.impossible] == [(1, "its head is `b(x, 1)`")]
    assert str(absence) == (
        'b("p", 2) does not hold; no rule could derive it:\n\n(R1) cannot derive it: its head is `b(x, 1)`'
    )


def test_a_relation_without_rules() -> None:
    absence = elastalog.open(EDGES).why_not("edge(1, 2)")
    assert str(absence) == "edge(1, 2) does not hold: it is not an explicit fact, and there are no rules for `edge`"


def test_values_that_occur_in_no_fact() -> None:
    text = ".decl name(x: symbol)\n.decl known(x: symbol)\nknown(x) :- name(x)."
    assert statuses(elastalog.open(text).why_not('known("never seen")')) == [('name("never seen")', "fails")]


def test_the_search_says_when_it_was_cut_short() -> None:
    text = ".decl a(x: number)\n.decl c(x: number)\nc(x) :- a(y), a(z), a(w), x = y + z + w."
    absence = elastalog.open(text, facts={"a": [(n,) for n in range(2, 200, 2)]}).why_not("c(7)")
    assert not absence.is_exhaustive
    assert "cut short" in str(absence)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda db: db.why_not("path(1, 3)"), "E0702"),
        (lambda db: db.explain("path(3, 1)"), "E0701"),
        (lambda db: db.explain("path(3, 999)"), "E0701"),
        (lambda db: db.explain("path(1, _)"), "E0608"),
        (lambda db: db.uses("path(3, X)"), "E0608"),
        (lambda db: db.explain("path(1, 3)", depth=-1), "E0708"),
        (lambda db: db.explain("path(1, 3)").expand((7,)), "E0703"),
        (lambda db: db.why_not("path(3, 1)", rule=3), "E0710"),
        (lambda db: db.why_not("path(3, 1)", rule=2, bindings={"w": 1}), "E0711"),
        (lambda db: db.why_not("path(3, 1)", rule=2, bindings={"y": "a"}), "E0711"),
        (lambda db: db.why_not("path(3, 1)").expand(9), "E0706"),
        (lambda db: db.why_not("path(3, 1)", rule=2).expand(0, 7), "E0706"),
        (lambda db: db.why_not("path(3, 1)", depth=0), "E0612"),
    ],
)
def test_wrong_questions(call: Any, code: str) -> None:
    db = elastalog.open(EDGES, facts={"edge": [(1, 2), (2, 3)]})
    with refused(code):
        call(db)


def test_a_pattern_is_explained_by_the_fact_that_fits_it_and_several_are_named() -> None:
    with elastalog.open(EDGES, facts={"edge": [(1, 2), (2, 3)]}) as db:
        assert str(db.explain("path(2, _)")) == str(db.explain("path(2, 3)"))
        assert db.derivations("edge(X, 3)") == db.derivations("edge(2, 3)")
        for pattern, told in (
            ("path(1, X)", "several facts fit path(1, X): path(1, 2), path(1, 3)"),
            ("path(3, _)", "no fact fits path(3, _)"),
        ):
            with refused(message=told):
                db.explain(pattern)


def test_explanations_belong_to_their_epoch() -> None:
    db = elastalog.open(EDGES, facts={"edge": [(1, 2), (2, 3)]})
    proof = db.explain("path(1, 3)", depth=1)
    db.apply(deleted={"edge": [(2, 3)]})
    with refused("E0709"):
        proof.expand()


def test_every_form_of_an_absence_can_be_made() -> None:
    absence = elastalog.open(EDGES, facts={"edge": [(1, 2)]}).why_not("path(2, 1)")
    random = Random(1)
    forms = [absence.to_text(), absence.to_tree(), absence.to_json(), absence.to_dot(), absence.to_mermaid()]
    assert all("path(2, 1)" in form for form in random.sample(forms, 5))
    assert "path(2, 1)" in absence._repr_html_()


def test_values_may_be_those_of_numpy() -> None:
    program = ".decl m(x: float, t: symbol)\n.decl n(x: float)\nn(x) :- m(x, t), x > 1.0.\n"
    with elastalog.open(program, {"m": [(0.5, "a")]}) as db:
        plain = db.why_not("n(0.5)", bindings={"x": 0.5, "t": "a"})
        given = {"x": np.float32(0.5), "t": np.str_("a")}
        assert str(db.why_not(("n", (np.float64(0.5),)), bindings=given)) == str(plain)
        assert "np." not in repr(db.why_not("n(2.0)", bindings={"x": np.int64(2)}))
        for wrong in (np.bool_(True), 10**400, "0.5"):
            with pytest.raises(elastalog.ElastalogError, match="`x` is a float"):
                db.why_not("n(0.5)", bindings={"x": wrong})


# --- why nothing else fits a pattern: what holds is counted, what nearly does is told with where it fails -------------


PROGRAM = """
.decl edge, path(a: number, b: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl may(who: symbol, what: symbol)
.decl secret(what: symbol)
.decl sees(who: symbol, what: symbol)
sees(u, d) :- may(u, d), !secret(d).
.decl twice(a: number, b: number)
twice(x, x + x) :- edge(x, _).
"""
FACTS = {
    "edge": [(1, 2), (2, 3), (7, 7)],
    "may": [("ann", "plan"), ("ann", "keys"), ("bob", "plan")],
    "secret": [("keys",)],
}


@pytest.fixture
def db() -> Session:
    return elastalog.open(PROGRAM, FACTS)


def near(found: object) -> list[tuple[str, list[str]]]:
    return [(one.conclusion, [literal.text for literal in one.failing]) for one in found.instantiations]


def test_what_stands_in_the_way_of_one_that_does_not_hold(db: Session) -> None:
    found = db.why_not('sees("ann", X)')
    assert (found.pattern, found.present) == ('sees("ann", X)', 1)
    assert near(found) == [('sees("ann", "keys")', ['!secret("keys")'])]
    assert str(found.expand()) == str(db.explain('secret("keys")'))


def test_where_no_value_at_all_would_do_it_is_left_open(db: Session) -> None:
    """From 1 one comes to 2 and 3, and from 3 nowhere."""
    found = db.why_not("path(1, X).")
    assert (found.pattern, found.present) == ("path(1, X)", 2)
    assert ("path(1, z)", ["edge(3, z)"]) in near(found)
    assert all(conclusion not in ("path(1, 2)", "path(1, 3)") for conclusion, _ in near(found))


def test_the_same_variable_is_the_same_value(db: Session) -> None:
    found = db.why_not("path(X, X)")
    assert found.present == 1  # 7
    assert all(_arguments(text)[0] == _arguments(text)[1] or "z" in text or "y" in text for text, _ in near(found))
    assert db.why_not("path(X, Y)").present == len(db["path"])


def _arguments(text: str) -> list[str]:
    return text[text.index("(") + 1 : -1].split(", ")


def test_values_that_are_computed_are_those_that_would_be(db: Session) -> None:
    found = db.why_not("twice(X, 9)")
    assert found.present == 0
    assert sorted(near(found)) == [
        ("twice(1, 9)", ["9 = 1 + 1"]), ("twice(2, 9)", ["9 = 2 + 2"]), ("twice(7, 9)", ["9 = 7 + 7"]),
    ]  # fmt: skip


def test_what_only_is_given_says_so(db: Session) -> None:
    found = db.why_not("edge(5, X)")
    assert str(found) == (
        "edge(5, X): no fact fits; no rule comes near to deriving one, which holds only if it is given"
    )


def test_nothing_holds_only_if_given_where_a_rule_may_derive_it() -> None:
    program = """.decl member(p: symbol, g: symbol)
    .decl grants(g: symbol, t: symbol)
    .decl barred(p: symbol)
    .decl belongs(p: symbol, g: symbol)
    belongs(p, g) :- member(p, g).
    .decl has(p: symbol, t: symbol)
    has(p, t) :- belongs(p, g), grants(g, t).
    .decl ok(p: symbol, t: symbol)
    ok(p, t) :- has(p, t), !barred(p).
    .decl fine(p: symbol)
    fine(p) :- ok(p, "prod"), ok(p, t), t != "prod".
    .decl joined(p: symbol)
    joined(p) :- belongs(p, _).
    """
    facts = {"member": [("ann", "ops"), ("bob", "staff")], "grants": [("ops", "prod"), ("ops", "lab")]}
    with elastalog.open(program, facts) as db:
        assert near(db.why_not('ok(X, "prod")')) == [('ok("bob", "prod")', ['has("bob", "prod")'])]
        # As where nothing fits at all, but through two relations of rules.
        assert near(db.why_not("fine(X)")) == [('fine("bob")', ['ok("bob", "prod")', 'ok("bob", t)'])]
        assert 'member("bob", "ops")' in str(db.why_not('ok(X, "prod")', depth=3))
        found = db.why_not("joined(X)")
        assert found.headline == (
            "joined(X): 2 fit; no rule comes near to deriving another, which takes other facts of `belongs`"
        )
        assert found.is_exhaustive
        db.apply({"barred": [("ann",)]})
        assert near(db.why_not('ok(X, "prod")')) == [
            ('ok("ann", "prod")', ['!barred("ann")']), ('ok("bob", "prod")', ['has("bob", "prod")']),
        ]  # fmt: skip


def test_a_rule_and_values_restrict_the_search(db: Session) -> None:
    found = db.why_not("path(1, X)", rule=2, bindings={"y": 3})
    assert near(found) == [("path(1, z)", ["edge(3, z)"])]
    with pytest.raises(ElastalogError, match="E0710"):
        db.why_not("path(1, X)", rule=9)
    with pytest.raises(ElastalogError, match="E0606"):
        db.why_not("nowhere(1, X)")


def test_every_form_tells_it(db: Session) -> None:
    found = db.why_not('sees("ann", _)')
    told = json.loads(found.to_json())
    assert (told["present"], told["fact"]["text"]) == (1, 'sees("ann", _)')
    assert told["instantiations"][0]["conclusion"] == 'sees("ann", "keys")'
    for text in (found.to_text(), found.to_tree(), found.to_html(page=True), found.to_dot(), found.to_mermaid()):
        assert "keys" in text


def test_the_command_takes_patterns_and_epochs(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with elastalog.open(PROGRAM, FACTS, store=store) as db:
        db.apply({"secret": [("plan",)]})
    runner = CliRunner()
    now = runner.invoke(cli, ["whynot", store, 'sees("bob", X)', "--format", "tree"])
    assert now.exit_code == 0, now.output
    assert "no fact fits" in now.output
    assert '!secret("plan")' in now.output
    before = runner.invoke(cli, ["whynot", store, 'sees("bob", X)', "--at", "1"])
    assert "1 fact fits" in before.output
    gone = runner.invoke(cli, ["whynot", store, 'sees("bob", X)', "--at", "9"])
    assert (gone.exit_code, "E0813" in gone.output) == (1, True)


def test_a_pattern_shows_the_best_of_every_rule_even_where_a_function_has_no_value() -> None:
    program = """
    .decl due(l: number, day: symbol)
    .decl back(l: number)
    .decl late(l: number, days: number)
    late(l, n) :- due(l, d), !back(l), n = days_between(d, "2026-11-18"), n > 0.
    late(l, days_between(d, "2026-11-17")) :- due(l, d), back(l).
    """
    with elastalog.open(program, {"due": [(5, "2026-09-31")]}) as db:
        found = db.why_not("late(5, N)")
        assert [one.rule.number_in_relation for one in found.instantiations] == [1, 2]
        assert [one.text for one in found.instantiations[0].failing] == ['n = days_between("2026-09-31", "2026-11-18")']
        assert len(db.why_not("late(5, N)", rule=1).instantiations) == 1
        assert len(db.why_not("late(5, N)", limit=1).instantiations) == 2


def test_derivations_that_lack_facts_with_negative_numbers_come_last() -> None:
    program = """.decl road(x: symbol, y: symbol, k: number)
    .decl far(x: symbol, k: number)
    far(y, d + k) :- far(x, d), road(x, y, k).
    """
    with elastalog.open(program, {"far": [("a", 9), ("b", 1)]}) as db:
        found = [str(one.failing[0].fact) for one in db.why_not('far("d", 3)').instantiations]
        assert found == ['road("b", "d", 2)', 'road("a", "d", -6)']


BEST = """
.decl road(a: symbol, b: symbol, km: number)
.decl distance(to: symbol, km: min number)
distance("A", 0).
distance(y, d + k) :- distance(x, d), road(x, y, k).
.decl nearest(a: symbol, km: number)
nearest(a, k) :- road(a, _, _), k = min l : { road(a, _, l) }.
"""


@pytest.mark.parametrize(("fact", "told"), table(__file__, "the best value is told in the place of another"))
def test_the_best_value_is_told_in_the_place_of_another(fact: str, told: str) -> None:
    roads = [("A", "B", 90), ("B", "C", 380), ("A", "C", 500)]
    with elastalog.open(BEST, {"road": roads}) as db:
        assert told in str(db.why_not(fact))


def test_what_may_be_comes_before_lengths_that_no_road_has() -> None:
    program = """.decl road(x: symbol, y: symbol, k: number)
    .decl far(x: symbol, y: symbol, k: min number)
    far(x, y, k) :- road(x, y, k).
    far(x, z, d + k) :- far(x, y, d), road(y, z, k).
    """
    roads = [("ulm", "bonn", 85), ("bonn", "kiel", 85), *(("ulm", f"t{n}", 95) for n in range(60))]
    with elastalog.open(program, {"road": roads}) as db:
        found = db.why_not('far("ulm", "kiel", 80)')
        assert str(found.instantiations[0].failing[0].fact) == 'road("ulm", "kiel", 80)'
        assert all(one.implausible for one in found.instantiations[1:])
        found = db.why_not('far("ulm", "kiel", 90)')  # behind 60 that lack 5 kilometres less than none
        first = [str(one.failing[0].fact) for one in found.instantiations[:3]]
        assert first == ['road("ulm", "kiel", 90)', 'far("ulm", "bonn", 5)', 'road("bonn", "kiel", 5)']


TRIPS = """.decl road(x: symbol, y: symbol, k: number, name: symbol)
.decl trip(x: symbol, y: symbol, k: number)
trip(x, y, k) :- road(x, y, k, _).
trip(x, z, d + k) :- trip(x, y, d), road(y, z, k, _), d + k < 300.
"""


@pytest.mark.parametrize(("asked", "nearest"), [(80, "R1"), (150, "R1")])
def test_lengths_that_no_road_has_come_last_where_names_are_open_too(asked: int, nearest: str) -> None:
    roads = [("ulm", "bonn", 90, "A1"), ("bonn", "kiel", 100, "A4"), ("oslo", "rome", asked, "E6")]
    with elastalog.open(TRIPS, {"road": roads}) as db:
        found = db.why_not(f'trip("ulm", "kiel", {asked})')
        assert [one.how for one in found.instantiations][:2] == [nearest, "R2"]


ROLES = """.decl role(p: symbol, r: symbol)
.decl member(p: symbol, g: symbol)
.decl group_role(g: symbol, r: symbol)
.decl can(r: symbol, t: symbol)
.decl has_role(p: symbol, r: symbol)
.decl may(p: symbol, t: symbol)
has_role(p, r) :- role(p, r).
has_role(p, r) :- member(p, g), group_role(g, r).
may(p, t) :- has_role(p, r), can(r, t).
"""


def test_what_was_deleted_lately_comes_first(tmp_path: Path) -> None:
    facts = {
        "role": [("bob", "author")],
        "member": [("ann", "editors"), ("bob", "guests")],
        "group_role": [("editors", "editor"), ("guests", "guest"), ("admins", "author"), ("admins", "editor")],
        "can": [("editor", "plan"), ("author", "plan")],
    }
    for store in (None, tmp_path / "store"):
        with elastalog.open(ROLES, facts, **({} if store is None else {"store": store})) as db:
            assert db.why_not('has_role("ann", "author")').instantiations[0].how == "R2"  # `admins` are there
            assert db.why_not('has_role("eve", "guest")').instantiations[0].how == "R2"
            with db.update() as update:
                update.delete("member", [("ann", "editors")])
            found = db.why_not('has_role("ann", "editor")')
            assert [one.text for one in found.instantiations[0].literals if one.status == "fails"] == [
                'member("ann", "editors")'
            ]
            # `has_role("ann", "editor")` held too; below it the group, not the direct role.
            below = db.why_not('may("ann", "plan")', depth=3).instantiations[0].literals[0]
            assert (below.text, below.how) == ('has_role("ann", "editor")', "R2")
            assert [one.text for one in below.children] == [
                'member("ann", "editors")', 'group_role("editors", "editor")',
            ]  # fmt: skip
    with elastalog.open(ROLES, store=tmp_path / "store") as db:  # what was deleted is read from the store
        assert db.why_not('has_role("ann", "editor")').instantiations[0].literals[0].text == 'member("ann", "editors")'


def test_negative_numbers_that_facts_have_are_plausible() -> None:
    program = """.decl cold(x: symbol, k: number)
    .decl open(x: symbol)
    .decl warned(x: symbol, k: number)
    warned(x, k) :- open(x), cold(x, k).
    warned(x, k) :- cold(x, m), k = m - 100.
    """
    with elastalog.open(program, {"cold": [("ulm", -3)], "open": [("ulm",), ("bonn",)]}) as db:
        found = db.why_not('warned("bonn", -3)').instantiations
        assert [str(one.failing[0].fact) for one in found] == ['cold("bonn", -3)', 'cold("bonn", 97)']


def test_a_misspelt_text_is_told_of_where_a_proof_is_asked_for() -> None:
    program = '.decl may(who: symbol, what: symbol)\nmay("ann", "read").\n'
    with (
        elastalog.open(program) as db,
        pytest.warns(UserWarning, match='no fact mentions "raed"\n.*did you mean `"read"`'),
        refused("E0701"),
    ):
        db.explain('may("ann", "raed")')


def test_what_fits_a_pattern_is_named_with_what_keeps_others_away() -> None:
    program = """
        .decl road(a: symbol, b: symbol, km: number)
        .decl far(a: symbol, b: symbol, km: min number)
        far(a, b, d) :- road(a, b, d).
        far(a, c, d + e) :- far(a, b, d), road(b, c, e).
        .decl total(a: symbol, n: number)
        total(a, n) :- road(a, _, _), n = sum d : { road(a, _, d) }.
    """
    with elastalog.open(program, {"road": [("a", "b", 1), ("b", "c", 2), ("a", "c", 5), ("c", "a", 1)]}) as db:
        assert db.why_not('far("a", "c", _)').notes == (
            'there is far("a", "c", 3), and `km: min number` keeps only the least',
        )
        assert db.why_not('total("a", _)').notes == ('there is total("a", 6)',)
        assert db.why_not("far(_, _, _)").notes == ()
        assert db.why_not('far("z", _, _)').notes == ()


# --- further down ----------------------------------------------------------------------------------------------------


GROUPS = """
.decl user(u: symbol)
.decl member(a: symbol, b: symbol)
.decl deny(u: symbol)
.decl in(u: symbol, g: symbol)
in(u, u) :- user(u).
in(u, h) :- in(u, g), member(g, h).
.decl may(u: symbol)
may(u) :- in(u, "staff"), !denied(u).
.decl denied(u: symbol)
denied(u) :- in(u, g), deny(g).
"""
MEMBERS = {"user": [("cy",)], "member": [("bob", "devs"), ("devs", "staff"), ("cy", "devs")], "deny": [("devs",)]}
GOES_ON = "ask with a greater `depth` (as an option: `--depth`, in the shell: `setdepth`)."


def test_reasons_of_reasons_are_shown_to_a_depth() -> None:
    with elastalog.open(GROUPS, MEMBERS) as db:
        first = db.why_not('may("eve")')
        assert str(first).endswith(f'\n\nTo see why in("eve", "staff") does not hold, {GOES_ON}')
        deep = db.why_not('may("eve")', depth=5)
        assert (
            str(deep)
            == """may("eve") does not hold; nearest derivations that fail:
1. may("eve")  (R1)
   ├─ X in("eve", "staff")  (R2)
   │  ├─ X in("eve", "devs")  (R2)
   │  │  ├─ X in("eve", "bob")  (R2)
   │  │  │  ├─ X in("eve", g)
   │  │  │  │  ├─ in("eve", "eve")  (R1)
   │  │  │  │  │  └─ X user("eve")
   │  │  │  │  └─ … 1 more rule: ask about in("eve", g)
   │  │  │  └─ X member(g, "bob")
   │  │  └─ ✓ member("bob", "devs")
   │  └─ ✓ member("devs", "staff")
   └─ ✓ !denied("eve")"""
        )
        assert 'To see why in("eve", "devs") does not hold' in str(db.why_not('may("eve")', depth=2))
        assert "in(&quot;eve&quot;, &quot;bob&quot;)" in deep.to_html()
        assert 'user("eve") X' in deep.to_text()


def test_what_a_negation_fails_for_is_proved_to_a_depth() -> None:
    with elastalog.open(GROUPS, MEMBERS) as db:
        assert str(db.why_not('may("cy")')).endswith(f'\n\nTo see why denied("cy") holds, {GOES_ON}')
        assert 'denied("cy")  (R1)\n         ├─ in("cy", "devs") …\n' in str(db.why_not('may("cy")', depth=2))
        told = json.loads(db.why_not('may("cy")', depth=9).to_json())
        (negated,) = (one for one in told["instantiations"][0]["literals"] if one["status"] == "fails")
        assert {node.get("text") for node in negated["because"]["nodes"]} >= {'deny("devs")', 'user("cy")'}


def test_a_head_that_repeats_a_variable_says_what_it_gives() -> None:
    with elastalog.open(GROUPS, MEMBERS) as db:
        absence = db.why_not('in("eve", "bob")')
        gives = 'its head is `in(u, u)`, and gives `in("eve", "eve")` from `user("eve")`'
        assert [why for _, why in absence.impossible] == [gives]
        further = absence.expand()
        assert further.subject == 'in("eve", g)'
        assert ('user("eve")', "fails") in {
            pair for place in range(len(further.instantiations)) for pair in statuses(further, place)
        }


def test_a_negation_with_open_values_names_a_fact_in_its_way() -> None:
    program = ".decl needs(a: symbol, b: symbol)\n.decl dep(a: symbol, b: symbol)\n.decl pkg(p: symbol)\n"
    program += "dep(a, b) :- needs(a, b).\n.decl unused(p: symbol)\nunused(p) :- pkg(p), !needs(_, p).\n"
    program += '.decl lone(p: symbol)\nlone(p) :- pkg(p), !dep(_, p).\npkg("json"). needs("web", "json").'
    with elastalog.open(program) as db:
        assert 'To see why needs(_, "json") holds, ask with a greater `depth`' in str(db.why_not('unused("json")'))
        (found,) = db.why_not('unused("json")', depth=2).instantiations
        assert str(found.literals[1].because.fact) == 'needs("web", "json")'
        told = str(db.why_not('lone("json")', depth=3))
        assert 'X !dep(_, "json")\n      └─ dep("web", "json")  (R1)\n         └─ needs(' in told


def test_a_negation_with_computed_values_names_a_fact_in_its_way() -> None:
    program = ".decl a(x: number)\n.decl b(x: number, y: number)\n.decl c(x: number)\nc(x) :- a(x), !b(x + 1, _).\n"
    with elastalog.open(program, {"a": [(1,)], "b": [(0, 1), (2, 5), (7, 7)]}) as db:
        assert "└─ X !b(2, _)\n      └─ b(2, 5)" in str(db.why_not("c(1)", depth=2))
        assert [*map(str, db.suggest(missing=["c(1)"]).delete)] == ["b(2, 5)"]


ROUND = """.decl e(x: symbol, y: symbol)
.decl bad, waived, start, hit(x: symbol)
start(x) :- bad(x), !waived(x).
hit(x) :- e(x, y), hit(y).
hit(x) :- start(x).
"""


@pytest.mark.parametrize("size", [2, 5])
def test_a_cycle_does_not_hide_the_reason(size: int) -> None:
    """What needs a fact asked about above can never lead to it."""
    edges = [(str(i), str((i + 1) % size)) for i in range(size)]
    last = str(size - 1)
    with elastalog.open(ROUND, {"e": edges, "bad": [(last,)], "waived": [(last,)]}) as db:
        told = str(db.why_not('hit("0")', depth=size + 2))
        assert f'X start("{last}")  (R1)' in told
        assert f'X !waived("{last}")' in told


def test_what_fails_although_all_data_are_there_comes_first() -> None:
    program = """.decl package(name: symbol, version: number)
    .decl advisory(name: symbol, fixed: number)
    .decl older(v: number, w: number)
    older(v, w) :- package(_, v), advisory(_, w), v < w.
    .decl vulnerable(name: symbol)
    vulnerable(p) :- advisory(p, f), package(p, v), older(v, f).
    """
    packages = [("log", 9), *((name, version) for version, name in enumerate("abcdefgh"))]
    with elastalog.open(program, {"package": packages, "advisory": [("log", 9)]}) as db:
        first = db.why_not('vulnerable("log")').instantiations[0]
        assert [literal.text for literal in first.failing] == ["older(9, 9)"]


def test_a_rule_that_cannot_derive_a_pattern_says_nothing_of_others() -> None:
    program = """.decl dep, aff(x: symbol, y: symbol)
    .decl ex(x: symbol, p: symbol, i: symbol)
    ex(r, p, i) :- dep(r, p), aff(p, i).
    ex(r, r, i) :- dep(r, _), aff(r, i).
    """
    with elastalog.open(program, {"dep": [("cli", "tls")], "aff": [("tls", "C1")]}) as db:
        told = str(db.why_not('ex("cli", "tls", X)'))
        assert "1 fact fits; no rule comes near to deriving another, which takes other facts of `dep` or `aff`" in told
        assert "(R2) cannot derive it" in told
        assert "no rule could derive another" in str(db.why_not('ex("cli", "tls", X)', rule=2))


def test_derivations_that_lack_other_facts_take_turns_and_what_is_left_out_is_counted() -> None:
    program = """.decl vulnerable(p: symbol, cve: symbol)
    .decl depends(p: symbol, d: symbol)
    .decl exposed(p: symbol, by: symbol, cve: symbol)
    exposed(p, d, c) :- depends(p, d), vulnerable(d, c).
    """
    needed = [("app", name) for name in ("fmt", "http", "json", "log", "tls", "web")]
    with elastalog.open(program, {"depends": needed, "vulnerable": [("yaml", "CVE-4")]}) as db:
        found = db.why_not('exposed("app", D, "CVE-4")')
        lacking = [literal.text for one in found.instantiations for literal in one.failing]
        assert lacking[:3] == ['vulnerable("fmt", "CVE-4")', 'depends("app", "yaml")', 'vulnerable("http", "CVE-4")']
        assert (len(found.instantiations), found.more) == (5, 2)
        assert "2 more derivations are not shown: ask with a greater `limit`" in str(found)
        whole = db.why_not('exposed("app", D, "CVE-4")', limit=9)
        assert (len(whole.instantiations), whole.more) == (7, 0)
        assert "not shown" not in str(whole)
