"""The rules of OWL 2 RL: cases from the specification, and other reasoners as judges; a department of LUBM, closed
as owlrl closes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import rdflib

import elastalog.rdf
from benchmarks.rdf.__main__ import SCHEMA, digest
from benchmarks.rdf.generate import universities
from elastalog.rdf.loading import all_triples
from elastalog.rdf.vocabulary import Names
from tests.rdf.judges import (
    VERDICTS,
    RandomOntology,
    about_individuals,
    by_owlrl,
    by_reasonable,
    by_relations,
    by_triples,
    namespace,
    of_schema,
    verdict,
)


def read_cases(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Name, what is given, what follows, and what must not."""
    for block in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        name, *lines = [line for line in block.splitlines() if not line.startswith("//")]
        given = " ".join(line for line in lines if line[:2] not in ("=>", "!>"))
        follows, must_not = (" ".join(line[3:] for line in lines if line[:2] == mark) for mark in ("=>", "!>"))
        yield name, given, follows, must_not


CASES = tuple(read_cases((Path(__file__).parent / "cases.txt").read_text()))
PREFIXES = """@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix : <http://example.org/%d/> .
"""
IDS = [f"{number} {case[0]}" for number, case in enumerate(CASES)]
OF_RELATIONS_ONLY = {"dt-diff", "dt-type2, as a filler"}
"""Over triples, datatypes count with the macro DATATYPES."""


def triples_in(number: int, text: str) -> set[tuple[str, str, str]]:
    graph = rdflib.Graph().parse(data=PREFIXES % number + text, format="turtle")
    return {tuple(term.n3() for term in triple) for triple in graph}  # type: ignore[misc]


@pytest.fixture(scope="module")
def together() -> rdflib.Graph:
    """All cases as one ontology."""
    graph = rdflib.Graph()
    for number, (_, given, _, _) in enumerate(CASES):
        graph.parse(data=PREFIXES % number + given, format="turtle")
    return graph


@pytest.fixture(scope="module")
def of_relations(together: rdflib.Graph, tmp_path_factory: pytest.TempPathFactory) -> tuple[set[Any], set[Any]]:
    return by_relations(together, tmp_path_factory.mktemp("cases"))


@pytest.fixture(scope="module")
def of_triples(together: rdflib.Graph) -> tuple[set[Any], set[Any]]:
    return by_triples(together)


def judge(number: int, found: set[Any], inconsistent: set[Any]) -> None:
    name, given, follows, must_not = CASES[number]
    own = f"<http://example.org/{number}/"
    is_wrong = any(own in term or name == row[0] == "dt-diff" for row in inconsistent for term in row)
    assert is_wrong == (follows == "inconsistent")
    if not is_wrong:
        assert triples_in(number, follows) <= found
    assert not triples_in(number, must_not) & found
    assert triples_in(number, must_not).isdisjoint(triples_in(number, given)), "a case that says what it forbids"


def test_there_are_a_hundred_cases_with_ids_of_their_own() -> None:
    assert len(CASES) >= 100
    assert len({name for name, *_ in CASES}) == len(CASES)


@pytest.mark.parametrize("number", range(len(CASES)), ids=IDS)
def test_what_relations_of_classes_and_properties_hold(number: int, of_relations: tuple[set[Any], set[Any]]) -> None:
    judge(number, *of_relations)


@pytest.mark.parametrize("number", range(len(CASES)), ids=IDS)
def test_what_rules_over_triples_derive(number: int, of_triples: tuple[set[Any], set[Any]]) -> None:
    if CASES[number][0] not in OF_RELATIONS_ONLY:
        judge(number, *of_triples)


def test_reasonable_derives_nothing_else_of_the_cases(
    together: rdflib.Graph, of_relations: tuple[set[Any], Any]
) -> None:
    left_out = {str(number) for number, case in enumerate(CASES) if "prp-ifp" in case[0]}
    found = about_individuals(by_reasonable(together)) - about_individuals(of_relations[0])
    assert {t for t in found if t[0].split("/")[3] not in left_out} == set()


def united(seeds: range, **options: Any) -> rdflib.Graph:
    """Random ontologies, each with names of its own."""
    graph = rdflib.Graph()
    for seed in seeds:
        graph += RandomOntology(seed, names=namespace(seed), **options).graph
    return graph


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_ontologies_are_closed_as_owlrl_closes_them(first: int, tmp_path: Path) -> None:
    found, _ = by_relations(united(range(first, first + 50)), tmp_path)
    expected = json.loads(VERDICTS.read_text())
    assert [seed for seed in range(first, first + 50) if verdict(found, seed) != expected[seed]] == []


def test_rules_over_triples_close_random_ontologies_as_owlrl_does() -> None:
    found, _ = by_triples(united(range(25)))
    expected = json.loads(VERDICTS.read_text())
    assert [seed for seed in range(25) if verdict(found, seed) != expected[seed]] == []


def agree(seed: int, folder: Path) -> None:
    """All reasoners, now."""
    graph = RandomOntology(seed).graph
    expected = about_individuals(by_owlrl(graph))
    found, inconsistent = by_relations(graph, folder)
    assert about_individuals(found) == expected
    over_triples, also_inconsistent = by_triples(graph)
    assert about_individuals(over_triples) == expected
    assert bool(inconsistent) == bool(also_inconsistent)
    has_ifp = (None, rdflib.RDF.type, rdflib.OWL.InverseFunctionalProperty) in graph
    assert has_ifp or about_individuals(by_reasonable(graph)) <= expected


@pytest.mark.parametrize("seed", range(300, 305))
def test_reasoners_agree_on_random_ontologies(seed: int, tmp_path: Path) -> None:
    agree(seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("first", range(300, 10_300, 100))
def test_reasoners_agree_on_ten_thousand_random_ontologies(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 100):
        agree(seed, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_triples_of_the_schema_are_those_of_owlrl(seed: int) -> None:
    graph = RandomOntology(seed).graph
    assert of_schema(by_triples(graph)[0]) == of_schema(by_owlrl(graph))


@pytest.mark.parametrize("seed", range(2))
def test_keys_mean_the_same_in_both_forms(seed: int, tmp_path: Path) -> None:
    graph = united(range(1000 * seed, 1000 * seed + 10), has_keys=True)
    assert about_individuals(by_relations(graph, tmp_path)[0]) == about_individuals(by_triples(graph)[0])


BY_OWLRL = (11515, "e0f808275f90")
"""What `python -m benchmarks.rdf --one owlrl --data FILE` says of the file of the test."""


def test_a_department_is_closed_as_owlrl_closes_it_and_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "department.nt"
    lines = list(islice(universities(1), 8000))
    path.write_text("".join(lines))
    with elastalog.rdf.load(SCHEMA, path) as db:
        names = Names.in_program(db)
        assert digest(all_triples(db, names)) == BY_OWLRL
        for sign in "-+":
            elastalog.rdf.apply(db, "".join(f"{sign} {line}" for line in lines[::100]))
        assert digest(all_triples(db, names)) == BY_OWLRL
        assert not list(db["inconsistent"])


def test_the_same_seed_gives_the_same_universities() -> None:
    assert list(islice(universities(2, 7), 3000)) == list(islice(universities(2, 7), 3000))
    assert list(islice(universities(1, 7), 3000)) != list(islice(universities(1, 8), 3000))
