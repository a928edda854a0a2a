"""Ontologies as sessions: names, imports, what is outside of the profile, updates, proofs, repairs, commands."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog import rdf
from tests.commands import run as command
from tests.gpu.conftest import emulated, emulated_library, no_least  # noqa: F401
from tests.rdf.updates import closure, stays_right
from tests.refusals import refused

HEAD = """@prefix : <http://example.org/> . @prefix ex: <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
FAMILY = (
    HEAD
    + """
:Parent a owl:Class ; owl:equivalentClass [ owl:onProperty :child ; owl:someValuesFrom :Person ] .
:Woman rdfs:subClassOf :Person . :Man rdfs:subClassOf :Person ; owl:disjointWith :Woman .
:mother rdfs:subPropertyOf :parent ; rdfs:range :Woman ; a owl:FunctionalProperty .
:parent owl:inverseOf :child ; rdfs:domain :Person .
:ancestor a owl:TransitiveProperty . :parent rdfs:subPropertyOf :ancestor .
:ann :mother :eve . :eve :mother :old . :bob a :Man .
"""
)


@pytest.fixture
def family(tmp_path: Path) -> Path:
    path = tmp_path / "family.ttl"
    path.write_text(FAMILY)
    return path


def named(*names: str) -> set[tuple[str, ...]]:
    return {(f"<http://example.org/{name}>",) for name in names}


def test_rules_can_be_read(family: Path) -> None:
    text = rdf.translate(family).text
    assert "Parent(x) :- child(x, y), Person(y).  // cax-eqc2, cls-svf1" in text
    assert "same(x, y) :- mother(z, x), mother(z, y), x != y.  // prp-fp" in text
    assert "_:" not in text
    assert {found.code for found in elastalog.Program.parse(text).warnings} <= {"E0223"}, "facts come from elsewhere"


def test_what_follows_is_there(family: Path) -> None:
    with rdf.load(family) as db:
        assert set(db["Parent"]) == named("eve", "old")
        assert set(db["Woman"]) == named("eve", "old")
        assert set(db["ancestor"]) == {
            (f"<http://example.org/{a}>", f"<http://example.org/{b}>")
            for a, b in (("ann", "eve"), ("eve", "old"), ("ann", "old"))
        }


def test_datatypes_have_the_literals_of_derived_ones(tmp_path: Path) -> None:
    some = "[ owl:onProperty :age ; owl:someValuesFrom {} ] rdfs:subClassOf :{} ."
    kinds = {"rdfs:Literal": "Any", "xsd:decimal": "Decimal", "xsd:long": "Long", "rdf:PlainLiteral": "Text"}
    path = tmp_path / "ages.ttl"
    path.write_text(
        "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
        f"@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n{HEAD}"
        + "\n".join(some.format(*kind) for kind in kinds.items())
        + ':a :age 5 . :b :age "7"^^xsd:int . :c :age "old"@en . :d :age "old" . :e :age :unknown . :f :age 1.5 .'
    )
    with rdf.load(path) as db:
        found = {name: set(db[name]) for name in kinds.values()}
    assert found == {
        "Any": named("a", "b", "c", "d", "f"), "Decimal": named("a", "b", "f"), "Long": named("b"),
        "Text": named("c", "d"),
    }  # fmt: skip


def test_negative_assertions_count_with_and_without_their_class(tmp_path: Path) -> None:
    denied = "owl:assertionProperty :knows ; owl:sourceIndividual :{} ; owl:targetIndividual :b ."
    (tmp_path / "denied.ttl").write_text(
        HEAD
        + f"[] a owl:NegativePropertyAssertion ; {denied.format('a')} [] {denied.format('c')}\n"
        + ":a :knows :b . :c :knows :b . :d :knows :b ."
    )
    with rdf.load(tmp_path / "denied.ttl") as db:
        assert rdf.inconsistencies(db) == ["prp-npa1: ex:a, ex:knows, ex:b", "prp-npa1: ex:c, ex:knows, ex:b"]


def test_names_that_clash_have_prefixes(tmp_path: Path) -> None:
    path = tmp_path / "names.ttl"
    path.write_text(
        HEAD
        + """@prefix org: <http://other.org/ns#> .
:a a :Agent , org:Agent ; :match :b ; <http://example.org/last-name> "x" ; <http://example.org/1st> :c ; :same :d ."""
    )
    made = rdf.translate(path)
    assert set(made.names.relations.values()) == {
        "ex_Agent", "org_Agent", "ex_match", "last_name", "_1st", "ex_same",
    }  # fmt: skip
    with rdf.load(path) as db:
        assert set(db["rdf_name"]) >= {("org_Agent", "class", "<http://other.org/ns#Agent>")}


