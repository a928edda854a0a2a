"""SPARQL: basic graph patterns become queries of the language, which the session answers; what stands around them
(OPTIONAL, UNION, MINUS, FILTER, BIND, VALUES, DISTINCT, ORDER BY, LIMIT) is done with their answers.

Text is parsed by rdflib, and expressions are evaluated by it: filters mean what they mean there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from elastalog.analysis.functor_values import literal_of, literal_text
from elastalog.diagnostics.arguments import require_package, require_text
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.display import html_table
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.late import dataclass
from elastalog.rdf.ontology import is_schema
from elastalog.rdf.rules import constant
from elastalog.rdf.vocabulary import AXIOM, CLASS, EQUALITY, NAMES, PROPERTY, TYPE, Names, iri, log

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
    "Group": (r"\bGROUP\b", "GROUP BY"),
    "AggregateJoin": (r"\b(?:COUNT|SUM|MIN|MAX|AVG|SAMPLE|GROUP_CONCAT|GROUP)\b", "an aggregate"),
    "ConstructQuery": (r"\bCONSTRUCT\b", "CONSTRUCT"),
    "DescribeQuery": (r"\bDESCRIBE\b", "DESCRIBE"),
    "Builtin_EXISTS": (r"\bEXISTS\b", "EXISTS"),
    "Builtin_NOTEXISTS": (r"\bNOT\s+EXISTS\b", "NOT EXISTS"),
    "Path": (r"\||(?<=[\w)>])[*+?](?![\w$])|!(?=[\w(<^])", "a property path of this kind"),
}
"""What is not covered, by its name in the algebra: how it is written, and what it is called."""
_COVERED: Final = "docs/reference/rdf.md#sparql lists what is covered"

Row = dict[str, str]
"""A solution: terms, in the form of N-Triples, by variable."""


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
    """The answers to a SELECT, or whether an ASK has any. The session is one that `load` has made, or one with a
    relation `triple` of three symbols. What is not covered is an error with its place."""
    require_text("a query is a text", text, "write it in SPARQL: `SELECT ?x WHERE { ?x a ex:Person }`")
    names = Names.in_program(db) if NAMES in db.schemas or "triple" not in db.schemas else None
    algebra = _parsed(text, names)
    _require_covered(algebra, text)
    query = _Query(db, names, text)
    if algebra.name == "AskQuery":
        return bool(query.rows(algebra.p))
    found = query.rows(algebra.p)
    variables = tuple(str(variable) for variable in algebra.PV)
    return Solutions(variables, [tuple(row.get(name) for name in variables) for row in found])


def _parsed(text: str, names: Names | None) -> Any:
    """The algebra of a query. Prefixes that the session knows need not be declared."""
    rdflib = require_package("rdflib", "rdf")
    from pyparsing.exceptions import ParseException
    from rdflib.plugins.sparql import prepareQuery

    prefixes = {} if names is None else names.prefixes
    with _PARSING:
        # Terms are compared as they are written.
        normalises, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            return prepareQuery(text, initNs=prefixes).algebra
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
    return ElastalogError([Diagnostic("E0534", told, notes=notes, help=advice, location=place)])


def _require_covered(part: Any, text: str) -> None:
    """Raises ElastalogError at the first thing in a query that is not covered."""
    name = getattr(part, "name", None)
    if name in _UNCOVERED:
        raise _not_covered(name, text)
    if name == "BGP":
        for _, p, _ in part.triples:
            _require_path(p, text)
    if hasattr(part, "values") and hasattr(part, "name"):
        for value in part.values():
            for one in value if isinstance(value, list) else [value]:
                if hasattr(one, "name") and hasattr(one, "values"):
                    _require_covered(one, text)


def _require_path(p: Any, text: str) -> None:
    kind = type(p).__name__
    if kind == "SequencePath":
        for part in p.args:
            _require_path(part, text)
    elif kind == "InvPath":
        _require_path(p.arg, text)
    elif kind not in ("URIRef", "Variable"):
        raise _not_covered("Path", text)


def _not_covered(name: str, text: str) -> ElastalogError:
    written, told = _UNCOVERED[name]
    return _fault(text, _first_of(written, text), f"{told} is not covered")


class _Query:
    """Evaluates the algebra of one query."""

    def __init__(self, db: Database, names: Names | None, text: str) -> None:
        from rdflib.plugins.sparql.sparql import QueryContext

        self._db, self._names, self._text = db, names, text
        self._context = QueryContext(initBindings={})
        self._fresh = 0
        self._terms: dict[str, Any] = {}

    def rows(self, part: Any) -> list[Row]:
        """The solutions of a part of a query."""
        triples = _triples_of(part)
        if triples is not None:
            return self._matches(triples)
        known: dict[str, Callable[[Any], list[Row]]] = {
            "Join": lambda p: _joined(self.rows(p.p1), self.rows(p.p2)),
            "LeftJoin": self._left_join,
            "Union": lambda p: self.rows(p.p1) + self.rows(p.p2),
            "Minus": self._minus,
            "Filter": lambda p: [row for row in self.rows(p.p) if self._holds(p.expr, row)],
            "Extend": self._extend,
            "ToMultiSet": lambda p: self.rows(p.p),
            "values": lambda p: [{str(v): _text(t) for v, t in row.items() if t != "UNDEF"} for row in p.res],
            "Project": lambda p: _projected(self.rows(p.p), {str(v) for v in p.PV}),
            "Distinct": lambda p: _distinct(self.rows(p.p)),
            "Reduced": lambda p: _distinct(self.rows(p.p)),
            "OrderBy": self._ordered,
            "Slice": self._slice,
            "SelectQuery": lambda p: self.rows(p.p),
        }
        if part.name not in known:
            raise _fault(self._text, 0, f"{part.name} is not covered")
        return known[part.name](part)

    def _left_join(self, part: Any) -> list[Row]:
        left, right = self.rows(part.p1), self.rows(part.p2)
        kept = []
        for row, matches in _meetings(left, right):
            together = [{**row, **other} for other in matches]
            found = [one for one in together if self._holds(part.expr, one)] if together else []
            kept += found or [row]
        return kept

    def _minus(self, part: Any) -> list[Row]:
        left, right = self.rows(part.p1), self.rows(part.p2)
        return [
            row for row, matches in _meetings(left, right) if not any(row.keys() & other.keys() for other in matches)
        ]

    def _extend(self, part: Any) -> list[Row]:
        from rdflib.plugins.sparql.evalutils import _eval
        from rdflib.plugins.sparql.sparql import SPARQLError

        extended = []
        for row in self.rows(part.p):
            try:
                value = _eval(part.expr, self._bindings(row))
                extended.append(row if isinstance(value, SPARQLError) else {**row, str(part.var): _text(value)})
            except SPARQLError:
                extended.append(row)
        return extended

    def _ordered(self, part: Any) -> list[Row]:
        from rdflib.plugins.sparql.evalutils import _val
        from rdflib.plugins.sparql.parserutils import value

        found = sorted(self.rows(part.p), key=lambda row: sorted(row.items()))
        for one in reversed(part.expr):
            found.sort(
                key=lambda row, by=one: _val(value(self._bindings(row), by.expr, variables=True)),  # type: ignore[misc]
                reverse=one.order == "DESC",
            )
        return found

    def _slice(self, part: Any) -> list[Row]:
        end = None if part.length is None else part.start + part.length
        return self.rows(part.p)[part.start : end]

    def _holds(self, expression: Any, row: Row) -> bool:
        from rdflib.plugins.sparql.evalutils import _ebv

        return bool(_ebv(expression, self._bindings(row)))

    def _bindings(self, row: Row) -> Any:
        from rdflib import Variable
        from rdflib.plugins.sparql.sparql import FrozenBindings

        return FrozenBindings(self._context, {Variable(name): self._term(text) for name, text in row.items()})

    def _term(self, text: str) -> Any:
        if text not in self._terms:
            self._terms[text] = _term(text)
        return self._terms[text]

    # --- basic graph patterns ----------------------------------------------------------------------------------------

    def _matches(self, triples: list[tuple[Any, Any, Any]]) -> list[Row]:
        """The answers to a basic graph pattern: one query of the language."""
        if not triples:
            return [{}]
        variables: dict[str, str] = {}
        literals = []
        for triple in self._without_paths(triples):
            literal = self._literal(*(self._argument(term, variables) for term in triple))
            if literal is None:
                return []
            literals.append(literal)
        head = f"answer({', '.join(variables.values()) or 'x'})"
        answers = self._db.query(f"{head} :- {'' if variables else 'x = 1, '}{', '.join(literals)}")
        places = [(place, name) for place, name in enumerate(variables) if name[0] != "_"]
        return [{name: str(row[place]) for place, name in places} for row in answers]

    def _without_paths(self, triples: list[tuple[Any, Any, Any]]) -> Iterator[tuple[Any, Any, Any]]:
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

    def _argument(self, term: Any, variables: dict[str, str]) -> str:
        """A variable of the language, which stands for one of SPARQL or for a blank node; or a term."""
        kind = type(term).__name__
        if kind in ("Variable", "BNode"):
            name = str(term) if kind == "Variable" else f"_{term}"
            return variables.setdefault(name, f"v{len(variables)}")
        return _text(term)

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
                equal = f", {o} = {constant(term)}" if o[0] == "v" else ""
                yield f"{name}({subject}){equal}{also + constant(TYPE) if also else ''}"
            elif kind == PROPERTY and (is_open or p == term):
                yield f"{name}({subject}, {object_}){also + constant(term) if also else ''}"
        for term, name in EQUALITY.items():
            if is_open or p == term:
                yield f"{name}({subject}, {object_}){also + constant(term) if also else ''}"
        lists = (iri("rdf:first"), iri("rdf:rest"))
        if is_open or p in lists or is_schema((s, p, o)) or (p == TYPE and o[0] == "v"):
            yield f"{AXIOM}({subject}, {_written(p)}, {object_})"


def _written(argument: str) -> str:
    return argument if argument[0] == "v" else constant(argument)


def _triples_of(part: Any) -> list[tuple[Any, Any, Any]] | None:
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


def _meetings(left: list[Row], right: list[Row]) -> Iterator[tuple[Row, list[Row]]]:
    """Each solution on the left with those on the right that agree with it where both have a value."""
    shared = sorted(_always(left) & _always(right))
    by_key: dict[tuple[str, ...], list[Row]] = {}
    for row in right:
        by_key.setdefault(tuple(row[name] for name in shared), []).append(row)
    for row in left:
        candidates = by_key.get(tuple(row[name] for name in shared), [])
        yield (
            row,
            [other for other in candidates if all(other.get(name, value) == value for name, value in row.items())],
        )


def _always(rows: list[Row]) -> set[str]:
    """The variables that all solutions bind."""
    names = set(rows[0]) if rows else set[str]()
    for row in rows:
        names &= row.keys()
    return names


def _joined(left: list[Row], right: list[Row]) -> list[Row]:
    return [{**row, **other} for row, matches in _meetings(left, right) for other in matches]


def _projected(rows: list[Row], names: set[str]) -> list[Row]:
    return [{name: value for name, value in row.items() if name in names} for row in rows]


def _distinct(rows: list[Row]) -> list[Row]:
    return list({tuple(sorted(row.items())): row for row in rows}.values())
