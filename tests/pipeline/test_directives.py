"""Parameters of `.input` and `.output`, and what a file is taken for, as Soufflé has it."""

from __future__ import annotations

import gzip
import re
import warnings
from pathlib import Path

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program
from tests.analysis.checking import codes
from tests.commands import run
from tests.refusals import refused
from tests.tables import table

EDGE = ".decl e(x: number, s: symbol)\n"


def read(folder: Path, directive: str, **files: bytes) -> list[tuple[object, ...]]:
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    with elastalog.open(EDGE + directive, facts=folder) as db:
        return sorted(db["e"])


@pytest.mark.parametrize(
    ("columns", "rows"), [("0:2", [(1, "c"), (2, "d")]), ("1:0", [(7, "1"), (8, "2")]), ("0:0", [(1, "1"), (2, "2")])]
)
def test_columns_are_chosen(tmp_path: Path, columns: str, rows: list[tuple[int, str]]) -> None:
    assert read(tmp_path, f'.input e(columns="{columns}")', e_facts=b"1\t7\tc\n2\t8\td\r\n") == rows


def test_columns_of_quoted_text_and_of_a_file_with_a_header(tmp_path: Path) -> None:
    data = b'"a,b",9,"x ""y"""\n'
    assert read(tmp_path, '.input e(columns="1:2", rfc4180=true)', e_facts=data) == [(9, 'x "y"')]
    data = b"s\tignored\tx\nhello\t0\t5\n"
    assert read(tmp_path, '.input e(columns="2:0", headers=true)', e_facts=data) == [(5, "hello")]


def test_columns_are_chosen_behind_a_byte_order_mark(tmp_path: Path) -> None:
    assert read(tmp_path, '.input e(columns="1:0")', e_facts=b"\xef\xbb\xbfa\t7\n") == [(7, "a")]


@pytest.mark.parametrize("number", [1, 30_000])  # large files of plain lines are read another way
def test_a_file_of_more_columns_is_refused_and_the_help_says_how_to_leave_them_out(tmp_path: Path, number: int) -> None:
    with pytest.raises(ElastalogError, match="3 fields for 2 columns") as raised:
        read(tmp_path, ".input e", e_facts=b"1\ta\tx\n" * number)
    advice = raised.value.diagnostics[0].help
    assert advice is not None
    assert '; `.input e(columns="0:1")` leaves the others out, and `.pragma "extra-fields"' in advice


CALLS = ".decl calls(caller: symbol, callee: symbol)\n.input calls"


@pytest.mark.parametrize("number", [1, 30_000])
def test_names_of_columns_in_the_place_of_a_fact_are_told_of(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, number: int
) -> None:
    rows = [("Caller", "callee"), *((f"a{i}", f"b{i}") for i in range(number))]
    (tmp_path / "calls.facts").write_text("".join(f"{x}\t{y}\n" for x, y in rows))
    with elastalog.open(CALLS, facts=tmp_path) as db:
        assert sorted(db["calls"]) == sorted(rows)
    (told,) = [str(one.message) for one in recwarn]
    assert told.startswith("warning[E0527]: the first line of the file has the names of the columns of `calls`")
    assert told.endswith("if it is a header: `.input calls(headers=true)`")


