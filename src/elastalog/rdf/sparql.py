"""SPARQL: rdflib parses and evaluates it, except for basic graph patterns: each becomes one query of the language,
which the session answers. What stands around them (OPTIONAL, FILTER, GROUP BY and so on) keeps its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast

from elastalog.analysis.functor_values import literal_of, literal_text
from elastalog.diagnostics.arguments import require_package, require_text
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.display import html_table
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.late import dataclass
from elastalog.rdf.ontology import is_schema
from elastalog.rdf.vocabulary import AXIOM, CLASS, EQUALITY, NAMES, PROPERTY, TYPE, Names, iri, log
from elastalog.syntax.keywords import write_string

if TYPE_CHECKING:
    import pyarrow as pa

    from elastalog.database import Database

_ALTERNATIVES: Final = 500
"""Relations that a variable in the place of a property or class may stand for."""
_PARSING: Final = Lock()
"""A setting of rdflib is changed while it parses."""
_SKIPPED: Final = r'<[^<>\s]*>|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|#[^\n]*'
_UNCOVERED: Final = {
    "Graph": (r"\bGRAPH\b", "GRAPH"),
    "ServiceGraphPattern": (r"\bSERVICE\b", "SERVICE"),
    "DatasetClause": (r"\bFROM\b", "FROM"),
    "DescribeQuery": (r"\bDESCRIBE\b", "DESCRIBE"),
}
"""What is not covered, by its name in the algebra: how it is written, and what it is called."""
_COVERED: Final = "the page “RDF and OWL 2 RL” of the documentation lists what is covered"

Pattern = tuple[Any, Any, Any]
"""Three terms or variables of rdflib; in the place of a property also a path."""


@dataclass(frozen=True, slots=True)
class Solutions:
    """The answers to a SELECT: variables, and rows of terms in the form of N-Triples, None where nothing is bound."""

    variables: tuple[str, ...]
    rows: list[tuple[str | None, ...]]

    def __iter__(self) -> Iterator[tuple[str | None, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_arrow(self) -> pa.Table:
        """The answers as a table, a column a variable, nulls where nothing is bound."""
        import pyarrow as pa

        columns = {name: pa.array([row[i] for row in self.rows], pa.string()) for i, name in enumerate(self.variables)}
        return pa.table(columns)

    def _repr_html_(self) -> str:
        rows = [tuple("" if value is None else value for value in row) for row in self.rows[:100]]
        return html_table(f"{len(self.rows):,} solutions", self.variables, rows)


def sparql(db: Database, text: str) -> Solutions | bool:
    """The answers to a SELECT, the triples of a CONSTRUCT, or whether an ASK has answers. `db`: a session that `load`
    has made, or one with a relation `triple` of three symbols. For what is not covered there is an error with its
    place."""
    require_text("a query is a text", text, "write it in SPARQL: `SELECT ?x WHERE { ?x a ex:Person }`")
    names = Names.in_program(db) if NAMES in db.schemas or "triple" not in db.schemas else None
    query = _parsed(text, names)
    _require_covered(query.algebra, text)
    from rdflib import Variable
    from rdflib.plugins.sparql import CUSTOM_EVALS
    from rdflib.plugins.sparql.evaluate import evalPart
    from rdflib.plugins.sparql.sparql import QueryContext

    CUSTOM_EVALS["elastalog"] = _matches
    context = QueryContext(cast(Any, _Answers(db, names, text)), initBindings={})
    context.prologue = query.prologue
    found = evalPart(context, query.algebra)
    if query.algebra.name == "AskQuery":
        return bool(found["askAnswer"])
    if query.algebra.name == "ConstructQuery":
        return Solutions(("s", "p", "o"), sorted(tuple(map(_text, triple)) for triple in found["graph"]))
    variables = [Variable(name) for name in query.algebra.PV]
    rows = [tuple(_text(row[name]) if name in row else None for name in variables) for row in found["bindings"]]
    return Solutions(tuple(map(str, variables)), rows)


def _parsed(text: str, names: Names | None) -> Any:
    """A query with its algebra. Prefixes that the session knows need not be declared."""
    rdflib = require_package("rdflib", "rdf")
    from pyparsing.exceptions import ParseException
    from rdflib.plugins.sparql import prepareQuery

    prefixes = {} if names is None else names.prefixes
    with _PARSING:
        # Terms are compared as they are written.
        normalises, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            return prepareQuery(text, initNs=prefixes)
        except ParseException as error:
            raise _fault(text, error.loc, f"this is no SPARQL: {error.msg[:1].lower()}{error.msg[1:]}") from None
        except Exception as error:  # rdflib has no class of its own for an unknown prefix
            told = str(error)
            if "prefix" not in told:
                raise _fault(text, 0, f"this is no SPARQL: {told[:1].lower()}{told[1:]}") from None
            prefix = told.rpartition(" ")[2].replace("None", "")
            at = _first_of(rf"(?<![\w.-]){re.escape(prefix)}:", text)
            advice = did_you_mean(prefix, prefixes) or f"declare it: `PREFIX {prefix}: <http://…>`"
            raise _fault(text, at, f"the prefix `{prefix}:` is not known", advice) from None
        finally:
            rdflib.NORMALIZE_LITERALS = normalises


def _first_of(written: str, text: str) -> int:
    """Where something is written in a query for the first time, outside of texts, IRIs and comments."""
    found = re.compile(f"{_SKIPPED}|({written})", re.IGNORECASE)
    return next((match.start() for match in found.finditer(text) if match[1]), 0)


def _fault(text: str, at: int, told: str, advice: str = _COVERED) -> ElastalogError:
    line = text.count("\n", 0, at) + 1
    place = f"<sparql>:{line}:{at - text.rfind(chr(10), 0, at)}"
    notes = (f"the line is `{text.split(chr(10))[line - 1].strip()}`",)
    return ElastalogError([Diagnostic("E0534", told, help=advice, notes=notes, location=place)])


def _require_covered(part: Any, text: str) -> None:
    """Raises ElastalogError at the first thing in a query that is not covered."""
    name = getattr(part, "name", None)
    if name in _UNCOVERED:
        written, told = _UNCOVERED[name]
        raise _fault(text, _first_of(written, text), f"{told} is not covered")
    if hasattr(part, "values") and hasattr(part, "name"):
        for value in part.values():
            for one in value if isinstance(value, list) else [value]:
                if hasattr(one, "name") and hasattr(one, "values"):
                    _require_covered(one, text)


def _matches(context: Any, part: Any) -> Iterator[Any]:
    """What rdflib asks first: the solutions of a part that is nothing but a basic graph pattern, over our answers."""
    triples = _triples_of(part) if type(context.graph) is _Answers else None
    if triples is None:
        raise NotImplementedError  # rdflib's own evaluation goes on
    return context.graph.solutions(context, triples)  # type: ignore[no-any-return]


class _Answers:
    """The triples of a session, over which rdflib evaluates queries. A pattern is asked once, whatever is bound when it
    is needed."""

    def __init__(self, db: Database, names: Names | None, text: str) -> None:
        self._db, self._names, self._text = db, names, text
        self._fresh = 0
        self._terms: dict[str, Any] = {}
        self._known: dict[tuple[Pattern, ...], _Table] = {}

    def solutions(self, context: Any, triples: list[Pattern]) -> Iterator[Any]:
        """The solutions of a basic graph pattern that agree with what is bound."""
        from rdflib.plugins.sparql.evaluate import evalBGP
        from rdflib.plugins.sparql.sparql import FrozenBindings

        plain = list(self._without_paths(triples))
        paths = [triple for triple in plain if hasattr(triple[1], "eval")]
        table = self._table(tuple(triple for triple in plain if triple not in paths))
        before = dict(context.bindings.items())
        for row in table.rows(before):
            found = FrozenBindings(context, {**before, **dict(zip(table.variables, row, strict=True))})
            yield from evalBGP(context.thaw(found), paths) if paths else (found,)

    def triples(self, asked: Pattern) -> Iterator[Pattern]:
        """The triples that agree with three terms, or None in the place of any: what paths are followed by."""
        from rdflib import Variable

        if hasattr(asked[1], "eval"):
            s, path, o = asked
            pairs = self._repeated(path, s, o) if getattr(path, "more", False) else path.eval(self, s, o)
            yield from ((start, path, end) for start, end in pairs)
            return
        s, p, o = Variable("s"), asked[1] or Variable("p"), Variable("o")
        bound = {name: term for name, term in zip((s, p, o), asked, strict=True) if term is not None and name != term}
        for row in self._table(((s, p, o),)).rows(bound):
            yield row[0], (p if asked[1] else row[1]), row[-1]

    def _repeated(self, path: Any, s: Any, o: Any) -> Iterator[tuple[Any, Any]]:
        """Where `p+` and `p*` lead, step by step; rdflib would recur as deep as they are long."""
        is_backward = s is None and o is not None
        starts = {o if is_backward else s: None}
        if s is None and o is None:
            pairs = list(self.subject_objects(None if path.zero else path.path))
            starts = dict.fromkeys([start for pair in pairs for start in (pair if path.zero else pair[:1])])
        for start in starts:
            reached = {start: None} if path.zero else {}
            waiting = [start]
            while waiting:
                node = waiting.pop()
                for found in self.triples((None, path.path, node) if is_backward else (node, path.path, None)):
                    other = found[0 if is_backward else 2]
                    if other not in reached:
                        reached[other] = None
                        waiting.append(other)
            yield from (
                (other, o) if is_backward else (start, other) for other in reached if s is None or o in (None, other)
            )

    def subject_objects(self, predicate: Any) -> Iterator[tuple[Any, Any]]:
        """Subjects and objects of a property, of all without one."""
        return ((s, o) for s, _, o in self.triples((None, predicate, None)))

    def __contains__(self, asked: Pattern) -> bool:
        return any(True for _ in self.triples(asked))

    def _table(self, triples: tuple[Pattern, ...]) -> _Table:
        """The answers to patterns without paths: one query of the language."""
        if triples in self._known:
            return self._known[triples]
        variables: dict[Any, str] = {}
        literals = [self._literal(*(_argument(term, variables) for term in triple)) for triple in triples]
        found: list[tuple[Any, ...]] = [] if None in literals else [()]
        if variables and found:
            answers = self._db.query(f"answer({', '.join(variables.values())}) :- {', '.join(map(str, literals))}")
            found = [tuple(self._term(str(text)) for text in row) for row in answers]
        elif triples and found and not self._db.query(f"answer(x) :- x = 1, {', '.join(map(str, literals))}"):
            found = []
        self._known[triples] = _Table(tuple(variables), found)
        return self._known[triples]

    def _term(self, text: str) -> Any:
        if text not in self._terms:
            self._terms[text] = _term(text)
        return self._terms[text]

    def _without_paths(self, triples: list[Pattern]) -> Iterator[Pattern]:
        """Sequences and inverses of properties as patterns of their own."""
        from rdflib import BNode

        for s, p, o in triples:
            kind = type(p).__name__
            if kind == "InvPath":
                yield from self._without_paths([(o, p.arg, s)])
            elif kind == "SequencePath":
                nodes = [s]
                for _ in p.args[1:]:
                    self._fresh += 1
                    nodes.append(BNode(f"path{self._fresh}"))
                nodes.append(o)
                yield from self._without_paths([(nodes[i], step, nodes[i + 1]) for i, step in enumerate(p.args)])
            else:
                yield s, p, o

    def _literal(self, s: str, p: str, o: str) -> str | None:
        """The literal that a pattern is; None if nothing can match it."""
        if self._names is None:
            return f"triple({_written(s)}, {_written(p)}, {_written(o)})"
        alternatives = list(self._alternatives(s, p, o))
        if len(alternatives) > _ALTERNATIVES:
            told = f"a variable in the place of a property or class would stand for {len(alternatives):,} relations"
            raise _fault(self._text, 0, told)
        if not alternatives:
            log.warning("%s", self._names.unknown(o if p == TYPE else p))
            return None
        return alternatives[0] if len(alternatives) == 1 else f"({' ; '.join(alternatives)})"

    def _alternatives(self, s: str, p: str, o: str) -> Iterator[str]:
        """What a pattern may match: class relations, property relations, `same`, `different`, axioms."""
        assert self._names is not None
        subject, object_ = _written(s), _written(o)
        is_open = p[0] == "v"
        also = f", {p} = " if is_open else ""
        for kind, term in self._names.relations:
            name = self._names.relations[kind, term]
            if kind == CLASS and (is_open or p == TYPE) and (o[0] == "v" or o == term):
                equal = f", {o} = {write_string(term)}" if o[0] == "v" else ""
                yield f"{name}({subject}){equal}{also + write_string(TYPE) if also else ''}"
            elif kind == PROPERTY and (is_open or p == term):
                yield f"{name}({subject}, {object_}){also + write_string(term) if also else ''}"
        for term, name in EQUALITY.items():
            if is_open or p == term:
                yield f"{name}({subject}, {object_}){also + write_string(term) if also else ''}"
        lists = (iri("rdf:first"), iri("rdf:rest"))
        if is_open or p in lists or is_schema((s, p, o)) or (p == TYPE and o[0] == "v"):
            yield f"{AXIOM}({subject}, {_written(p)}, {object_})"


class _Table:
    """Solutions of patterns, found by what is bound of them."""

    def __init__(self, variables: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> None:
        self.variables = variables
        self._by_values: dict[tuple[int, ...], dict[tuple[Any, ...], list[tuple[Any, ...]]]] = {(): {(): rows}}

    def rows(self, bound: Mapping[Any, Any]) -> list[tuple[Any, ...]]:
        places = tuple(place for place, name in enumerate(self.variables) if name in bound)
        if places not in self._by_values:
            index = self._by_values[places] = {}
            for row in self._by_values[()].get((), ()):
                index.setdefault(tuple(row[place] for place in places), []).append(row)
        return self._by_values[places].get(tuple(bound[self.variables[place]] for place in places), [])


def _argument(term: Any, variables: dict[Any, str]) -> str:
    """A variable of the language, which stands for one of SPARQL or for a blank node; or a term."""
    if type(term).__name__ in ("Variable", "BNode"):
        return variables.setdefault(term, f"v{len(variables)}")
    return _text(term)


def _written(argument: str) -> str:
    return argument if argument[0] == "v" else write_string(argument)


def _triples_of(part: Any) -> list[Pattern] | None:
    """The patterns of a part that is nothing but a basic graph pattern, or several that are joined."""
    if part.name == "BGP":
        return list(part.triples)
    if part.name == "Join":
        one, other = _triples_of(part.p1), _triples_of(part.p2)
        return None if one is None or other is None else one + other
    return None


def _term(text: str) -> Any:
    """A term of rdflib."""
    from rdflib import BNode, Literal, URIRef

    if text[0] == "<":
        return URIRef(text[1:-1])
    found = literal_of(text)
    if found is None:
        return BNode(text[2:])
    value, language, datatype = found
    return Literal(value, lang=language or None, datatype=URIRef(datatype) if datatype else None, normalize=False)


def _text(term: Any) -> str:
    """A term of rdflib in the form of N-Triples."""
    kind = type(term).__name__
    if kind == "URIRef":
        return f"<{term}>"
    if kind == "BNode":
        return f"_:{term}"
    return literal_text(str(term), term.language or "", str(term.datatype or ""))
