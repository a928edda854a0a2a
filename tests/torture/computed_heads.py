"""Rules that compute their heads, recursive and not, under every strategy: looking for other derivations of a fact goes
backwards through the computation, at the limits of the types too."""

from __future__ import annotations

from random import Random
from typing import Any

import elastalog
from elastalog.evaluation.strategies import STRATEGIES
from tests.engine.judging import LEVEL_KINDS, Facts, comparable, facts_of, least_budget, levels_of
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate
from tests.reference.levels import Levels, levels
from tests.torture.comparing import Lineup, Runner

ACCEPTING = Lineup(
    (
        *({"strategy": name} for name in sorted(STRATEGIES) if name != "counting"),
        {"strategy": "elastic", "levels": "global"},
        {"strategy": "elastic", "budget": None},
    )
)
"""All ways but one that accepts no recursion."""

EPOCHS = 30
"""Of a program: to open a session under every strategy takes as long as several of them."""

NODES = 4

NUMBERS = (
    "d + w", "w + d", "d - w", "w - d", "-d", "-(d - w)", "2 * d + w", "d * -3", "(d + w) * 2", "d bxor w", "bnot d",
    "d + d", "d * w", "d / 2", "d + w - d", "utoi(itou(d band 63)) + w", "min(d, w)", "d % 4 + w",
)  # fmt: skip
UNSIGNED = ("d + w", "d - w", "w - d", "3 * d", "d bxor w", "bnot d", "d + d", "d / 2 + w")
TEXTS = ("cat(d, w)", "cat(w, d)", 'cat("a", d)', 'cat("a", d, w)', "cat(w, d, w)", "d + w", "substr(cat(d, w), 1, 3)")
FLOATS = ("d + w", "d - w", "d * 2.0", "-d", "d / 3.0 + w")
RECORDS = ("[x, d]", "[w, d + 1]", "[d - w, 2 * d]")
WRAPPING = ("d + w", "w - d", "3 * d", "-7 * d + w", "2 * d", "d * d", "-d")

HIGHEST, LOWEST = 2**63 - 1, -(2**63)


def computed_heads(seed: int, lineup: Lineup = ACCEPTING) -> int:
    """Every epoch of every strategy beside the reference; of elastic levels and counts too, local and global. Returns
    how many epochs of a session there were."""
    random = Random(seed)
    base = random.choice(("number", "number", "number", "unsigned", "symbol", "float", "R", "wrap"))
    text, values = program(random, base)
    judge = judge_wrapping if base == "wrap" else judge_by_reference
    edges = [(x, y, random.choice(values)) for x in range(NODES) for y in range(NODES) if random.random() < 0.3]
    explicit: Facts = {"e": set(edges), "s": {(0, random.choice(values)), (1, random.choice(values))}}
    given = {name: sorted(facts, key=repr) for name, facts in explicit.items()}
    runners = [Runner.open(text, given, way) for way in lineup.drawn(random)]
    compared = 0
    with least_budget(random.choice((0, 5, 2_000))):  # so that some updates are abandoned, small as they are
        for _ in range(EPOCHS):
            gone = {name: _some(random, facts, 0.2) for name, facts in explicit.items()}
            come = {
                "e": [(random.randrange(NODES), random.randrange(NODES), random.choice(values)) for _ in range(2)],
                "s": [(random.randrange(3), random.choice(values))] if random.random() < 0.3 else [],
            }
            explicit = {name: (facts - set(gone[name])) | set(come[name]) for name, facts in explicit.items()}
            expected, annotated = judge(text, explicit)
            for runner in runners:
                runner.db.apply(come, gone)
                assert facts_of(runner.db) == expected, (runner.way, text)
                if runner.is_annotated:
                    assert levels_of(runner.db) == annotated[runner.levels], (runner.way, text)
                compared += runner.is_counted()
    for runner in runners:
        runner.db.close()
    return compared


def _some(random: Random, facts: set[tuple[Any, ...]], share: float) -> list[tuple[Any, ...]]:
    return [fact for fact in sorted(facts, key=repr) if random.random() < share]


