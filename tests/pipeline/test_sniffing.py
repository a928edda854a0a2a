"""Files that are given by their path are looked at; what was found is said, and what is not clear is an error."""

from __future__ import annotations

import gzip
import logging
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.settings import SETTINGS
from tests.refusals import refused
from tests.tables import table

DEP = ".decl dep(package: symbol, needs: symbol, times: number)\n"
FACTS = {("a", "b", 1), ("c, d", "e", 2)}


def read(path: Path | str, program: str = DEP, **options: Any) -> elastalog.Session:
    return elastalog.open(program, {"dep": path}, **options)


@pytest.mark.parametrize(
    ("name", "text", "understood"),
    [
        *table(__file__, "how a file is written is found and said"),
        ("dep.csv", "a;b;1\r\nc, d;e;2\r\n", "fields between semicolons, no header"),
        ("dep", "\ufefftimes;Needs;package\n1;b;a\n2;e;c, d\n", "fields between semicolons, a header"),
    ],
)
def test_how_a_file_is_written_is_found_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, text: str, understood: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with caplog.at_level(logging.INFO, "elastalog.facts"), read(tmp_path / name) as db:
        assert set(db["dep"]) == FACTS
        assert [report.understood for report in db.reports] == [understood]
    assert caplog.messages.count(f"facts of `dep` from {tmp_path / name}: {understood}") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Ulm, Bonn, 3\nBonn, Köln, 1\n", "all 2 values of column `needs` of `dep` begin with a blank"),
        ("Ulm,Bonn, 3\nBonn, Köln,1\n", "1 of the 2 values of column `needs` of `dep` begins with a blank"),
        ("times, package, needs\n3,Ulm,Bonn\n1,Bonn, Köln\n", "1 of the 2 values of column `needs` of `dep` begin"),
    ],
)
@pytest.mark.parametrize("threads_from", [0, 1 << 30])
def test_texts_behind_a_blank_are_pointed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str, threads_from: int
) -> None:
    monkeypatch.setattr(SETTINGS, "read_in_threads_from", threads_from)
    (tmp_path / "dep.csv").write_text(text)
    with pytest.warns(UserWarning, match="E0537") as warned:
        db = read(tmp_path / "dep.csv")
    assert len(warned) == 1
    assert told in str(warned[0].message)
    assert {" Köln", 1} < set(next(fact for fact in db["dep"] if fact[0] == "Bonn"))


def test_what_the_warning_of_blanks_advises_helps(tmp_path: Path) -> None:
    (tmp_path / "dep.csv").write_text("Ulm, Bonn, 3\nBonn, Köln, 1\n")
    with pytest.warns(UserWarning, match="E0537") as warned:
        read(tmp_path / "dep.csv")
    directive = str(warned[0].message).partition("delimiter: `")[2].partition("`")[0]
    assert directive == '.input dep(filename="dep.csv", rfc4180=true, delimiter=", ")'
    expected = {("Ulm", "Bonn", 3), ("Bonn", "Köln", 1)}
    assert set(read(tmp_path / "dep.csv", f"{DEP}{directive}\n")["dep"]) == expected
    assert set(elastalog.open(f"{DEP}{directive}\n", tmp_path)["dep"]) == expected
    (tmp_path / "dep.csv").write_text('Ulm," Bonn",3\n"Bonn, Beuel",Köln, 1\n"Bonn",Köln,1\n')
    with pytest.warns(UserWarning, match="1 of the 3 values of column `needs`"):
        read(tmp_path / "dep.csv")
    for text in ('Ulm," Bonn",3\nBonn,Köln,1\n', "Ulm,Bonn, 3\nBonn,Köln, 1\n"):  # none is in doubt
        (tmp_path / "dep.csv").write_text(text)
        with warnings.catch_warnings(action="error"):
            assert read(tmp_path / "dep.csv")["dep"]


def test_columns_that_are_not_wanted_are_left_out_by_the_header(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text('id,times,needs,package\n7,1,b,a\n8,2,e,"c, d"\n')
    with pytest.warns(UserWarning, match="column `id` left out"):
        db = read(str(tmp_path / "d.csv"))
    assert set(db["dep"]) == FACTS
    assert db.reports[0].understood.endswith("a header")


def test_packed_files_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "dep.csv.gz").write_bytes(gzip.compress(b'a,b,1\n"c, d",e,2\n'))
    columns = {"package": ["a", "c, d"], "needs": ["b", "e"], "times": [1, 2]}
    pq.write_table(pa.table(columns), tmp_path / "dep.parquet")
    for name in ("dep.csv.gz", "dep.parquet"):
        assert set(read(tmp_path / name)["dep"]) == FACTS


