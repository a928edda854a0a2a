"""Random programs whose values improve in recursion: least and greatest values, several relations in a stratum, copies,
sums and bounds, weights below 0 that come and go, relations without such a value, negation and aggregates above. Under
every strategy, with updates, previews and stores, judged by the reference."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.engine.judging import least_budget
from tests.provenance.databases import require_proofs
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate

DECLARED = ".decl e(x: number, y: number, w: number)\n.decl c(x: number)\n.decl s(x: number)\n"
OTHERS: tuple[dict[str, Any], ...] = (
    {"strategy": "elastic"}, {"strategy": "recompute"}, {"strategy": "dred"}, {"strategy": "dredc"},
    {"strategy": "bf"}, {"strategy": "bfc"}, {"strategy": "dense"}, {"strategy": "elastic", "jobs": 2},
)  # fmt: skip
EPOCHS = 30


def lattices(seed: int) -> int:
    """The number of epochs that were judged, in all sessions."""
    random = Random(seed)
    is_acyclic = random.random() < 0.3
    text, relations = _program(random, is_acyclic)
    tree = parse_accepted(text)
    explicit: dict[str, set[Any]] = {name: set() for name in ("e", "c", "s", *relations)}
    ways: list[dict[str, Any]] = [{"strategy": "elastic", "budget": None}, *random.sample(OTHERS, 2)]
    judged = 0
    with TemporaryDirectory() as folder, least_budget(3):
        store: Path | None = Path(folder) / "store" if random.random() < 0.3 else None
        sessions = [elastalog.open(text, store=store if not place else None, **way) for place, way in enumerate(ways)]
        for epoch in range(EPOCHS):
            come, go = _update(random, explicit, relations, is_acyclic)
            explicit = {name: (own - go.get(name, set())) | come.get(name, set()) for name, own in explicit.items()}
            wanted = evaluate(tree, explicit)
            for place, db in enumerate(sessions):
                if random.random() < 0.1:
                    db.preview(go, come)
                db.apply(come, go)
                for name, facts in wanted.items():
                    assert set(db[name]) == facts, (seed, epoch, ways[place], name, set(db[name]) ^ facts)
                judged += 1
            if store is not None and epoch % 10 == 9:
                sessions[0].close()
                sessions[0] = elastalog.open(store=store, budget=None)
            if epoch == EPOCHS // 2 and random.random() < 0.3:
                _refuse(sessions[0])
        for db in sessions:
            assert db.verify().is_exact, (seed, ways)
        require_proofs(sessions[0], explicit, *relations, most=5)
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


def _program(random: Random, is_acyclic: bool) -> tuple[str, dict[str, int]]:
    """A program, and its relations whose values improve, by their numbers of columns."""
    relations: dict[str, int] = {}
    lines = [DECLARED]
    directions = {}
    same = random.choice(("min", "max"))
    for name in "fgh"[: random.randint(1, 3)]:
        directions[name] = same if random.random() < 0.8 else random.choice(("min", "max"))
        relations[name] = random.choice((2, 2, 2, 3))
        keys = "a: number, x: number" if relations[name] == 3 else "x: number"
        if random.random() < 0.25:
            lines.append(f".decl {name}({keys}, n: number)")
            key, better = ("a, x" if relations[name] == 3 else "x"), "<" if directions[name] == "min" else ">"
            lines.append(f"{name}({key}, i) <= {name}({key}, j) :- j {better} i.")
        else:
            lines.append(f".decl {name}({keys}, n: {directions[name]} number)")
    names = list(relations)
    for name in names:
        for _ in range(random.randint(1, 2)):
            lines.append(_base(random, name, relations[name]))
    for _ in range(random.randint(1, 4)):
        lines.append(_link(random, random.choice(names), random.choice(names), relations, directions, is_acyclic))
    lines += _above(random, names, relations)
    return "\n".join(lines) + "\n", relations


def _base(random: Random, name: str, width: int) -> str:
    key, other = ("x, x", "x, y") if width == 3 else ("x", "y")
    return random.choice(
        (
            f"{name}({key}, {random.randrange(5)}) :- s(x).",
            f"{name}({key}, x) :- s(x).",
            f"{name}({other}, w) :- e(x, y, w).",
            f"{name}({key}, x + 2) :- s(x), !c(x).",
            f"{name}({'0, 1' if width == 3 else '1'}, {random.randrange(6)}).",
        )
    )


def _link(
    random: Random, head: str, read: str, relations: dict[str, int], directions: dict[str, str], is_acyclic: bool
) -> str:
    """A rule that hands a value on: along an edge, either way, or to the same key."""
    is_least = directions[head] == "min"
    plain = ["n", "n", "n + w" if is_least else "n - w", "n + 1" if is_least else "n - 1"]
    plain += ["max(n, w)" if is_least else "min(n, w)", "w + n + 1" if is_least else "n - w - 1"]
    plain += ["n + w * 2" if is_least else "n - w * 2"]
    if is_acyclic:
        plain += ["n - 1", "n + 1", "min(n, w)", "max(n, w)", "n - w", "n + w"]
    value = random.choice(plain)
    if random.random() < 0.15 and "w" not in value and value in ("n", "n + 1" if is_least else "n - 1"):
        swapped = random.random() < 0.3 and relations[head] == relations[read] == 3 and not is_acyclic
        one = "a, x" if relations[read] == 3 else "x"
        other = ("x, a" if swapped else "a, x") if relations[head] == 3 and relations[read] == 3 else "x"
        other = "x, x" if relations[head] == 3 and relations[read] == 2 else other
        if not (is_acyclic and value != "n"):
            return f"{head}({other}, {value}) :- {read}({one}, n)."
    start, end = ("x", "y") if is_acyclic or random.random() < 0.8 else ("y", "x")
    context = "a" if relations[read] == 3 else start
    one = f"a, {start}" if relations[read] == 3 else start
    other = f"{context}, {end}" if relations[head] == 3 else end
    more = random.choice(("", "", "", f", !c({end})", f", s({end})", ", w < 3", ", n < 6"))
    body = [f"{read}({one}, n)", "e(x, y, w)"]
    random.shuffle(body)
    return f"{head}({other}, {value}) :- {', '.join(body)}{more}."


def _above(random: Random, names: list[str], relations: dict[str, int]) -> list[str]:
    name = random.choice(names)
    wild = ", ".join("_" * (relations[name] - 2))
    first = f"{wild}, " if wild else ""
    found = [f".decl none(x: number)\nnone(x) :- e(x, _, _), !{name}({first}x, _)."]
    if random.random() < 0.5:
        found.append(f".decl total(n: number)\ntotal(k) :- k = sum n : {{ {name}({first}_, n) }}.")
    if random.random() < 0.25:
        key = "0, x" if relations[name] == 3 else "x"
        found.append(f".decl q(x: number)\nq(y) :- {name}({first}x, _), e(x, y, _).\n{name}({key}, 4) :- q(x).")
    return found


def _update(
    random: Random, explicit: dict[str, set[Any]], relations: dict[str, int], is_acyclic: bool
) -> tuple[dict[str, set[Any]], dict[str, set[Any]]]:
    come: dict[str, set[Any]] = {}
    go: dict[str, set[Any]] = {}
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        name = random.choice((*"eeeeeecss", *relations))
        if explicit[name] and random.random() < 0.45:
            go.setdefault(name, set()).add(random.choice(sorted(explicit[name])))
        else:
            come.setdefault(name, set()).add(_fact(random, name, relations, is_acyclic))
    return come, go


def _fact(random: Random, name: str, relations: dict[str, int], is_acyclic: bool) -> tuple[int, ...]:
    if name != "e":
        return tuple(random.randrange(5) for _ in range(relations.get(name, 1)))
    x, y = random.randrange(5), random.randrange(5)
    if is_acyclic:
        x, y = (x, y) if x < y else (y, y + 1) if x == y else (y, x)
        return x, y, random.choice((0, 1, 2, 3, 3, -1, -2)) if random.random() < 0.5 else random.randrange(3)
    return x, y, random.choice((0, 0, 1, 2, 3))
