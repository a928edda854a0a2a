"""An ontology from files: its axioms apart from data, imports followed where the files are here, and what is outside of
OWL 2 RL with its place. Nothing is ever fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from elastalog import late
from elastalog.analysis.graphs import reached
from elastalog.diagnostics.diagnostic import Diagnostic, error, finding
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import file_bytes, is_packed
from elastalog.pipeline.files.paths import natural_order
from elastalog.pipeline.files.policy import FAIL, BadRows, Report, settle
from elastalog.pipeline.files.rdf import FORMATS, Triples, format_of, joined_triples, read_triples
from elastalog.rdf.vocabulary import TYPE, XSD, iri

pc = late.module("pyarrow.compute")
FIRST, REST, NIL = iri("rdf:first"), iri("rdf:rest"), iri("rdf:nil")


def _terms(prefix: str, names: str) -> frozenset[str]:
    return frozenset(iri(f"{prefix}:{name}") for name in names.split())


_META: Final = (
    _terms(
        "owl",
        "AllDifferent AllDisjointClasses AllDisjointProperties Annotation AnnotationProperty AsymmetricProperty Axiom"
        " Class DataRange DatatypeProperty DeprecatedClass DeprecatedProperty FunctionalProperty"
        " InverseFunctionalProperty IrreflexiveProperty NegativePropertyAssertion ObjectProperty Ontology"
        " OntologyProperty ReflexiveProperty Restriction SymmetricProperty TransitiveProperty",
    )
    | _terms("rdfs", "Class Datatype ContainerMembershipProperty")
    | _terms("rdf", "Property List")
)
"""Classes whose members belong to the ontology."""
_SCHEMA: Final = _terms("rdfs", "subClassOf subPropertyOf domain range") | _terms(
    "owl",
    "allValuesFrom annotatedProperty annotatedSource annotatedTarget assertionProperty cardinality complementOf"
    " datatypeComplementOf disjointUnionOf disjointWith distinctMembers equivalentClass equivalentProperty hasKey"
    " hasSelf hasValue imports intersectionOf inverseOf maxCardinality maxQualifiedCardinality members"
    " minCardinality minQualifiedCardinality onClass onDataRange onDatatype onProperties onProperty oneOf"
    " propertyChainAxiom propertyDisjointWith qualifiedCardinality someValuesFrom sourceIndividual"
    " targetIndividual targetValue unionOf versionIRI withRestrictions",
)
"""Properties that only ontologies have."""


def is_schema(triple: tuple[str, str, str]) -> bool:
    """Whether a triple belongs to an ontology, and not to data."""
    return triple[1] in _SCHEMA or (triple[1] == TYPE and triple[2] in _META)


def is_datatype(term: str) -> bool:
    """Whether a term names a datatype of XML Schema or RDF."""
    return term.startswith(f"<{XSD}") or term in (iri("rdfs:Literal"), iri("rdf:PlainLiteral"), iri("rdf:langString"))


_DERIVED: Final = {
    "decimal": "integer",
    "integer": "nonPositiveInteger long nonNegativeInteger",
    "nonPositiveInteger": "negativeInteger",
    "long": "int", "int": "short", "short": "byte",
    "nonNegativeInteger": "unsignedLong positiveInteger",
    "unsignedLong": "unsignedInt", "unsignedInt": "unsignedShort", "unsignedShort": "unsignedByte",
    "string": "normalizedString", "normalizedString": "token", "token": "language NMTOKEN Name", "Name": "NCName",
    "dateTime": "dateTimeStamp",
}  # fmt: skip
"""Datatypes of XML Schema, and those that are directly derived from each."""


def datatypes_in(term: str) -> list[str]:
    """A datatype, and those all of whose values are among its values; none for `rdfs:Literal`, which has them all."""
    if term == iri("rdfs:Literal"):
        return []
    found = [term, iri("xsd:string"), iri("rdf:langString")] if term == iri("rdf:PlainLiteral") else [term]
    for known in found:
        found += [iri(f"xsd:{name}") for name in _DERIVED.get(known[len(XSD) + 1 : -1], "").split()]
    return found


def cardinality(literal: str) -> int | None:
    """The number that the literal of a cardinality is."""
    found = re.match(r'"\+?([0-9]+)"', literal)
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class Outside:
    """An axiom, or an import, that does not count, or not in full: where it is, and why."""

    axiom: str
    reason: str
    place: str

    def diagnostic(self) -> Diagnostic:
        """The axiom's warning."""
        return finding("E0532", severity="warning", location=self.place, axiom=self.axiom, reason=self.reason)