def test_a_folder_has_the_file_of_the_relation_or_its_parts(tmp_path: Path) -> None:
    for folder, files in (
        ("one", {"dep.csv": "a,b,1\n", "other.csv": "7\n"}),
        ("parts", {"1.csv": "a,b,1\n", "2.tsv": "c\td\t2\n"}),
    ):
        (tmp_path / folder).mkdir()
        for name, text in files.items():
            (tmp_path / folder / name).write_text(text)
    assert set(read(tmp_path / "one")["dep"]) == {("a", "b", 1)}
    assert set(read(tmp_path / "parts")["dep"]) == {("a", "b", 1), ("c", "d", 2)}
    (tmp_path / "empty").mkdir()
    with pytest.raises(ElastalogError, match="E0510"):
        read(tmp_path / "empty")


def test_what_can_be_read_in_two_ways_is_an_error_that_shows_both(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("x,y\na,b\n")
    with refused("E0528") as error:
        elastalog.open(".decl e(x: symbol, y: symbol)\n", {"e": tmp_path / "e.csv"})
    (found,) = error.value.diagnostics
    assert [note.rpartition(" is ")[2] for note in found.notes] == ["e('a', 'b')", "e('x', 'y')"]
    assert '`.input e(filename="e.csv", rfc4180=true, headers=true)`' in (found.help or "")
    (tmp_path / "t.txt").write_text("a,b\tc\n")
    with pytest.raises(ElastalogError, match="E0528"):
        elastalog.open(".decl e(x: symbol, y: symbol)\n", {"e": tmp_path / "t.txt"})


@pytest.mark.parametrize(
    ("parameters", "name", "text", "facts"),
    [
        ("rfc4180=true, headers=true", "e.csv", "x,y\na,b\n", {("a", "b")}),
        ("rfc4180=true", "e.csv", "x,y\na,b\n", {("x", "y"), ("a", "b")}),
        ("rfc4180=true, headers=true", "e.csv", "from,to\na,b\n", {("a", "b")}),
        ('delimiter=","', "e.tsv", "a\tb\n", {("a", "b")}),
    ],
)
@pytest.mark.filterwarnings("ignore:.*E0527")
def test_what_the_program_says_of_a_file_holds_for_a_path_unless_it_cannot_be_read_so(
    tmp_path: Path, parameters: str, name: str, text: str, facts: set[tuple[str, str]]
) -> None:
    (tmp_path / name).write_text(text)
    program = f'.decl e(x: symbol, y: symbol)\n.input e(filename="e.csv", {parameters})\n'
    assert set(elastalog.open(program, {"e": tmp_path / name})["e"]) == facts


@pytest.mark.parametrize(
    ("declared", "said", "text", "facts"),
    [
        ("a: symbol, b: number", "rfc4180=true, headers=true", "2024,2025\n3,4\n", {("3", 4)}),
        ("a: symbol, b: symbol", "headers=true", "x1,y1\nx,y\n", {("x", "y")}),
        ("a: symbol, b: number", "rfc4180=true, headers=true", "x,1\ny,2\n", {("y", 2)}),
    ],
)
def test_a_header_that_the_program_speaks_of_is_one_also_by_path(
    tmp_path: Path, declared: str, said: str, text: str, facts: set[tuple[object, ...]]
) -> None:
    """Even if its line could be a fact: a warning says so, as of a folder."""
    (tmp_path / "e.csv").write_text(text)
    program = f'.decl e({declared})\n.input e(filename="e.csv", {said})\n'
    with pytest.warns(UserWarning, match="E0527"):
        assert set(elastalog.open(program, {"e": tmp_path / "e.csv"})["e"]) == facts


ORDER = ".decl order(id: number, customer: symbol, item: symbol, qty: number, due: symbol)\n"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("ID;Kunde;Ware;Menge;Datum\n1;Müller;tea;3;2026-10-01\n", "columns `customer`, `item`, `qty`, `due`"),
        ("id,customer,item,due\n1,ann,tea,2026-10-01\n", "column `qty`"),
        ("id\n1\n", "columns `customer`, `item`, `qty`, `due`"),
    ],
)
def test_a_header_without_a_column_is_told_of_at_once(tmp_path: Path, text: str, missing: str) -> None:
    (tmp_path / "o.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ElastalogError) as error:
        elastalog.open(ORDER, {"order": tmp_path / "o.csv"})
    (found,) = error.value.diagnostics
    assert (found.code, found.message) == ("E0518", f"the header has no {missing} of relation `order`")
    assert ("the attributes:" if "columns" in missing else "the attribute:") in (found.help or "")


def test_a_header_of_other_names_is_no_bad_row_whatever_others_are(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("no;who;what;how many;until\n1;ann;tea;3;\n2;bob;tea;;x9\n")
    with pytest.raises(ElastalogError) as error:
        elastalog.open(ORDER, {"order": tmp_path / "o.csv"})
    (found,) = error.value.diagnostics
    assert (found.location, found.message) == (
        f"{tmp_path / 'o.csv'}:3",
        "bad row for `order`: an empty field is not a number (`qty`)",
    )
    assert (found.help or "").startswith("leave the row out")


def test_updates_take_paths_too(tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text('package,needs,times\n"c, d",e,2\n')
    (tmp_path / "bad.csv").write_text("package,needs,times\nx,y,3\nx,y,many\n")
    with elastalog.open(DEP, {"dep": [("a", "b", 1)]}) as db:
        db.apply({"dep": tmp_path / "more.csv"})
        assert set(db["dep"]) == FACTS
        changes = db.apply({"dep": str(tmp_path / "bad.csv")}, bad_rows="skip")
        assert [(report.loaded, report.bad) for report in changes.reports] == [(1, 1)]
        db.apply(deleted={"dep": tmp_path / "more.csv"})
        assert set(db["dep"]) == {("a", "b", 1), ("x", "y", 3)}


def test_bad_rows_of_a_path_are_located_and_obey_the_policy(tmp_path: Path) -> None:
    (tmp_path / "dep.csv").write_text('a,b,1\nc,d\n"c, d",e,2\n')
    with pytest.raises(ElastalogError) as error:
        read(tmp_path / "dep.csv")
    assert [one.location for one in error.value.diagnostics] == [f"{tmp_path / 'dep.csv'}:2"]
    with read(tmp_path / "dep.csv", bad_rows="skip") as db:
        assert set(db["dep"]) == FACTS
    with pytest.raises(ElastalogError, match="E0515"):
        read(tmp_path / "nothing.csv")


# --- without facts -------------------------------------------------------------------------------------------------


def test_without_facts_those_that_input_names_are_read_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "deps.dl").write_text(DEP + '.input dep(filename="deps.csv", rfc4180=true)\n')
    with pytest.raises(ElastalogError, match="E0510"):
        elastalog.open(tmp_path / "deps.dl")
    (tmp_path / "deps.csv").write_text('a,b,1\n"c, d",e,2\n')
    assert set(elastalog.open(tmp_path / "deps.dl")["dep"]) == FACTS
    assert set(elastalog.query(tmp_path / "deps.dl", None, "dep(X, Y, 1)")) == {("a", "b")}


def test_facts_of_a_text_are_in_the_current_folder_and_none_are_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ElastalogError, match="E0510"):
        elastalog.open(f"{DEP}.input dep\n")
    assert len(elastalog.open(f"{DEP}.input dep\n", {})["dep"]) == 0
    (tmp_path / "dep.facts").write_text("a\tb\t1\n")
    assert set(elastalog.open(f"{DEP}.input dep\n")["dep"]) == {("a", "b", 1)}


# --- hints ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "text", "advice"),
    table(__file__, "the hint for bad rows names the setting that makes the file readable"),
)
def test_the_hint_for_bad_rows_names_the_setting_that_makes_the_file_readable(
    tmp_path: Path, parameters: str, text: str, advice: str
) -> None:
    (tmp_path / "d").write_text(text)
    with pytest.raises(ElastalogError) as error:
        elastalog.open(f"{DEP}.input dep({parameters})\n", tmp_path)
    first, *others = error.value.diagnostics
    assert advice in (first.help or "")
    assert not any(one.help for one in others), "it is said once"


