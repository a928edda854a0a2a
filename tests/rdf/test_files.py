"""Files of RDF: every format, blank nodes, what is wrong and where, and what the functors say of terms."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elastalog
from elastalog.pipeline.files.rdf import PLAIN, read_triples
from tests.commands import run
from tests.rdf.judges import texts_of
from tests.refusals import refused

PROGRAM = """.decl triple(s: symbol, p: symbol, o: symbol)
.input triple(IO=rdf, filename="{}"{})
"""
EX = "http://example.org/"
NAMESPACES = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/"'
FORMS = {
    "d.nt": f'<{EX}a> <{EX}p> "x"@en .\n<{EX}a> <{EX}q> _:b .\n',
    "d.nq": f'<{EX}a> <{EX}p> "x"@en .\n<{EX}a> <{EX}q> _:b .\n',
    "d.ttl": f'@prefix : <{EX}> . :a :p "x"@en ; :q _:b .',
    "d.trig": f'@prefix : <{EX}> . {{ :a :p "x"@en ; :q _:b . }}',
    "d.rdf": f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="{EX}">'
    f'<rdf:Description rdf:about="{EX}a"><e:p xml:lang="en">x</e:p><e:q rdf:nodeID="b"/></rdf:Description></rdf:RDF>',
    "d.jsonld": f'{{"@id":"{EX}a","{EX}p":{{"@value":"x","@language":"en"}},"{EX}q":{{"@id":"_:b"}}}}',
}


def opened(folder: Path, name: str, parameters: str = "", **options: str) -> elastalog.Session:
    return elastalog.open(PROGRAM.format(name, parameters), folder, **options)


@pytest.mark.parametrize("name", FORMS)
def test_every_format_says_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FORMS[name])
    with opened(tmp_path, name) as db:
        found = sorted(db["triple"])
    assert found[0] == (f"<{EX}a>", f"<{EX}p>", '"x"@en')
    assert found[1][:2] == (f"<{EX}a>", f"<{EX}q>")
    assert found[1][2].startswith(f"_:{name}_")
    assert len(found) == 2


def test_blank_nodes_of_two_files_differ_and_stay_the_same_from_one_reading_to_the_next(tmp_path: Path) -> None:
    for name in ("one.ttl", "two.ttl"):
        (tmp_path / name).write_text(f"<{EX}a> <{EX}p> _:b , _:anonymous1 , [ <{EX}q> 1 ] .")
    program = PROGRAM.format("one.ttl", "") + '.input triple(IO=rdf, filename="two.ttl")'
    seen = []
    for _ in range(2):
        with elastalog.open(program, tmp_path) as db:
            seen.append(sorted(db["triple"]))
    assert seen[0] == seen[1]
    assert {o for _, p, o in seen[0] if p == f"<{EX}p>"} == {
        "_:one.ttl_b", "_:one.ttl_anonymous1", "_:one.ttl_anonymous2",
        "_:two.ttl_b", "_:two.ttl_anonymous1", "_:two.ttl_anonymous2",
    }  # fmt: skip


def test_a_statement_that_is_wrong_is_told_with_its_line_and_term(tmp_path: Path) -> None:
    (tmp_path / "bad.nt").write_text(f'<{EX}a> <{EX}p> "1" .\n<{EX}a> p "2" .\n<{EX}a b> <{EX}p> "3" .\n')
    with pytest.raises(elastalog.ElastalogError) as failed:
        opened(tmp_path, "bad.nt")
    first, second = failed.value.diagnostics
    assert (first.code, first.location) == ("E0529", f"{tmp_path}/bad.nt:2")
    assert "in `p`" in first.message
    assert second.location == f"{tmp_path}/bad.nt:3"
    with opened(tmp_path, "bad.nt", bad_rows="skip") as db:
        assert list(db["triple"]) == [(f"<{EX}a>", f"<{EX}p>", '"1"')]
        assert db.reports[0].bad == 2


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("bad.ttl", "@prefix : <http://e/> .\n:a :b :c .\n:a x:b :c .\n", 3),
        ("bad.jsonld", '{"@id": "http://e/a",\n "http://e/p": ,}', 2),
        ("bad.rdf", f"<rdf:RDF {NAMESPACES}>\n<e:A rdf:about='http://e/ x'/>\n</rdf:RDF>", 2),
        ("bad.trig", "<http://e/g> { <http://e/a> <http://e/p> 1 . }", None),
    ],
)
def test_places_in_every_format(name: str, text: str, line: int | None, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with refused(location=f"{tmp_path}/{name}" + (f":{line}" if line else "")):
        opened(tmp_path, name)


def test_graphs_need_a_fourth_attribute(tmp_path: Path) -> None:
    (tmp_path / "d.nq").write_text(
        f"<{EX}a> <{EX}p> 1 <{EX}g> .\n".replace(" 1 ", ' "1" ') + f'<{EX}a> <{EX}p> "2" .\n'
    )
    with pytest.raises(elastalog.ElastalogError, match="is in the graph"):
        opened(tmp_path, "d.nq")
    program = """.decl quad(s: symbol, p: symbol, o: symbol, g: symbol)