class Graph:
    """The axioms of an ontology, by subject and by predicate."""

    def __init__(self, triples: Sequence[tuple[str, str, str]]) -> None:
        self.triples = triples
        self._objects: dict[tuple[str, str], list[str]] = {}
        self._pairs: dict[str, list[tuple[str, str]]] = {}
        for s, p, o in triples:
            self._objects.setdefault((s, p), []).append(o)
            self._pairs.setdefault(p, []).append((s, o))

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """Subjects and objects of a property, given by its short name."""
        return self._pairs.get(iri(name), [])

    def objects(self, subject: str, name: str) -> list[str]:
        return self._objects.get((subject, iri(name)), [])

    def members(self, name: str) -> list[str]:
        """The members of a class of RDFS or OWL, by its short name."""
        meant = iri(name)
        return [s for s, o in self._pairs.get(TYPE, []) if o == meant]

    def items(self, node: str) -> list[str]:
        """The elements of a list; one that leads back into itself ends there."""
        found: list[str] = []
        seen: set[str] = set()
        while node != NIL and node not in seen:
            seen.add(node)
            found += self._objects.get((node, FIRST), [])[:1]
            node = next(iter(self._objects.get((node, REST), [])), NIL)
        return found


@dataclass(frozen=True, slots=True)
class Ontology:
    """What files hold: axioms and data, apart."""

    graph: Graph
    data: Triples
    is_data: np.ndarray
    prefixes: dict[str, str]
    outside: list[Outside] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


def read_ontology(
    files: Sequence[str | Path],
    *,
    base: str | None = None,
    imports: Mapping[str, str | Path] | None = None,
    policy: BadRows = FAIL,
) -> Ontology:
    """Reads ontologies and data. `imports`: files of ontologies by IRI; others are looked for beside the file that
    imports them, by the last part of their IRI."""
    parts: dict[Path, Triples] = {}
    reports: list[Report] = []
    missing: list[tuple[str, Path]] = []
    waiting = [path for file in files for path in _files_at(Path(file))]
    if not waiting:
        raise error("E0531.read_ontology")
    known = {_plain(name): Path(path) for name, path in (imports or {}).items()}
    while waiting:
        path = waiting.pop(0)
        if path.resolve() in parts:
            continue
        names = [other.name for other in parts]
        label = None if path.name not in names else f"{names.count(path.name) + 1}_{path.name}"
        found = read_triples(path, format_of(path.name), base=base, label=label)
        parts[path.resolve()] = found
        reports.append(settle(policy, "triple", [str(path)], len(found.codes), found.bad))
        for wanted in _imported(found):
            at = known.get(_plain(wanted)) or _beside(path, wanted)
            if at is not None:
                waiting.append(at)
            else:
                missing.append((wanted, path))
    triples = joined_triples(list(parts.values()))
    is_data, axioms = _apart(triples)
    graph = Graph(axioms)
    sizes = np.cumsum([len(part.codes) for part in parts.values()])
    with_axioms = [path for path, part in zip(parts, np.split(~is_data, sizes[:-1]), strict=True) if part.any()]
    here = {_plain(node) for node in graph.members("owl:Ontology")}
    outside = [
        Outside(f"import of {wanted}", "no such file is here, and nothing is fetched", str(path))
        for wanted, path in missing
        if _plain(wanted) not in here
    ]
    return Ontology(graph, triples, is_data, triples.prefixes, outside + list(_outside(graph, with_axioms)), reports)


