"""The judge is judged first: the reference evaluator and its levels against numbers computed by hand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastalog.analysis.check import check
from tests.generators.construction import EVERYTHING, Features, GeneratedProgram
from tests.generators.programs import programs, updates
from tests.generators.seeded import seeded_case, seeded_program
from tests.generators.updates import Update
from tests.reference.cases import case_names, load_case, parse_accepted
from tests.reference.evaluator import evaluate, program_of
from tests.reference.levels import levels
from tests.reference.values import Overflow, made

THESIS = "pointer_analysis_thesis"
ELASTIC = "pointer_analysis_elastic"


def result(text: str, relation: str, **facts: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    return evaluate(parse_accepted(text), facts)[relation]


@pytest.mark.parametrize("name", case_names())
def test_every_program_case_has_the_expected_facts(name: str) -> None:
    case = load_case(name)
    found = evaluate(case.tree, case.facts)
    expected = {relation: {tuple(map(made, fact)) for fact in facts} for relation, facts in case.expected.items()}
    assert {relation: found[relation] for relation in expected} == expected
    assert case.expected


# --- levels of the worked examples


def annotated(found: dict[Any, tuple[int, int]], relation: str, level: int) -> dict[str, int]:
    return {",".join(fact): count for (name, fact), (lev, count) in found.items() if name == relation and lev == level}


def test_levels_of_the_elastic_pointer_example() -> None:
    found = levels(load_case(ELASTIC).tree, {})
    assert annotated(found, "vpt", 1) == {"a,L1": 1, "c,L3": 1, "d,L4": 1}
    assert annotated(found, "vpt", 2) == {"b,L1": 2}
    assert annotated(found, "vpt", 3) == {}


def test_levels_of_the_elastic_pointer_example_after_its_update() -> None:
    facts: dict[str, set[tuple[Any, ...]]] = {
        "new": {("a", "L1"), ("c", "L3"), ("d", "L4")},
        "assign": {("a", "b")},
        "store": {("c", "f", "a"), ("d", "f", "c")},
        "load": {("e", "d", "f"), ("b", "c", "f")},
    }
    found = levels(load_case(ELASTIC).tree, facts, with_text_facts=False)
    assert annotated(found, "vpt", 1) == {"a,L1": 1, "c,L3": 1, "d,L4": 1}
    assert annotated(found, "vpt", 2) == {"b,L1": 1, "e,L3": 1}
    assert annotated(found, "vpt", 3) == {}


def test_levels_of_the_thesis_pointer_example() -> None:
    case = load_case(THESIS)
    found = levels(case.tree, case.facts)
    first = {"admin,L1": 1, "sec,L2": 1, "ins,L3": 1, "userSession,nullptr": 1, "superuser,nullptr": 1}
    assert annotated(found, "vpt", 1) == first
    assert annotated(found, "vpt", 2) == {"userSession,L3": 1, "superuser,L2": 2, "superuser,L3": 1}
    assert annotated(found, "vpt", 3) == {}
    assert len(annotated(found, "alias", 1)) == 8
    assert set(annotated(found, "safevar", 1)) == {"admin", "sec", "ins"}


def test_levels_of_the_thesis_pointer_example_after_its_update() -> None:
    case = load_case(THESIS)
    facts = {**case.facts, "assign": case.facts["assign"] - {("superuser", "sec")}}
    facts["load"] = case.facts["load"] | {("userSession", "admin", "session")}
    found = levels(case.tree, facts)
    second = {"userSession,L2": 1, "superuser,L2": 1, "superuser,L3": 1, "userSession,L3": 2}
    assert annotated(found, "vpt", 2) == second


def test_a_wildcard_in_a_class_tells_no_derivations_apart_but_alternatives_do() -> None:
    text = (
        ".decl e(x: number, y: number) eqrel\n.decl a(x: number)\n.decl p(x: number)\n.decl q(x: number)\n"
        "p(x) :- a(x), (e(1, _) ; e(x, _)).\nq(x) :- a(x), e(x, _).\n"
    )
    found = levels(parse_accepted(text), {"e": {(1, 2), (2, 3)}, "a": {(1,)}})
    assert (found["p", (1,)], found["q", (1,)]) == ((1, 2), (1, 1))
    by_rules = levels(parse_accepted(text), {"e": {(1, 2), (2, 3)}, "a": {(1,)}}, classes=())
    assert (by_rules["p", (1,)], by_rules["q", (1,)]) == ((1, 6), (1, 3))


def test_global_levels_are_proof_heights() -> None:
    case = load_case(THESIS)
    found = levels(case.tree, case.facts, "global")
    assert found["alias", ("userSession", "ins")][0] == 3
    assert found["vpt", ("userSession", "L3")][0] == 2
    path2 = load_case("path2")
    assert levels(path2.tree, path2.facts, "global")["path2", ("a", "d")] == (2, 1)


COUNTS = """
.decl f(x: number, y: number)
.decl p, q, both, own(x: number)
p(x) :- f(x, _).
q(x) :- f(x, y), f(x, z).
both(x) :- f(x, 1) ; f(x, 2).
own(x) :- f(x, _), x > 5.
own(x) :- own(x).
"""


def test_counts_see_every_vector_of_body_facts() -> None:
    found = levels(parse_accepted(COUNTS), {"f": {(1, 1), (1, 2)}})
    assert found["p", (1,)] == (1, 2)
    assert found["q", (1,)] == (1, 4)
    assert found["both", (1,)] == (1, 2)
    assert found["f", (1, 1)] == (0, 1)


def test_explicit_facts_have_level_0_and_count_1_whatever_derives_them() -> None:
    found = levels(parse_accepted(COUNTS), {"f": {(1, 1)}, "p": {(1,)}, "own": {(7,)}})
    assert found["p", (1,)] == (0, 1)
    assert found["own", (7,)] == (0, 1)


ABOVE = """
.decl e(x: number)
.decl a, b, n, none, always(x: number)
a(x) :- e(x).
b(x + 1) :- a(x).
n(c) :- c = count : { b(x), e(_) }.
none(c) :- c = count : { b(x), x > 100 }.
always(1) :- !e(99).
"""


def test_local_levels_restart_and_global_levels_go_on() -> None:
    tree, facts = parse_accepted(ABOVE), {"e": {(1,)}}
    local, high = levels(tree, facts), levels(tree, facts, "global")
    assert (local["b", (2,)], high["b", (2,)]) == ((1, 1), (2, 1))
    assert (local["always", (1,)], high["always", (1,)]) == ((1, 1), (1, 1))
    # The only member rests on b(2) at 2: member 3, aggregate 4, head 5.
    assert (local["n", (1,)], high["n", (1,)]) == ((1, 1), (5, 1))
    assert (local["none", (0,)], high["none", (0,)]) == ((1, 1), (1, 1))


# --- the evaluator


def test_components_come_after_what_they_depend_on() -> None:
    tree = parse_accepted(
        ".decl z, a, b, c(x: number) c(x) :- a(x), !z(x). a(x) :- b(x). b(x) :- a(x), z(x). z(1) :- true."
    )
    assert [sorted(component) for component in program_of(tree).components] == [["z"], ["a", "b"], ["c"]]


def test_wildcards_under_negation_are_existential() -> None:
    text = ".decl e(x: number, y: number) .decl r(x: number) r(x) :- e(x, _), !e(_, x)."
    assert result(text, "r", e={(1, 2), (2, 3)}) == {(1,)}


@pytest.mark.parametrize(
    "expression",
    [
        "9223372036854775807 + x",
        "-9223372036854775807 - 2 * x",
        "4611686018427387904 * 2 * x",
        "2 ^ (62 + x)",
        "(-9223372036854775807 - x) / -1",
    ],
)
def test_overflow_of_numbers_is_reported(expression: str) -> None:
    text = f".decl e, r(x: number) r({expression}) :- e(x)."
    with pytest.raises(Overflow):
        result(text, "r", e={(1,)})


@pytest.mark.parametrize("expression", ["x - 2", "x + 18446744073709551615", "x * 2 ^ 64", "itou(-1) + x"])
def test_overflow_of_unsigned_is_reported(expression: str) -> None:
    with pytest.raises(Overflow):
        result(f".decl e, r(x: unsigned) r({expression}) :- e(x).", "r", e={(1,)})


def test_overflow_of_a_sum_is_reported() -> None:
    with pytest.raises(Overflow):
        result(".decl e, r(x: number) r(s) :- s = sum x : { e(x) }.", "r", e={(2**63 - 1,), (1,)})


def test_literals_take_the_type_of_their_context() -> None:
    assert result(".decl e, r(x: float) r(y) :- e(x), y = z / 2, z = 1 + x.", "r", e={(2.0,)}) == {(1.5,)}
    assert result(".decl r(x: unsigned) r(bnot 0) :- true.", "r") == {(2**64 - 1,)}
    assert result(".decl r(x: number) r(bnot 0) :- true.", "r") == {(-1,)}


def test_ord_is_left_to_the_implementation() -> None:
    with pytest.raises(KeyError):
        result('.decl r(x: number) r(ord("a")) :- true.', "r")


def test_nan_equals_itself_as_a_value() -> None:
    nan = {(float("nan"),), (float("nan"),)}
    assert len(result(".decl e, f, r(x: float) r(x) :- e(x), f(x).", "r", e=nan, f={(float("nan"),)})) == 1


def test_one_assignment_found_by_two_alternatives_is_one_member() -> None:
    text = ".decl e, f, r(x: number) r(n) :- n = count : { e(x) ; f(x) }."
    assert result(text, "r", e={(1,), (2,)}, f={(2,), (3,)}) == {(3,)}


def test_witnesses_are_what_attains_the_least_value() -> None:
    text = ".decl e, r(x: number, y: number) r(x, n) :- n = min y : { e(x, y) }."
    assert result(text, "r", e={(1, 5), (2, 3), (3, 3)}) == {(2, 3), (3, 3)}
    text = ".decl e, r(x: number, y: number) r(x, n) :- e(x, _), n = min y : { e(x, y) }."
    assert result(text, "r", e={(1, 5), (1, 4), (2, 3)}) == {(1, 4), (2, 3)}


def test_a_witness_counts_once_for_each_fact_that_attains_the_value() -> None:
    rule = "r(x) :- _n = max y : { e(x, y, _) }."
    tree = parse_accepted(f".decl e(x: number, y: number, z: number) .decl r(x: number) {rule}")
    found = levels(tree, {"e": {(1, 7, 1), (1, 7, 2), (2, 7, 0), (1, 3, 3)}})
    assert {fact: pair for fact, pair in found.items() if fact[0] == "r"} == {("r", (1,)): (1, 2), ("r", (2,)): (1, 1)}


def test_derivations_keep_their_numbers() -> None:
    rules = "r(x, $) :- e(x). r(n, 9) :- e(_), n = $, n > 2."
    tree = parse_accepted(f".decl e(x: number) .decl r(x: number, n: number) {rules}")
    numbers: dict[Any, int] = {}
    assert evaluate(tree, {"e": {(8,), (5,)}}, numbers=numbers)["r"] == {(5, 0), (8, 1), (3, 9)}
    assert evaluate(tree, {"e": {(8,), (4,)}}, numbers=numbers)["r"] == {(8, 1), (4, 4), (3, 9), (5, 9)}


# --- the generators


def judge(program: GeneratedProgram, updates: list[Update]) -> None:
    """A generated case is accepted, and the judges agree with themselves on it."""
    tree, explicit = parse_accepted(program.text), program.explicit
    checked, diagnostics = check(tree)
    assert checked is not None, diagnostics
    assert {frozenset(stratum.relations) for stratum in checked.strata} == set(program_of(tree).components)
    assert evaluate(tree, program.facts) == evaluate(tree, explicit, with_text_facts=False)
    for update in updates:
        explicit = update.apply_to(explicit)
    found = evaluate(tree, explicit, with_text_facts=False)
    state = levels(tree, explicit, "global", with_text_facts=False)
    assert set(state) == {(name, fact) for name, known in found.items() for fact in known}
    assert all((level == 0) == (fact in explicit[name]) for (name, fact), (level, _) in state.items())


def test_seeded_cases_are_accepted_and_judged() -> None:
    for seed in range(80):
        judge(*seeded_case(seed, Features(tested_groups=seed % 2 == 0)))


def test_programs_with_every_construct_are_accepted_and_contain_it() -> None:
    texts = []
    for seed in range(60):
        program, _ = seeded_case(seed, EVERYTHING)
        checked, diagnostics = check(parse_accepted(program.text))
        assert checked is not None, diagnostics
        texts.append(program.text)
    witness, number = r"= (min|max) k : { \w+\(.*k", r"autoinc|\$[,)]"
    for construct in (r"\[\w, ", r"\$More\(", " eqrel", "choice-domain", "<= p", witness, number):
        assert sum(bool(re.search(construct, text)) for text in texts) > 5, construct


@settings(max_examples=25)
@given(st.data())
def test_drawn_cases_are_accepted_and_judged(data: st.DataObject) -> None:
    program = data.draw(programs())
    judge(program, data.draw(updates(program)))


def test_the_same_seed_gives_the_same_case() -> None:
    assert seeded_case(7) == seeded_case(7)


def test_insertion_wins_over_deletion_in_an_update() -> None:
    update = Update({"e": [(1,), (2,)]}, {"e": [(2,), (3,)], "p": [()]})
    assert update.apply_to({"e": {(1,), (2,)}}) == {"e": {(2,), (3,)}, "p": {()}}


def test_features_are_left_out_on_request() -> None:
    features = Features(negation=False, aggregates=False, arithmetic=False, disjunctions=False, symbols=False)
    for seed in range(50):
        text = seeded_program(seed, features).text
        assert not re.search(r"!(?!=)|[;:] [{]|;|\+|symbol", text), text