.input quad(IO=rdf, filename="d.nq")
.output quad(IO=rdf, filename="out.trig")"""
    with elastalog.open(program, tmp_path) as db:
        assert {row[3] for row in db["quad"]} == {f"<{EX}g>", ""}


def test_relative_iris_need_a_base(tmp_path: Path) -> None:
    (tmp_path / "d.ttl").write_text("<a> <p> <b> .")
    with pytest.raises(elastalog.ElastalogError, match=r"base=\"http"):
        opened(tmp_path, "d.ttl")
    with opened(tmp_path, "d.ttl", f', base="{EX}"') as db:
        assert list(db["triple"]) == [(f"<{EX}a>", f"<{EX}p>", f"<{EX}b>")]


def test_a_base_is_an_absolute_iri(tmp_path: Path) -> None:
    (tmp_path / "d.ttl").write_text("<a> <p> <b> .")
    with pytest.raises(elastalog.ElastalogError, match="`here` cannot be a base: no scheme found"):
        opened(tmp_path, "d.ttl", ', base="here"')


def test_entities_of_xml_stand_for_texts_of_a_bounded_length(tmp_path: Path) -> None:
    declared = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 20}">' for n in range(1, 9))
    text = f'<!DOCTYPE rdf:RDF [<!ENTITY e0 "{EX}"><!ENTITY twice "&e0;&e0;">{{}}]><rdf:RDF {NAMESPACES}>'
    text += '<e:A rdf:about="&e0;a"><e:p>{}</e:p></e:A></rdf:RDF>'
    (tmp_path / "d.rdf").write_text(text.format("", "&twice;"))
    with opened(tmp_path, "d.rdf") as db:
        assert (f"<{EX}a>", f"<{EX}p>", f'"{EX}{EX}"') in db["triple"]
    (tmp_path / "d.rdf").write_text(text.format(declared, "&e8;"))
    with pytest.raises(elastalog.ElastalogError, match="holds more than 200 times its"):
        opened(tmp_path, "d.rdf")


def test_compressed_files_byte_order_marks_line_ends_and_large_literals(tmp_path: Path) -> None:
    large = "y" * 3_000_000
    lines = f'\ufeff# a comment\r\n<{EX}a> <{EX}p> "{large}" .\r\n\r\n<{EX}a>\t<{EX}p> "é\\u00e9" . # said\r\n'
    (tmp_path / "d.nt.gz").write_bytes(gzip.compress(lines.encode()))
    with opened(tmp_path, "d.nt.gz") as db:
        assert sorted(row[2] for row in db["triple"]) == sorted([f'"{large}"', '"éé"'])


def test_text_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    (tmp_path / "d.nt").write_bytes(f'<{EX}a> <{EX}p> "1" .\n<{EX}a> <{EX}p> "é" .\n'.encode("latin-1"))
    with refused("E0529", "E0529", match="UTF-8", location=f"{tmp_path}/d.nt:2"):
        opened(tmp_path, "d.nt")


def test_lines_that_are_taken_apart_are_those_that_the_parser_reads(tmp_path: Path) -> None:
    """The usual layout, and the same lines laid out otherwise, which only the parser can read."""
    lines = [
        f"<{EX}s{i % 7}> <{EX}p{i % 3}> {term} ."
        for i, term in enumerate(
            [f"<{EX}o>", '"a b . c"', '"\\"q\\" ."@en-GB', f'"1"^^<{EX}t>', "_:b1", '"\\u0041"'] * 20
        )
    ]
    (tmp_path / "usual.nt").write_text("\n".join(lines))
    (tmp_path / "other.nt").write_text("\n".join(line.replace(" ", "\t", 1) for line in lines))
    usual, other = (
        texts_of(read_triples(tmp_path / f"{name}.nt", "ntriples", label="d")) for name in ("usual", "other")
    )
    assert usual == other
    assert {text[2] for text in usual} == {
        f"<{EX}o>", '"a b . c"', '"\\"q\\" ."@en-gb', f'"1"^^<{EX}t>', "_:d_b1", '"A"',
    }  # fmt: skip


@given(st.lists(st.from_regex(PLAIN.rstrip("$"), fullmatch=True), max_size=4))
def test_plain_terms_are_what_the_parser_writes(terms: list[str]) -> None:
    read = pyoxigraph.parse("".join(f"<x:x> <x:x> {term} .\n" for term in terms), pyoxigraph.RdfFormat.N_TRIPLES)
    assert [str(triple.object) for triple in read] == terms


@pytest.mark.parametrize(
    "line",
    [
        '"a" <http://e/p> "b" .', '<http://e/a> "p" "b" .', '<http://e/a> <http://e/p> "b"',
        '<http://e/a>. <http://e/p> "b" .', '<http://e/a> <http://e/p> "b" . .', "<http://e/a> <http://e/p> <e:b>.. ",
    ],
)  # fmt: skip
def test_no_line_passes_that_is_none(line: str, tmp_path: Path) -> None:
    (tmp_path / "d.nt").write_text(f'<{EX}a> <{EX}p> "b" .\n{line}\n')
    assert read_triples(tmp_path / "d.nt", "ntriples").bad


def test_facts_are_written_as_rdf_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "d.ttl").write_text(FORMS["d.ttl"])
    program = tmp_path / "p.dl"
    program.write_text(
        PROGRAM.format("d.ttl", "")
        + f'.output triple(IO=rdf, filename="out.ttl", prefixes="ex={EX}")\n'
        + '.output triple(IO=rdf, filename="out.jsonld")\n.output triple(IO=rdf)\n'
    )

    done = run("run", program, "-F", tmp_path, "-D", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert 'ex:p "x"@en' in (tmp_path / "out" / "out.ttl").read_text()
    for name, form in (("out.ttl", "turtle"), ("out.jsonld", "jsonld"), ("triple.nt", "ntriples")):
        assert len(read_triples(tmp_path / "out" / name, form).codes) == 2


def test_facts_that_are_no_triples_are_refused(tmp_path: Path) -> None:
    from elastalog.pipeline.files.write import write_output

    for fact in ('"a"', "plain"):
        program = f""".decl triple(s: symbol, p: symbol, o: symbol)
