"""OWL 2 RL axioms as rules over a relation for each class and each property.

Every rule of the profile (Tables 4 to 9 of OWL 2 Profiles) is instantiated with the axioms: for `A subClassOf B`, rule
cax-sco becomes `B(x) :- A(x).` Then classes without a name are unfolded: where such a class follows, its consequences
do. What is left derives the same facts about named classes and properties, and is written in the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, count, product
from typing import Final

from elastalog.analysis.graphs import reached
from elastalog.late import dataclass
from elastalog.rdf.ontology import Graph, cardinality, datatypes_in, is_datatype
from elastalog.rdf.vocabulary import CLASS, GROUP, INCONSISTENT, NOTHING, PROPERTY, SAME, THING, Names
from elastalog.syntax.keywords import write_string


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


def _class(node: str, x: str) -> Atom:
    return Atom((CLASS, node), (x,))


def _property(node: str, x: str, y: str) -> Atom:
    return Atom((PROPERTY, node), (x, y))


def _own(name: str, *arguments: str) -> Atom:
    return Atom(("", name), arguments)


def _conflict(rule: str, *arguments: str) -> Atom:
    return _own(INCONSISTENT, *(f"={rule}", *arguments, "=", "=")[:4])


def rules_of(graph: Graph, asserted: Iterable[str]) -> list[Rule]:
    """The rules of an ontology. `asserted`: classes without a name that data speak of, which stay."""
    rules = [*_rules_by_table(graph), *_other_rules(graph), *_schema_rules(graph)]
    rules = [rule for rule in map(_readable, rules) if rule is not None]
    return _with_thing(graph, unfolded(rules, set(asserted)))


# --- rules of the profile ------------------------------------------------------------------------------------------

_TABLE: Final = """
rdfs:subClassOf                cax-sco     B(x) :- A(x)
owl:equivalentClass            cax-eqc1    B(x) :- A(x)
owl:equivalentClass            cax-eqc2    A(x) :- B(x)
rdfs:domain                    prp-dom     B(x) :- A(x, y)
rdfs:range                     prp-rng     B(y) :- A(x, y)
rdfs:subPropertyOf             prp-spo1    B(x, y) :- A(x, y)
owl:equivalentProperty         prp-eqp1    B(x, y) :- A(x, y)
owl:equivalentProperty         prp-eqp2    A(x, y) :- B(x, y)
owl:inverseOf                  prp-inv1    B(y, x) :- A(x, y)
owl:inverseOf                  prp-inv2    A(y, x) :- B(x, y)
owl:complementOf               cls-com     conflict(x, A, B) :- A(x), B(x)
owl:SymmetricProperty          prp-symp    A(y, x) :- A(x, y)
owl:TransitiveProperty         prp-trp     A(x, z) :- A(x, y), A(y, z)
owl:FunctionalProperty         prp-fp      same(y, z) :- A(x, y), A(x, z), !=(y, z)
owl:InverseFunctionalProperty  prp-ifp     same(y, z) :- A(y, x), A(z, x), !=(y, z)
owl:IrreflexiveProperty        prp-irp     conflict(x, A) :- A(x, x)
owl:AsymmetricProperty         prp-asyp    conflict(x, y, A) :- A(x, y), A(y, x)
owl:intersectionOf[]           cls-int2    B(x) :- A(x)
owl:unionOf[]                  cls-uni     A(x) :- B(x)
owl:oneOf[]                    cls-oo      A(B)
owl:someValuesFrom             cls-svf1/2  A(x) :- P(x, y), B(y)
owl:allValuesFrom              cls-avf     B(y) :- A(x), P(x, y)
owl:hasValue                   cls-hv1     P(x, B) :- A(x)
owl:hasValue                   cls-hv2     A(x) :- P(x, B)
owl:maxCardinality=0           cls-maxc1   conflict(x, P, A) :- A(x), P(x, y)
owl:maxCardinality=1           cls-maxc2   same(y, z) :- A(x), P(x, y), P(x, z), !=(y, z)
owl:maxQualifiedCardinality=0  cls-maxqc1/2  conflict(x, P, A) :- A(x), P(x, y), C(y)
owl:maxQualifiedCardinality=1  cls-maxqc3/4  same(y, z) :- A(x), P(x, y), P(x, z), C(y), C(z), !=(y, z)
owl:propertyDisjointWith       prp-pdw     conflict(x, A, B) :- A(x, y), B(x, y)
owl:AllDisjointProperties*     prp-pdw     conflict(x, A, B) :- A(x, y), B(x, y)
owl:disjointWith               cax-dw      conflict(x, A, B) :- A(x), B(x)
owl:AllDisjointClasses*        cax-dw      conflict(x, A, B) :- A(x), B(x)
"""
"""Axioms, with the rules that are made of each: of a property by its subjects A and objects B, of a class by its
members A. B is each element of a list (`[]`), or A and B are any two that a member lists (`*`); or the object is a
number (`=`). P is the property of a restriction A, C the class that it counts. With `/` the second rule stands for the
first where a class is that of all things, and asks for nothing."""


def _rules_by_table(graph: Graph) -> Iterator[Rule]:
    """Most rules of Tables 5 to 7."""
    for line in _TABLE.strip().splitlines():
        axiom, names, text = line.split(maxsplit=2)
        name, _, other = names.partition("/")
        atoms = [(relation, each.split(", ")) for relation, each in re.findall(r"(!=|\w+)\(([^)]*)\)", text)]
        for a, b in _instances(graph, axiom):
            properties = graph.objects(a, "owl:onProperty") if "P(" in text else [""]
            for p, c in product(properties, graph.objects(a, "owl:onClass") if "C(" in text else [b]):
                meant = {"A": a, "B": b, "C": c, "P": p}
                is_open = bool(other) and c == THING
                used = name[:-1] + other if is_open else name
                head, *body = (
                    _atom(used, relation, [meant.get(x, x) for x in each], meant) for relation, each in atoms
                )
                yield Rule(head, tuple(atom for atom in body if not is_open or atom.relation != (CLASS, THING)), used)


def _instances(graph: Graph, axiom: str) -> Sequence[tuple[str, str]]:
    """What stands for A and B in the rules of an axiom of the table."""
    name, _, number = axiom.rstrip("[]*").partition("=")
    if number:
        return [(a, b) for a, b in graph.pairs(name) if cardinality(b) == int(number)]
    if axiom.endswith("[]"):
        return [(a, item) for a, listed in graph.pairs(name) for item in graph.items(listed)]
    if axiom.endswith("*"):
        lists = (listed for node in graph.members(name) for listed in graph.objects(node, "owl:members"))
        return [pair for listed in lists for pair in combinations(graph.items(listed), 2)]
    return graph.pairs(name) or [(member, "") for member in graph.members(name)]


def _atom(name: str, relation: str, arguments: Sequence[str], meant: Mapping[str, str]) -> Atom:
    """An atom of a rule of the table."""
    if relation == "conflict":
        return _conflict(name, *arguments)
    if relation not in meant:
        return _own(relation, *arguments)
    return Atom((CLASS if len(arguments) == 1 else PROPERTY, meant[relation]), tuple(arguments))


def _other_rules(graph: Graph) -> Iterator[Rule]:
    """The others of Tables 4 to 7."""
    for c, members in graph.pairs("owl:intersectionOf"):
        if items := graph.items(members):
            yield Rule(_class(c, "x"), tuple(_class(item, "x") for item in items), "cls-int1")
    for p, chain in graph.pairs("owl:propertyChainAxiom"):
        if items := graph.items(chain):
            body = tuple(_property(q, f"x{i}", f"x{i + 1}") for i, q in enumerate(items))
            yield Rule(_property(p, "x0", f"x{len(items)}"), body, "prp-spo2")
    for c, keys in graph.pairs("owl:hasKey"):
        if links := [_property(p, who, f"x{i}") for i, p in enumerate(graph.items(keys)) for who in "yz"]:
            body = (_class(c, "y"), _class(c, "z"), *links, _own(UNEQUAL, "y", "z"))
            yield Rule(_own(SAME, "y", "z"), body, "prp-key")
    for node, p in graph.pairs("owl:assertionProperty"):
        for source in graph.objects(node, "owl:sourceIndividual"):
            for target in [*graph.objects(node, "owl:targetIndividual"), *graph.objects(node, "owl:targetValue")]:
                yield Rule(_conflict("prp-npa1", source, p, target), (_property(p, source, target),), "prp-npa1")
    for node in graph.members("owl:AllDifferent"):
        for found in [*graph.objects(node, "owl:members"), *graph.objects(node, "owl:distinctMembers")]:
            for item in graph.items(found):
                yield Rule(_own(GROUP, node, item), (), "eq-diff2")
    yield Rule(_conflict("cls-nothing2", "x"), (_class(NOTHING, "x"),), "cls-nothing2")


def _schema_rules(graph: Graph) -> Iterator[Rule]:
    """Table 9, what follows of it for facts and not from the other rules: subclasses among restrictions."""
    above, higher = _hierarchies(graph)
    kinds = [("owl:someValuesFrom", "scm-svf"), ("owl:allValuesFrom", "scm-avf")]
    restrictions = {
        name: [(c, p, d) for c, d in graph.pairs(name) for p in graph.objects(c, "owl:onProperty")] for name, _ in kinds
    }
    while True:
        new = [
            (rule, c, d)
            for name, kind in kinds
            for rule, c, d in _subclasses(kind, restrictions[name], above, higher)
            if c != d and d not in _closed(c, above)
        ]
        if not new:
            return
        for rule, c, d in new:
            if d not in above.get(c, set()):
                above.setdefault(c, set()).add(d)
                yield Rule(_class(d, "x"), (_class(c, "x"),), rule)


def _hierarchies(graph: Graph) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The classes directly above each, and the properties."""
    above = {c: {THING} for c in (*graph.members("owl:Class"), *graph.members("rdfs:Class"))}
    same = graph.pairs("owl:equivalentClass")
    parts = [(c, item) for c, members in graph.pairs("owl:intersectionOf") for item in graph.items(members)]
    parts += [(item, c) for c, members in graph.pairs("owl:unionOf") for item in graph.items(members)]
    for c, d in [*graph.pairs("rdfs:subClassOf"), *same, *((d, c) for c, d in same), *parts]:
        above.setdefault(c, set()).add(d)
    higher: dict[str, set[str]] = {}
    same = graph.pairs("owl:equivalentProperty")
    for p, q in [*graph.pairs("rdfs:subPropertyOf"), *same, *((q, p) for p, q in same)]:
        higher.setdefault(p, set()).add(q)
    return above, higher