def _files_at(path: Path) -> list[Path]:
    """A file, or those of a folder that are RDF by their names."""
    if not path.is_dir():
        return [path]
    endings = tuple(ending for _, known in FORMATS.values() for ending in known)
    found = [file for file in path.iterdir() if file.name.lower().removesuffix(".gz").endswith(endings)]
    return sorted(found, key=natural_order)


def _plain(term: str) -> str:
    return term.strip("<>").rstrip("#/")


def _imported(found: Triples) -> list[str]:
    """The IRIs of the ontologies that a file imports."""
    codes = found.codes[found.codes[:, 1] == code_of(found, iri("owl:imports")), 2]
    wanted: list[str] = found.terms.take(pa.array(codes)).to_pylist()
    return wanted


def _beside(path: Path, wanted: str) -> Path | None:
    """The file of an ontology in the folder of one that imports it."""
    if wanted.startswith("<file:"):
        from urllib.parse import unquote, urlsplit

        at = Path(unquote(urlsplit(wanted.strip("<>")).path))
        return at if at.is_file() and at in _files_at(at.parent) else None
    last = _plain(wanted).rsplit("/", 1)[-1]
    names = [last, *(last + ending for _, endings in FORMATS.values() for ending in endings)]
    if not re.fullmatch(r"[\w.-]+", last):
        return None
    return next((path.parent / name for name in names if (path.parent / name).is_file()), None)


def code_of(triples: Triples, term: str) -> int:
    """The number of a term, -1 if no triple has it."""
    place: int = pc.index(triples.terms, pa.scalar(term, triples.terms.type)).as_py()
    return place


def _apart(triples: Triples) -> tuple[np.ndarray, list[tuple[str, str, str]]]:
    """Which triples are data, and the axioms: triples of the vocabulary of ontologies, and the lists these name."""
    is_schema = np.asarray(pc.is_in(triples.terms, pa.array(sorted(_SCHEMA), triples.terms.type)))
    is_meta = np.asarray(pc.is_in(triples.terms, pa.array(sorted(_META), triples.terms.type)))
    codes = triples.codes
    is_type = codes[:, 1] == code_of(triples, TYPE)
    is_axiom = is_schema[codes[:, 1]] | (is_type & is_meta[codes[:, 2]])
    links = [code_of(triples, FIRST), code_of(triples, REST)]
    linked = np.isin(codes[:, 1], links)
    if linked.any():
        rest = {row[0]: row[2] for row in codes[linked].tolist() if row[1] == links[-1]}
        lists = reached(codes[is_axiom, 2].tolist(), lambda node: [rest[node]] if node in rest else ())
        is_axiom |= linked & np.isin(codes[:, 0], list(lists))
    rows = codes[is_axiom]
    used = {code: triples.terms[code].as_py() for code in set(rows.reshape(-1).tolist())}
    return ~is_axiom, [(used[s], used[p], used[o]) for s, p, o in rows.tolist()]


# --- the profile -----------------------------------------------------------------------------------------------------

_LEFT: Final = {"intersectionOf", "unionOf", "oneOf", "someValuesFrom", "hasValue"}
_RIGHT: Final = {
    "intersectionOf", "complementOf", "allValuesFrom", "hasValue", "maxCardinality", "maxQualifiedCardinality",
}  # fmt: skip
_BOTH: Final = {"intersectionOf", "hasValue"}
_EXPRESSIONS: Final = (
    "intersectionOf", "unionOf", "oneOf", "complementOf", "someValuesFrom", "allValuesFrom", "hasValue", "hasSelf",
    "maxCardinality", "maxQualifiedCardinality", "minCardinality", "minQualifiedCardinality", "cardinality",
    "qualifiedCardinality", "onDatatype", "datatypeComplementOf",
)  # fmt: skip


def _outside(graph: Graph, files: list[Path]) -> Iterator[Outside]:
    """The axioms outside of the profile, as its grammar has it, each once."""
    texts = {path: file_bytes(path, is_packed(path)).decode("utf-8", "replace") for path in files[:100]}
    told: set[tuple[str, str]] = set()
    for subject, construct, reason in _violations(graph):
        if (subject, reason) not in told:
            told.add((subject, reason))
            yield Outside(f"{construct} of {subject}", reason, _place(texts, subject, construct))


