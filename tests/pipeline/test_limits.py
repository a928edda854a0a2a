"""Files that stand for more than their size: the limits of time and memory hold while they are read."""

from __future__ import annotations

import gzip
import io
import sqlite3
import struct
import subprocess
import sys
import time
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import elastalog
from elastalog.analysis.program import Base
from elastalog.backends.watch import Watch
from elastalog.diagnostics.quota import Quota, resident_bytes
from elastalog.pipeline.files import allowance
from elastalog.pipeline.files.allowance import Allowance, file_bytes, reading_within
from elastalog.pipeline.files.diff import read_diff, update_files
from elastalog.relations.schema import Column, Schema
from elastalog.session.materialisation import Materialisation
from elastalog.settings import SETTINGS
from tests.pipeline.reading import read_facts
from tests.pipeline.schemas import PAIR
from tests.tables import table

EDGE = ".decl edge(x: symbol, y: number)\n.input edge\n.decl a(x: symbol)\na(x) :- edge(x, _).\n"
MIB = 1 << 20
TEXTS = Schema("edge", (Column("x", Base.SYMBOL), Column("y", Base.NUMBER)))


def bomb(path: Path, mebibytes: int) -> None:
    """Lines `x 1`, packed a thousand to one: a mebibyte, which is packed once, again and again."""
    block = b"x\t1\n" * (MIB // 4)
    packing = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packing.compress(block) + packing.flush(zlib.Z_FULL_FLUSH)
    checked = 0
    for _ in range(mebibytes):
        checked = zlib.crc32(block, checked)
    end = packing.flush() + struct.pack("<II", checked, mebibytes * MIB % 2**32)
    path.write_bytes(b"\x1f\x8b\x08" + bytes(7) + packed * mebibytes + end)


def codes(work: Any) -> list[str]:
    with pytest.raises(elastalog.ElastalogError) as caught:
        work()
    return [found.code for found in caught.value.diagnostics]


def test_gzip_that_expands_too_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb(tmp_path / "edge.facts.gz", 400)
    before = resident_bytes()
    assert codes(lambda: elastalog.open(EDGE, facts=tmp_path)) == ["E0524"]
    assert resident_bytes() - before < 200 * MIB


def test_a_higher_ceiling_lets_it_pass_and_the_memory_limit_still_holds(tmp_path: Path) -> None:
    bomb(tmp_path / "edge.facts.gz", 400)
    memory = resident_bytes() + 100 * MIB
    limits = elastalog.Limits(expansion=2000)
    assert codes(lambda: elastalog.open(EDGE, tmp_path, limits=replace(limits, memory=memory))) == ["E0604"]
    bomb(tmp_path / "edge.facts.gz", 70)
    with elastalog.open(EDGE, tmp_path, limits=limits) as session:
        assert list(session["a"]) == [("x",)]


def test_the_time_limit_holds_while_a_file_is_unpacked(tmp_path: Path) -> None:
    bomb(tmp_path / "edge.facts.gz", 400)
    began = time.process_time()
    assert codes(lambda: elastalog.open(EDGE, facts=tmp_path, limits=elastalog.Limits(time=0.05, expansion=2000))) == [
        "E0603"
    ]
    assert time.process_time() - began < 3


def test_the_command_obeys_its_limits_too(tmp_path: Path) -> None:
    bomb(tmp_path / "edge.facts.gz", 400)
    (tmp_path / "p.dl").write_text(EDGE)
    command = [sys.executable, "-m", "elastalog", "run", str(tmp_path / "p.dl"), "-F", str(tmp_path), "-D", "-"]
    done = subprocess.run(
        [*command, "--max-memory", "256M", "--timeout", "30s"], capture_output=True, text=True, timeout=120, check=False
    )
    assert "E0524" in done.stderr
    assert "max-expansion" in done.stderr


def test_gzip_of_several_members_and_zeros_behind_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "edge.facts.gz"
    path.write_bytes(gzip.compress(b"a\t1\n") + gzip.compress(b"") + gzip.compress(b"b\t2\n") + b"\0" * 100)
    assert file_bytes(path, True) == b"a\t1\nb\t2\n" == gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("cut", [1, 5, 12, 30])
def test_gzip_that_is_not_whole_is_no_facts(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "edge.facts.gz"
    path.write_bytes(gzip.compress(b"a\t1\n" * 1000)[:-cut])
    assert codes(lambda: file_bytes(path, True)) == ["E0515"]
    path.write_bytes(gzip.compress(b"a\t1\n") + b"rubbish")
    assert codes(lambda: file_bytes(path, True)) == ["E0515"]


def test_a_diff_that_expands_too_much_is_refused(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "1.diff.gz", "wb") as out:
        for _ in range(100):
            out.write(b"\n" * MIB)
    with elastalog.open(EDGE, {}) as session:
        assert codes(lambda: session.apply(tmp_path / "1.diff.gz")) == ["E0524"]
    assert codes(lambda: read_diff(tmp_path / "1.diff.gz", {})) == ["E0524"]


def test_a_plain_file_that_does_not_fit_is_not_read_at_all(tmp_path: Path) -> None:
    path = tmp_path / "edge.facts"
    with path.open("wb") as out:
        out.truncate(4 << 40)
    watch = Watch(memory=resident_bytes() + 100 * MIB)
    with reading_within(Allowance(watch)):
        assert codes(lambda: file_bytes(path, False)) == ["E0604"]


def test_what_never_ends_is_read_up_to_the_limit() -> None:
    with reading_within(Allowance(Watch(memory=resident_bytes() + 50 * MIB))):
        assert codes(lambda: file_bytes(Path("/dev/zero"), False)) == ["E0604"]


def test_rows_read_one_by_one_obey_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad rows are the dearest of all."""
    path = tmp_path / "edge.facts"
    path.write_bytes(b"x\n" * 60_000)
    asked = []
    monkeypatch.setattr(Watch, "check", lambda self: asked.append(self))
    assert "E0501" in codes(lambda: read_facts(TEXTS, path))
    assert len(asked) > 12


def _parquet(path: Path, table: pa.Table) -> None:
    parquet.write_table(table, path, compression="zstd", row_group_size=1 << 22, data_page_size=1 << 30)


@pytest.mark.parametrize("kind", ["texts", "numbers"])
def test_parquet_that_stands_for_too_much_is_refused(tmp_path: Path, kind: str) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), ["x" * 100_000])
    many = pa.table({"x": ["y"] * 30_000_000, "y": pa.repeat(7, 30_000_000)}) if kind == "numbers" else None
    table = many or pa.table({"x": text, "y": pa.repeat(7, 20_000)})
    path = tmp_path / "edge.parquet"
    if kind == "texts":
        parquet.write_table(table, path, compression="zstd")
    else:
        _parquet(path, table)
    del table, many
    assert path.stat().st_size < MIB
    before = resident_bytes()
    assert codes(lambda: elastalog.open(EDGE.replace(".input edge", '.input edge(filename="edge.parquet")'),
                                        facts=tmp_path)) == ["E0524"]  # fmt: skip
    assert resident_bytes() - before < 400 * MIB


def test_parquet_of_texts_that_come_again_is_read_as_before(tmp_path: Path) -> None:
    table = pa.table({"x": ["a", "b", "a", None, ""], "y": [1, 2, 3, 4, 5]})
    parquet.write_table(table, tmp_path / "edge.parquet", row_group_size=2)
    found = allowance.allowance()
    assert found.expansion == 200
    with pytest.raises(elastalog.ElastalogError, match="`x` is null"):
        read_facts(TEXTS, tmp_path / "edge.parquet")
    parquet.write_table(table.slice(0, 3), tmp_path / "edge.parquet", row_group_size=2)
    read = read_facts(TEXTS, tmp_path / "edge.parquet").table
    assert read.to_pydict() == {"x": ["a", "b", "a"], "y": [1, 2, 3]}


def test_a_name_of_a_parquet_column_that_is_not_utf8_is_a_diagnostic(tmp_path: Path) -> None:
    out = io.BytesIO()
    parquet.write_table(pa.table({"xxxxxxxx": [1], "y": [2]}), out, store_schema=False)
    data = out.getvalue()
    assert data.count(b"xxxxxxxx") >= 1
    (tmp_path / "edge.parquet").write_bytes(data.replace(b"xxxxxxxx", b"\xff" * 8))
    assert codes(lambda: read_facts(PAIR, tmp_path / "edge.parquet")) == ["E0515"]


def test_paths_that_no_system_has_are_diagnostics(tmp_path: Path) -> None:
    assert codes(lambda: read_diff("a\0b.diff", {})) == ["E0515"]
    (tmp_path / "².diff").write_text("")
    (tmp_path / "10.diff").write_text("")
    (tmp_path / "9.diff").write_text("")
    assert [path.name for path in update_files(tmp_path)] == ["9.diff", "10.diff", "².diff"]


def test_a_task_of_spark_refuses_what_expands_too_much() -> None:
    pytest.importorskip("pyspark")
    from elastalog.pipeline.files.format import Format
    from elastalog.pipeline.spark.sources import _read_whole

    def read(data: bytes) -> Any:
        form, files = Format.of({}, "edge.facts.gz"), pa.array([gzip.compress(data)])
        return _read_whole(form, PAIR, files, "file:///x/edge.facts.gz")

    table, bad = read(b"1\t2\n")
    assert (table.num_rows, bad) == (1, [])
    assert codes(lambda: read(b"1\t2\n" * (20 * MIB))) == ["E0524"]


def test_a_view_of_sqlite_that_never_ends_is_read_up_to_the_limit(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "e.db")) as base, base:
        base.execute(
            "CREATE VIEW e AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
            " SELECT x, x AS y FROM n WHERE x < 0"
        )
    program = '.decl e(x: number, y: number)\n.input e(IO=sqlite, dbname="e.db")\n'
    assert codes(lambda: elastalog.open(program, tmp_path, limits=elastalog.Limits(time=0.5))) == ["E0603"]


@pytest.mark.parametrize("limits", [elastalog.Limits(time=0.05), elastalog.Limits(memory=1 << 20)], ids=repr)
def test_a_list_of_json_is_read_up_to_the_limit(tmp_path: Path, limits: elastalog.Limits) -> None:
    (tmp_path / "e.json").write_text("[" + "[1, 2],\n" * 400_000 + "[1, 2]]")
    program = '.decl e(x: number, y: number)\n.input e(IO=json, filename="e.json")\n'
    assert codes(lambda: elastalog.open(program, tmp_path, limits=limits))[0] in ("E0603", "E0604")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("[]", set()),
        (" [ ] \n", set()),
        ("\ufeff[[1, 2]]", {(1, 2)}),
        ("[ [1, 2] ,\n{\"x\": 3, \"y\": 4} ]\t", {(1, 2), (3, 4)}),
    ],
)  # fmt: skip
def test_lists_of_json_are_read_element_by_element(tmp_path: Path, text: str, facts: set[Any]) -> None:
    (tmp_path / "e.json").write_text(text)
    program = '.decl e(x: number, y: number)\n.input e(IO=json, filename="e.json")\n'
    with elastalog.open(program, tmp_path) as db:
        assert set(db["e"]) == facts


@pytest.mark.parametrize(("text", "reason"), table(__file__, "what is no list of json says where"))
def test_what_is_no_list_of_json_says_where(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "e.json").write_text(text)
    program = '.decl e(x: number, y: number)\n.input e(IO=json, filename="e.json")\n'
    with pytest.raises(elastalog.ElastalogError) as raised:
        elastalog.open(program, tmp_path)
    assert [found.message for found in raised.value.diagnostics] == [f"cannot read `{tmp_path / 'e.json'}`: {reason}"]


def test_parquet_that_says_too_much_of_itself_is_not_unpacked(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"x": ["x" * 80_000_000]}), tmp_path / "t.parquet", compression="zstd")
    program = ".decl t(x: symbol)\n.input t\n"
    assert codes(lambda: elastalog.open(program, tmp_path)) == ["E0524"]
    memory = resident_bytes() + 60 * MIB
    assert codes(
        lambda: elastalog.open(program, tmp_path, limits=elastalog.Limits(expansion=10**9, memory=memory))
    ) == ["E0604"]


def test_texts_that_are_all_different_obey_the_limits_when_they_are_numbered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTINGS, "rows_of_a_piece", 1000)
    monkeypatch.setattr(SETTINGS, "read_in_threads_from", 1 << 30)
    (tmp_path / "edge.facts").write_text("".join(f"text {n}\t{n}\n" for n in range(20_500)))
    with elastalog.open(EDGE, tmp_path) as session:
        assert set(session["edge"]) == {(f"text {n}", n) for n in range(20_500)}
    numbered: list[str] = []
    encode = Materialisation.encode

    def counted(self: Materialisation, name: str, rows: Any) -> Any:
        numbered.append(name)
        if len(numbered) == 3:
            self.watch.quota = Quota(0.0)  # long past
        return encode(self, name, rows)

    monkeypatch.setattr(Materialisation, "encode", counted)
    assert codes(lambda: elastalog.open(EDGE, tmp_path, limits=elastalog.Limits(time=60))) == ["E0603"]
    assert numbered == ["edge"] * 3
