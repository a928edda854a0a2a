"""The rules of OWL 2 RL: cases from the specification, and other reasoners as judges; a department of LUBM, closed
as owlrl closes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
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
    LACKING,
    VERDICTS,
    RandomOntology,
    about_individuals,
    by_owlrl,
    by_reasonable,
    by_relations,
    by_triples,
    namespace,
    of_schema,
    random_ontology,
    seeds_of,
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
DIGESTS = json.loads(VERDICTS.read_text())
IFP = rdflib.OWL.InverseFunctionalProperty
IDS = [f"{number} {case[0]}" for number, case in enumerate(CASES)]
OF_RELATIONS_ONLY = {"dt-diff", "dt-type2, as a filler"}
"""Over triples, datatypes count with the macro DATATYPES."""


def triples_in(number: int, text: str) -> set[tuple[str, str, str]]:
    graph = rdflib.Graph().parse(data=PREFIXES % number + text, format="turtle")
    return {tuple(term.n3() for term in triple) for triple in graph}


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


def united(graphs: Iterable[rdflib.Graph]) -> rdflib.Graph:
    together = rdflib.Graph()
    for graph in graphs:
        together += graph
    return together


def closes_as_owlrl_and_reasonable_do(block: int, folder: Path) -> None:
    graphs = {f"<{namespace(seed)}": random_ontology(seed) for seed in seeds_of(block)}
    graph = united(graphs.values())
    all_found, inconsistent = by_relations(graph, folder)
    found = about_individuals(all_found)
    if verdict(found) != DIGESTS[block]:
        assert found == {triple for one in graphs.values() for triple in about_individuals(by_owlrl(one))}
    over_triples, also_inconsistent = by_triples(graph)
    assert about_individuals(over_triples) == found
    assert set().union(*map(of, inconsistent)) == set().union(*map(of, also_inconsistent))
    theirs = about_individuals(by_reasonable(graph))
    without_ifp = tuple(name for name, one in graphs.items() if (None, None, IFP) not in one)
    assert {triple for triple in theirs - found if triple[0].startswith(without_ifp)} == set()
    whole = tuple(name for name in without_ifp if LACKING.isdisjoint(graphs[name].predicates()))
    assert {triple for triple in found - theirs if triple[0].startswith(whole)} == set()


def of(row: tuple[str, ...]) -> set[str]:
    """The ontology that an inconsistency is of."""
    return {name for term in row for name in re.findall("<http://example.org/[0-9]+/", term)}


@pytest.mark.parametrize("block", range(2))
def test_random_ontologies_are_closed_as_owlrl_closes_them(block: int, tmp_path: Path) -> None:
    closes_as_owlrl_and_reasonable_do(block, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("block", range(2, len(DIGESTS)))
def test_ten_thousand_random_ontologies_are_closed_as_owlrl_closes_them(block: int, tmp_path: Path) -> None:
    closes_as_owlrl_and_reasonable_do(block, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_triples_of_the_schema_are_those_of_owlrl(seed: int) -> None:
    graph = RandomOntology(seed).graph
    assert of_schema(by_triples(graph)[0]) == of_schema(by_owlrl(graph))


@pytest.mark.parametrize("seed", range(2))
def test_keys_mean_the_same_in_both_forms(seed: int, tmp_path: Path) -> None:
    graph = united(random_ontology(1000 * seed + one, has_keys=True) for one in range(10))
    assert about_individuals(by_relations(graph, tmp_path)[0]) == about_individuals(by_triples(graph)[0])


BY_OWLRL = ((8000, (11515, "e0f808275f90")), (None, (166200, "2b252dce401d")))
"""Lines of LUBM-1, and what `python -m benchmarks.rdf --one owlrl --data FILE` says of them: of all, in two minutes."""


@pytest.mark.parametrize(("number", "by_owlrl"), BY_OWLRL, ids=["a department", "LUBM-1"])
def test_a_university_is_closed_as_owlrl_closes_it_and_stays_so(
    number: int | None, by_owlrl: tuple[int, str], tmp_path: Path
) -> None:
    path = tmp_path / "university.nt"
    lines = list(islice(universities(1), number))
    path.write_text("".join(lines))
    with elastalog.rdf.load(SCHEMA, path) as db:
        names = Names.in_program(db)
        assert digest(all_triples(db, names)) == by_owlrl
        for sign in "-+":
            elastalog.rdf.apply(db, "".join(f"{sign} {line}" for line in lines[::100]))
        assert digest(all_triples(db, names)) == by_owlrl
        assert not list(db["inconsistent"])


def test_the_same_seed_gives_the_same_universities() -> None:
    assert list(islice(universities(2, 7), 3000)) == list(islice(universities(2, 7), 3000))
    assert list(islice(universities(1, 7), 3000)) != list(islice(universities(1, 8), 3000))
