"""Other reasoners as judges, the closures that are compared with theirs, and random small ontologies.

What is compared are triples about individuals with names: a blank node has another label in each reasoner. Left out is
what the profiles differ in, and nobody asks for:

- that everything is the same as itself (eq-ref), and types of literals (dt-type2): owlrl has them;
- that what has a type is an `owl:Thing`: reasonable says so of everything, owlrl of members of declared classes;
- triples of the schema (Table 9): `reasonable` has few of them; `owl2rl.dl` and owlrl are compared in them, too.

owlrl (7.6) does not look at the last property of a key (prp-key), so that keys are left out where it judges.
`reasonable` (0.4) has neither chains (prp-spo2) nor keys, nor subclasses among restrictions (scm-svf, scm-avf), and
does not see all that enumerations (cls-oo) and cardinalities (cls-maxc2) say: there, its triples must be among ours,
elsewhere the same. Of an inverse functional property (prp-ifp) it takes individuals for the same that share no value;
these are left out where it judges.
"""

from __future__ import annotations

import json
import random
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import owlrl
import rdflib
import reasonable
from rdflib import OWL, RDF, RDFS, BNode, Literal, URIRef
from rdflib.collection import Collection

import elastalog
import elastalog.rdf
from elastalog.pipeline.files.rdf import Triples, parse_triples
from elastalog.rdf.loading import all_triples
from elastalog.rdf.sparql import _text
from elastalog.rdf.vocabulary import Names

VOCABULARIES = ("<http://www.w3.org/",)
SAME = f"<{OWL.sameAs}>"
SCHEMA = {f"<{name}>" for name in (
    RDFS.subClassOf, RDFS.subPropertyOf, RDFS.domain, RDFS.range, OWL.equivalentClass, OWL.equivalentProperty,
)}  # fmt: skip

LACKING = {OWL.propertyChainAxiom, OWL.someValuesFrom, OWL.allValuesFrom, OWL.oneOf, OWL.maxCardinality}
"""What `reasonable` has not all rules of."""

Triple = tuple[str, str, str]


def about_individuals(triples: set[Triple]) -> set[Triple]:
    """The triples that are compared."""
    return {
        (s, p, o)
        for s, p, o in triples
        if s[0] == p[0] == "<"
        and o[:2] != "_:"
        and not s.startswith(VOCABULARIES)
        and not o.startswith(VOCABULARIES)
        and (not p.startswith(VOCABULARIES) or p in (f"<{RDF.type}>", SAME))
        and not (p == SAME and s == o)
    }


def of_schema(triples: set[Triple]) -> set[Triple]:
    """The triples about classes and properties with names; owlrl has more of those that are about one alone."""
    return {
        (s, p, o)
        for s, p, o in triples
        if p in SCHEMA and s[0] == o[0] == "<" and not s.startswith(VOCABULARIES) and s != o
    }


def by_owlrl(graph: rdflib.Graph) -> set[Triple]:
    closed = rdflib.Graph()
    closed += graph
    closure = owlrl.DeductiveClosure(owlrl.OWLRL_Semantics, axiomatic_triples=False, datatype_axioms=False)
    closure.expand(closed)
    return {tuple(map(_text, triple)) for triple in closed}


def by_reasonable(graph: rdflib.Graph) -> set[Triple]:
    reasoner = reasonable.PyReasoner()
    reasoner.from_graph(graph)
    return {tuple(map(_text, triple)) for triple in reasoner.reason()}


@cache
def _general() -> elastalog.Program:
    return elastalog.Program.load(Path(elastalog.rdf.__file__).parent / "owl2rl.dl")


def texts_of(triples: Triples) -> list[tuple[str, ...]]:
    terms = triples.terms.to_pylist()
    return [tuple(terms[code] for code in row) for row in triples.codes.tolist()]


def by_triples(graph: rdflib.Graph, **options: Any) -> tuple[set[Triple], set[Any]]:
    """By the rules over triples; and what is inconsistent."""
    triples = parse_triples(graph.serialize(format="nt").encode(), "x.nt", "ntriples")
    with elastalog.open(_general(), {"triple": texts_of(triples)}, **options) as db:
        return set(db["triple"]), set(db["inconsistent"])


def by_relations(graph: rdflib.Graph, folder: Path, **options: Any) -> tuple[set[Triple], set[Any]]:
    """By the rules that are made of the ontology; and what is inconsistent."""
    path = folder / "ontology.nt"
    path.write_text(graph.serialize(format="nt"))
    with elastalog.rdf.load(path, **options) as db:
        return set(all_triples(db, Names.in_program(db))), set(db["inconsistent"])


