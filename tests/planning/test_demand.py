"""Goal-directed evaluation: the answers are those of the whole program, and nothing else is derived."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.analysis.listing import show_rule
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.planning.demand import asked_by_program, outputs_of, with_demand
from elastalog.program import Program
from elastalog.session.opening import question
from tests.commands import run
from tests.engine.judging import comparable
from tests.generators.seeded import seeded_program
from tests.tables import table

CLOSURE = """
.decl edge(x: number, y: number)
.input edge
.decl unused(x: number)
.input unused
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl apart(x: number, y: number)
apart(x, y) :- edge(x, _), edge(_, y), !path(x, y).
"""
CHAINS = [(100 * i + j, 100 * i + j + 1) for i in range(50) for j in range(20)]


def derived(text: str, query: str, facts: dict[str, Any]) -> tuple[set[tuple[Any, ...]], int]:
    """The answers, and how many facts of declared relations were derived for them."""
    asked = question(Program.parse(text), query, {})
    with elastalog.open(asked.program, facts=facts) as db:
        own = [name for name in db if name != asked.query.name and not name.startswith("@")]
        explicit = sum(len(db.explicit(name)) for name in own)
        return set(asked.answers(db)), sum(len(db[name]) for name in own) - explicit


@pytest.mark.parametrize("recursion", ["path(x, y), edge(y, z)", "edge(x, y), path(y, z)", "path(x, y), path(y, z)"])
@pytest.mark.parametrize(
    ("query", "answers", "most"),
    [
        ("path(0, X)", {(n,) for n in range(1, 21)}, 20 * 21 // 2),
        ("path(X, 5)", {(n,) for n in range(5)}, 20 * 21 // 2),
        ("path(0, 7)", {()}, 20 * 21 // 2),
        ("path(999, X)", set(), 0),
    ],
)
def test_a_closure_from_one_side(recursion: str, query: str, answers: set[Any], most: int) -> None:
    text = CLOSURE.replace("path(x, y), edge(y, z)", recursion)
    found, number = derived(text, query, {"edge": CHAINS})
    assert found == answers
    assert number <= most  # of 50 * 210


def test_it_derives_no_more_than_what_starts_there() -> None:
    assert derived(CLOSURE, "path(0, X)", {"edge": CHAINS})[1] == 20


def test_what_is_negated_is_whole() -> None:
    facts = {"edge": [(1, 2), (2, 3), (7, 8)]}
    found, number = derived(CLOSURE, "apart(1, X)", facts)
    assert found == {(8,)}
    assert number == 4 + 1


def test_what_nobody_needs_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n")  # and no file for `unused`
    (tmp_path / "p.dl").write_text(CLOSURE)
    result = run("query", tmp_path / "p.dl", "-F", tmp_path, "path(1, X)")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "2\n3\n"


def test_recursion_does_not_ask_for_what_it_computes() -> None:
    text = ".decl q(n: number)\n.input q\n.decl p(n: number)\np(n) :- q(n).\np(n) :- n = m - 1, p(m), n > 0.\n"
    assert set(elastalog.query(text, {"q": [(5,)]}, "p(1)")) == {()}
    text = ".decl q(n: number)\n.input q\n.decl p(n: number)\np(n) :- q(n).\np(n) :- q(n), p(n + 1).\n"
    assert set(elastalog.query(text, {"q": [(5,), (4,), (9,)]}, "p(X)")) == {(4,), (5,), (9,)}


def test_heads_that_compute() -> None:
    text = (
        ".decl e(x: number, y: number)\n.input e\n.decl p(x: number, y: number)\n.decl r(x: number, y: number)\n"
        "r(x, y) :- e(x, y).\nr(x, y) :- e(x, z), r(z, y).\np(x + 1, y) :- r(y, _), e(x, _).\n"
    )
    facts = {"e": [(1, 2), (2, 3), (3, 4)]}
    assert set(elastalog.query(text, facts, "p(3, Y)")) == {(1,), (2,), (3,)}
    assert set(elastalog.query(text, facts, "p(X, 2)")) == {(2,), (3,), (4,)}


def test_records_parameters_and_errors() -> None:
    text = (
        ".type P = [a: number, b: number]\n.decl e(x: number, y: number)\n.input e\n.decl p(r: P)\n"
        "p([x, y]) :- e(x, y).\np([x, z]) :- p([x, y]), e(y, z).\n"
    )
    facts = {"e": [(1, 2), (2, 3), (7, 8)]}
    assert set(elastalog.query(text, facts, "p([1, X])")) == {(2,), (3,)}
    assert set(elastalog.query(text, facts, "p([?a, X])", parameters={"a": 7})) == {(8,)}
    with pytest.raises(ElastalogError, match="E0619"):
        elastalog.query(text, facts, "p([?a, X])")
    with pytest.raises(ElastalogError, match="E02"):
        elastalog.query(text, facts, "nothing(X)")


def test_random_programs_have_the_answers_of_the_whole_program() -> None:
    compared = 0
    for seed in range(60):
        program = seeded_program(seed)
        try:
            whole = elastalog.open(program.text, facts=program.facts)
        except ElastalogError:
            continue
        chooser = random.Random(seed)
        for name in list(whole):
            facts = list(whole[name])
            if not facts or not facts[0]:
                continue
            fact = chooser.choice(facts)
            bound = chooser.randrange(len(fact))
            if isinstance(fact[bound], float) and fact[bound] != fact[bound]:
                continue
            terms = [f"?v{i}" if i == bound else f"X{i}" for i in range(len(fact))]
            found = elastalog.query(
                program.text, program.facts, f"{name}({', '.join(terms)})", parameters={f"v{bound}": fact[bound]}
            )
            wanted = {
                comparable(tuple(v for i, v in enumerate(f) if i != bound))
                for f in facts
                if comparable(f)[bound] == comparable(fact)[bound]
            }
            assert set(map(comparable, found)) == wanted, (seed, name, terms, fact)
            compared += 1
    assert compared > 50


MAGIC = CLOSURE + ".decl out(y: number)\n.output out\nout(y) :- path(0, y).\n"


def test_pragma_and_qualifiers_say_what_is_restricted() -> None:
    program = Program.parse(MAGIC).checked
    assert asked_by_program(program) is None
    everything = Program.parse(MAGIC + '.pragma "magic-transform" "*"').checked
    assert asked_by_program(everything) == frozenset(everything.relations)
    one = Program.parse(MAGIC.replace(".decl path(x: number, y: number)", ".decl path(x: number, y: number) magic"))
    assert asked_by_program(one.checked) == {"path"}
    assert "@demand.path" in with_demand(program, outputs_of(program)).relations
    kept = Program.parse(MAGIC.replace(".decl path(x: number, y: number)", ".decl path(x: number, y: number) no_magic"))
    assert "@demand.path" not in with_demand(kept.checked, ("out",)).relations


@pytest.mark.parametrize("options", [(), ("--arithmetic", "wrap")])
def test_a_run_with_the_pragma_derives_what_its_outputs_need(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in CHAINS))
    (tmp_path / "p.dl").write_text(MAGIC + '.pragma "magic-transform" "*"\n')
    folder = str(tmp_path)
    result = run("run", f"{folder}/p.dl", "-F", folder, "-D", folder, "--stats", f"{folder}/s.json", *options)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "out.csv").read_text() == "".join(f"{n}\n" for n in range(1, 21))
    assert '"@demand.path"' in (tmp_path / "s.json").read_text()
    assert "path(x, y) :- @demand.path(x), edge(x, y)." in run("show", f"{folder}/p.dl", "--stage", "magic").stdout


def test_a_session_has_everything_whatever_the_pragma_says() -> None:
    with elastalog.open(MAGIC + '.pragma "magic-transform" "*"', facts={"edge": CHAINS, "unused": []}) as db:
        assert (100, 105) in db["path"]
        assert db.explain("path(100, 102)").height == 2


def test_a_store_has_everything_whatever_the_pragma_says(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n7\t8\n")
    (tmp_path / "unused.facts").write_text("")
    (tmp_path / "p.dl").write_text(MAGIC + '.pragma "magic-transform" "*"\n')
    store = str(tmp_path / "store")
    made = run("init", store, tmp_path / "p.dl", "-F", tmp_path)
    assert made.exit_code == 0, made.stderr
    (tmp_path / "more.diff").write_text("+edge(8, 9).\n")
    assert run("apply", store, tmp_path / "more.diff").exit_code == 0
    assert run("query", store, "path(7, X)").stdout == "8\n9\n"  # `out` asks for 0 only


def test_the_transformed_rules_are_maintained_like_any() -> None:
    program = Program.parse(MAGIC)
    restricted = replace(program, checked=with_demand(program.checked, ("out",)))
    with elastalog.open(restricted, facts={"edge": CHAINS}) as db:
        assert len(db["path"]) == 20
        changes = db.apply(inserted={"edge": [(20, 100)]}, deleted={"edge": [(110, 111)]})
        assert sorted(changes["out"].inserted) == [(n,) for n in range(100, 111)]


def test_rules_read_as_they_would_be_written() -> None:
    program = Program.parse(MAGIC.replace("path(x, y), edge(y, z)", "edge(x, y), path(y, z)")).checked
    assert [show_rule(rule) for rule in with_demand(program, ("out",)).rules] == [
        "path(x, y) :- @demand.path(x), edge(x, y).",
        "@demand.path(y) :- @demand.path(x), edge(x, y).",
        "path(x, z) :- @demand.path(x), edge(x, y), path(y, z).",
        "@demand.path(0).",
        "out(y) :- path(0, y).",
    ]


SPECIAL = """
.decl e(x: number, y: number)
.input e
.decl same(x: number, y: number) eqrel
same(x, y) :- e(x, y).
.decl near(x: number, d: number)
near(1, 0).
near(y, d + 1) :- near(x, d), e(x, y).
near(x, a) <= near(x, b) :- b < a.
.decl chosen(x: number, y: number) choice-domain x
chosen(x, y) :- e(x, y).
.decl numbered(x: number, n: number)
numbered(x, $) :- e(x, _).
.decl above(x: number, n: number)
above(x, n) :- e(x, _), n = count : { same(x, _) }.
.decl all(x: number, y: number)
all(x, y) :- same(x, y), near(y, _), chosen(x, _).
"""


@pytest.mark.parametrize("query", table(__file__, "relations of a special kind"))
def test_relations_of_a_special_kind(query: str) -> None:
    facts = {"e": [(1, 2), (1, 3), (2, 3), (5, 6), (6, 7), (9, 8)]}
    with elastalog.open(SPECIAL, facts=facts) as whole:
        assert set(elastalog.query(SPECIAL, facts, query)) == set(whole.query(query))


def test_components_inline_relations_and_alternatives() -> None:
    text = """
    .comp G { .decl edge(x: number, y: number) .input edge
      .decl path(x: number, y: number)
      path(x, y) :- edge(x, y) ; path(x, z), edge(z, y). }
    .init g = G
    .decl both(x: number, y: number) inline
    both(x, y) :- g.path(x, y), g.path(y, x).
    .decl on(x: number)
    on(x) :- both(x, x).
    """
    facts = {"g.edge": [(1, 2), (2, 1), (3, 4)]}
    assert set(elastalog.query(text, facts, "g.path(3, X)")) == {(4,)}
    assert set(elastalog.query(text, facts, "on(X)")) == {(1,), (2,)}
    assert set(elastalog.query(text, facts, "g.path(X, 4) ; g.path(4, X)")) == {(3,)}