def test_axioms_outside_of_the_profile_are_told_with_their_place(tmp_path: Path, caplog: Any) -> None:
    path = tmp_path / "outside.ttl"
    path.write_text(
        HEAD
        + """
:Person rdfs:subClassOf [ owl:onProperty :parent ; owl:someValuesFrom :Person ] .

:Big rdfs:subClassOf [ owl:onProperty :part ; owl:minCardinality 3 ] .
:knows a owl:ReflexiveProperty .
:Either rdfs:subClassOf [ owl:unionOf ( :Big :Small ) ] .
:Few rdfs:subClassOf [ owl:onProperty :part ; owl:maxCardinality 2 ] .
:a a :Person .
"""
    )
    found = {one.axiom: one for one in rdf.translate(path).outside}
    assert {axiom: one.place.rsplit(":", 1)[1] for axiom, one in found.items()} == {
        "someValuesFrom of ex:Person": "4",
        "minCardinality of ex:Big": "6",
        "ReflexiveProperty of ex:knows": "7",
        "unionOf of ex:Either": "8",
        "maxCardinality above 1 of ex:Few": "9",
    }
    assert "nobody has named" in found["someValuesFrom of ex:Person"].reason
    with rdf.load(path) as db:
        assert set(db["Person"]) == named("a")
    assert "someValuesFrom of ex:Person" in caplog.text


def test_ontologies_within_the_profile_have_nothing_to_tell(tmp_path: Path) -> None:
    path = tmp_path / "inside.ttl"
    path.write_text(HEAD + "[ owl:onProperty :p ; owl:someValuesFrom :C ] rdfs:subClassOf :D . :C rdfs:subClassOf :D .")
    assert rdf.translate(path).outside == []


def test_a_class_that_is_defined_elsewhere_is_not_told_where_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "defined.ttl"
    path.write_text(
        HEAD
        + """
:C owl:intersectionOf ( :D [ owl:onProperty :p ; owl:someValuesFrom :E ] ) .
:F rdfs:subClassOf :C . :q rdfs:domain :C ; rdfs:range :C .
"""
    )
    assert [one.axiom for one in rdf.translate(path).outside] == ["someValuesFrom of ex:C"]


def test_imports_are_followed_in_circles_and_never_fetched(tmp_path: Path) -> None:
    (tmp_path / "one.ttl").write_text(
        HEAD + "<http://o.org/one> a owl:Ontology ; owl:imports <http://o.org/two> . :a a :A ."
    )
    imported = " , ".join(f"<http://o.org/{name}>" for name in ("one", "three", "lost"))
    two = f"<http://o.org/two> a owl:Ontology ; owl:imports {imported} . :A rdfs:subClassOf :B ."
    (tmp_path / "two.ttl").write_text(HEAD + two)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.ttl").write_text(HEAD + ":B rdfs:subClassOf :C .")
    imports = {"http://o.org/three": tmp_path / "elsewhere" / "x.ttl"}
    assert [one.axiom for one in rdf.translate(tmp_path / "one.ttl", imports=imports).outside] == [
        "import of <http://o.org/lost>"
    ]
    with rdf.load(tmp_path / "one.ttl", imports=imports) as db:
        assert set(db["C"]) == named("a")


def test_files_that_are_no_rdf_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("no triples")
    path = tmp_path / "o.ttl"
    path.write_text(HEAD + f"<http://o.org/o> a owl:Ontology ; owl:imports <file://{tmp_path}/secret> .")
    assert [one.axiom for one in rdf.translate(path).outside] == [f"import of <file://{tmp_path}/secret>"]


def test_the_prefix_without_a_name_is_known(tmp_path: Path, caplog: Any) -> None:
    path = tmp_path / "o.ttl"
    path.write_text("@prefix : <http://example.org/> . :a a :A ; :p :b .")
    with rdf.load(path) as db:
        assert list(db.sparql("SELECT ?x WHERE { :a :p ?x }")) == [("<http://example.org/b>",)]
        assert rdf.explain(db, ":a a :A").startswith("A(:a)")
        assert not list(db.sparql("SELECT ?x WHERE { ?x a :Aa }"))
        assert "no relation for :Aa: neither ontology nor data have spoken of it; did you mean `:A`?" in caplog.text
        rdf.export(db, tmp_path / "out.ttl")
    assert ":a a :A" in (tmp_path / "out.ttl").read_text()


