"""IRIs of RDF, RDFS, OWL and XML Schema, prefixes, and the table that says which relation stands for which IRI."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from elastalog.diagnostics.diagnostic import error
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.late import dataclass
from elastalog.syntax.keywords import RESERVED

if TYPE_CHECKING:
    from elastalog.database import Database

log = logging.getLogger("elastalog.rdf")
RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
OWL, XSD = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2001/XMLSchema#"
WELL_KNOWN: Final = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}
NAMES, PREFIXES, AXIOM, SAME, DIFFERENT, GROUP, INCONSISTENT = (
    "rdf_name", "rdf_prefix", "axiom", "same", "different", "all_different", "inconsistent",
)  # fmt: skip
"""The relations that every program made of an ontology has."""
CLASS, PROPERTY = "class", "property"


def iri(name: str) -> str:
    """A term by its usual short name: `rdf:type`."""
    prefix, _, local = name.partition(":")
    return f"<{WELL_KNOWN[prefix]}{local}>"


TYPE, SAME_AS, DIFFERENT_FROM = iri("rdf:type"), iri("owl:sameAs"), iri("owl:differentFrom")
EQUALITY: Final = {SAME_AS: SAME, DIFFERENT_FROM: DIFFERENT}
"""Properties with relations of their own."""
THING, NOTHING = iri("owl:Thing"), iri("owl:Nothing")


@dataclass(frozen=True, slots=True)
class Names:
    """Which relation stands for which class and property, and prefixes. `relations`: names of relations by kind and
    term."""

    relations: dict[tuple[str, str], str]
    prefixes: dict[str, str]

    @staticmethod
    def of(nodes: Iterable[tuple[str, str]], prefixes: Mapping[str, str], words: Mapping[str, str]) -> Names:
        """Names for classes and properties, by the last part of each IRI. A prefix is added where several have the same
        one, or where it means something else in a program. `words`: names for nodes without an IRI."""
        known = {**WELL_KNOWN, **prefixes}
        plain: dict[str, list[tuple[str, str]]] = {}
        for node in sorted(set(nodes)):
            plain.setdefault(words.get(node[1]) or _last_part(node[1]), []).append(node)
        names, taken = {}, {NAMES, PREFIXES, AXIOM, SAME, DIFFERENT, GROUP, INCONSISTENT}
        for name, sharing in sorted(plain.items()):
            for node in sharing:
                is_free = len(sharing) == 1 and name not in taken and name not in RESERVED
                names[node] = _free(name if is_free else f"{_prefix_of(node[1], known)}_{name}", taken)
        return Names(names, dict(prefixes))

    @staticmethod
    def in_program(db: Database) -> Names:
        """The table that a session's program has. Raises ElastalogError if it has none."""
        if NAMES not in db.schemas:
            raise error("E0531.in_program")
        names: Any = db[NAMES]
        prefixes: Any = db[PREFIXES]
        return Names({(kind, term): name for name, kind, term in names}, dict(iter(prefixes)))

    def shortened(self, text: str) -> str:
        """A text about facts with IRIs as prefixed names: `Person("<http://ex.org/ann>")` is `Person(ex:ann)`."""
        return _TERM.sub(lambda found: self.short(found[1].replace('\\"', '"').replace("\\\\", "\\")), text)

    def shortened_terms(self, text: str) -> str:
        """A text with IRIs in angle brackets as prefixed names."""
        return re.sub("<[^<> ]*>", lambda found: self.short(found[0]), text)

    def short(self, term: str) -> str:
        """A term as Turtle would have it."""
        if term[:1] == '"' and "^^<" in term:
            start, _, kind = term.rpartition("^^")
            return start + ("^^" + self.short(kind))
        if term[:1] != "<":
            return term
        known = [item for item in self._all() if term[1:].startswith(item[1])]
        best = max(known, key=lambda item: (len(item[1]), item[0] != ""), default=None)
        local = "" if best is None else term[1 + len(best[1]) : -1]
        return f"{best[0]}:{local}" if best is not None and _LOCAL.fullmatch(local) else term

    def expanded(self, text: str) -> str:
        """The term that a prefixed name, or a term, is."""
        if text[:1] in ("<", '"', "_"):
            return text
        prefix, colon, local = text.partition(":")
        found = dict(self._all()).get(prefix)
        if not colon or found is None:
            raise error("E0531.expanded", text=text, near=did_you_mean(prefix, dict(self._all())))
        return f"<{found}{local}>"

    def _all(self) -> list[tuple[str, str]]:
        return list({**WELL_KNOWN, **self.prefixes}.items())

    def fact(self, triple: tuple[str, str, str]) -> tuple[str, tuple[str, ...]]:
        """The fact that a triple is, as a relation and values. Raises ElastalogError if no relation has such."""
        s, p, o = triple
        if p in EQUALITY:
            return EQUALITY[p], (s, o)
        name = self.relations.get((CLASS, o) if p == TYPE else (PROPERTY, p))
        if name is not None:
            return name, (s,) if p == TYPE else (s, o)
        told, _, advice = self.unknown(o if p == TYPE else p).partition("; ")
        raise error("E0531.fact", told=told, advice=advice)

    def unknown(self, term: str) -> str:
        """Says that no relation stands for a class or property, and which one may have been meant."""
        advice = did_you_mean(self.short(term), [self.short(known) for _, known in self.relations])
        told = f"no relation for {self.short(term)}: neither ontology nor data have spoken of it"
        return f"{told}; {advice or 'check the IRI'}"


_TERM: Final = re.compile(r'"(<[^"]*>|\\"(?:[^"\\]|\\\\.|\\")*|_:[^"]*)"')
_LOCAL: Final = re.compile(r"[A-Za-z0-9_.-]*")


def _last_part(term: str) -> str:
    last = re.split(r"[#/:]", term.strip("<>").rstrip("#/"))[-1]
    name = re.sub(r"[^A-Za-z0-9_]", "_", last)
    return name if re.match("[A-Za-z_]", name) else f"_{name}"


def _prefix_of(term: str, prefixes: Mapping[str, str]) -> str:
    """The prefix of an IRI, or a word of it that may stand for one."""
    found = [(len(full), name) for name, full in prefixes.items() if term[1:].startswith(full) and name]
    if found:
        return re.sub(r"[^A-Za-z0-9_]", "_", max(found)[1])
    words = re.findall("[A-Za-z][A-Za-z0-9]*", re.sub(r"^<\w+:(//)?(www\.)?", "", term))
    return words[0] if words else "other"


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken or free in RESERVED:
        number += 1
        free = f"{name}_{number}"
    taken.add(free)
    return free