triple({'"' + fact.replace('"', chr(92) + '"') + '"'}, "<{EX}p>", "<{EX}o>").
.output triple(IO=rdf)"""
        with elastalog.open(program) as db, refused("E0530", match="is not a triple"):
            write_output(db.program.checked.relations["triple"], db["triple"].to_arrow(), tmp_path)
        assert not (tmp_path / "triple.nt").exists()
    with pytest.raises(elastalog.ElastalogError, match="cannot hold triples"):
        elastalog.open('.decl r(x: symbol, y: symbol)\n.input r(IO=rdf, filename="d.nt")', _one_line(tmp_path))


def _one_line(folder: Path) -> Path:
    (folder / "d.nt").write_text(f'<{EX}a> <{EX}p> "b" .\n')
    return folder


def test_functors_of_terms() -> None:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    terms = {
        f'"007"^^<{xsd}integer>': ("7", f"<{xsd}integer>", ""),
        f'"+1.50"^^<{xsd}decimal>': ("1.5", f"<{xsd}decimal>", ""),
        f'"1e2"^^<{xsd}double>': ("100.0", f"<{xsd}double>", ""),
        f'"1"^^<{xsd}boolean>': ("true", f"<{xsd}boolean>", ""),
        f'"2024-01-01T01:00:00+01:00"^^<{xsd}dateTime>': ("2024-01-01T00:00:00Z", f"<{xsd}dateTime>", ""),
        f'"many"^^<{xsd}integer>': ("many", f"<{xsd}integer>", ""),
        '"a\\tb\\u0041\\""': ('a\tbA"', f"<{xsd}string>", ""),
        f'"-0.0"^^<{xsd}double>': ("0.0", f"<{xsd}double>", ""),
        '"\\UFFFFFFFF\\uD800"': ("\\UFFFFFFFF\\uD800", f"<{xsd}string>", ""),  # no characters
        '"chat"@fr-BE': ("chat", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>", "fr-be"),
    }
    program = """.decl t(x: symbol)
.decl v(x: symbol, v: symbol, d: symbol, l: symbol)
v(x, rdf_value(x), rdf_datatype(x), rdf_lang(x)) :- t(x).
.decl iri(x: symbol, v: symbol)
iri(x, rdf_value(x)) :- t(x), !v(x, _, _, _).
"""
    with elastalog.open(program, {"t": [(term,) for term in [*terms, f"<{EX}a>", "_:b", "plain"]]}) as db:
        assert {row[0]: row[1:] for row in db["v"]} == terms
        assert list(db["iri"]) == [(f"<{EX}a>", f"{EX}a")]
