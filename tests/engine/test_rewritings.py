"""Every rewriting of rules between what was written and what is evaluated: with it and without it, the same facts.

Strategies, updates and `verify` all evaluate rules that have been rewritten, so that comparing them with each other
shows no wrong rewriting. Two things do: the reference (`tests/reference`), which evaluates what was written and does
without all of these, and the same program written so that a rewriting has nothing to do.

- components (`analysis.instantiate`): a program, and the same inside a component
- inline relations (`analysis.inline`): the word left out; and the reference, which asks an inline relation like any
- negated groups and comparisons (`analysis.negation`): the reference, by hand and at random
- alternatives and several heads (`analysis.take_apart`, `alternatives`): the reference
- aggregates as literals, scopes, witnesses (`analysis.scopes`, `witnesses`): the reference
- records taken apart (`analysis.build_typed`, `planning.slots`): the reference
- pairs of a subsumption (`analysis.subsumptions`), best facts first (`planning.best_of_key`): the reference
- rules of an `eqrel` (`program.equivalences`), classes (`planning.equivalences`): the reference; `test_equivalences`
- negated wildcards as projections, atoms that compute (`planning.lower`): the reference
- aggregates as hidden relations (`planning.lower_aggregates`), needed groups: the reference; `test_needed_groups`
- numbers of derivations (`planning.lower`): the reference; `test_autoinc`
- heads solved backwards (`planning.solving`): the reference, after updates; `torture.computed_heads`
- demand (`planning.demand`): the reference, and what it says of the value asked for; `planning.test_demand`
- a query's own rules and what it reads (`analysis.query`, `evaluation.restricting`): not here,
  `session.test_queries`
- what the debugger asks (`analysis.rephrase`): not here, `debugging.test_random`, by brute force
- shares of tasks (`planning.decompose`): not here, `spark.test_programs`, `spark.test_updates`: the reference
- rules that come and go (`program.rule_change`, guards of `planning.lower`): not here, `rules.test_random`
- orders, lookups, forks, waiting tests (`planning.order` and others): not here, they change no rule; the reference
  all the same
"""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.planning.demand import with_demand, with_existence_apart
from elastalog.program import Program
from tests.engine.judging import Facts, comparable, facts_of, follow
from tests.generators.construction import EVERYTHING, Features, GeneratedProgram, written
from tests.generators.seeded import seeded_case, seeded_program
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate
from tests.tables import table

NEGATIONS = Features(negated_groups=True, tested_groups=True, witnesses=True)
MORE = Features(negated_groups=True, nested_aggregates=True, ranges=True, text_functors=True)
ENGINES: tuple[dict[str, Any], ...] = (
    {},
    {"strategy": "recompute"},
    {"strategy": "dense"},
    {"strategy": "bfc"},
    {"engine": "gpu"},
    {"levels": "global"},
)


def wanted_by(text: str, explicit: Any) -> Facts:
    """What follows from what was written."""
    found = evaluate(parse_accepted(text), explicit, with_text_facts=False)
    return {name: set(map(comparable, facts)) for name, facts in found.items()}


# --- what was written ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_negations_at_random(options: dict[str, Any]) -> None:
    is_annotated = not {"strategy"} & options.keys()
    for seed in range(14):
        program, steps = seeded_case(seed + 100 * ENGINES.index(options), NEGATIONS)
        follow(program, steps[:2], is_annotated=is_annotated, **options)


def test_everything_at_random() -> None:
    for seed in range(25):
        program, steps = seeded_case(seed, EVERYTHING)
        follow(program, steps[:2], is_annotated=False)


GRAPH = {"n": [(x,) for x in range(7)], "e": [(1, 2), (2, 0), (0, 4), (4, 5), (1, 3), (3, 6), (6, 1)]}
DECLARED = ".decl n(x: number)\n.decl e(x: number, y: number)\n.input n\n.input e\n.decl r(x: number)\n"
MEANING = {
    "a subsumption": "r(x) :- n(x). r(x) <= r(y) :- !(10 / y > 3), y > x.",
    "a choice": "r(x) :- c(_, x). .decl c(x: number, y: number) choice-domain x c(0, x) :- n(x), !(10 / x > 0).",
    "an aggregate of alternatives": "r(c) :- c = count : { n(x), !(e(x, _), !(!e(_, x))) }.",
    "an aggregate in one of several alternatives": "r(c) :- c = count : { n(x), (1 < count : { e(_, _) } ; x > 2) }.",
    "a range that another variable has": "r(c) :- c = sum x : { n(x), (x = range(0, 3) ; x > 1) }.",
    "a range in an expression": "r(c) :- c = count : { n(x), x < range(0, 4) }.",
    "a record in one of several alternatives": "r(c) :- c = count : { n(x), (q([x, _]) ; x > 2) }. "
    ".type R = [a: number, b: number] .decl q(r: R) q([x, y]) :- e(x, y).",
    "a negated record that is computed": "r(x) :- n(x), !q([10 / x]). "
    ".type R = [a: number] .decl q(r: R) q([5]) :- n(2).",
    "the mean of what is left": "r(x) :- n(x), !(mean y : { e(x, y), !(6 / y > 2) } < 9.0).",
    "three times": "r(x) :- n(x), !!!(12 / x > 3).",
}