def test_lists_that_lead_back_into_themselves_end(tmp_path: Path) -> None:
    path = tmp_path / "loop.nt"
    owl, rdfs = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    path.write_text(
        f"<http://e/C> <{owl}unionOf> _:l .\n_:l <{rdfs}first> <http://e/D> .\n_:l <{rdfs}rest> _:l .\n"
        f"<http://e/a> <{rdfs}type> <http://e/D> .\n"
    )
    with rdf.load(path) as db:
        assert set(db["C"]) == {("<http://e/a>",)}


def test_limits_and_threads_are_those_of_the_reading_too(family: Path, tmp_path: Path) -> None:
    with rdf.load(family, jobs="auto") as db:
        assert len(db["Woman"]) == 2
    (tmp_path / "many.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .\n" * 100_000)
    with pytest.raises(elastalog.ElastalogError, match="E0604"):
        rdf.load(tmp_path / "many.nt", limits=elastalog.Limits(memory=1 << 20))
    with pytest.raises(elastalog.ElastalogError, match="`jobs` cannot be 0"):
        rdf.load(family, jobs=0)


# --- updates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_updates_give_what_loading_the_result_gives_and_proofs_are_right(seed: int, tmp_path: Path) -> None:
    stays_right(seed, tmp_path, strategy=("elastic", "dred", "bfc", "dredc", "recompute")[seed % 5])


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("seed", range(2))
def test_a_gpu_keeps_ontologies_right(seed: int, tmp_path: Path, caplog: Any) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    stays_right(20 + seed, tmp_path, engine="gpu")
    assert "on the GPU" in caplog.text


def test_patches_of_both_kinds_say_the_same(family: Path) -> None:
    plain = "+ <http://example.org/cid> <http://example.org/mother> <http://example.org/ann> .\n"
    patch = 'H id <urn:x> .\nTX .\nPA "ex" "http://example.org/" .\nA ex:cid ex:mother ex:ann .\nTC .\n'
    found = []
    for text in (plain, patch):
        with rdf.load(family) as db:
            rdf.apply(db, text)
            found.append(closure(db))
    assert found[0] == found[1]
    assert ("<http://example.org/cid>", "<http://example.org/ancestor>", "<http://example.org/old>") in found[0]


def test_what_a_patch_takes_back_does_not_count(family: Path) -> None:
    triple = "<http://example.org/{}> <http://example.org/parent> <http://example.org/ann> ."
    aborted = f"TX .\nPA ex: <http://example.org/> .\nA {triple.format('bob')}\nTA .\n"
    with rdf.load(family) as db:
        rdf.apply(db, f"A {triple.format('cid')}\n{aborted}TX .\nA ex:dan ex:parent ex:ann .\nTC .\n")
        children = {child for child, parent in db["parent"] if parent == "<http://example.org/ann>"}
        assert children == {"<http://example.org/cid>", "<http://example.org/dan>"}


def test_a_patch_that_is_not_utf_8_is_told(family: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.rdfp").write_bytes(b'TX .\n+ <http://e/a> <http://e/p> "\xff" .\n')
    with rdf.load(family) as db, refused(match="byte 0xff is not UTF-8", location=f"{tmp_path / 'bad.rdfp'}:2"):
        rdf.apply(db, tmp_path / "bad.rdfp")


def test_of_several_changes_of_a_triple_the_last_counts(family: Path) -> None:
    triple = "<http://example.org/bob> <http://example.org/parent> <http://example.org/ann> ."
    with rdf.load(family) as db:
        rdf.apply(db, f"+ {triple}\n- {triple}\n")
        assert db.epoch == 1
        rdf.apply(db, f"- {triple}\n+ {triple}\n")
        assert len(db["parent"]) == 3


def test_new_classes_and_properties_get_relations_and_equality_its_rules(family: Path) -> None:
    family.write_text(FAMILY.replace("a owl:FunctionalProperty", "a owl:ObjectProperty"))
    with rdf.load(family) as db:
        likes = "+ <http://example.org/bob> <http://new.org/likes> <http://example.org/ann> .\n"
        same = "<http://www.w3.org/2002/07/owl#sameAs>"
        rdf.apply(db, f"{likes}+ <http://example.org/bob> {same} <http://example.org/rob> .\n")
        assert ("<http://example.org/rob>", "<http://example.org/ann>") in db["likes"]
        assert set(db["Man"]) == named("bob", "rob")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("+ <http://e/a> <http://e/p> \n", "bad line of a patch"),
        ("+ <http://e/a> <http://e/p> <http://e/b> .\nfoo\n", "neither a change nor a line"),
        ("+ <http://e/A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://e/B> .\n", "is an axiom"),
    ],
)
def test_patches_that_cannot_be_applied_change_nothing(text: str, told: str, family: Path) -> None:
    with rdf.load(family) as db:
        before = closure(db)
        with pytest.raises(elastalog.ElastalogError, match=told):
            rdf.apply(db, text)
        assert closure(db) == before