@pytest.mark.parametrize("way", ["rfc4180=true", 'delimiter=","', 'delimiter=";"', "path"])
def test_a_header_of_other_words_that_is_read_as_a_fact_is_told_of(tmp_path: Path, way: str) -> None:
    mark = ";" if ";" in way else ","
    (tmp_path / "calls.csv").write_text("from,to\nann,bob\nbob,carl\n".replace(",", mark))
    given: dict[str, Path] | Path = {"calls": tmp_path / "calls.csv"} if way == "path" else tmp_path
    said = "" if way == "path" else f'(filename="calls.csv", {way})'
    with pytest.warns(UserWarning, match="E0527") as told:
        elastalog.open(
            CALLS.replace(".input calls", "" if way == "path" else ".input calls" + said), facts=given
        ).close()
    (one,) = told
    assert one.filename == __file__  # though the file was read by a thread
    assert "the first line of the file, `from`, `to`, looks like a header, and is taken for a fact" in str(one.message)
    assert "headers=true)`; if it is a fact: `.input calls(" in str(one.message)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("rfc4180=true, headers=false", "from,to\nann,bob\nbob,carl\n"),  # said to be a fact
        ("rfc4180=true", "ann,bob\nbob,carl\ncarl,dan\n"),  # a word occurs again
        ("rfc4180=true", "u1,reader\nu2,writer\nu3,admin\n"),  # nobody calls a column `u1`
        ("rfc4180=true", "ann,bob\n"),
        ('delimiter="\\t"', "from\tto\nann\tbob\nbob\tcarl\n"),  # Soufflé's own files have no header
        ('rfc4180=true, headers=true, columns="0:1"', "from,to\nann,bob\nbob,carl\n"),
    ],
)
def test_a_line_that_may_well_be_meant_is_not_told_of(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, said: str, text: str
) -> None:
    (tmp_path / "calls.csv").write_text(text)
    elastalog.open(CALLS + f'(filename="calls.csv", {said})', facts=tmp_path).close()
    assert not list(recwarn)


@pytest.mark.parametrize(
    ("said", "advised"),
    [
        ("", "rfc4180=true, headers=true"),
        ("headers=true", "rfc4180=true, headers=true"),
        ('headers=true, delimiter=";"', 'rfc4180=true, delimiter=";", headers=true'),
    ],
)
def test_advice_leads_to_texts_without_their_quotes(tmp_path: Path, said: str, advised: str) -> None:
    """Each piece of advice is followed, until there is none."""
    (tmp_path / "user.csv").write_text('name\nann\n"Smith, Jo"\n')
    directive = '.input user(filename="user.csv"{})'
    with pytest.warns(UserWarning, match="E0527") as told:
        elastalog.open(".decl user(name: symbol)\n" + directive.format(said and f", {said}"), facts=tmp_path).close()
    assert f"`{directive.format(f', {advised}')}`" in str(told[0].message)
    with elastalog.open(".decl user(name: symbol)\n" + directive.format(f", {advised}"), facts=tmp_path) as db:
        assert sorted(db["user"]) == [("Smith, Jo",), ("ann",)]
    with elastalog.open(
        ".decl user(name: symbol)\n" + directive.format(", headers=true, rfc4180=false"), facts=tmp_path
    ) as db:
        assert ('"Smith, Jo"',) in db["user"]


