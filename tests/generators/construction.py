"""Random stratified programs that are accepted and terminate by construction, from any source of choices.

Relations stand in layers: inputs first, then components of one or two derived relations each. A rule of a component
reads positively its own component and what is below, under negation and in aggregates only what is below. Values stay
few: arithmetic results are guarded by `0 <= v < 6` wherever they could feed back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from elastalog import Branch
from tests.generators.choices import Choices, chance, pick, several, shuffled

Fact = tuple[Any, ...]
VARIABLES: dict[str, tuple[str, ...]] = {"number": ("x", "y", "z", "w"), "symbol": ("s", "t")}
VARIABLES |= {"R": ("r", "q"), "A": ("i", "j")}
# Of aggregates: the same in each, never used outside.
LOCALS: dict[str, tuple[str, ...]] = {"number": ("k", "l"), "symbol": ("c", "d"), "R": ("g", "h"), "A": ("m", "o")}
RECORDS = ".type R = [a: number, b: R]"
BRANCHES = ".type A = None {} | One {a: number} | More {a: number, b: A}"


@dataclass(frozen=True, slots=True)
class Features:
    """What a program may contain."""

    negation: bool = True
    aggregates: bool = True
    arithmetic: bool = True
    disjunctions: bool = True
    symbols: bool = True
    recursion: bool = True
    several_heads: bool = True
    text_facts: bool = True
    ranges: bool = False
    """`x = range(0, y)`, also with a step."""
    text_functors: bool = False
    """`match`, `contains`, `strlen`, `substr`, `cat`, conversions."""
    records: bool = False
    branches: bool = False
    """Values of an algebraic data type."""
    nested_aggregates: bool = False
    equivalences: bool = False
    """Relations of two values of one type with `eqrel`."""
    choices: bool = False
    """Derived relations with a choice domain."""
    subsumptions: bool = False
    """Derived relations of which facts leave that have a greater last value than another with the same first ones."""
    witnesses: bool = False
    """Variables that a least or greatest value gives values: `w = min k : { e(k, y) }`."""
    numbers: bool = False
    """`autoinc()` in heads of rules that read only what is below."""
    negated_groups: bool = False
    """`!(…)`: of conjunctions and alternatives, of what is negated already, of comparisons that have no value."""
    tested_groups: bool = False
    """Aggregates that only test a variable of the rule around them: `count : { e(k), k < x }`."""


EVERYTHING = Features(**{feature.name: True for feature in fields(Features)})


@dataclass(frozen=True, slots=True)
class GeneratedProgram:
    """`facts` are explicit facts besides those in the text, which are `text_facts`; `inputs` are without rules."""

    text: str
    schemas: dict[str, tuple[str, ...]]
    inputs: tuple[str, ...]
    facts: dict[str, list[Fact]]
    text_facts: dict[str, list[Fact]]

    @property
    def explicit(self) -> dict[str, set[Fact]]:
        """All explicit facts of the first epoch. Those that the text says of a relation with a choice domain or a
        subsumption are candidates, as what its rules derive is."""
        judged = set(re.findall(r"(?m)^\.decl (\w+)\(.*choice-domain|^(?=.* <= .* :- v2)(\w+)\(", self.text))
        names = {name for pair in judged for name in pair}
        own = {name: facts for name, facts in self.text_facts.items() if name not in names}
        return {name: {*self.facts.get(name, ()), *own.get(name, ())} for name in self.schemas}

    def __str__(self) -> str:
        return f"{self.text}\n// {self.facts}"


@dataclass(slots=True)
class Scope:
    """The variables of a rule that are bound so far, by type, with the names that may still be taken."""

    bound: dict[str, list[str]] = field(default_factory=lambda: {"number": [], "symbol": [], "R": [], "A": []})
    names: dict[str, tuple[str, ...]] = field(default_factory=lambda: VARIABLES)
    results: int = 0

    def child(self) -> Scope:
        return Scope({base: list(names) for base, names in self.bound.items()}, LOCALS)

    def restricted_to(self, names: set[str]) -> Scope:
        return Scope({base: [n for n in bound if n in names] for base, bound in self.bound.items()}, self.names)


def build_program(choices: Choices, features: Features) -> GeneratedProgram:
    return Construction(choices, features).build()


def build_fact(choices: Choices, schema: tuple[str, ...]) -> Fact:
    return tuple(build_value(choices, base) for base in schema)


def build_value(choices: Choices, base: str) -> Any:
    if base == "R":
        return (choices.integer(0, 2), build_value(choices, base)) if chance(choices, 60) else None
    if base == "A":
        name = pick(choices, ("None", "One", "More"))
        parts = [] if name == "None" else [choices.integer(0, 2)]
        return Branch(name, *parts, *([build_value(choices, base)] if name == "More" else []))
    return choices.integer(0, 4) if base == "number" else pick(choices, "abcd")


def written(value: Any) -> str:
    if isinstance(value, Branch):
        return f"${value.name}({', '.join(map(written, value.parts))})" if value.parts else f"${value.name}"
    if value is None or isinstance(value, tuple):
        return "nil" if value is None else f"[{', '.join(map(written, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


class Construction:
    def __init__(self, choices: Choices, features: Features) -> None:
        self.choices = choices
        self.features = features
        self.schemas: dict[str, tuple[str, ...]] = {}

    # --- programs

    def build(self) -> GeneratedProgram:
        inputs = tuple(self.relation(f"e{i}", (2, 1, 2, 2, 3, 0)) for i in self.several(1, 3, 55))
        layers = [list(inputs)]
        for _ in self.several(1, 3, 60):
            size = 2 if self.chance(30) else 1
            first = len(self.schemas) - len(inputs)
            layers.append([self.relation(f"p{i}", (1, 2, 2, 2, 2, 2, 0, 3)) for i in range(first, first + size)])
        clauses = [
            self.clause(name, layers, depth, is_first=number == 0)
            for depth in range(1, len(layers))
            for name in layers[depth]
            for number in self.several(1, 4, 70)
        ]
        text_facts = self.facts(inputs, 40 if self.features.text_facts else 0, 5)
        facts = self.facts(inputs, 100, 12)
        lines = [*([RECORDS] if self.features.records else []), *([BRANCHES] if self.features.branches else [])]
        numbered = {text.partition("(")[0] for text in clauses if re.match(r"[^:]*(autoinc|\$[,)])", text)}
        special = {name: self.special(name, name in inputs, name in numbered) for name in self.schemas}
        lines += [f".decl {name}({self.attributes(s)}){special[name][0]}" for name, s in self.schemas.items()]
        lines += [f"{self.atom_text(name, map(written, f))}." for name, known in text_facts.items() for f in known]
        lines += clauses
        lines += [line for _, line in special.values() if line]
        lines += [f".output {name}" for layer in layers[1:] for name in layer]
        return GeneratedProgram("\n".join(lines) + "\n", dict(self.schemas), inputs, facts, text_facts)

    def relation(self, name: str, arities: tuple[int, ...]) -> str:
        arity = self.pick(arities)
        is_symbolic = self.features.symbols and self.chance(30)
        special = "symbol" if not self.features.records or self.chance(30) else "R"
        special = "A" if self.features.branches and self.chance(40) else special
        self.schemas[name] = tuple(special if is_symbolic and self.chance(50) else "number" for _ in range(arity))
        return name

    def special(self, name: str, is_input: bool, is_numbered: bool) -> tuple[str, str]:
        """What makes a relation special, if anything does: the end of its declaration, and a line. The closure of many
        numbers would take the judges long."""
        schema = self.schemas[name]
        if (
            self.features.equivalences
            and not is_numbered
            and len(schema) == 2
            and len(set(schema)) == 1
            and self.chance(50)
        ):
            return " eqrel", ""
        if self.features.choices and schema and not is_input and self.chance(40):
            return f" choice-domain {self.pick(('a0', f'a{len(schema) - 1}', '(a0)'))}", ""
        if self.features.subsumptions and schema and schema[-1] == "number" and not is_input and self.chance(40):
            first = [f"u{i}" for i in range(len(schema) - 1)]
            one, other = (self.atom_text(name, [*first, last]) for last in ("v", "v2"))
            order = self.pick(("<", ">"))
            step = "" if is_numbered else self.step(name, order == "<")
            return "", f"{one} <= {other} :- v2 {order} v.{step}"
        return "", ""

    def step(self, name: str, is_least: bool) -> str:
        """As shortest paths go on: a rule that hands a number on to other keys, and lets it grow only where the least
        stays, and nothing puts numbers together to ever new keys. Without an input of two such keys there is none."""
        schema = self.schemas[name]
        inputs = [other for other in self.schemas if other[0] == "e" and self.schemas[other].count(schema[0]) > 1]
        if not self.features.recursion or len(schema) < 2 or not inputs:
            return ""
        other = self.pick(inputs)
        places = shuffled(self.choices, [i for i, base in enumerate(self.schemas[other]) if base == schema[0]])
        link = ["_"] * len(self.schemas[other])
        link[places[0]], link[places[1]] = "u0", "z"
        rest = [f"u{i}" for i in range(1, len(schema) - 1)]
        number = self.pick(("v", "v + 1", "2 + v")) if is_least else "v"
        if any("R" in bases or "A" in bases for bases in self.schemas.values()):
            number = "v"
        head, own = self.atom_text(name, ["z", *rest, number]), self.atom_text(name, ["u0", *rest, "v"])
        return f"\n{head} :- {own}, {self.atom_text(other, link)}."

    def facts(self, inputs: tuple[str, ...], percent: int, most: int) -> dict[str, list[Fact]]:
        """Up to `most` facts of `percent` of the input relations; of derived relations two at most, now and then."""
        found: dict[str, list[Fact]] = {}
        for name, schema in self.schemas.items():
            is_input = name in inputs
            if self.chance(percent if is_input else min(percent, 20)):
                many = self.several(0, most, 88) if is_input else self.several(0, 2, 60)
                known = dict.fromkeys(build_fact(self.choices, schema) for _ in many)
                found.update({name: list(known)} if known else {})
        return found

    @staticmethod
    def attributes(schema: tuple[str, ...]) -> str:
        return ", ".join(f"a{i}: {base}" for i, base in enumerate(schema))

    @staticmethod
    def atom_text(name: str, arguments: Any) -> str:
        return f"{name}({', '.join(arguments)})"

    # --- rules

    def clause(self, name: str, layers: list[list[str]], depth: int, is_first: bool) -> str:
        below = [relation for layer in layers[:depth] for relation in layer]
        # Most first rules do not recur, or most relations would be empty.
        recurs = self.features.recursion and (not is_first or self.chance(15))
        readable = below + (layers[depth] * 2 if recurs else [])
        if self.chance(55):
            return self.chain(name, layers[depth] if recurs else below, readable, below, can_number=not recurs)
        scope, body = Scope(), list[str]()
        for _ in range(self.pick((1, 2, 2, 1, 3, 0))):
            body.append(self.positive(self.pick(readable), scope))
        is_group_only = False
        if self.features.disjunctions and self.chance(20):
            is_group_only = not body
            body.append(self.group(readable, scope, is_group_only))
        if not is_group_only:
            body += self.constraints(below, scope)
            if self.chance(30):
                body = shuffled(self.choices, body)
        guards: list[str] = []
        # Few numbers: a rule with one atom, and no other way to derive much.
        can_number = not (recurs or is_group_only or any(re.search("[{;]|!\\(", literal) for literal in body))
        can_number = can_number and sum(literal[0] in "ep" and "(" in literal for literal in body) < 2
        heads = [self.head(name, scope, guards, can_number=can_number)]
        if self.features.several_heads and self.chance(12):
            heads.append(self.head(self.pick([n for layer in layers[depth:] for n in layer]), scope, guards))
        if is_group_only and guards:
            body[0] = f"({body[0]})"
        text = ", ".join(body + guards) or self.pick(("true", "1 < 2", "0 != 1"))
        return f"{', '.join(heads)} :- {text}."

    def chain(
        self, name: str, extended: list[str], readable: list[str], below: list[str], can_number: bool = False
    ) -> str:
        """A rule that extends facts, of its own component as closures do: this is what gives high levels and counts."""
        scope = Scope()
        body = [self.positive(self.pick(extended), scope, is_plain=True)]
        if self.chance(75):
            body.append(self.positive(self.pick(readable), scope, is_plain=True))
        if self.features.negation and self.chance(25):
            body.append(f"!{self.filtering(self.pick(below), scope)}")
        if self.chance(25):
            body.append(self.comparison(scope))
        guards: list[str] = []
        head = self.head(name, scope, guards, is_plain=True, can_number=can_number and len(body) == 1)
        return f"{head} :- {', '.join(body + guards)}."

    def constraints(self, below: list[str], scope: Scope) -> list[str]:
        body: list[str] = []
        if self.features.arithmetic and self.chance(25):
            body += self.arithmetic(scope)
        if self.features.ranges and self.chance(40):
            body += self.generator(scope)
        if self.features.text_functors and self.chance(40):
            body.append(self.text_test(scope))
        if self.features.aggregates and self.chance(20):
            body.append(self.aggregate(below, scope))
        if self.features.negation and self.chance(30):
            body.append(f"!{self.filtering(self.pick(below), scope)}")
        if self.features.negated_groups and self.chance(50):
            body.append(f"!{self.negated(below, scope, 2)}")
        if self.chance(30):
            body.append(self.comparison(scope))
        if self.features.witnesses and self.chance(25):
            body += self.witness(below, scope)  # last: `n0 = x` would make x what n0 is grouped by
        return body

    def positive(self, name: str, scope: Scope, is_plain: bool = False) -> str:
        """An atom that binds variables and, where it can, meets one that is bound; a plain one has only variables."""
        schema = self.schemas[name]
        meeting = [i for i, base in enumerate(schema) if scope.bound[base]]
        joint = self.pick(meeting) if meeting and not self.chance(10) else None
        arguments, new = [], list[tuple[str, str]]()
        for i, base in enumerate(schema):
            if base in ("R", "A") and self.chance(40):
                arguments.append(self.pattern(base, scope, new))
            elif i == joint:
                arguments.append(self.pick(scope.bound[base]))
            elif not is_plain and self.chance(10):
                arguments.append(self.constant(base))
            elif not is_plain and self.chance(12):
                arguments.append("_")
            else:
                fresh = [n for n in scope.names[base] if n not in scope.bound[base]]
                variable = (
                    self.pick(fresh)
                    if fresh and not self.chance(5 if is_plain else 25)
                    else self.pick(scope.names[base])
                )
                arguments.append(variable)
                new.append((base, variable))
        for base, variable in new:
            if variable not in scope.bound[base]:
                scope.bound[base].append(variable)
        return self.atom_text(name, arguments)

    def pattern(self, base: str, scope: Scope, new: list[tuple[str, str]]) -> str:
        """A record or branch whose parts are bound by the atom that it is an argument of."""
        first, rest = (self.pick(scope.names[base]) for base in ("number", base))
        new.append(("number", first))
        if self.chance(20):
            return f"[{first}, nil]" if base == "R" else f"$One({first})"
        new.append((base, rest))
        return f"[{first}, {rest}]" if base == "R" else f"$More({first}, {rest})"

    def filtering(self, name: str, scope: Scope) -> str:
        """An atom that binds nothing."""
        return self.atom_text(name, [self.known(base, scope, wildcard=True) for base in self.schemas[name]])

    def negated(self, below: list[str], scope: Scope, depth: int) -> str:
        """What may stand behind a `!`; it binds nothing."""
        x, y, z = (self.known("number", scope) for _ in range(3))
        order = self.pick(("<", "!=", "=", "<=", ">", ">="))
        if depth and self.chance(50):
            parts = [self.pick(("", "!")) + self.negated(below, scope, depth - 1) for _ in range(self.pick((1, 2, 2)))]
            return f"({self.pick((', ', ' ; ')).join(parts)})"
        atom = self.filtering(self.pick(below), scope)
        counted = [name for name in below if "number" in self.schemas[name]]
        if counted and self.chance(50):
            name = self.pick(counted)
            terms = [self.known(base, scope, wildcard=True) for base in self.schemas[name]]
            place = self.pick([i for i, base in enumerate(self.schemas[name]) if base == "number"])
            computed = self.pick((f"{x} / {y}", f"{x} % {y}", f"range({x}, {y})", "min k : { ATOM, k != 2 }", "k"))
            before, terms[place] = list(terms), "k"
            member = self.atom_text(name, terms)
            if computed == "k":
                operator = self.pick(("min k", "max k", "sum k", "count", "mean k"))
                z = f"to_float({z})" if operator == "mean k" else z
                return f"({operator} : {{ {member} }} {order} {z})"
            before[place] = computed.replace("ATOM", member)
            return self.atom_text(name, before)
        infinite = f"to_float({x}) * 10.0 ^ 400.0"  # NaN for 0
        return self.pick(
            (
                atom,
                f"({self.comparison(scope)})",
                f"({x} / {y} {order} {z})",
                f"({x} = range({y}, {z}))",
                f"({infinite} {order} to_float({y}))",
                f"(min({infinite}, to_float({y})) {order} max(1.0, {infinite}))",
                f"(to_number({self.known('symbol', scope)}) {order} {z})",
                f"(2 ^ ({x} - {y}) {order} {z})",
            )
        )

    def group(self, readable: list[str], scope: Scope, is_alone: bool) -> str:
        """A disjunction; either all its alternatives bind the same variable or none binds any."""
        bases = sorted({base for name in readable for base in self.schemas[name]})
        fresh = [(base, n) for base in bases for n in scope.names[base] if n not in scope.bound[base]]
        binds = self.pick(fresh) if fresh and self.chance(60) else None
        options = [name for name in readable if not binds or binds[0] in self.schemas[name]]
        alternatives: list[str] = []
        for _ in range(3 if self.chance(20) else 2):
            name = self.pick(options)
            arguments = [self.known(base, scope, wildcard=True) for base in self.schemas[name]]
            if binds:
                places = [i for i, base in enumerate(self.schemas[name]) if base == binds[0]]
                arguments[self.pick(places)] = binds[1]
            filters = [self.comparison(scope)] if self.chance(20) else []
            alternatives.append(", ".join([self.atom_text(name, arguments), *filters]))
        if binds:
            scope.bound[binds[0]].append(binds[1])
        text = " ; ".join(alternatives)
        return text if is_alone else f"({text})"

    def arithmetic(self, scope: Scope) -> list[str]:
        fresh = [name for name in scope.names["number"] if name not in scope.bound["number"]]
        if not fresh:
            return []
        variable = self.pick(fresh)
        equation = f"{variable} = {self.expression(scope)}"
        scope.bound["number"].append(variable)
        return [equation, f"{variable} >= 0", f"{variable} < 6"]

    def generator(self, scope: Scope) -> list[str]:
        fresh = [name for name in scope.names["number"] if name not in scope.bound["number"]]
        if not fresh:
            return []
        variable, left, right = self.pick(fresh), self.known("number", scope), self.known("number", scope)
        scope.bound["number"].append(variable)
        return [
            self.pick(
                (
                    f"{variable} = range({left}, {right})",
                    f"{variable} = range(0, {right})",
                    f"{variable} = range({left}, {right}, {self.pick((1, 2, -1, 0))})",
                )
            )
        ]

    def text_test(self, scope: Scope) -> str:
        text, other, number = self.known("symbol", scope), self.known("symbol", scope), self.known("number", scope)
        return self.pick(
            (
                f'match("[ab]+", {text})',
                f'match({text}, cat({other}, "a"))',
                f"contains({text}, cat({text}, {other}))",
                f"strlen(cat({text}, {other})) > {number}",
                f'substr(cat({text}, "bcd"), {number}, 2) != {other}',
                f"to_number(to_string({number})) = {number}",
                f"min({text}, {other}) <= {other}",
            )
        )

    def expression(self, scope: Scope) -> str:
        left, right = self.known("number", scope), self.known("number", scope)
        return pick(
            self.choices,
            (
                f"{left} + 1",
                f"{left} + {right}",
                f"{left} - {right}",
                f"{left} * {right}",
                f"{left} / {right}",
                f"{left} % {right}",
                f"max({left}, {right})",
                f"min({left}, {right}, 3)",
                f"{left} bxor {right}",
                f"({left} + {right}) / 2",
            ),
        )

    def aggregate(self, below: list[str], scope: Scope) -> str:
        inner = scope.child()
        atoms = [self.positive(self.pick(below), inner) for _ in range(2 if self.chance(30) else 1)]
        if not self.features.tested_groups:
            inner = inner.restricted_to(set(re.findall(r"\w+", " ".join(atoms))))
        own = [name for name in inner.bound["number"] if name in LOCALS["number"]]
        if self.chance(25):
            atoms.append(self.comparison(inner))
        if self.features.negation and self.chance(15):
            atoms.append(f"!{self.filtering(self.pick(below), inner)}")
        if self.features.negated_groups and self.chance(30):
            atoms.append(f"!{self.negated(below, inner, 1)}")
        if self.features.nested_aggregates and self.chance(25):
            atoms.append(self.inner_aggregate(below, inner))
        operator = self.pick(("count", "sum", "min", "max", "mean", "count", "sum")) if own else "count"
        target = "" if operator == "count" else f" {self.pick(own)}"
        text = f"{operator}{target} : {{ {', '.join(atoms)} }}"
        if operator == "mean":
            return f"{text} {self.pick(('<', '>=', '!='))} {self.pick(('1.5', '2.0', '0.25'))}"
        if self.chance(30):
            return f"{text} {self.pick(('=', '<', '>', '!='))} {self.choices.integer(0, 4)}"
        result = f"n{scope.results}"
        scope.results += 1
        scope.bound["number"].append(result)
        return f"{result} = {text}"

    def inner_aggregate(self, below: list[str], scope: Scope) -> str:
        """An aggregate in another, over facts that may meet what is bound around both."""
        atom = self.filtering(self.pick(below), scope)
        return f"p = count : {{ {atom} }}, p {self.pick(('<', '>=', '!='))} {self.pick((1, 2))}"

    def witness(self, below: list[str], scope: Scope) -> list[str]:
        """A least or greatest value, and a variable that has the values which attain it."""
        options = [name for name in below if "number" in self.schemas[name] and len(self.schemas[name]) > 1]
        if not options:
            return []
        name = self.pick(options)
        schema = self.schemas[name]
        target = self.pick([place for place, base in enumerate(schema) if base == "number"])
        attaining = self.pick([place for place in range(len(schema)) if place != target])
        fresh = [v for v in scope.names[schema[attaining]] if v not in scope.bound[schema[attaining]]]
        if not fresh:
            return []
        variable, result = self.pick(fresh), f"n{scope.results}"
        arguments = [self.known(base, scope, wildcard=True) for base in schema]
        arguments[target], arguments[attaining] = "k", variable
        scope.results += 1
        scope.bound["number"].append(result)
        scope.bound[schema[attaining]].append(variable)
        tests = [f"k != {self.choices.integer(0, 4)}"] if self.chance(25) else []
        members = ", ".join([self.atom_text(name, arguments), *tests])
        return [f"{result} = {self.pick(('min', 'max'))} k : {{ {members} }}"]

    def comparison(self, scope: Scope) -> str:
        for made in ("R", "A"):
            if scope.bound[made] and self.chance(30):
                return f"{self.pick(scope.bound[made])} {self.pick(('=', '!='))} {self.known(made, scope)}"
        base = "symbol" if scope.bound["symbol"] and self.chance(40) else "number"
        left = self.known(base, scope)
        others = [name for name in scope.bound[base] if name != left]
        right = self.pick(others) if others and self.chance(60) else self.constant(base)
        return f"{left} {self.pick(('<', '!=', '=', '<=', '>', '>='))} {right}"

    def head(self, name: str, scope: Scope, guards: list[str], is_plain: bool = False, can_number: bool = False) -> str:
        arguments = list[str]()
        for base in self.schemas[name]:
            unused = [variable for variable in reversed(scope.bound[base]) if variable not in arguments]
            argument = self.pick(unused) if is_plain and unused else self.known(base, scope)
            if base == "R" and scope.bound["number"] and self.chance(25):
                tail = self.pick(["nil", "[1, nil]"])  # what is built does not grow, or recursion would not end
                argument = f"[{self.pick(scope.bound['number'])}, {tail}]"
            if base == "A" and scope.bound["number"] and self.chance(25):
                number = self.pick(scope.bound["number"])
                argument = self.pick([f"$One({number})", f"$More({number}, $None)"])
            if base == "number" and can_number and self.features.numbers and self.chance(30):
                argument = self.pick(["autoinc()", "$"])
            if base == "number" and self.features.arithmetic and argument in scope.bound[base] and self.chance(12):
                guards.append(f"{argument} < 5")
                argument = f"{argument} + 1"
            arguments.append(argument)
        return self.atom_text(name, arguments)

    # --- terms

    def known(self, base: str, scope: Scope, wildcard: bool = False) -> str:
        """A term whose value is known: mostly a bound variable; `_` where a wildcard may stand."""
        if wildcard and self.chance(30):
            return "_"
        bound = scope.bound[base]
        return self.pick(bound) if bound and not self.chance(15) else self.constant(base)

    def constant(self, base: str) -> str:
        if base in ("R", "A"):
            return written(build_value(self.choices, base))
        return str(self.choices.integer(0, 4)) if base == "number" else f'"{self.pick("abcd")}"'

    def pick(self, options: Any) -> Any:
        return pick(self.choices, options)

    def several(self, low: int, high: int, percent: int) -> Iterator[int]:
        return several(self.choices, low, high, percent)

    def chance(self, percent: int) -> bool:
        return chance(self.choices, percent)