def test_a_medium_that_is_no_medium_names_the_file_instead() -> None:
    with pytest.raises(ElastalogError, match=r"`filename=\"….jsonl\"`, and leave `IO` out"):
        elastalog.open(f"{DEP}.input dep(IO=jsonl)\n")


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_header_that_the_program_says_is_there_is_no_fact_of_a_path(tmp_path: Path, mark: str) -> None:
    file = tmp_path / "lib.csv"
    program = ".decl p(package: symbol, version: symbol)\n.input p(rfc4180=true, headers=true)\n"
    for line, missing in ((f"name{mark}version\n", "`package`"), (f"version{mark}comment\n", "`package`")):
        file.write_text(f"{line}app{mark}1.0\n")
        with pytest.raises(ElastalogError, match=f"E0518.*{missing}"):
            elastalog.open(program, facts={"p": file})
        with elastalog.open(program, facts={"p": []}) as db, pytest.raises(ElastalogError, match="E0518"):
            db.apply({"p": file})
    file.write_text(f"Version{mark}package\n1.0{mark}app\n")
    with elastalog.open(program, facts={"p": file}) as db:
        assert list(db["p"]) == [("app", "1.0")]


def test_a_title_does_not_hide_what_parts_the_fields(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("Export 2026\nx;y\na;b\n")
    with pytest.raises(ElastalogError) as error:
        elastalog.open(".decl e(x: symbol, y: symbol)\n", {"e": tmp_path / "e.csv"})
    (found,) = error.value.diagnostics
    assert (found.message, found.location) == ("bad row for `e`: 1 field for 2 columns", f"{tmp_path / 'e.csv'}:1")
    assert "how the file is written" not in (found.help or "")