class RandomOntology:
    """A small ontology with data, from a seed; nearly every construct of the profile occurs."""

    def __init__(
        self,
        seed: int,
        *,
        axioms: int = 10,
        facts: int = 14,
        has_keys: bool = False,
        names: str = "http://example.org/",
    ) -> None:
        self.random = random.Random(seed)
        self.graph = rdflib.Graph()
        self.classes = [URIRef(names + name) for name in ("A", "B", "C", "D", "E")]
        self.properties = [URIRef(names + name) for name in ("p", "q", "r", "s")]
        self.individuals = [URIRef(names + name) for name in ("a", "b", "c", "d", "e", "f")]
        self.has_keys = has_keys
        for name in self.classes:
            if self.random.random() < 0.7:
                self.graph.add((name, RDF.type, OWL.Class))
        for name in self.properties:
            self.graph.add((name, RDF.type, OWL.ObjectProperty))
        for _ in range(self.random.randint(1, axioms)):
            self.axiom()
        for _ in range(self.random.randint(1, facts)):
            self.graph.add(self.fact())

    def pick(self, names: list[Any]) -> Any:
        return self.random.choice(names)

    def fact(self) -> tuple[Any, Any, Any]:
        draw = self.random.random()
        if draw < 0.35:
            return self.pick(self.individuals), RDF.type, self.pick(self.classes)
        if draw < 0.40:
            return self.pick(self.individuals), OWL.sameAs, self.pick(self.individuals)
        return self.pick(self.individuals), self.pick(self.properties), self.pick(self.individuals)

    def listed(self, items: list[Any]) -> BNode:
        node = BNode()
        Collection(self.graph, node, items)
        return node

    def some(self, names: list[Any]) -> list[Any]:
        return self.random.sample(names, self.random.randint(2, 3))

    def expression(self, depth: int = 0) -> Any:
        """A class, or an expression of classes."""
        if depth > 1 or self.random.random() < 0.5:
            return self.pick(self.classes)
        node, kind = BNode(), self.random.randrange(7)
        add = self.graph.add
        if kind < 2:
            add((node, RDF.type, OWL.Class))
            items = [self.expression(depth + 1) for _ in range(self.random.randint(2, 3))]
            add((node, OWL.intersectionOf if kind else OWL.unionOf, self.listed(items)))
            return node
        if kind == 2:
            add((node, RDF.type, OWL.Class))
            add((node, OWL.oneOf, self.listed(self.some(self.individuals))))
            return node
        add((node, RDF.type, OWL.Restriction))
        add((node, OWL.onProperty, self.pick(self.properties)))
        if kind == 3:
            add((node, OWL.hasValue, self.pick(self.individuals)))
        elif kind == 4:
            add((node, OWL.maxCardinality, Literal(self.random.randint(0, 1), datatype=rdflib.XSD.nonNegativeInteger)))
        else:
            filler = OWL.Thing if self.random.random() < 0.15 else self.expression(depth + 1)
            add((node, OWL.someValuesFrom if kind == 5 else OWL.allValuesFrom, filler))
        return node

    def axiom(self) -> None:
        add, p, c = self.graph.add, self.pick(self.properties), self.pick(self.classes)
        match self.random.randrange(12):
            case 0 | 1 | 2:
                add((self.expression(), RDFS.subClassOf, self.expression()))
            case 3:
                add((c, OWL.equivalentClass, self.expression()))
            case 4:
                add((p, self.pick([RDFS.domain, RDFS.range]), self.expression(1)))
            case 5:
                add(
                    (
                        p,
                        self.pick([RDFS.subPropertyOf, OWL.equivalentProperty, OWL.inverseOf]),
                        self.pick(self.properties),
                    )
                )
            case 6:
                kinds = [OWL.SymmetricProperty, OWL.TransitiveProperty, OWL.FunctionalProperty]
                add((p, RDF.type, self.pick([*kinds, OWL.InverseFunctionalProperty, OWL.IrreflexiveProperty])))
            case 7:
                add((p, OWL.propertyChainAxiom, self.listed(self.some(self.properties))))
            case 8:
                add((c, OWL.disjointWith, self.pick(self.classes)))
            case 9 if self.has_keys:
                add((c, OWL.hasKey, self.listed(self.random.sample(self.properties, self.random.randint(1, 2)))))
            case 10:
                node = BNode()
                add((node, OWL.inverseOf, p))
                add((node, RDFS.subPropertyOf, self.pick(self.properties)))
            case _:
                add((c, RDFS.subClassOf, self.pick(self.classes)))


BLOCK = 100
VERDICTS = Path(__file__).parent / "verdicts.json"
"""What owlrl makes of random ontologies, a digest for each block of seeds: `python -m tests.rdf.judges 100` takes half
an hour to write it."""


def namespace(seed: int) -> str:
    """What the names of a random ontology begin with, so that several may be one."""
    return f"http://example.org/{seed}/"


def random_ontology(seed: int, **options: Any) -> rdflib.Graph:
    return RandomOntology(seed, names=namespace(seed), **options).graph


def verdict(triples: set[Triple]) -> str:
    """A digest of what was derived about individuals."""
    return sha256("\n".join(sorted(map(" ".join, about_individuals(triples)))).encode()).hexdigest()[:16]


def seeds_of(block: int) -> range:
    return range(BLOCK * block, BLOCK * (block + 1))


if __name__ == "__main__":
    digests = []
    for block in range(int(sys.argv[1])):
        digests.append(verdict({triple for seed in seeds_of(block) for triple in by_owlrl(random_ontology(seed))}))
        VERDICTS.write_text(json.dumps(digests, indent=1) + "\n")