@pytest.mark.parametrize("options", ENGINES[:2], ids=str)
@pytest.mark.parametrize("rules", MEANING.values(), ids=MEANING)
def test_what_is_written_is_what_is_meant(rules: str, options: dict[str, Any]) -> None:
    text = DECLARED + rules
    with elastalog.open(text, facts=GRAPH, **options) as db:
        db.apply({"n": [(8,)]}, {"e": [(4, 5)]})
        explicit = {"n": {*GRAPH["n"], (8,)}, "e": {*GRAPH["e"]} - {(4, 5)}}
        assert set(db["r"]) == wanted_by(text, explicit)["r"] != set()


# --- inline --------------------------------------------------------------------------------------------------------


def with_inline(program: GeneratedProgram, chosen: set[str]) -> str:
    """The program with some relations inline, and without the directives that these cannot have."""
    lines = program.text.splitlines()
    kept = [line for line in lines if not (line.startswith(".output") and line.split()[1] in chosen)]
    declared = re.compile(rf"\.decl ({'|'.join(chosen)})\(.*\)$")
    return "\n".join(f"{line} inline" if declared.match(line) else line for line in kept) + "\n"


@pytest.mark.parametrize("number", [60, pytest.param(150, marks=pytest.mark.long)])
def test_inline_relations_at_random(number: int) -> None:
    accepted = 0
    for seed in range(number):
        choice = Random(seed)
        program, steps = seeded_case(seed, NEGATIONS if seed % 2 else MORE)
        derived = [name for name in program.schemas if name not in program.inputs]
        chosen = set(choice.sample(derived, min(len(derived), 1 + choice.randrange(2))))
        text = with_inline(program, chosen)
        facts = {name: known for name, known in program.facts.items() if name not in chosen}
        changed = {name for update in steps for name in (*update.inserted, *update.deleted)}
        try:
            inlined = elastalog.open(text, facts=facts)
        except ElastalogError as fault:
            refused = {found.code for found in fault.diagnostics if found.severity == "error"}
            if refused <= {"E0226", "E0221"}:  # in a circle, or counted; too many alternatives
                continue
            raise
        with inlined, elastalog.open(program.text, facts=facts) as plain:
            accepted += 1
            explicit = {**program.explicit, **{name: set() for name in chosen}}
            for update in [None, *(steps if changed.isdisjoint(chosen) else ())]:
                if update is not None:
                    plain.apply(update.inserted, update.deleted)
                    inlined.apply(update.inserted, update.deleted)
                    explicit = update.apply_to(explicit)
                own = {name: known for name, known in explicit.items() if name not in chosen}
                assert facts_of(inlined) == wanted_by(text, own), seed
                expected = facts_of(plain)
                assert facts_of(inlined) == {name: expected[name] for name in expected if name not in chosen}, seed
    assert accepted > number / 6


INLINE = {
    "what fails to compute": "q(x) :- n(x), 10 / x > 3. r(x) :- n(x), !q(x).",
    "a variable of its own": "q(x) :- e(x, y), e(y, z), z > 1. r(x) :- n(x), !q(x).",
    "of its own, under a count": "q(x) :- e(x, y), e(y, z), z > 1. r(c) :- c = count : { n(x), !q(x) }.",
    "of its own, in the head only": "q(x / y) :- e(x, y). r(x) :- n(x), !q(x).",
    "the argument has no value": "q(x) :- n(x). r(x) :- n(x), !q(10 / x).",
    "a least value of nothing": "q(x) :- n(x), min y : { e(x, y) } > 1. r(x) :- n(x), !q(x).",
    "not even that": "q(x) :- e(_, x), !e(x, _). r(c) :- c = count : { e(_, x), !q(x) }.",
    "in recursion": "q(x) :- e(_, x), 8 / x > 2. r(x) :- n(x), x = 1. r(y) :- r(x), e(x, y), !q(y).",
    "a witness that is bound outside": "q(x) :- 0 = min y : { e(x, y) }. r(x) :- n(x), q(x).",
    "a witness among alternatives": "q(x) :- n(x), x > 3 ; 0 = min y : { e(x, y) }. r(x) :- n(x), q(x).",
    "in a subsumption": "q(x) :- n(x), 8 / x > 2. r(x) :- n(x). r(x) <= r(y) :- !q(x), q(y).",
    "for any value": "q(x) :- e(x, y), y / x > 1. r(x) :- n(x), !q(_).",
}


