"""Files by location, on this machine and on a server that speaks S3, which answers late, or with errors."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from elastalog.folders import remote
from elastalog.folders.addresses import inside, is_address, name_in, without_secrets
from elastalog.folders.files import files_at, put, remove
from elastalog.folders.remote import Patience, UnreachableError, remote_files
from tests.object_server import Trouble
from tests.object_store import Bucket


@pytest.fixture(params=["here", "there"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "here":
        return str(tmp_path)
    bucket: Bucket = request.getfixturevalue("bucket")
    return bucket.address(f"files-{tmp_path.name}")


def content(location: str) -> bytes:
    return files_at(location).content(location)


def seen(folder: str) -> set[str]:
    """The names of the files in a folder and those below it."""
    if not is_address(folder):
        return {name for _, _, names in os.walk(folder) for name in names}
    with suppress(FileNotFoundError):
        return {name_in(name) for name in remote_files(folder).names_below(folder)} - {".folder"}
    return set()


def test_what_is_put_is_read(folder: str) -> None:
    data = os.urandom(200_000)
    location = inside(folder, "a.bin")
    put(location, data[:100], memoryview(data)[100:])
    assert content(location) == data


def test_several_write_the_same_file(folder: str) -> None:
    location = inside(folder, "flag")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: put(location, b"x" * 1000), range(40)))
    assert content(location) == b"x" * 1000
    assert seen(folder) == {name_in(location)}


def test_a_file_that_is_not_there(folder: str) -> None:
    location = inside(folder, "none")
    assert not files_at(location).exists(location)
    with pytest.raises(FileNotFoundError):
        content(location)
    remove([location])  # is no error


def test_a_write_that_fails_leaves_nothing(folder: str) -> None:
    location = inside(folder, "half")

    def write_half() -> None:
        with files_at(location).writing(location) as sink:
            sink.write(b"half")
            raise ValueError("full")

    with pytest.raises(ValueError, match="full"):
        write_half()
    assert not files_at(location).exists(location)
    assert seen(folder) == set()


def test_parquet(folder: str) -> None:
    location = inside(folder, "t.parquet")
    table = pa.table({"x": list(range(1000))})
    with files_at(location).writing(location) as sink:
        parquet.write_table(table, sink)
    with files_at(location).parquet(location) as file:
        assert file.read().equals(table)
    files_at(location).copy(location, inside(folder, "u.parquet"))
    with files_at(location).parquet(inside(folder, "u.parquet")) as file:
        assert file.read().equals(table)


def test_folders(folder: str) -> None:
    made = inside(folder, "made")
    files = files_at(made)
    assert not files.is_folder(made)
    files.make_folder(made)
    files.make_folder(inside(made, "deep"))
    for name in ("a", "b", "deep/c"):
        put(inside(made, name), b"x")
    assert files.is_folder(made)
    assert seen(made) == {"a", "b", "c"}
    files.keep_only(made, {inside(made, "b")})
    assert seen(made) == {"b"}
    files.remove_folder(made)
    assert not files.is_folder(made)
    assert seen(made) == set()


def test_requests_are_repeated(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """More often than pyarrow does by itself, and also if the first one was carried out."""
    monkeypatch.setattr(Patience, "first_pause", 0.001)
    folder = bucket.address("repeated")
    for status in ("503", "late 500"):
        with bucket.troubled(Trouble((status,), first=3)):
            put(inside(folder, status), b"content")
            assert content(inside(folder, status)) == b"content"
            assert set(bucket.met().values()) == {3}


def test_what_is_refused_for_good_is_not_repeated(bucket: Bucket) -> None:
    with bucket.troubled(Trouble(("403",))), pytest.raises(UnreachableError) as raised:
        put(bucket.address("refused"), b"x")
    (told,) = raised.value.diagnostics
    assert told.code == "E0877"
    assert "secret-word" not in str(raised.value)


def test_what_stays_away(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience, "first_pause", 0.001)
    monkeypatch.setattr(Patience, "attempts", 2)
    with bucket.troubled(Trouble(("503",))), pytest.raises(UnreachableError):
        content(bucket.address("away"))


@pytest.mark.long
def test_a_server_that_takes_a_request_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_ATTEMPTS", 1)
    monkeypatch.setattr(Patience, "attempts", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1%3A{silent.getsockname()[1]}&scheme=http&region=us-east-1&request_timeout=1"
        started = time.monotonic()
        for ask in (lambda at: put(at, b"x"), lambda at: content(at)):
            with pytest.raises(UnreachableError):
                ask(f"s3://key:word@bucket/silent?endpoint_override={place}")
        assert time.monotonic() - started < 60


@pytest.mark.parametrize("option", ["no_such=1", "allow_bucket_creation=perhaps", "request_timeout=long"])
def test_options_of_an_address_that_there_are_not(option: str) -> None:
    with pytest.raises(UnreachableError) as raised:
        put(f"s3://key:secret-word@bucket/x?region=us-east-1&{option}", b"x")
    assert raised.value.diagnostics[0].code == "E0877"
    assert "secret-word" not in str(raised.value)


def test_locations() -> None:
    assert inside("/a/b", "c") == "/a/b/c"
    assert inside("/a/b?c", "d") == "/a/b?c/d"
    assert inside("s3://u:p@b/x/?region=r", "c/d") == "s3://u:p@b/x/c/d?region=r"
    assert name_in("s3://b/x/y.parquet?region=r") == name_in("/x/y.parquet") == "y.parquet"
    assert without_secrets("s3://user:word@bucket/x") == "s3://user:***@bucket/x"
