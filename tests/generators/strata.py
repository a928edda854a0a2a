"""Programs with one large stratum: dozens of rules over a handful of relations, some of which read relations that stay
empty, grow along a chain while others stay as they are, or make texts and records; and above it joins by every subset
of columns, aggregates and negations. Updates take most facts away, and bring them back."""

from __future__ import annotations

from itertools import combinations
from random import Random

from tests.generators.construction import Fact, GeneratedProgram
from tests.generators.updates import Update

INPUTS = {"e": 2, "f": 2, "n": 1, "s": 2, "none": 2, "never": 1, "w": 5}
_RECORDS = ".type L = [head: number, tail: L]"


def large_case(seed: int, most_rules: int = 120, most_updates: int = 8) -> tuple[GeneratedProgram, list[Update]]:
    """A program of 20 rules or more, and updates for it; the same seed always gives the same case."""
    return _Strata(Random(seed), most_rules).case(most_updates)


class _Strata:
    def __init__(self, random: Random, most_rules: int) -> None:
        self.random = random
        self.size = random.randint(3, 6)
        self.length = random.choice((4, 12, 30))
        self.number = random.randint(20, max(20, most_rules))
        self.own = {f"p{i}": random.choice((1, 2, 2, 2, 3)) for i in range(random.randint(2, 6))} | {"r": 2}
        self.widths = {**INPUTS, **self.own}

    def case(self, most_updates: int) -> tuple[GeneratedProgram, list[Update]]:
        random = self.random
        above, lines = self.above()
        schemas = {name: ("number",) * width for name, width in {**self.widths, **above}.items()}
        rules = [*self.connections(), *(self.rule() for _ in range(self.number))]
        random.shuffle(rules)
        if random.random() < 0.4:
            schemas |= {"t": ("symbol",), "l": ("L", "number")}
            lines = [*lines, *self.values()]
        types = [_RECORDS] if "l" in schemas else []
        declared = [
            f".decl {name}({', '.join(f'c{i}: {base}' for i, base in enumerate(schema))})"
            for name, schema in schemas.items()
        ]
        facts = {name: self.facts(name) for name in INPUTS if name not in ("none", "never")}
        facts |= {name: self.some(name, 2) for name in self.own if random.random() < 0.3}
        text = "\n".join([*types, *declared, *rules, *lines]) + "\n"
        written: dict[str, list[Fact]] = {"t": [("a",)], "l": [(None, 0)]} if types else {}
        program = GeneratedProgram(text, schemas, tuple(INPUTS), facts, written)
        return program, self.updates(program, random.randint(2, most_updates))

    # --- rules

    def connections(self) -> list[str]:
        """What makes one stratum of all relations, by rules that mostly never fire; and what grows."""
        names = list(self.own)
        found = [
            f"{name}({', '.join('x' * self.own[name])}) :- {other}({self.names(other)}), none(x, a)."
            for name, other in zip(names, names[1:] + names[:1], strict=True)
        ]
        return [*found, "r(c, n) :- r(c, m), s(m, n).", "r(c, m) :- n(c), e(c, m)."]

    def names(self, relation: str) -> str:
        return ", ".join("abcdefgh"[: self.own[relation]])

    def rule(self) -> str:
        """A rule of two or three atoms that share variables, at least one of the stratum's own."""
        random = self.random
        head = random.choice([name for name in self.own if name != "r"] * 6 + ["r"])
        own = [random.choice(list(self.own)) for _ in range(random.choice((1, 1, 1, 2)))]
        others = random.choices(
            ("e", "f", "n", "s", "none", "never", "w"), (6, 4, 4, 3, 1, 1, 1), k=random.choice((1, 1, 2))
        )
        atoms, bound = [], list[str]()
        for name in random.sample([*own, *others], len(own) + len(others)):
            terms = []
            for _ in range(self.widths[name]):
                term = random.choice(bound) if bound and random.random() < 0.6 else random.choice("uvxyz")
                term = str(random.randrange(self.size)) if random.random() < 0.06 else term
                terms.append("_" if random.random() < 0.08 else term)
            bound += [term for term in terms if term.isalpha() and term not in bound]
            atoms.append(f"{name}({', '.join(terms)})")
        if not bound:
            return f"n({random.randrange(self.size)}) :- e(0, 1)."
        terms = [random.choice(bound) for _ in range(self.own[head])]
        if random.random() < 0.15:
            atoms.append(f"!n({random.choice(bound)})")
        if random.random() < 0.15:
            atoms.append(f"{random.choice(bound)} {random.choice(('!=', '<', '>='))} {random.choice(bound)}")
        text = f"{head}({', '.join(terms)}) :- {', '.join(atoms)}."
        positive = len(own) + len(others)
        if random.random() < 0.15:
            order = ", ".join(map(str, random.sample(range(1, positive + 1), positive)))
            text += f"\n.plan {random.randrange(len(own))}:({order})"
        return text

    def above(self) -> tuple[dict[str, int], list[str]]:
        """Joins with a relation of the stratum by subsets of its columns, aggregates and negations."""
        widths, rules = dict[str, int](), list[str]()
        for name in self.random.sample(list(self.own), min(3, len(self.own))):
            width = self.own[name]
            subsets = [columns for size in range(1, width + 1) for columns in combinations(range(width), size)]
            for number, columns in enumerate(self.random.sample(subsets, min(3, len(subsets)))):
                terms = [("x" if i == columns[0] else "y") if i in columns else f"o{i}" for i in range(width)]
                rest = [term for term in terms if term.startswith("o")]
                key = f"k{name}{number}"
                widths[key] = 2 + len(rest)
                rules.append(f"{key}({', '.join(['x', 'y', *rest])}) :- e(x, y), {name}({', '.join(terms)}).")
            fold = self.random.choice(("count", "max v", "min v", "sum v"))
            rest = ", ".join(["x", *"v" * (width - 1)]) if width < 3 else "x, v, _"
            if width > 1:
                widths[f"a{name}"] = 2
                rules.append(f"a{name}(x, m) :- n(x), m = {fold} : {{ {name}({rest}) }}.")
            widths[f"m{name}"] = 2
            absent = ", ".join(["x", "y", "x"][:width])
            rules.append(f"m{name}(x, y) :- e(x, y), !{name}({absent}).")
        return widths, rules

    def values(self) -> list[str]:
        """Texts and records that recursion makes."""
        return [
            't("a").',
            f't(cat(x, "b")) :- t(x), strlen(x) < {self.random.randint(2, 5)}.',
            't(cat("c", x)) :- t(x), strlen(x) < 3, e(0, _).',
            "l(nil, 0).",
            f"l([x, rest], i + 1) :- l(rest, i), i < {self.random.randint(1, 3)}, n(x).",
        ]

    # --- facts

    def fact(self, name: str) -> Fact:
        return tuple(self.random.randrange(self.size) for _ in range(self.widths[name]))

    def some(self, name: str, most: int, least: int = 0) -> list[Fact]:
        return sorted({self.fact(name) for _ in range(self.random.randint(least, most))})

    def facts(self, name: str) -> list[Fact]:
        if name == "s":
            return [(i, i + 1) for i in range(self.length)]
        return self.some(name, 3 if name == "w" else 2 * self.size, 2)

    def updates(self, program: GeneratedProgram, number: int) -> list[Update]:
        explicit, found = program.explicit, list[Update]()
        gone: dict[str, set[Fact]] = {}
        for _ in range(number):
            share = self.random.choice((0.0, 0.1, 0.1, 0.3, 0.9))
            named = [name for name in (*INPUTS, *self.own) if self.random.random() < 0.5]
            deleted = {
                name: [fact for fact in sorted(explicit[name]) if self.random.random() < share] for name in named
            }
            inserted = {name: self.some(name, 3) for name in named if self.random.random() < 0.6}
            if self.random.random() < 0.4:
                inserted = {name: sorted({*inserted.get(name, ()), *facts}) for name, facts in gone.items()}
            gone = {name: set(facts) for name, facts in deleted.items()}
            found.append(Update(deleted, inserted))
            explicit = found[-1].apply_to(explicit)
        return found