# --- proofs and repairs ----------------------------------------------------------------------------------------------


def test_proofs_of_triples_have_short_names(family: Path) -> None:
    with rdf.load(family) as db:
        assert rdf.explain(db, "ex:old a ex:Parent").splitlines()[:2] == [
            "Parent(ex:old)  (R1)",
            "├─ child(ex:old, ex:eve)  (R1)",
        ]
        assert "✓ Person(ex:ann)" in rdf.why_not(db, "ex:bob a ex:Parent") or "X child" in rdf.why_not(
            db, "ex:bob a ex:Parent"
        )
        with pytest.raises(elastalog.ElastalogError, match="no known prefix"):
            rdf.explain(db, "foo:a a ex:Parent")
        with pytest.raises(elastalog.ElastalogError, match="no relation for ex:Parnt"):
            rdf.explain(db, "ex:a a ex:Parnt")


def test_inconsistencies_are_explained_and_repaired(family: Path) -> None:
    family.write_text(FAMILY + ":cid :mother :bob . :dan :mother :bob .")
    with rdf.load(family) as db:
        assert rdf.inconsistencies(db) == ["cax-dw: ex:bob, ex:Man, ex:Woman"]
        proof = db.explain(next(iter(("inconsistent", row) for row in db["inconsistent"])))
        assert {"Man", "Woman"} == {child.fact.relation for child in proof.children}
        mended = rdf.suggest(db)
        assert len(mended.elements) == 1, "not that bob is a mother of two, but that he is a man"
        assert "Man" in str(mended)


def test_a_session_that_was_not_made_of_an_ontology_says_so() -> None:
    with elastalog.open(".decl r(x: number)") as db, pytest.raises(elastalog.ElastalogError, match="no table of names"):
        rdf.inconsistencies(db)


# --- commands and stores ---------------------------------------------------------------------------------------------


def run(*arguments: str) -> Any:
    return command("rdf", *arguments)


def test_commands(family: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "family.store")
    made = run("import", str(family), "-o", store, "--program", str(tmp_path / "family.dl"))
    assert made.exit_code == 0, made.output
    assert made.output.count("in one direction only") == 1, "an equivalence with someValuesFrom"
    assert f"`{store}` already exists" in run("import", str(family), "-o", store).output
    assert elastalog.Program.load(tmp_path / "family.dl")
    refused = run("import", str(family), "--program", str(family / "x.dl"))
    assert (refused.exit_code, "error[E0517]" in refused.output) == (1, True)
    asked = run("query", store, "SELECT ?x WHERE { ?x a ex:Parent } ORDER BY ?x")
    assert asked.output.splitlines() == ["?x", "<http://example.org/eve>", "<http://example.org/old>"]
    assert run("query", store, "ASK { ex:bob a ex:Parent }").output == "false\n"
    (tmp_path / "monday.rdfp").write_text(
        "A <http://example.org/bob> <http://example.org/child> <http://example.org/ann> .\n"
    )
    assert "epoch 2" in run("apply", store, str(tmp_path / "monday.rdfp")).output
    assert run("query", store, "ASK { ex:bob a ex:Parent }").output == "true\n"
    assert run("explain", store, "ex:bob a ex:Parent").output.startswith("Parent(ex:bob)")
    assert "does not hold" in run("explain", store, "ex:bob a ex:Woman").output
    for name in ("closure.nt", "given.ttl"):
        assert (
            run("export", store, str(tmp_path / name), *(["--explicit"] if name == "given.ttl" else [])).exit_code == 0
        )
    with (
        rdf.load(tmp_path / "given.ttl") as again,
        elastalog.open(store=elastalog.Store(store, read_only=True)) as kept,
    ):
        assert closure(again) == closure(kept)


def test_checking_says_what_is_wrong(family: Path, tmp_path: Path) -> None:
    assert run("check", str(family)).exit_code == 0
    (tmp_path / "more.ttl").write_text(HEAD + ":cid :mother :bob .")
    found = run("check", str(family), str(tmp_path / "more.ttl"))
    assert found.exit_code == 1
    assert 'inconsistent("cax-dw", ex:bob, ex:Man, ex:Woman)' in found.output


def test_import_needs_to_know_where_to(family: Path) -> None:
    assert run("import", str(family)).exit_code == 2
