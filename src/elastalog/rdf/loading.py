"""Ontologies and data as a session: a relation for each class and each property, and rules for the axioms. And triples
instead of facts: proofs, absence and repairs with prefixed names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from elastalog.backends.watch import Watch
from elastalog.diagnostics.arguments import require_number
from elastalog.diagnostics.diagnostic import error
from elastalog.diagnostics.quota import most_of_memory
from elastalog.evaluation.costs import AUTO
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import Allowance, reading_within
from elastalog.pipeline.files.policy import BadRows, Mode, Report, as_bad_rows
from elastalog.pipeline.files.rdf import Triples, format_of, write_triples
from elastalog.program import Program
from elastalog.provenance.rendering.text import legend, render_tree
from elastalog.rdf.ontology import Outside, code_of, read_ontology
from elastalog.rdf.rules import Rule, equality_rules, rule_text, rules_of, words_for
from elastalog.rdf.vocabulary import (
    AXIOM,
    CLASS,
    DIFFERENT,
    EQUALITY,
    GROUP,
    INCONSISTENT,
    NAMES,
    PREFIXES,
    PROPERTY,
    SAME,
    SAME_AS,
    TYPE,
    Names,
    log,
)
from elastalog.session import open as open_session
from elastalog.session.settings import Limits, processors
from elastalog.syntax.keywords import write_string

if TYPE_CHECKING:
    from elastalog.database import Database
    from elastalog.debugging.answers import Suggestion
    from elastalog.session import Session

Files = str | os.PathLike[str]
"""A file of RDF, or a folder of them."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The result of translating ontologies and data: the text of a program, the facts by relation, which relation is
    which class or property, and what is outside of the profile."""

    text: str
    facts: dict[str, pa.Table]
    names: Names
    outside: list[Outside] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


def load(
    ontology: Files,
    *data: Files,
    base: str | None = None,
    imports: Mapping[str, Files] | None = None,
    equality: bool | None = None,
    bad_rows: Mode | BadRows = "fail",
    **options: Any,
) -> Session:
    """A session of an ontology and data, closed under the rules of OWL 2 RL: a unary relation for each class, a binary
    one for each property, `same` for `owl:sameAs`, `inconsistent` for what must not be.

    Files, and folders of files, may be in any format of RDF, and each may have axioms and data. `base`: for relative
    IRIs. `imports`: files of imported ontologies by IRI; others are looked for beside the file that imports them, and
    nothing is fetched. `equality`: whether there are rules that replace what is the same; by default, if data or axioms
    speak of it. Other options are those of `elastalog.open`. What is outside of the profile is a warning of the log;
    `translate` lists it."""
    made = translate(
        ontology, *data, base=base, imports=imports, equality=equality, bad_rows=as_bad_rows(bad_rows),
        limits=options.get("limits"), jobs=options.get("jobs"),
    )  # fmt: skip
    for one in made.outside:
        log.warning("%s: %s: %s", one.place, one.axiom, one.reason)
    return open_translation(made, bad_rows=bad_rows, **options)


def open_translation(made: Translation, **options: Any) -> Session:
    """A session of a translation."""
    session = open_session(Program.parse(made.text, name="ontology.dl", preprocess=False), made.facts, **options)
    session.reports[:0] = made.reports
    return session


def translate(
    *files: Files,
    base: str | None = None,
    imports: Mapping[str, Files] | None = None,
    equality: bool | None = None,
    bad_rows: BadRows | None = None,
    limits: Limits | None = None,
    jobs: int | Literal["auto"] | None = None,
) -> Translation:
    """The program and the facts that ontologies and data come to; see `load`."""
    if jobs != AUTO:
        require_number("jobs", jobs, 1, whole=True, usual='"auto"')
    paths = {name: Path(path) for name, path in (imports or {}).items()}
    limits = limits or Limits()
    memory = most_of_memory() if limits.memory is None else limits.memory
    threads = processors() if jobs is None or jobs == AUTO else jobs
    allowed = Allowance(Watch(memory=memory), limits.expansion, threads)
    with allowed.watch.within(limits.time), reading_within(allowed):
        found = read_ontology([Path(file) for file in files], base=base, imports=paths, policy=bad_rows or BadRows())
    graph, triples, codes = found.graph, found.data, found.data.codes[found.is_data]
    classes, properties, is_type = _in_data(triples, codes)
    nameless = {node for node in classes.values() if node[:2] == "_:"}
    rules = rules_of(graph, nameless)
    used = {atom.relation for rule in rules for atom in (rule.head, *rule.body)}
    nodes = {node for node in used if node[0] in (CLASS, PROPERTY)}
    nodes |= {(CLASS, node) for node in classes.values()}
    nodes |= {(PROPERTY, node) for node in properties.values() if node not in EQUALITY}
    nodes |= {(CLASS, node) for name in ("owl:Class", "rdfs:Class") for node in graph.members(name) if node[0] == "<"}
    kinds = ("owl:ObjectProperty", "owl:DatatypeProperty", "rdf:Property", "owl:AnnotationProperty")
    nodes |= {(PROPERTY, node) for kind in kinds for node in graph.members(kind) if node[0] == "<"}
    words = words_for(graph, [node for _, node in nodes if node[:2] == "_:"])
    names = Names.of(nodes, found.prefixes, words)
    facts = dict(_facts(triples, codes, is_type, classes, properties, names))
    facts[AXIOM] = _table(["s", "p", "o"], triples, triples.codes[~found.is_data])
    has_equality = any(rule.head.relation == ("", SAME) for rule in rules) or SAME_AS in properties.values()
    text = program_text(rules, names, has_equality if equality is None else equality)
    given = {name: rows for name, rows in facts.items() if rows.num_rows}
    outside = [replace(one, axiom=names.shortened_terms(one.axiom)) for one in found.outside]
    return Translation(text, given, names, outside, found.reports)


def _in_data(triples: Triples, codes: np.ndarray) -> tuple[dict[int, str], dict[int, str], np.ndarray]:
    """The classes and properties in the data, by their numbers, and which triples give the class of something."""
    place = code_of(triples, TYPE)
    is_type = codes[:, 1] == place
    classes = {code: triples.terms[code].as_py() for code in np.unique(codes[is_type, 2]).tolist()}
    properties = {code: triples.terms[code].as_py() for code in np.unique(codes[:, 1]).tolist() if code != place}
    return classes, properties, is_type


def _facts(
    triples: Triples,
    codes: np.ndarray,
    is_type: np.ndarray,
    classes: Mapping[int, str],
    properties: Mapping[int, str],
    names: Names,
) -> Iterator[tuple[str, pa.Table]]:
    """The facts of each relation, from the triples of data."""
    typed, linked = codes[is_type], codes[~is_type]
    for code, rows in _groups(typed, 2):
        yield names.relations[CLASS, classes[code]], _table(["x"], triples, rows[:, :1])
    for code, rows in _groups(linked, 1):
        term = properties[code]
        name = EQUALITY.get(term) or names.relations[PROPERTY, term]
        yield name, _table(["x", "y"], triples, rows[:, [0, 2]])


def _groups(rows: np.ndarray, place: int) -> Iterator[tuple[int, np.ndarray]]:
    """Rows by what they have in a column."""
    sizes = np.bincount(rows[:, place])
    kinds = np.flatnonzero(sizes)
    order = np.zeros(len(sizes), np.uint16 if len(kinds) <= 0xFFFF else np.int32)  # numpy sorts short ones by counting
    order[kinds] = np.arange(len(kinds))
    ordered = rows[np.argsort(order[rows[:, place]], kind="stable")]
    for kind, end in zip(kinds.tolist(), np.cumsum(sizes[kinds]).tolist(), strict=True):
        yield kind, ordered[end - sizes[kind] : end]


def _table(columns: list[str], triples: Triples, codes: np.ndarray) -> pa.Table:
    part = Triples(triples.terms, codes, [], {})
    return pa.table({name: part.column(place) for place, name in enumerate(columns)})


_SAME_KIND = "rdf_datatype(x) = rdf_datatype(y), rdf_lang(x) = rdf_lang(y)"


def program_text(rules: Iterable[Rule], names: Names, has_equality: bool) -> str:
    """The program that rules and names make."""
    lines = [
        "// Made of an ontology by `elastalog rdf import`: a relation for each class and each property.",
        f".decl {NAMES}(relation: symbol, kind: symbol, term: symbol)  // which relation stands for what",
        f".decl {PREFIXES}(prefix: symbol, iri: symbol)",
        f".decl {AXIOM}(s: symbol, p: symbol, o: symbol)  // the ontology as it was given",
        f".decl {SAME}(x: symbol, y: symbol) eqrel  // owl:sameAs",
        f".decl {DIFFERENT}(x: symbol, y: symbol)  // owl:differentFrom",
        f".decl {GROUP}(group: symbol, x: symbol)  // owl:AllDifferent",
        f".decl {INCONSISTENT}(rule: symbol, a: symbol, b: symbol, c: symbol)  // what must not be, and by which rule",
        *(f".input {name}(IO=updates)" for name in (SAME, DIFFERENT, GROUP)),
    ]
    lines += [
        f"{PREFIXES}({write_string(name)}, {write_string(full)})." for name, full in sorted(names.prefixes.items())
    ]
    relations = sorted(names.relations.items(), key=lambda item: (item[0][0], item[1]))
    for (kind, term), name in relations:
        lines.append(declaration(kind, term, name))
    lines += ["", "// What is the same, and what differs."]
    lines += [
        f'{INCONSISTENT}("eq-diff1", x, y, "") :- {SAME}(x, y), {DIFFERENT}(x, y).',
        f'{INCONSISTENT}("eq-diff2", x, y, g) :- {GROUP}(g, x), {GROUP}(g, y), {SAME}(x, y), x < y.',
        f'{INCONSISTENT}("dt-diff", x, y, "") :- {SAME}(x, y), {_SAME_KIND}, rdf_value(x) < rdf_value(y).',
    ]
    lines += ["", "// The axioms, each with the rules of OWL 2 RL that it is read by."]
    listed = sorted(rules, key=lambda rule: (rule.head.relation, rule.origin))
    lines += [f"{rule_text(rule, names)}  // {rule.origin}" for rule in listed]
    if has_equality:
        lines += ["", "// What holds of one holds of what is the same: eq-rep-s, eq-rep-o."]
        lines += [line for (kind, _), name in relations for line in equality_rules(kind, name)]
    return "\n".join(lines) + "\n"


def declaration(kind: str, term: str, name: str) -> str:
    """The declaration of a relation, to which updates may add facts beside those that rules derive, and its row in the
    table of names."""
    columns = "x: symbol" if kind == CLASS else "x: symbol, y: symbol"
    return f'.decl {name}({columns})\n.input {name}(IO=updates)\n{NAMES}("{name}", "{kind}", {write_string(term)}).'


def export(db: Database, path: Files, *, form: str | None = None, explicit: bool = False) -> int:
    """Writes the triples of a session that `load` has made to a file, and returns their number: all that hold, without
    the reflexive ones of `owl:sameAs`; with `explicit`, those that were given."""
    names = Names.in_program(db)
    target = Path(path)
    lines = [f"{' '.join(triple)} .\n" for triple in all_triples(db, names, explicit)]
    write_triples(lines, target, form or format_of(target.name), names.prefixes)
    return len(lines)


def all_triples(db: Any, names: Names, explicit: bool = False) -> Iterator[tuple[str, str, str]]:
    """The triples of a session that have subjects, literals having no properties of their own."""
    terms = {name: node for node, name in names.relations.items()}
    terms |= {name: ("", term) for term, name in EQUALITY.items()}
    for name in (*terms, AXIOM):
        if name not in db.schemas:
            continue
        rows = db.explicit(name) if explicit else db[name]
        kind, term = terms.get(name, ("", ""))
        if kind == CLASS:
            found = ((x, TYPE, term) for (x,) in rows)
        elif name == AXIOM:
            found = iter(rows)
        else:
            found = ((x, term, y) for x, y in rows if name != SAME or x != y)
        yield from (triple for triple in found if triple[0][0] != '"' and triple[1][0] == "<")


Triple = str | Sequence[str]
"""A triple as a text, `ex:ann a ex:Person`, or as three terms."""

_PARTS = re.compile(r'\s*("(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^(?:<[^<>]*>|[\w-]*:[\w.-]*))?|<[^<>]*>|[^\s"<>]+)')


def triple_of(given: Triple, names: Names) -> tuple[str, str, str]:
    """The terms of a triple, prefixes written out."""
    parts = _PARTS.findall(given.strip().removesuffix(".").rstrip()) if isinstance(given, str) else list(given)
    if len(parts) != 3:
        raise error("E0531.triple_of", given=given, parts=len(parts))
    s, p, o = (TYPE if part == "a" and place == 1 else _term(part, names) for place, part in enumerate(parts))
    return s, p, o


def _term(text: str, names: Names) -> str:
    start, marks, kind = text.rpartition("^^")
    if marks and text[0] == '"':
        return f"{start}^^{names.expanded(kind)}"
    return names.expanded(text)


def explain(db: Database, triple: Triple, depth: int | None = None) -> str:
    """Why a triple holds: its proof, IRIs shortened by prefixes."""
    names = Names.in_program(db)
    proof = db.explain(names.fact(triple_of(triple, names)), depth)
    return names.shortened(f"{render_tree(proof)}\n\n{legend(proof)}")


def why_not(db: Database, triple: Triple, limit: int = 5) -> str:
    """Why a triple does not hold: what its derivations lack, IRIs shortened by prefixes."""
    names = Names.in_program(db)
    absence = db.why_not(names.fact(triple_of(triple, names)), limit)
    return names.shortened(render_tree(replace(absence, further="")))  # here a depth cannot be given


def inconsistencies(db: Database) -> list[str]:
    """What must not be, each with the rule of OWL 2 RL that says so, IRIs shortened by prefixes."""
    names = Names.in_program(db)
    found: Any = db[INCONSISTENT]
    return sorted(f"{rule}: {', '.join(names.short(term) for term in terms if term)}" for rule, *terms in found)


def suggest(db: Any, **options: Any) -> Suggestion:
    """A smallest set of explicit facts whose deletion leaves no inconsistency; options as for `Session.suggest`."""
    suggestion: Suggestion = db.suggest(unwanted=[f"{INCONSISTENT}(_, _, _, _)"], over="facts", **options)
    return suggestion
