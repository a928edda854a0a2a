"""SPARQL beside rdflib's own evaluation of the same query over the same triples, and what is not covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rdflib

import elastalog
from elastalog import rdf
from elastalog.rdf.loading import all_triples
from elastalog.rdf.sparql import _text
from elastalog.rdf.vocabulary import Names
from tests.refusals import refused
from tests.tables import table

DATA = """@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
ex:Dog rdfs:subClassOf ex:Animal . ex:owns rdfs:domain ex:Person .
ex:ann ex:owns ex:rex , ex:tom ; ex:age 41 ; ex:name "Ann"@en . ex:bob ex:owns ex:rex ; ex:age 7 ; ex:name "Bob" .
ex:cid a ex:Person ; ex:knows ex:ann , ex:cid . ex:rex a ex:Dog ; ex:age 007 ; ex:name "Rex" .
ex:rex ex:name "a\\tb\\u0001\\"c\\\\" . ex:tom a ex:Animal .
"""
QUERIES = (
    "SELECT ?x WHERE { ?x a ex:Person }",
    "SELECT ?x ?y WHERE { ?x ex:owns ?y . ?y a ex:Dog }",
    "SELECT ?y WHERE { ?x ex:owns ?y }",
    "SELECT DISTINCT ?y WHERE { ?x ex:owns ?y }",
    "SELECT * WHERE { ?x a ex:Person OPTIONAL { ?x ex:age ?a } }",
    "SELECT * WHERE { ?x a ex:Person OPTIONAL { ?x ex:age ?a FILTER(?a > 10) } OPTIONAL { ?x ex:name ?n } }",
    "SELECT ?x WHERE { ?x ex:age ?a FILTER(?a < 10 && ?a != 8) }",
    "SELECT ?x WHERE { ?x ex:age ?a FILTER(!bound(?a) || ?a = 7) }",
    'SELECT ?x WHERE { ?x ex:name ?n FILTER(regex(str(?n), "^[AB]")) }',
    'SELECT ?x WHERE { ?x ex:name ?n FILTER(lang(?n) = "en") }',
    "SELECT ?x WHERE { { ?x a ex:Dog } UNION { ?x a ex:Person } }",
    "SELECT ?x ?n WHERE { { ?x ex:age ?a } UNION { ?x ex:name ?n } }",
    "SELECT ?x WHERE { ?x a ex:Person MINUS { ?x ex:owns ex:tom } }",
    "SELECT ?x ?b WHERE { ?x ex:age ?a BIND(?a + 1 AS ?b) }",
    "SELECT ?x ?y WHERE { VALUES ?x { ex:ann ex:bob } ?x ex:owns ?y }",
    'SELECT ?x WHERE { ?x ex:name "a\\tb\\u0001\\"c\\\\" }',
    "SELECT ?x WHERE { ?x ex:knows ?x }",
    "SELECT ?p ?o WHERE { ex:ann ?p ?o }",
    "SELECT ?x ?c WHERE { ?x a ?c }",
    "SELECT ?x ?y WHERE { ?x rdfs:subClassOf ?y }",
    "SELECT ?x WHERE { ?x ex:owns/ex:age 007 }",
    "SELECT ?x WHERE { ?x ^ex:owns ?y . ?y ex:knows|ex:age ?z }".replace("|ex:age", ""),
    "SELECT ?x WHERE { ?x ex:owns [ a ex:Dog ] }",
    "SELECT ?x ?y WHERE { ?x ex:owns ?y { SELECT ?y WHERE { ?y a ex:Dog } LIMIT 1 } }",
    "SELECT ?x WHERE { ?x a ex:Unheard }",
    "SELECT ?x WHERE { ?x ex:unheard ?y }",
    "SELECT ?x ?z WHERE { ?x ex:knows ?y OPTIONAL { ?y ex:owns ?z . ?z a ex:Dog } FILTER(?x = ex:cid) }",
    "SELECT (COUNT(?x) AS ?n) (MAX(?a) AS ?m) WHERE { ?x ex:age ?a }",
    "SELECT ?x (COUNT(?y) AS ?n) WHERE { ?x ex:owns ?y } GROUP BY ?x HAVING (COUNT(?y) > 1)",
    "SELECT ?x ?y WHERE { ?x ex:knows* ?y }",
    "SELECT ?x ?y WHERE { ?x ex:knows+ ?y }",
    "SELECT ?y WHERE { ex:cid ex:knows+/ex:owns ?y }",
    "SELECT ?x WHERE { ?x (ex:knows|ex:owns)+ ex:rex }",
    "SELECT ?x WHERE { ?x ex:knows|ex:owns ?y }",
    "SELECT ?y WHERE { ex:ann !(ex:owns|rdf:type) ?y }",
    "SELECT ?x ?z WHERE { ?x a ex:Person ; ex:knows?/ex:owns ?z }",
    "SELECT ?x WHERE { ?x a ex:Person FILTER NOT EXISTS { ?x ex:owns ?y . ?y a ex:Dog } }",
    "SELECT ?x WHERE { ?x a ex:Person FILTER EXISTS { ?x ex:age ?a FILTER(?a > 10) } }",
    "CONSTRUCT { ?y ex:ownedBy ?x } WHERE { ?x ex:owns ?y }",
    "ASK { ex:ann ex:owns ex:tom }",
    "ASK { ex:ann ex:owns ex:bob }",
    "ASK { ?x ex:age 41 }",
)
ORDERED = (
    "SELECT ?x ?a WHERE { ?x ex:age ?a } ORDER BY DESC(?a) ?x",
    "SELECT ?x WHERE { ?x a ex:Person } ORDER BY ?x LIMIT 2",
    "SELECT ?x WHERE { ?x a ex:Person } ORDER BY DESC(?x) LIMIT 1 OFFSET 1",
    "SELECT ?x ?a WHERE { ?x a ex:Person OPTIONAL { ?x ex:age ?a } } ORDER BY ?a ?x OFFSET 1",
)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any, rdflib.Graph]]:
    """The same triples in relations of classes and properties, in one of triples, and in rdflib."""
    path = tmp_path_factory.mktemp("sparql") / "d.ttl"
    path.write_text(DATA)
    rdflib.NORMALIZE_LITERALS = False
    with rdf.load(path) as db:
        triples = set(all_triples(db, Names.in_program(db)))
        graph = rdflib.Graph()
        graph.parse(data="".join(f"{' '.join(triple)} .\n" for triple in triples), format="nt")
        with elastalog.open(".decl triple(s: symbol, p: symbol, o: symbol)", {"triple": sorted(triples)}) as flat:
            yield db, flat, graph
    rdflib.NORMALIZE_LITERALS = True


PREFIXES = "PREFIX ex: <http://example.org/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "


@pytest.mark.parametrize("text", [*QUERIES, *ORDERED])
def test_answers_are_those_of_rdflib(text: str, sessions: tuple[Any, Any, rdflib.Graph]) -> None:
    *ours, graph = sessions
    theirs = graph.query(PREFIXES + text)
    for db in ours:
        found = db.sparql(PREFIXES + text)
        if theirs.type == "ASK":
            assert found == theirs.askAnswer
            continue
        if theirs.type == "CONSTRUCT":
            assert list(found) == sorted(tuple(map(_text, triple)) for triple in theirs)
            continue
        assert found.variables == tuple(str(name) for name in theirs.vars)
        rows = [tuple(None if value is None else _text(value) for value in row) for row in theirs]
        assert list(found) == rows if text in ORDERED else Counter(found) == Counter(rows)


def test_long_paths_are_followed() -> None:
    chain = [(f"<http://e/{i}>", "<http://e/p>", f"<http://e/{i + 1}>") for i in range(3000)]
    with elastalog.open(".decl triple(s: symbol, p: symbol, o: symbol)", {"triple": chain}) as db:
        assert len(db.sparql("SELECT ?x WHERE { <http://e/0> <http://e/p>+ ?x }")) == 3000
        assert len(db.sparql("SELECT ?x WHERE { ?x <http://e/p>* <http://e/3000> }")) == 3001


def test_prefixes_of_the_files_need_no_declaration(sessions: tuple[Any, Any, rdflib.Graph]) -> None:
    assert sessions[0].sparql("SELECT ?x WHERE { ?x a ex:Dog }").to_arrow().to_pydict() == {
        "x": ["<http://example.org/rex>"]
    }


@pytest.mark.parametrize(("text", "told", "place"), table(__file__, "what is not covered is an error with its place"))
def test_what_is_not_covered_is_an_error_with_its_place(
    text: str, told: str, place: str, sessions: tuple[Any, Any, rdflib.Graph]
) -> None:
    with refused("E0534") as failed:
        sessions[0].sparql(text)
    (found,) = failed.value.diagnostics
    assert told in found.message
    assert found.location.startswith(f"<sparql>:{place}")


def test_a_session_without_triples_says_so(tmp_path: Path) -> None:
    with elastalog.open(".decl r(x: number)") as db, pytest.raises(elastalog.ElastalogError, match="no table of names"):
        db.sparql("SELECT ?x WHERE { ?x a ?y }")
