"""Random programs whose values improve in recursion: least and greatest numbers, floats and texts, several relations in
a stratum, copies, sums and bounds, of one fact and of two, weights below 0 that come and go, relations without such a
value, negation and aggregates above; lattices of sets with functors in Python and in C. Under every strategy, with
updates, previews and stores, judged by the reference."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.engine.judging import least_budget
from tests.provenance.databases import require_proofs
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate
from tests.reference.values import FUNCTORS, Overflow

DECLARED = ".decl e(x: number, y: number, w: {kind})\n.decl c(x: number)\n.decl s(x: number)\n"
VALUES: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, 2, 3, 4), "float": (0.0, 0.1, 0.2, 0.3, 7e-9), "symbol": ("", "B", "a", "ab", "é"),
}  # fmt: skip
SETS = """
.type Set <: number
.functor join(a: number, b: number): number
.functor meet(a: number, b: number): number
.lattice Set<> { Bottom -> 0, Lub -> @join(_, _), Glb -> @meet(_, _) }
"""
IN_C = "long join(long a, long b) { return a | b; }\nlong meet(long a, long b) { return a & b; }\n"
IN_PYTHON: dict[str, Any] = {"join": int.__or__, "meet": int.__and__}
FUNCTORS.update({f"@{name}": function for name, function in IN_PYTHON.items()})
OTHERS: tuple[dict[str, Any], ...] = (
    {"strategy": "elastic"}, {"strategy": "recompute"}, {"strategy": "dred"}, {"strategy": "dredc"},
    {"strategy": "bf"}, {"strategy": "bfc"}, {"strategy": "dense"}, {"strategy": "elastic", "jobs": 2},
)  # fmt: skip
EPOCHS = 30


def lattices(seed: int) -> int:
    """The number of epochs that were judged, in all sessions."""
    random = Random(seed)
    kind = random.choice(("number", "number", "float", "symbol", "set"))
    is_acyclic = kind in ("number", "float") and random.random() < 0.3
    text, relations = _of_sets(random) if kind == "set" else _program(random, kind, is_acyclic)
    tree = parse_accepted(text)
    explicit: dict[str, set[Any]] = {name: set() for name in ("e", "c", "s", *relations)}
    ways: list[dict[str, Any]] = [{"strategy": "elastic", "budget": None}, *random.sample(OTHERS, 2)]
    if kind == "set":
        ways = [{**way, **_functors(random.random() < 0.5)} for way in ways]
    judged = 0
    with TemporaryDirectory() as folder, least_budget(3):
        store: Path | None = Path(folder) / "store" if random.random() < 0.3 else None
        sessions = [elastalog.open(text, store=store if not place else None, **way) for place, way in enumerate(ways)]
        for epoch in range(EPOCHS):
            come, go = _update(random, explicit, relations, kind, is_acyclic)
            explicit = {name: (own - go.get(name, set())) | come.get(name, set()) for name, own in explicit.items()}
            try:
                wanted = evaluate(tree, explicit)
            except Overflow:  # on the way to the least values, which sessions may take otherwise: nothing to compare
                return judged
            for place, db in enumerate(sessions):
                if random.random() < 0.1:
                    db.preview(go, come)
                db.apply(come, go)
                for name, facts in wanted.items():
                    assert set(db[name]) == facts, (seed, epoch, ways[place], name, set(db[name]) ^ facts)
                judged += 1
            if store is not None and epoch % 10 == 9:
                sessions[0].close()
                again = {name: ways[0][name] for name in ("functors", "libraries") if name in ways[0]}
                sessions[0] = elastalog.open(store=store, budget=None, **again)
            if epoch == EPOCHS // 2 and kind == "number" and random.random() < 0.3:
                _refuse(sessions[0])
        for db in sessions:
            assert db.verify().is_exact, (seed, ways)
        require_proofs(sessions[0], explicit, *relations, most=5, functors=IN_PYTHON)
        for db in sessions:
            db.close()
    return judged


def _refuse(db: elastalog.Session) -> None:
    """An update that fails leaves everything as it was, ranks included."""
    before = {name: set(db[name]) for name in db}
    try:
        db.apply({"e": [(0, 1, 2**63 - 1), (1, 2, 2**63 - 1)]})
    except ElastalogError:
        assert {name: set(db[name]) for name in db} == before
    else:
        db.apply(deleted={"e": [(0, 1, 2**63 - 1), (1, 2, 2**63 - 1)]})


@cache
def _library() -> Path | None:
    """The functors of sets in C, where there is a compiler."""
    compiler, folder = shutil.which("cc"), Path(mkdtemp())
    (folder / "sets.c").write_text(IN_C)
    if compiler is None:
        return None
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libsets.so", folder / "sets.c"], check=True)
    return folder / "libsets.so"


def _functors(is_in_c: bool) -> dict[str, Any]:
    return {"libraries": [_library()]} if is_in_c and _library() is not None else {"functors": IN_PYTHON}


def _of_sets(random: Random) -> tuple[str, dict[str, int]]:
    """A program with lattices, and its relations that have them."""
    names = list("fgh"[: random.randint(1, 3)])
    lines = [SETS, DECLARED.format(kind="Set")]
    lines += [f".decl {name}(x: number, v: Set<>)" for name in names]
    for _ in range(random.randint(2, 6)):
        head, one, other = (random.choice(names) for _ in range(3))
        start, end = random.choice(("xy", "xy", "yx"))
        lines.append(
            random.choice(
                (
                    f"{head}(y, w) :- e(_, y, w).",
                    f"{head}({end}, v) :- {one}({start}, v), e(x, y, _).",
                    f"{head}({end}, v bor w) :- e(x, y, w), {one}({start}, v).",
                    f"{head}({end}, v) :- {one}({start}, v), e(x, y, _), !c({end}).",
                    f"{head}(x, v) :- {one}(x, v), {other}(x, v).",
                    f"{head}({end}, v) :- {one}({start}, v), e(x, y, _), {other}({end}, v).",
                    f"{head}(y, @join(v, w)) :- {one}(x, v), {other}(y, w), e(x, y, _).",
                )
            )
        )
    return "\n".join([*lines, *_above(random, names, dict.fromkeys(names, 2), "set")]) + "\n", dict.fromkeys(names, 2)


def _program(random: Random, kind: str, is_acyclic: bool) -> tuple[str, dict[str, int]]:
    """A program, and its relations whose values improve, by their numbers of columns."""
    relations: dict[str, int] = {}
    lines = [DECLARED.format(kind=kind)]
    directions = {}
    same = random.choice(("min", "max"))
    for name in "fgh"[: random.randint(1, 3)]:
        directions[name] = same if random.random() < 0.8 else random.choice(("min", "max"))
        relations[name] = random.choice((2, 2, 2, 3))
        keys = "a: number, x: number" if relations[name] == 3 else "x: number"
        if random.random() < 0.25:
            lines.append(f".decl {name}({keys}, n: {kind})")
            key, better = ("a, x" if relations[name] == 3 else "x"), "<" if directions[name] == "min" else ">"
            lines.append(f"{name}({key}, i) <= {name}({key}, j) :- j {better} i.")
        else:
            lines.append(f".decl {name}({keys}, n: {directions[name]} {kind})")
    names = list(relations)
    for name in names:
        for _ in range(random.randint(1, 2)):
            lines.append(_base(random, name, relations[name], kind))
    for _ in range(random.randint(1, 4)):
        lines.append(_link(random, random.choice(names), random.choice(names), relations, directions, kind, is_acyclic))
    plain = [name for name in names if relations[name] == 2 and directions[name] == directions[names[0]]]
    if plain and not is_acyclic and random.random() < 0.4:
        head, one, other = (random.choice(plain) for _ in range(3))
        worse = "max(n, m)" if directions[head] == "min" else "min(n, m, w)"
        value = random.choice((worse, "n + m") if directions[head] == "min" and kind != "symbol" else (worse,))
        lines.append(f"{head}(y, {value}) :- {one}(x, n), {other}(y, m), e(x, y, w).")
    lines += _above(random, names, relations, kind)
    return "\n".join(lines) + "\n", relations


def _said(value: Any) -> str:
    """A value as a program says it."""
    return f'"{value}"' if isinstance(value, str) else format(value, "f") if isinstance(value, float) else str(value)


def _base(random: Random, name: str, width: int, kind: str) -> str:
    key, other = ("x, x", "x, y") if width == 3 else ("x", "y")
    found = [
        f"{name}({key}, {_said(random.choice(VALUES[kind]))}) :- s(x).",
        f"{name}({other}, w) :- e(x, y, w).",
        f"{name}({'0, 1' if width == 3 else '1'}, {_said(random.choice(VALUES[kind]))}).",
    ]
    if kind == "number":
        found += [f"{name}({key}, x) :- s(x).", f"{name}({key}, x + 2) :- s(x), !c(x)."]
    return random.choice(found)


def _link(
    random: Random,
    head: str,
    read: str,
    relations: dict[str, int],
    directions: dict[str, str],
    kind: str,
    is_acyclic: bool,
) -> str:
    """A rule that hands a value on: along an edge, either way, or to the same key."""
    is_least, one = directions[head] == "min", _said(VALUES[kind][1])
    plain = ["n", "n", "max(n, w)" if is_least else "min(n, w)"]
    if kind != "symbol":
        plain += [f"n + {one}", "n + w", f"w + n + {one}", "n + w * w"] if is_least else []
        plain += [f"n - {one}", "n - w", f"n - w - {one}", "n - w * w"] if not is_least else []
    if is_acyclic:
        plain += [f"n - {one}", f"n + {one}", "min(n, w)", "max(n, w)", "n - w", "n + w"]
    value = random.choice(plain)
    if random.random() < 0.15 and "w" not in value and value in ("n", f"n + {one}" if is_least else f"n - {one}"):
        swapped = random.random() < 0.3 and relations[head] == relations[read] == 3 and not is_acyclic
        key = "a, x" if relations[read] == 3 else "x"
        other = ("x, a" if swapped else "a, x") if relations[head] == 3 and relations[read] == 3 else "x"
        other = "x, x" if relations[head] == 3 and relations[read] == 2 else other
        if not (is_acyclic and value != "n"):
            return f"{head}({other}, {value}) :- {read}({key}, n)."
    start, end = ("x", "y") if is_acyclic or random.random() < 0.8 else ("y", "x")
    context = "a" if relations[read] == 3 else start
    key = f"a, {start}" if relations[read] == 3 else start
    other = f"{context}, {end}" if relations[head] == 3 else end
    most = _said(VALUES[kind][3])
    more = random.choice(("", "", "", f", !c({end})", f", s({end})", f", w < {most}", f", n < {most}"))
    body = [f"{read}({key}, n)", "e(x, y, w)"]
    random.shuffle(body)
    return f"{head}({other}, {value}) :- {', '.join(body)}{more}."


def _above(random: Random, names: list[str], relations: dict[str, int], kind: str) -> list[str]:
    name = random.choice(names)
    wild = ", ".join("_" * (relations[name] - 2))
    first = f"{wild}, " if wild else ""
    found = [f".decl none(x: number)\nnone(x) :- e(x, _, _), !{name}({first}x, _)."]
    if random.random() < 0.5:
        fold = {"float": "max n", "symbol": "count"}.get(kind, "sum n")
        of = "float" if kind == "float" else "number"
        found.append(f".decl total(n: {of})\ntotal(k) :- k = {fold} : {{ {name}({first}_, n) }}.")
    if kind == "number" and random.random() < 0.25:
        key = "0, x" if relations[name] == 3 else "x"
        found.append(f".decl q(x: number)\nq(y) :- {name}({first}x, _), e(x, y, _).\n{name}({key}, 4) :- q(x).")
    return found


def _update(
    random: Random, explicit: dict[str, set[Any]], relations: dict[str, int], kind: str, is_acyclic: bool
) -> tuple[dict[str, set[Any]], dict[str, set[Any]]]:
    come: dict[str, set[Any]] = {}
    go: dict[str, set[Any]] = {}
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        name = random.choice((*"eeeeeecss", *relations))
        if explicit[name] and random.random() < 0.45:
            go.setdefault(name, set()).add(random.choice(sorted(explicit[name])))
        else:
            come.setdefault(name, set()).add(_fact(random, name, relations, kind, is_acyclic))
    return come, go


def _fact(random: Random, name: str, relations: dict[str, int], kind: str, is_acyclic: bool) -> tuple[Any, ...]:
    if kind == "set":
        given = 2 ** random.randrange(4) | 2 ** random.randrange(4)
    else:
        given = random.choice(VALUES[kind])
    if name != "e":
        width = relations.get(name, 1)
        return (*(random.randrange(5) for _ in range(width - 1)), random.randrange(5) if width == 1 else given)
    x, y = random.randrange(5), random.randrange(5)
    if is_acyclic:
        x, y = (x, y) if x < y else (y, y + 1) if x == y else (y, x)
        return x, y, -given if random.random() < 0.2 else given
    return x, y, given
