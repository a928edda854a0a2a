"""Rules over classes and properties: those without a name are unfolded, and the rest is written in the language."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count
from typing import Final

from elastalog.late import dataclass
from elastalog.rdf.ontology import Graph
from elastalog.rdf.vocabulary import CLASS, PROPERTY, SAME, Names

UNEQUAL: Final = "!="
_MOST: Final = 12
"""A class without a name goes if at most so many rules more come of it."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation, by kind and term or by its own name, and arguments: variables, terms of RDF, and
    plain texts behind a `=`."""

    relation: tuple[str, str]
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and which ones of the profile it comes from."""

    head: Atom
    body: tuple[Atom, ...]
    origin: str


_Key = tuple[Atom, tuple[Atom, ...]]
"""What a rule says, wherever it comes from."""


def _is_variable(argument: str) -> bool:
    return argument[0] not in '<"_='


def unfolded(rules: list[Rule], asserted: set[str]) -> list[Rule]:
    """Rules without the classes and properties that have no name, where few rules come of it."""
    known: dict[_Key, Rule] = {}
    heads: dict[tuple[str, str], dict[_Key, None]] = {}
    uses: dict[tuple[str, str], dict[_Key, None]] = {}

    def take(rule: Rule) -> None:
        rule = _standard(rule)
        key = (rule.head, rule.body)
        if rule.head in rule.body or key in known:
            return
        known[key] = rule
        heads.setdefault(rule.head.relation, {})[key] = None
        for atom in rule.body:
            uses.setdefault(atom.relation, {})[key] = None

    for rule in rules:
        take(rule)
    nameless = {node for node in (*heads, *uses) if node[0] in (CLASS, PROPERTY) and node[1][:2] == "_:"}
    for node in sorted(node for node in nameless if node[1] not in asserted):
        defining, using = list(heads.get(node, ())), list(uses.get(node, ()))
        is_twice = any(sum(atom.relation == node for atom in known[key].body) > 1 for key in using)
        is_recursive = not set(defining).isdisjoint(using)
        if is_recursive or is_twice or len(defining) * len(using) > len(defining) + len(using) + _MOST:
            continue
        made = [_resolved(known[use], node, known[own]) for use in using for own in defining]
        for key in {*defining, *using}:
            rule = known.pop(key)
            heads[rule.head.relation].pop(key)
            for atom in rule.body:
                uses[atom.relation].pop(key, None)
        for one in made:
            if one is not None:
                take(one)
    return list(known.values())


def _resolved(use: Rule, node: tuple[str, str], definition: Rule) -> Rule | None:
    """A rule with another one's body in the place of its atom; None if they do not meet."""
    place = next(i for i, atom in enumerate(use.body) if atom.relation == node)
    called = use.body[place].arguments
    values: dict[str, str] = {}
    renamed = {v: f"{v}'" for atom in (definition.head, *definition.body) for v in atom.arguments if _is_variable(v)}

    def value(argument: str) -> str:
        while argument in values:
            argument = values[argument]
        return argument

    for own, given in zip(definition.head.arguments, called, strict=True):
        one, other = value(renamed.get(own, own)), value(given)
        if one == other:
            continue
        if _is_variable(one):
            values[one] = other
        elif _is_variable(other):
            values[other] = one
        else:
            return None

    def bound(atom: Atom, names: dict[str, str]) -> Atom:
        return Atom(atom.relation, tuple(value(names.get(a, a)) for a in atom.arguments))

    inserted = [bound(atom, renamed) for atom in definition.body]
    body = [bound(atom, {}) for atom in use.body]
    origins = dict.fromkeys([*use.origin.split(", "), *definition.origin.split(", ")])
    return Rule(
        bound(use.head, {}), tuple(dict.fromkeys([*body[:place], *inserted, *body[place + 1 :]])), ", ".join(origins)
    )


_LETTERS: Final = ("x", "y", "z", *(f"x{number}" for number in range(1, 100)))


def _standard(rule: Rule) -> Rule:
    """A rule with its variables called in the order in which they appear; where it comes from says nothing."""
    names: dict[str, str] = {}
    for atom in (rule.head, *rule.body):
        for argument in atom.arguments:
            if _is_variable(argument) and argument not in names:
                names[argument] = _LETTERS[len(names)]

    def named(atom: Atom) -> Atom:
        return Atom(atom.relation, tuple(names.get(a, a) for a in atom.arguments))

    return Rule(named(rule.head), tuple(map(named, rule.body)), rule.origin)


# --- text ------------------------------------------------------------------------------------------------------------


def constant(term: str) -> str:
    """A term as a constant of the language."""
    escaped = (
        term.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    )
    return f'"{escaped}"'


def rule_text(rule: Rule, names: Names) -> str:
    """A rule in the language."""
    used = [argument for atom in (rule.head, *rule.body) for argument in atom.arguments]

    def argument(text: str) -> str:
        if _is_variable(text):
            return text if used.count(text) > 1 else "_"
        return constant(text.removeprefix("="))

    def atom(one: Atom) -> str:
        kind, term = one.relation
        listed = [argument(a) for a in one.arguments]
        if one.relation[1] == UNEQUAL:
            return f"{listed[0]} != {listed[1]}"
        if kind == "datatype":
            return f"rdf_datatype({listed[0]}) = {constant(term)}"
        return f"{names.relations[one.relation] if kind else term}({', '.join(listed)})"

    if not rule.body:
        return f"{atom(rule.head)}."
    return f"{atom(rule.head)} :- {', '.join(map(atom, rule.body))}."


def equality_rules(kind: str, name: str) -> list[str]:
    """What holds of one holds of what is the same (eq-rep-s, eq-rep-o)."""
    if kind == CLASS:
        return [f"{name}(y) :- {name}(x), {SAME}(x, y)."]
    return [f"{name}(y, z) :- {name}(x, z), {SAME}(x, y).", f"{name}(z, y) :- {name}(z, x), {SAME}(x, y)."]


def words_for(graph: Graph, nodes: Iterable[str]) -> dict[str, str]:
    """What classes and properties without a name are called: `some_takesCourse`, `intersection_1`."""
    words: dict[str, str] = {}
    numbers = count(1)
    forms = (
        ("owl:someValuesFrom", "some"), ("owl:allValuesFrom", "all"), ("owl:hasValue", "value"),
        ("owl:maxCardinality", "most"), ("owl:maxQualifiedCardinality", "most"), ("owl:intersectionOf", "intersection"),
        ("owl:unionOf", "union"), ("owl:oneOf", "one_of"), ("owl:complementOf", "not"), ("owl:inverseOf", "inverse"),
    )  # fmt: skip
    for node in sorted(nodes):
        word = next((word for name, word in forms if graph.objects(node, name)), "nameless")
        named = [*graph.objects(node, "owl:onProperty"), *graph.objects(node, "owl:inverseOf")]
        last = re.sub(r"\W", "_", re.split(r"[#/]", named[0].strip("<>"))[-1]) if named else ""
        words[node] = f"{word}_{last or next(numbers)}"
    return words