@pytest.mark.parametrize("rules", INLINE.values(), ids=INLINE)
def test_inline_changes_no_answer(rules: str) -> None:
    texts = [f"{DECLARED}.decl q(x: number) {word}\n{rules}" for word in ("", "inline")]
    plain, inlined = (elastalog.open(text, facts=GRAPH) for text in texts)
    assert set(plain["r"]) == set(inlined["r"]) == wanted_by(texts[1], GRAPH)["r"]
    assert 0 < len(plain["r"]) < 7 or "_" in rules


@pytest.mark.parametrize(("declared", "rules"), table(__file__, "inline that would change an answer is refused"))
def test_inline_that_would_change_an_answer_is_refused(declared: str, rules: str) -> None:
    with pytest.raises(ElastalogError, match="E0226"):
        elastalog.open(f"{DECLARED}.decl q(x: number, y: number) {declared}\n{rules}")


# --- components ----------------------------------------------------------------------------------------------------


def test_components_at_random() -> None:
    """The rules of a program inside a component are those of its instance; facts stay outside."""
    for seed in range(20):
        program = seeded_program(seed, Features(negated_groups=True, records=True, branches=True, witnesses=True))
        lines = program.text.splitlines()
        types = [line for line in lines if line.startswith(".type")]
        rest = [line for line in lines if line not in types]
        wrapped = "\n".join([*types, ".comp C {", *rest, "}", ".init i = C"])
        with elastalog.open(program.text, facts=program.facts) as plain:
            renamed = {f"i.{name}": known for name, known in program.facts.items()}
            with elastalog.open(wrapped, facts=renamed) as inside:
                assert {f"i.{name}": facts for name, facts in facts_of(plain).items()} == facts_of(inside)


# --- demand --------------------------------------------------------------------------------------------------------


def test_demand_at_random() -> None:
    """Facts with some value in the first place: those that follow from what was written."""
    compared = 0
    for seed in range(30):
        program = seeded_program(seed, NEGATIONS if seed % 2 else EVERYTHING)
        wanted = wanted_by(program.text, program.explicit)
        derived = [name for name in program.schemas if program.schemas[name] and name not in program.inputs]
        for name in derived:
            schema, columns = program.schemas[name], range(1, len(program.schemas[name]))
            attributes = ", ".join(f"a{i}: {schema[i]}" for i in (0, *columns))
            values = {fact[0] for fact in wanted[name]} | {3 if schema[0] == "number" else "d"}
            if schema[0] in ("R", "A"):
                continue
            value = min(values)
            terms = ", ".join([written(value), *(f"v{i}" for i in columns)])
            text = f"{program.text}.decl asked({attributes})\nasked({terms}) :- {name}({terms}).\n"
            parsed = Program.parse(text)
            restricted = replace(parsed, checked=with_demand(parsed.checked, ("asked",)))
            with elastalog.open(restricted, facts=program.facts) as db:
                assert set(map(comparable, db["asked"])) == {f for f in wanted[name] if f[0] == value}, (seed, name)
            compared += 1
    assert compared > 40


def test_existence_at_random() -> None:
    """What shares no variable with the head, in rules that are added to a program and in its own."""
    apart = 0
    for seed in range(20):
        program = seeded_program(seed, NEGATIONS if seed % 2 else EVERYTHING)
        terms = {name: [f"v{i}" for i in range(len(kinds))] for name, kinds in program.schemas.items()}
        names, text = sorted(terms), program.text
        for number, (one, two) in enumerate(zip(names, [*names[1:], names[0]], strict=True)):
            head, others = ", ".join(terms[one]), ", ".join(f"_{term}" for term in terms[two])
            again, any_other = (", ".join("_" for _ in terms[name]) for name in (one, two))
            attributes = ", ".join(f"a{i}: {kind}" for i, kind in enumerate(program.schemas[one]))
            text += f".decl x{number}({attributes})\n.decl y{number}()\n"
            text += f"x{number}({head}) :- {one}({head}), {two}({others}), {one}({again}).\n"
            text += f"y{number}() :- {two}({others}), x{number}({again}), !{two}({any_other}).\n"
        parsed = Program.parse(text)
        changed = replace(parsed, checked=with_existence_apart(parsed.checked))
        apart += sum(name.startswith("@exists") for name in changed.checked.relations)
        with elastalog.open(text, facts=program.facts) as plain, elastalog.open(changed, facts=program.facts) as db:
            assert facts_of(plain) == {name: facts for name, facts in facts_of(db).items() if name[0] != "@"}, seed
    assert apart > 150