def judge_by_reference(text: str, explicit: Facts) -> tuple[Facts, dict[str, Levels]]:
    """All facts, and their levels and counts by kind, as the reference says."""
    tree = parse_accepted(text)
    wanted = evaluate(tree, explicit, with_text_facts=False)
    annotated = {
        kind: {
            (name, comparable(fact)): pair
            for (name, fact), pair in levels(tree, explicit, kind, with_text_facts=False, known=wanted).items()
        }
        for kind in LEVEL_KINDS
    }
    return {name: set(map(comparable, facts)) for name, facts in wanted.items()}, annotated


def judge_wrapping(text: str, explicit: Facts) -> tuple[Facts, dict[str, Levels]]:
    """The same by evaluation from the start: the reference knows no integers that wrap."""
    given = {name: sorted(facts, key=repr) for name, facts in explicit.items()}
    fresh = {kind: elastalog.open(text, given, levels=kind) for kind in LEVEL_KINDS}
    return facts_of(fresh["local"]), {kind: levels_of(db) for kind, db in fresh.items()}


def program(random: Random, base: str) -> tuple[str, list[Any]]:
    """A program that walks over edges and computes on the way, and the values that its edges may have."""
    declared = {"R": "number", "wrap": "number"}.get(base, base)
    start = "d" if base != "R" else "[x, d]"
    match base:
        case "number":
            heads, values, guard = NUMBERS, [-3, -1, 0, 1, 2, 5], "-60 <= v, v <= 60"
            if random.random() < 0.4:
                values, guard = [-1, 0, 1, 2**30, 2**31 - 2, -(2**30) - 1], f"{-(2**31)} <= v, v <= {2**31}"
            elif random.random() < 0.2:
                heads, values = ("d + w", "w + d", "d - w", "d bxor w"), [0, 1, HIGHEST // 4, LOWEST // 4]
                guard = f"{LOWEST // 3} <= v, v <= {HIGHEST // 3}"
        case "unsigned":
            # A difference below 0 is an error: the walk goes on only where it is none.
            heads, values, guard = UNSIGNED, [0, 1, 2, 5, 2**31], f"v <= {2**33}"
        case "wrap":
            heads, values, guard = WRAPPING, [0, 1, -3, HIGHEST, LOWEST, LOWEST + 1], "v != 7"
        case "symbol":
            heads, values, guard = TEXTS, ["", "a", "ab", "b", "ba"], "strlen(v) <= 4"
        case "float":
            heads, values, guard = FLOATS, [0.0, 0.1, -0.5, 1.0, 1e16], "-4.0 <= v, v <= 4.0"
        case _:
            heads, values, guard = RECORDS, [0, 1, 2], None
    kept = "number" if base == "wrap" else base
    rules = [
        '.pragma "arithmetic" "wrap"' if base == "wrap" else "",
        ".type R = [first: number, rest: number]" if base == "R" else "",
        f".decl e(x: number, y: number, w: {declared})",
        f".decl s(x: number, d: {declared})",
        f".decl p(x: number, d: {kept}, n: number)",
        f".decl q(d: {kept}, n: number)",
        f"p(x, {start}, 0) :- s(x, d).",
    ]
    for _ in range(random.randint(1, 2)):
        expression = random.choice(heads)
        tests = ["n < 3", *([] if base == "R" else [f"v = {expression}"]), *([guard] if guard else [])]
        if base == "unsigned" and "-" in expression:
            tests.insert(0, "d >= w" if expression == "d - w" else "w >= d")
        source = "[_, d]" if base == "R" else "d"
        made = "v" if base != "R" and random.random() < 0.5 else expression
        count = random.choice(("n + 1", "1 + n", "5 - (4 - n)"))
        rules.append(f"p(y, {made}, {count}) :- p(x, {source}, n), e(x, y, w), {', '.join(tests)}.")
    rules.append(random.choice(("q(d, x + n) :- p(x, d, n), !e(x, x, _).", "q(d, 2 * x - n) :- p(x, d, n).")))
    if random.random() < 0.3 and "!" not in rules[-1]:
        rules.append("p(n - 1, d, 3) :- q(d, n), 0 < n, n < 4.")
    return "\n".join(rules), values
