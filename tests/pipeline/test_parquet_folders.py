"""A folder of Parquet files stands for one file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.files.policy import BadRows
from elastalog.pipeline.files.read import read_input
from tests.pipeline.schemas import EDGE
from tests.pipeline.test_read import relation

ROWS = pa.table({"x": [1, 2, 3], "y": ["a", "b b", "ü/="]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "edge.parquet"
    made.mkdir()
    return made


def found(folder: Path) -> list[tuple[int, str]]:
    table = read_input(relation(EDGE, {}), folder.parent).table
    return list(zip(*table.to_pydict().values(), strict=True))


def code(folder: Path) -> tuple[str, str | None]:
    with pytest.raises(ElastalogError) as error:
        found(folder)
    return error.value.diagnostics[0].code, error.value.diagnostics[0].location


def test_parts_are_one_relation_whatever_the_order_of_their_columns(folder: Path) -> None:
    pq.write_table(ROWS, folder / "part-2.parquet")
    pq.write_table(pa.table({"Y": ["z"], "x": pa.array([9], pa.int16())}), folder / "part-10.parquet")
    pq.write_table(ROWS.slice(0, 0), folder / "part-11.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-1.parquet").write_bytes(b"unfinished")
    (folder / ".part-2.parquet.crc").write_bytes(b"crc")
    assert found(folder) == [(1, "a"), (2, "b b"), (3, "ü/="), (9, "z")]
    with elastalog.open(".decl edge(x: number, y: symbol)\n.input edge", folder.parent) as db:
        assert len(db["edge"]) == 4
        assert db.reports[0].files == (str(folder),)


@pytest.mark.parametrize("column", ["x", "y"])
def test_names_of_folders_tell_a_column(folder: Path, column: str) -> None:
    parts = ds.partitioning(pa.schema([ROWS.schema.field(column)]), flavor="hive")
    ds.write_dataset(ROWS, folder, format="parquet", partitioning=parts, existing_data_behavior="delete_matching")
    assert not list(folder.glob("*.parquet"))
    assert sorted(found(folder)) == [(1, "a"), (2, "b b"), (3, "ü/=")]


def test_a_folder_without_a_value_is_a_missing_value(folder: Path) -> None:
    part = folder / "x=__HIVE_DEFAULT_PARTITION__" / "0.parquet"
    part.parent.mkdir()
    pq.write_table(ROWS.select(["y"]), part)
    assert code(folder) == ("E0504", f"{part}:1")


def test_a_folder_whose_value_is_of_another_type_is_refused(folder: Path) -> None:
    part = folder / "x=one" / "0.parquet"
    part.parent.mkdir()
    pq.write_table(ROWS.select(["y"]), part)
    assert code(folder) == ("E0502", str(part))


def test_bad_rows_are_told_with_their_part(folder: Path, tmp_path: Path) -> None:
    pq.write_table(ROWS, folder / "0.parquet")
    pq.write_table(pa.table({"x": [4, None], "y": ["d", "e"]}), folder / "1.parquet")
    assert code(folder) == ("E0504", f"{folder / '1.parquet'}:2")
    read = read_input(relation(EDGE, {}), tmp_path, BadRows("skip"))
    assert (read.table.num_rows, read.report.bad) == (4, 1)


def test_a_part_without_a_column_is_refused(folder: Path) -> None:
    pq.write_table(ROWS, folder / "0.parquet")
    pq.write_table(ROWS.select(["y"]), folder / "1.parquet")
    assert code(folder) == ("E0501", str(folder / "1.parquet"))


def test_a_folder_without_parts_is_refused(folder: Path) -> None:
    (folder / "_SUCCESS").touch()
    assert code(folder) == ("E0515", str(folder))


def test_no_link_leads_out(folder: Path, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "secret.parquet")
    (folder / "0.parquet").symlink_to(tmp_path / "secret.parquet")
    assert code(folder)[0] == "E0512"


def test_a_program_may_name_the_folder(folder: Path, tmp_path: Path) -> None:
    pq.write_table(ROWS, folder / "0.parquet")
    folder.rename(tmp_path / "links.parquet")
    read = read_input(relation(EDGE, {"filename": "links.parquet"}), tmp_path)
    assert read.table.num_rows == 3
