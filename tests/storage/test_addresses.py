"""Facts and stores at an address, read from a server that speaks S3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import elastalog
from elastalog.cli.main import cli
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.folders.addresses import is_address
from elastalog.folders.remote import RemoteFolder
from elastalog.storage.errors import StoreDamaged
from elastalog.storage.fetching import copy_of
from tests.commands import run
from tests.object_store import Bucket
from tests.refusals import refused

PROGRAM = """
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, store=tmp_path / "store") as db:
        db.apply({"edge": [(2, 3)]})
    return tmp_path / "store"


def test_facts_at_an_address(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "facts" / "deep").mkdir(parents=True)
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n2\t3\n")
    (tmp_path / "facts" / "deep" / "other.facts").write_text("")
    bucket.put(tmp_path / "facts", "facts")
    with elastalog.open(PROGRAM, bucket.address("facts")) as db:
        assert set(db["path"]) == {(1, 2), (2, 3), (1, 3)}
    (tmp_path / "reach.dl").write_text(PROGRAM + ".output path\n")
    result = run("run", tmp_path / "reach.dl", "-F", bucket.address("facts"), "-D", "-")
    assert result.exit_code == 0, result.output
    assert "1\t3" in result.stdout


def test_a_store_at_an_address_is_read_at_any_epoch(bucket: Bucket, store: Path) -> None:
    bucket.put(store, "store")
    with elastalog.open(store=elastalog.Store(bucket.address("store"), read_only=True)) as db:
        assert set(db["path"]) == {(1, 2), (2, 3), (1, 3)}
        assert [entry.epoch for entry in db.log()] == [1, 2]
    with elastalog.open(store=elastalog.Store(bucket.address("store"), at=1)) as db:
        assert set(db["path"]) == {(1, 2)}
    result = run("query", bucket.address("store"), "path(1, X)")
    assert result.exit_code == 0, result.output
    assert "3" in result.stdout


def test_stores_that_are_opened_again_and_again_leave_no_files_open(bucket: Bucket, store: Path) -> None:
    bucket.put(store, "store")
    counts = []
    for _ in range(4):
        elastalog.open(store=elastalog.Store(bucket.address("store"), read_only=True)).close()
        counts.append(len(list(Path("/proc/self/fd").iterdir())))
    assert counts[-1] < counts[0] + 10  # a client of its own has thirty


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["log", "{}"], 0),
        (["diff", "{}", "1", "2"], 0),
        (["export", "{}", "-D", "out"], 0),
        (["verify", "{}"], 0),
        (["explain", "{}", "path(1, 3)"], 0),
        (["show", "{}", "--stage", "strata"], 0),
        (["apply", "{}", "none.diff"], 0),
        (["backup", "{}", "copy"], 0),
        (["backup", "store", "{}"], 1),
        (["init", "{}", "reach.dl"], 1),
    ],
)
def test_commands_read_or_say_why_not(
    bucket: Bucket, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none.diff").write_text("")
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("")
    bucket.put(store, "store")
    result = CliRunner().invoke(cli, [word.format(bucket.address("store")) for word in command])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert bool(result.exit_code) is bool(code), result.output
    assert "secret-word" not in result.output
    assert not list(tmp_path.glob("s3*"))  # nothing is made under that name here


@pytest.mark.parametrize(
    ("opened", "code"),
    [
        (lambda nothing: elastalog.open(PROGRAM, nothing), "E0875"),
        (lambda nothing: elastalog.open(store=elastalog.Store(nothing, read_only=True)), "E0801"),
    ],
)
def test_nothing_there(bucket: Bucket, opened: Any, code: str) -> None:
    with refused(code) as raised:
        opened(bucket.address("nothing"))
    assert "secret-word" not in str(raised.value)


def test_a_file_that_is_missing_or_other_is_found(bucket: Bucket, store: Path) -> None:
    bucket.put(store, "damaged")
    (facts,) = (path.name for path in (store / "facts").glob("*edge*"))
    bucket.client.put_object(Bucket="bucket", Key=f"damaged/facts/{facts}", Body=b"?")
    with pytest.raises(StoreDamaged) as raised:
        elastalog.open(store=elastalog.Store(bucket.address("damaged"), read_only=True))
    assert raised.value.diagnostics[0].code == "E0805"
    bucket.client.delete_object(Bucket="bucket", Key=f"damaged/facts/{facts}")
    with pytest.raises(StoreDamaged) as raised:
        elastalog.open(store=elastalog.Store(bucket.address("damaged"), read_only=True))
    assert raised.value.diagnostics[0].code == "E0806"


def test_nothing_is_put_outside(bucket: Bucket) -> None:
    with pytest.raises(ElastalogError, match="a file named"):
        RemoteFolder(bucket.address("facts")).fetch("../outside")


def test_what_is_an_address() -> None:
    assert all(map(is_address, ("s3://b/x", "gs://b", "abfss://a@b.net/x", "hdfs://h:9000/x")))
    assert not any(map(is_address, ("facts", "/x", "file:///x", "C:/x", Path("s3://b/x"), None)))


def test_a_scheme_that_nobody_knows() -> None:
    with refused("E0875"):
        elastalog.open(PROGRAM, "gopher://there/facts")


def test_a_store_that_is_made_anew_at_an_address_is_another_one(bucket: Bucket) -> None:
    for number in (1, 2):
        bucket.clear()
        with elastalog.open(f"// {number}\n{PROGRAM}", {"edge": [(number, 5)]}, store=bucket.address("store")) as db:
            db.apply({"edge": [(5, number)]})
        with elastalog.open(store=elastalog.Store(copy_of(bucket.address("store")), read_only=True)) as db:
            assert set(db["edge"]) == {(number, 5), (5, number)}