def _subclasses(
    kind: str,
    restrictions: list[tuple[str, str, str]],
    above: dict[str, set[str]],
    higher: dict[str, set[str]],
) -> Iterator[tuple[str, str, str]]:
    """Which restrictions of a kind are below which others, with the rule that says so."""
    by_pair: dict[tuple[str, str], list[str]] = {}
    for c, p, d in restrictions:
        by_pair.setdefault((p, d), []).append(c)
    for c, p, d in restrictions:
        yield from ((f"{kind}1", c, other) for y in _closed(d, above) for other in by_pair.get((p, y), ()))
        for q in _closed(p, higher):
            for other in by_pair.get((q, d), ()):
                yield (f"{kind}2", c, other) if kind == "scm-svf" else (f"{kind}2", other, c)


def _closed(node: str, above: dict[str, set[str]]) -> set[str]:
    """A node and everything above it."""
    return reached([node], lambda one: above.get(one, ()))


# --- what a person can read ----------------------------------------------------------------------------------------


def _readable(rule: Rule) -> Rule | None:
    """A rule as it is to be written: literals get no types, and are judged by their datatypes."""
    if rule.head.relation[0] == CLASS and is_datatype(rule.head.relation[1]):
        return None
    body = tuple(
        Atom(("datatype", atom.relation[1]), atom.arguments)
        if atom.relation[0] == CLASS and is_datatype(atom.relation[1])
        else atom
        for atom in rule.body
    )
    return None if rule.head in body else Rule(rule.head, body, rule.origin)


