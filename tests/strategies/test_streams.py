"""Update streams without Spark, and the commands that run them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import elastalog
from elastalog.cli import compare
from elastalog.cli.main import cli
from elastalog.pipeline.streams import read_changes, read_stream, with_next
from elastalog.program import Program
from elastalog.relations.schema import schemas_of
from tests.refusals import refused
from tests.tables import table

PROGRAM = """
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program, its facts, and three updates whose names sort naturally."""
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n2\t3\n3\t4\n")
    updates = tmp_path / "updates"
    updates.mkdir()
    (updates / "1.diff").write_text("-edge(1, 2).\n+edge(4, 5).\n")
    (updates / "2.diff").write_text("-edge(4, 5).\n")
    (updates / "10.diff").write_text("+edge(4, 2).\n")
    return tmp_path


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        cli, [arguments[0], str(folder / "reach.dl"), "-F", str(folder / "facts"), *arguments[1:]]
    )


def rows(table: pa.Table | None) -> list[tuple[int, ...]]:
    return [] if table is None else [tuple(row.values()) for row in table.to_pylist()]


def test_a_folder_is_read_in_natural_order(folder: Path) -> None:
    stream = read_stream(folder / "updates", Program.parse(PROGRAM))
    assert [update.batch for update in stream] == ["1.diff", "2.diff", "10.diff"]


def test_a_table_is_read_by_steps(tmp_path: Path) -> None:
    path = tmp_path / "changes.csv"
    path.write_text("step,op,relation,a1,a2\n10,+,edge,7,8\n2,-,edge,1,2\n10,+,edge,8,9\n10,-,edge,2,3\n")
    first, second = read_stream(path, Program.parse(PROGRAM))
    assert (first.batch, rows(first.diff.deleted.get("edge")), first.diff.inserted) == ("2", [(1, 2)], {})
    assert (second.batch, rows(second.diff.deleted.get("edge"))) == ("10", [(2, 3)])
    assert rows(second.diff.inserted.get("edge")) == [(7, 8), (8, 9)]


@pytest.mark.parametrize("mark", ",;|\t")
def test_a_table_of_steps_may_part_its_fields_otherwise(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "edge.csv"
    path.write_text("step,op,x,y\n1,+,7,8\n".replace(",", mark))
    (update,) = read_stream(path, Program.parse(PROGRAM))
    assert rows(update.diff.inserted["edge"]) == [(7, 8)]


@pytest.mark.parametrize("name", ["u1.diff", "u1.txt", "u1.dl", "u1"])
@pytest.mark.parametrize("text", ["+edge(7, 8).\n", "// first\n+edge(7, 8).\n-edge(1, 2).\n"])
def test_one_diff_file_is_one_update(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (update,) = read_stream(folder / name, Program.parse(PROGRAM))
    assert (update.batch, rows(update.diff.inserted["edge"])) == (name, [(7, 8)])
    done = run(folder, "stream", "--updates", str(folder / name), "--show-changes")
    assert done.exit_code == 0
    assert "+path(7, 8)." in done.stdout


def test_a_parquet_table_named_after_its_relation(tmp_path: Path) -> None:
    path = tmp_path / "edge.parquet"
    pq.write_table(pa.table({"step": [1, 2], "op": ["+", "-"], "y": [2, 4], "x": [1, 3]}), path)
    first, second = read_stream(path, Program.parse(PROGRAM))
    assert rows(first.diff.inserted["edge"]) == [(1, 2)]
    assert rows(second.diff.deleted["edge"]) == [(3, 4)]


def test_a_table_named_after_a_relation_with_an_attribute_relation(tmp_path: Path) -> None:
    path = tmp_path / "holds.csv"
    path.write_text("step,op,relation,pred\n1,+,edge,1\n", encoding="utf-8")
    (update,) = read_stream(path, Program.parse(PROGRAM + ".decl holds(pred: number, relation: symbol)\n"))
    assert rows(update.diff.inserted["holds"]) == [(1, "edge")]


@pytest.mark.parametrize(
    ("operations", "codes"),
    [
        ([1, 2], ["E0522", "E0522"]),
        ([["+"], ["-"]], ["E0502"]),
        ([True, False], ["E0522", "E0522"]),
        (["+", None], ["E0504"]),
    ],
    ids=str,
)
def test_an_operation_that_is_no_text_is_told(tmp_path: Path, operations: list[object], codes: list[str]) -> None:
    path = tmp_path / "edge.parquet"
    pq.write_table(pa.table({"step": [1, 1], "op": operations, "x": [1, 3], "y": [2, 4]}), path)
    with refused(*codes, match="`op`"):
        list(read_stream(path, Program.parse(PROGRAM)))


def test_an_operation_may_be_encoded(tmp_path: Path) -> None:
    path = tmp_path / "edge.parquet"
    operations = pa.array(["+", "-"]).dictionary_encode()
    pq.write_table(pa.table({"step": [1, 1], "op": operations, "x": [1, 3], "y": [2, 4]}), path)
    (update,) = read_stream(path, Program.parse(PROGRAM))
    assert (rows(update.diff.inserted["edge"]), rows(update.diff.deleted["edge"])) == ([(1, 2)], [(3, 4)])


@pytest.mark.parametrize(("text", "code", "line", "told"), table(__file__, "faults of a table are told"))
def test_faults_of_a_table_are_told(tmp_path: Path, text: str, code: str, line: str, told: str) -> None:
    path = tmp_path / "changes.csv"
    path.write_text(text)
    with refused(code, location=f"{path}{line}", told=told):
        list(read_stream(path, Program.parse(PROGRAM)))


def test_a_table_that_does_not_tell_its_relation_is_named_after_it(tmp_path: Path) -> None:
    path = tmp_path / "changes.csv"
    path.write_text("step,op,x,y\n1,+,1,2\n", encoding="utf-8")
    with pytest.raises(elastalog.ElastalogError) as fault:
        list(read_stream(path, Program.parse(PROGRAM)))
    (found,) = fault.value.diagnostics
    assert (found.message, found.location) == ("no relation `changes`", f"{path}:2")
    assert found.help == "name the table after its relation, or give every row one in a column `relation`"


def test_looking_ahead_reads_one_item_more() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(4):
            taken.append(number)
            yield number

    pairs = with_next(items())
    assert next(pairs) == (0, 1)
    assert taken == [0, 1]
    assert list(pairs) == [(1, 2), (2, 3), (3, None)]
    assert not list(with_next(range(0)))


@pytest.mark.parametrize(
    "options", [(), ("--strategy", "dred", "--marks", "eager"), ("--strategy", "bfc", "--marks", "linked")]
)
def test_stream_shows_what_each_update_changed(folder: Path, options: tuple[str, ...]) -> None:
    done = run(folder, "stream", "--updates", str(folder / "updates"), "--show-changes", *options)
    assert done.exit_code == 0, done.output
    parts = done.stdout.split("// ")[1:]
    assert [part.split("\n")[0] for part in parts] == ["1.diff", "2.diff", "10.diff"]
    assert set(parts[0].split("\n")[1:-1]) == {
        "-edge(1, 2).", "+edge(4, 5).", "-path(1, 2).", "-path(1, 3).", "-path(1, 4).",
        "+path(2, 5).", "+path(3, 5).", "+path(4, 5).",
    }  # fmt: skip
    assert set(parts[2].split("\n")[1:-1]) == {
        "+edge(4, 2).", "+path(4, 2).", "+path(4, 3).", "+path(4, 4).", "+path(3, 2).", "+path(3, 3).", "+path(2, 2).",
    }  # fmt: skip


def test_stream_writes_statistics_and_outputs(folder: Path) -> None:
    stats = folder / "stats.json"
    done = run(folder, "stream", "--updates", str(folder / "updates"), "--strategy", "bf", "--stats", str(stats),
               "-D", str(folder))  # fmt: skip
    assert done.exit_code == 0, done.output
    first, second, third = json.loads(stats.read_text())
    assert (first["deleted"], first["inserted"], first["impact"]) == (1, 1, 8)
    assert (first["deletions"], first["insertions"]) == (3, 3)
    assert (second["insertions"], third["deletions"]) == (0, 0)
    assert len((folder / "path.csv").read_text().splitlines()) == 9


def test_stream_refuses_marks_that_the_strategy_has_not(folder: Path) -> None:
    done = run(folder, "stream", "--updates", str(folder / "updates"), "--marks", "linked", "--strategy", "dredc")
    assert done.exit_code == 1
    assert "E0903" in done.stderr


def test_compare_shows_what_can_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "run_alone", compare.run_here)
    plot = folder / "plot.svg"
    done = run(folder, "compare", "--updates", str(folder / "updates"), "--plot", str(plot),
               "--strategies", "counting,bfc+linked")  # fmt: skip
    assert done.exit_code == 0, done.output
    header, *lines = done.stdout.splitlines()
    assert header.split()[:6] == ["strategy", "bootstrap", "s", "updates", "s", "ratio"]
    assert lines[0].split()[3] == "1.00"
    assert {line.split()[0] for line in lines} == {"bfc+linked", "counting:"}
    assert "cannot maintain a recursive program" in lines[-1]
    assert plot.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("+twice(4611686018427387904).", "stopped at update 10.diff: `4611686018427387904 * 2` does not fit"),
        ("+rule: path(x, y) :- edeg(x, y).", "not run: {updates}/10.diff: unknown relation `edeg`"),
        ("+edge(1).", "not run: {updates}/10.diff:1: "),
    ],
)
def test_compare_names_the_update_that_stopped_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, told: str
) -> None:
    monkeypatch.setattr(compare, "run_alone", compare.run_here)
    (folder / "reach.dl").write_text(PROGRAM + ".decl twice(x: number)\npath(x * 2, x) :- twice(x).\n")
    (folder / "updates" / "10.diff").write_text(line)
    done = run(folder, "compare", "--updates", str(folder / "updates"), "--plot", "-", "--strategies", "elastic,bf")
    assert done.exit_code == 1, done.output
    told = told.format(updates=folder / "updates")
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"elastic, bf: {told}")


@pytest.mark.slow
def test_compare_runs_each_strategy_in_a_process_of_its_own(folder: Path) -> None:
    done = run(folder, "compare", "--updates", str(folder / "updates"), "--plot", "-", "--strategies", "elastic,dredc")
    assert done.exit_code == 0, done.output
    assert {line.split()[0] for line in done.stdout.splitlines()[1:]} == {"elastic", "dredc"}


def test_operations_of_another_type_are_bad_rows_where_these_are_kept() -> None:
    rows_given = pa.table({"op": [1, 2], "x": [1, 3], "y": [2, 4]})
    diff = read_changes(rows_given, schemas_of(Program.parse(PROGRAM).checked), "edge", "given", keep_bad=True)
    assert [row.fault.reason for row in diff.bad["edge"]] == [f"`op` is `{i}`, neither `+` nor `-`" for i in (1, 2)]