def _violations(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """What is outside: of what, which construct, and why."""
    for sub, sup in graph.pairs("rdfs:subClassOf"):
        for construct in _wrong(graph, sub, _LEFT, set()):
            yield sup, construct, f"{construct} on the left of a subclass axiom means nothing to its rules"
        for construct in _wrong(graph, sup, _RIGHT, set()):
            yield sub, construct, _why(construct)
    for one, other in graph.pairs("owl:equivalentClass"):
        for construct in [*_wrong(graph, one, _BOTH, set()), *_wrong(graph, other, _BOTH, set())]:
            yield one, construct, _half(construct)
    yield from _halves(graph)
    for place in ("rdfs:domain", "rdfs:range"):
        for subject, node in graph.pairs(place):
            for construct in _wrong(graph, node, _RIGHT, set()):
                yield subject, construct, _why(construct)
    for name in ("owl:disjointUnionOf", "owl:hasSelf"):
        for subject, _ in graph.pairs(name):
            yield subject, name[4:], "no rule of OWL 2 RL reads it"
    for subject in graph.members("owl:ReflexiveProperty"):
        yield subject, "ReflexiveProperty", "no rule of OWL 2 RL reads it"


def _halves(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """What counts in one direction only of classes that are defined by others."""
    for construct in ("intersectionOf", "unionOf", "complementOf"):
        for name, value in graph.pairs(f"owl:{construct}"):
            if name[0] == "<":
                parts = [value] if construct == "complementOf" else graph.items(value)
                inner = [found for part in parts for found in _wrong(graph, part, _BOTH, set())]
                for found in inner if construct in _BOTH else [construct, *inner]:
                    yield name, found, _half(found)


def _why(construct: str) -> str:
    if construct == "someValuesFrom":
        return "someValuesFrom on the right would need individuals that nobody has named; none are made"
    return f"{construct} on the right of a subclass axiom means nothing to its rules"


def _half(construct: str) -> str:
    if construct in _LEFT | _RIGHT:
        return f"{construct} in an equivalence counts in one direction only"
    return f"{construct} means nothing to the rules of OWL 2 RL"


def _wrong(graph: Graph, node: str, allowed: set[str], seen: set[str]) -> Iterator[str]:
    """The constructs of a class expression that may not be where it is."""
    if node in seen or node[0] == "<":  # what defines a class with a name is an axiom of its own
        return
    seen.add(node)
    for construct in _EXPRESSIONS:
        for value in graph.objects(node, f"owl:{construct}"):
            is_bound = construct in ("maxCardinality", "maxQualifiedCardinality")
            if is_bound and cardinality(value) not in (0, 1):
                yield f"{construct} above 1"
            elif construct not in allowed:
                yield construct
            elif construct in ("intersectionOf", "unionOf"):
                for item in graph.items(value):
                    yield from _wrong(graph, item, allowed, seen)
            elif construct == "complementOf":
                yield from _wrong(graph, value, _LEFT, seen)
            elif construct in ("someValuesFrom", "allValuesFrom"):
                yield from _wrong(graph, value, allowed, seen)


def _place(texts: Mapping[Path, str], subject: str, construct: str) -> str:
    """The file, and the line where the subject first stands before the construct, or stands at all."""
    forms = [re.escape(subject.strip("<>"))]
    if subject[0] == "<":
        local = re.escape(re.split(r"[#/]", subject.strip("<>"))[-1])
        forms += [rf"(?<![\w-]):?{local}(?![\w-])", rf'"#?{local}"'] if local else []
    for end in (rf"(?:(?!\n[ \t]*\n)[\s\S]){{0,2000}}?{re.escape(construct)}", ""):
        for form in forms:
            for path, text in texts.items():
                found = re.search(f"(?:{form}){end}", text)
                if found is not None:
                    return f"{path}:{text.count(chr(10), 0, found.start()) + 1}"
    return str(next(iter(texts), ""))