def _with_thing(graph: Graph, rules: list[Rule]) -> list[Rule]:
    """That everything is a thing is said only where a rule asks for things; so with what nothing is."""
    thing, nothing = (CLASS, THING), (CLASS, NOTHING)
    if any(atom.relation == thing for rule in rules for atom in rule.body):
        declared = sorted({*graph.members("owl:Class")} - {THING, NOTHING})
        used = {atom.relation for rule in rules for atom in (rule.head, *rule.body)}
        rules = rules + [
            Rule(_class(THING, "x"), (_class(c, "x"),), "scm-cls")
            for c in declared
            if c[0] == "<" or (CLASS, c) in used
        ]
    else:
        rules = [rule for rule in rules if rule.head.relation != thing]
    if not any(rule.head.relation == nothing for rule in rules):
        rules = [rule for rule in rules if rule.origin != "cls-nothing2"]
    return rules


UNEQUAL: Final = "!="
_MOST: Final = 12
"""A class without a name is resolved away if that adds at most this many rules."""


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


def rule_text(rule: Rule, names: Names) -> str:
    """A rule in the language."""
    used = [argument for atom in (rule.head, *rule.body) for argument in atom.arguments]

    def argument(text: str) -> str:
        if _is_variable(text):
            return text if used.count(text) > 1 else "_"
        return write_string(text.removeprefix("="))

    def atom(one: Atom) -> str:
        kind, term = one.relation
        listed = [argument(a) for a in one.arguments]
        if one.relation[1] == UNEQUAL:
            return f"{listed[0]} != {listed[1]}"
        if kind == "datatype":
            known = [f"rdf_datatype({listed[0]}) = {write_string(datatype)}" for datatype in datatypes_in(term)]
            return f"({' ; '.join(known)})" if len(known) > 1 else next(iter(known), f'rdf_datatype({listed[0]}) != ""')
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