def test_quotes_between_tabs_are_texts(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Programs about programs have such facts."""
    (tmp_path / "calls.facts").write_text('a\t"b"\n"c"\td\n')
    elastalog.open(CALLS, facts=tmp_path).close()
    assert not list(recwarn)


def test_a_header_without_the_names_of_the_columns_is_taken_by_position_and_told_of(tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text("to,from\nbob,ann\n")
    with pytest.warns(UserWarning, match="taken by position") as told:
        db = elastalog.open(CALLS + '(filename="calls.csv", rfc4180=true, headers=true)', facts=tmp_path)
    assert list(db["calls"]) == [("bob", "ann")]
    (one,) = told
    assert "`to` as `caller`, `from` as `callee`" in str(one.message)
    assert '`.input calls(filename="calls.csv", rfc4180=true, headers=true, columns="0:1")`' in str(one.message)


@pytest.mark.parametrize("title", ["Export 2026", "Export 2026,", "a,b,c", "", "# made by hand"])
def test_a_title_above_the_names_of_the_columns_is_told_of(tmp_path: Path, title: str) -> None:
    (tmp_path / "calls.csv").write_text(f"{title}\ncaller,callee\nann,bob\n")
    with pytest.warns(UserWarning, match="stand in the second line") as told:
        db = elastalog.open(CALLS + '(filename="calls.csv", rfc4180=true, headers=true)', facts=tmp_path)
    assert ("caller", "callee") in db["calls"]
    assert "delete the first line, or the second is taken for a fact" in str(told[0].message)


@pytest.mark.parametrize(("header", "number"), [("caller;callee", "1 field"), ("a,b,c", "3 fields")])
def test_a_header_with_another_number_of_fields_is_told_of(tmp_path: Path, header: str, number: str) -> None:
    (tmp_path / "calls.csv").write_text(f"{header}\nann,bob\n")
    with pytest.warns(UserWarning, match=f"is skipped as the header of `calls`: {number} for 2 columns"):
        db = elastalog.open(CALLS + '(filename="calls.csv", rfc4180=true, headers=true)', facts=tmp_path)
    assert list(db["calls"]) == [("ann", "bob")]


@pytest.mark.parametrize(("attributes", "first"), [("day: symbol, n: symbol", "day\tn"), ("d: symbol", "d")])
def test_names_of_one_letter_are_told_of_if_they_are_exactly_those(tmp_path: Path, attributes: str, first: str) -> None:
    (tmp_path / "t.facts").write_text(f"{first}\n")
    with pytest.warns(UserWarning, match="E0527"):
        elastalog.open(f".decl t({attributes})\n.input t", facts=tmp_path).close()


@pytest.mark.parametrize(("first", "number"), [("ann\t30", 1), ("name\tage", 0), ("who\tyears", 0)])
def test_a_fact_in_the_place_of_names_of_columns_is_told_of(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, first: str, number: int
) -> None:
    (tmp_path / "user.facts").write_text(f"{first}\nbob\t40\n")
    with elastalog.open(".decl user(name: symbol, age: number)\n.input user(headers=true)", facts=tmp_path) as db:
        assert set(db["user"]) == {("bob", 40)}
    assert (
        sum("is skipped as the header of `user`, and reads as a fact" in str(one.message) for one in recwarn) == number
    )


@pytest.mark.parametrize(("program", "name", "text"), table(__file__, "other first lines are not told of"))
def test_other_first_lines_are_not_told_of(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, program: str, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    elastalog.open(program, facts=tmp_path).close()
    assert not list(recwarn)


def test_single_lines_of_more_columns_are_bad_rows(tmp_path: Path) -> None:
    for data in (b"1\ta\tx\n2\tb\n", b"1\ta\n2\tb\ty\n", b"1\ta\tx\n2\tb\ty\tz\n"):
        with pytest.raises(ElastalogError, match=r"[34] fields for 2 columns"):
            read(tmp_path, ".input e", e_facts=data)


def test_long_quoted_fields_and_long_delimiters_beside_chosen_columns(tmp_path: Path) -> None:
    text = "x" * 200_000
    directive = '.input e(columns="2:0", rfc4180=true, delimiter="::")'
    assert read(tmp_path, directive, e_facts=f'"{text}"::0::5\n'.encode()) == [(5, text)]


def test_a_line_without_a_chosen_column_is_a_bad_row(tmp_path: Path) -> None:
    with pytest.raises(ElastalogError, match="E050"):
        read(tmp_path, '.input e(columns="0:2")', e_facts=b"1\t7\tc\n2\tx\n")


def test_a_blank_line_has_no_chosen_column(tmp_path: Path) -> None:
    (tmp_path / "s.facts").write_bytes(b"a\tb\n\nc\td\n")
    with refused("E0501"), elastalog.open('.decl s(x: symbol)\n.input s(columns="1")', facts=tmp_path):
        pass


def test_lines_may_have_other_columns_more_or_fewer(tmp_path: Path) -> None:
    data = b"1\ta\tx\n2\tb\n3\tc\ty\tz\n4\td\tw\n"
    assert read(tmp_path, '.input e(columns="0:1")', e_facts=data) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


def test_columns_must_fit(tmp_path: Path) -> None:
    with pytest.raises(ElastalogError, match="E0671") as told:
        read(tmp_path, '.input e(columns="0:1:2")', e_facts=b"1\t7\tc\n")
    (found,) = told.value.diagnostics
    assert (found.location or "").endswith("e.facts")
    advised = re.search('`(columns=".*?")`', str(found.help))
    assert advised is not None
    assert len(read(tmp_path, f".input e({advised[1]})", e_facts=b"1\tc\t7\n")) == 1
    assert codes(EDGE + '.input e(columns="a")') == ["E0215"]
    assert codes(EDGE + 'e(1, "a").\n.output e(columns="0:1")') == ["E0214"]


@pytest.mark.parametrize(("form", "told"), [("parquet", '`filename="….parquet"`'), ("CSV", '`delimiter=","`')])
def test_what_is_no_place_is_told_how_files_have_their_form(form: str, told: str) -> None:
    with refused("E0215", told=told):
        elastalog.open(f"{EDGE}.output e(IO={form})")


def test_gzip_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    assert read(tmp_path, ".input e", e_facts=gzip.compress(b"1\ta\n")) == [(1, "a")]
    assert read(tmp_path, ".input e(IO=json)", e_json=gzip.compress(b'[[2, "b"]]')) == [(2, "b")]


def test_several_inputs_of_one_relation(tmp_path: Path) -> None:
    directives = '.input e(filename="a.facts")\n.input e(filename="b.facts")'
    assert read(tmp_path, directives, a_facts=b"1\ta\n", b_facts=b"2\tb\n") == [(1, "a"), (2, "b")]
    assert codes(EDGE + '.input e\n.input e(delimiter=",")') == ["E0213"]


@pytest.mark.parametrize("directives", [".output e(IO=stdout)\n.output e", ".output e\n.output e(IO=stdout)"])
def test_several_outputs_of_one_relation_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directives: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(f'{EDGE}e(1, "a").\n{directives}\n.output e(filename="b", delimiter=",")\n')
    result = run("run", "p.dl")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "---------------\ne\n===============\n1\ta\n===============\n"
    assert (Path("e.csv").read_text(), Path("b").read_text()) == ("1\ta\n", "1,a\n")
    assert codes(f"{EDGE}.output e(IO=stdout)\n.output e\n.output e(IO=stdout)") == ["E0223", "E0213"]


@pytest.mark.parametrize("delimiter", [",", ", ", " , "])
def test_a_delimiter_inside_of_a_record_parts_nothing(tmp_path: Path, delimiter: str) -> None:
    program = f'.type P = [f: number, t: symbol]\n.decl a(x: P, s: symbol, y: P)\n.input a(delimiter="{delimiter}")\n'
    lines = [["[1, meow]", "b", "nil"], ["nil", "[x]", "[-3, q]"]]
    (tmp_path / "a.facts").write_text("".join(delimiter.join(line) + "\n" for line in lines))
    with elastalog.open(program, facts=tmp_path) as db:
        assert set(db["a"]) == {((1, "meow"), "b", None), (None, "[x]", (-3, "q"))}
    (tmp_path / "a.facts").write_text(delimiter.join(("[1, meow", "b", "nil")) + "\n")
    with refused("E0502" if delimiter == " , " else "E0501"):
        elastalog.open(program, facts=tmp_path)


def test_texts_inside_of_records_are_written_as_by_souffle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = """
.type L = [s: symbol, rest: L]
.type T = City {name: symbol} | No {}
.decl r(l: L, t: T)
r(["a,b", ["say \\"no\\"", ["", ["nil", nil]]]], $City("f(x)")).
r(["plain text", nil], $No).
"""
    Path("p.dl").write_text(f'{program}.output r\n.output r(rfc4180=true, filename="quoted.csv")')
    result = run("run", "p.dl")
    assert result.exit_code == 0
    assert Path("r.csv").read_text() == '[a,b, [say "no", [, [nil, nil]]]]\t$City(f(x))\n[plain text, nil]\t$No\n'
    assert result.stderr.startswith(
        'warning[E0516]: value `[a,b, [say "no", [, [nil, nil]]]]` of `r` cannot be written'
    )
    quoted = '"[""a,b"", [""say \\""no\\"""", ["""", [""nil"", nil]]]]","$City(""f(x)"")"\n"[plain text, nil]","$No"\n'
    assert Path("quoted.csv").read_text() == quoted
    with elastalog.open(f'{program}.input r(filename="quoted.csv", rfc4180=true)', facts=tmp_path) as db:
        assert len(db["r"]) == 2  # what was quoted is what the text holds
    result = run("run", "p.dl", "-D", "-")
    assert "[plain text, nil]\t$No\n" in result.stdout
    assert '[a,b, [say "no", [, [nil, nil]]]]\t$City(f(x))\n' in result.stdout


def test_the_last_of_two_values_of_a_parameter_counts(tmp_path: Path) -> None:
    directive = '.input e(filename="a.facts", filename="b.facts")'
    assert read(tmp_path, directive, a_facts=b"1\ta\n", b_facts=b"2\tb\n") == [(2, "b")]
    (warning,) = Program.parse(EDGE + directive).warnings
    assert (warning.code, warning.severity) == ("E0215", "warning")


def test_a_star_stands_for_every_relation(tmp_path: Path) -> None:
    program = ".decl a(x: number)\n.decl b(x: number)\n.decl c(x: number)\nc(x) :- a(x), !b(x).\n"
    (tmp_path / "p.dl").write_text(program + '.input b(filename="other.facts")\n.input *\n.output *\n')
    (tmp_path / "a.facts").write_text("1\n2\n")
    (tmp_path / "other.facts").write_text("2\n")
    folder = str(tmp_path)
    result = run("run", f"{folder}/p.dl", "-F", folder, "-D", folder)
    assert result.exit_code == 0, result.stderr
    assert {name: (tmp_path / f"{name}.csv").read_text() for name in "abc"} == {"a": "1\n2\n", "b": "2\n", "c": "1\n"}


def test_a_nullary_relation_is_read_and_printed(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl n()\n.input n\n.decl m()\n.output m(IO=stdout)\nm() :- n().\n")
    (tmp_path / "n.facts").write_text("()\n")
    result = run("run", tmp_path / "p.dl", "-F", tmp_path)
    assert result.stdout == "---------------\nm\n===============\n()\n===============\n"


def test_sizes_to_standard_output_and_facts_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(
        EDGE + ".input e(IO=stdin)\n.decl p(s: symbol)\n.output p(IO=stdoutprintsize)\np(s) :- e(_, s).\n"
    )
    result = run("run", tmp_path / "p.dl", text="1\ta\n2\tb\n3\tb\n")
    assert (result.exit_code, result.stdout) == (0, "p\t2\n")


def test_a_value_of_another_subtype_does_not_go_to_a_functor() -> None:
    text = (
        ".type S <: number\n.functor f(x: S): number\n.decl a(x: number)\n.input a\n.decl s(x: S)\n.input s\n"
        ".decl b(x: number)\n"
    )
    assert codes(text + "b(@f(x)) :- a(x).") == ["E0307"]
    assert codes(text + "b(y) :- a(x), y = 1 + @f(x).") == ["E0307"]
    assert codes(text + "b(@f(x)) :- s(x).") == []
    assert codes(text + "b(@f(x)) :- s(x), a(x).") == []
    assert codes(text + "b(@f(3)).") == []


def test_the_first_fact_of_a_file_without_the_header_that_is_said_is_warned_of(tmp_path):
    (tmp_path / "calls.csv").write_text("ann1,bob2\nann1,carl3\n")
    said = 'filename="calls.csv", rfc4180=true'
    with pytest.warns(UserWarning, match="E0527") as told:
        db = elastalog.open(f"{CALLS}({said}, headers=true)", facts=tmp_path)
    assert list(db["calls"]) == [("ann1", "carl3")]
    (one,) = told
    advice = f"if the line is a fact: `.input calls({said}, headers=false)`"
    assert str(one.message).endswith(advice)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db = elastalog.open(f"{CALLS}({said}, headers=false)", facts=tmp_path)
    assert len(db["calls"]) == 2


@pytest.mark.parametrize(
    ("said", "row", "reason"), table(__file__, "a row without a chosen column is shown as it is written")
)
def test_a_row_without_a_chosen_column_is_shown_as_it_is_written(
    tmp_path: Path, said: str, row: str, reason: str
) -> None:
    (tmp_path / "road.csv").write_text(f"Ulm,Bonn,3,4,3\n{row}\nBonn,Hof,4,5,4\n")
    with pytest.raises(ElastalogError) as told:
        elastalog.open(ROAD + said, facts=tmp_path)
    (diagnostic,) = told.value.diagnostics
    assert (diagnostic.code, diagnostic.location) == ("E0501", f"{tmp_path / 'road.csv'}:2")
    assert diagnostic.message == f"bad row for `road`: {reason}"
    assert diagnostic.notes == (f"the row is `{row}`",)
    assert diagnostic.help is not None
    assert diagnostic.help.startswith("give every row ")
    assert "quotes" not in diagnostic.help


def test_a_chosen_value_of_another_type_is_told_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "road.facts").write_text("3\tUlm\tx\tBonn\n")
    with pytest.raises(ElastalogError, match=r"the row is `3\\tUlm\\tx\\tBonn`") as told:
        elastalog.open(ROAD + '.input road(columns="0:1:3")', facts=tmp_path)
    assert told.value.diagnostics[0].help == (
        'if the columns of the file are in another order: `.input road(columns="1:3:0")`, by which `from` is `Ulm`, '
        "`to` is `Bonn`, `km` is `3` (a guess by types: see that each is right)"
    )


ROAD = ".decl road(from: symbol, to: symbol, km: number)\n"


@pytest.mark.parametrize(
    ("said", "text", "facts"),
    [
        ('.pragma "extra-fields" "ignore"', "Ulm,Bonn,3,x\n", [("Ulm", "Bonn", 3)]),
        ('.pragma "extra-fields" "ignore"\n.input road', "Ulm;Bonn;3;x\n", [("Ulm", "Bonn", 3)]),
        ('.pragma "extra-fields" "ignore"\n.input road(IO=updates)', "Ulm,Bonn,3,x\n", [("Ulm", "Bonn", 3)]),
        ('.pragma "extra-fields" "ignore"', "to,x,km,from\nBonn,y,3,Ulm\n", [("Ulm", "Bonn", 3)]),
        ('.input road(columns="3:0:2")', "Bonn,y,3,Ulm\n", [("Ulm", "Bonn", 3)]),
        ('.input road(columns="1:0:2")', "Bonn,Ulm,3\n", [("Ulm", "Bonn", 3)]),
    ],
)
@pytest.mark.parametrize("way", ["open", "apply", "skip"])
def test_the_columns_that_a_program_says_hold_for_paths(
    tmp_path: Path, said: str, text: str, facts: list[object], way: str
) -> None:
    path = tmp_path / "road.csv"
    path.write_text(text)
    with elastalog.open(ROAD + said, {"road": path if way == "open" else []}) as db:
        if way != "open":
            db.apply({"road": path}, bad_rows="skip" if way == "skip" else None)
        assert list(db["road"]) == facts


def test_what_cannot_be_read_is_told_as_the_program_says_it(tmp_path: Path) -> None:
    path = tmp_path / "road.csv"
    path.write_text("Ulm,Bonn,x\nUlm,Hof,4\n")
    with refused(match=r"E0502.*`x` is not a number", location=f"{path}:1"):
        elastalog.open(ROAD + ".input road(headers=false)", {"road": path})
    path.write_text("Ulm,Bonn,3,x\nUlm,Hof\n")
    with pytest.raises(ElastalogError, match=r"E0501.*2 fields for 3 columns"):
        elastalog.open(ROAD + '.pragma "extra-fields" "ignore"', {"road": path})


@pytest.mark.parametrize("first", ["caller,callee", "from,to"])
def test_a_path_whose_first_line_is_said_to_be_a_fact(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, first: str
) -> None:
    path = tmp_path / "calls.csv"
    path.write_text(f"{first}\nann,bob\nbob,carl\n")
    for said, given in (
        ("headers=false", {"calls": path}),
        ('filename="calls.csv", rfc4180=true, headers=false', tmp_path),
    ):
        with elastalog.open(f"{CALLS}({said})", given) as db:
            assert set(db["calls"]) == {tuple(first.split(",")), ("ann", "bob"), ("bob", "carl")}
    assert not list(recwarn)
