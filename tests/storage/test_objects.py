"""Stores that are written at an address, on a server that speaks S3: epochs, two writers, leases, crashes, troubles."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.folders.remote import Patience
from elastalog.storage.objects.lease import Lease
from tests.commands import run as command
from tests.failpoints import EXIT_CODE, Stopped, stop_at
from tests.object_server import Trouble
from tests.object_store import Bucket

pytest.importorskip("obstore", reason="needs obstore")

PROGRAM = """
.decl edge(x: number, y: symbol)
.input edge
.decl seen(y: symbol)
.output seen
seen(y) :- edge(_, y).
"""


@pytest.fixture
def address(bucket: Bucket, tmp_path: Path) -> str:
    return bucket.address(tmp_path.name)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience, "first_pause", 0.001)
    monkeypatch.setattr(Patience, "attempts", 3)


def made(address: str, **options: Any) -> elastalog.Session:
    return elastalog.open(PROGRAM, {"edge": [(1, "a")]}, store=elastalog.Store(address, **options))


def code_of(raised: pytest.ExceptionInfo[ElastalogError]) -> str:
    assert "secret-word" not in str(raised.value)
    return raised.value.diagnostics[0].code


def seen(address: str) -> set[str]:
    with elastalog.open(store=elastalog.Store(address, read_only=True)) as db:
        return {text for (text,) in db["seen"]}


def test_a_store_is_made_continued_and_read(bucket: Bucket, address: str, tmp_path: Path) -> None:
    with made(address) as db:
        db.apply({"edge": [(2, "b")]})
        assert seen(address) == {"a", "b"}
    with elastalog.open(store=address) as db:
        assert db.epoch == 2
        db.apply({"edge": [(3, "ü")]}, {"edge": [(1, "a")]}, source="feed", batch=1)
        db.apply({"edge": [(3, "ü")]}, {"edge": [(1, "a")]}, source="feed", batch=1)  # known
    assert seen(address) == {"b", "ü"}
    with elastalog.open(store=elastalog.Store(address, at=2)) as db:
        assert {text for (text,) in db["seen"]} == {"a", "b"}
    # An object an epoch.
    assert {key for key in bucket.keys(tmp_path.name) if key.startswith("journal")} == {
        "journal-1.log", "journal-1.log.1", "journal-1.log.2"
    }  # fmt: skip


def test_a_reader_follows(address: str) -> None:
    with made(address) as db, elastalog.open(store=elastalog.Store(address, read_only=True)) as reader:
        for i in range(3):
            db.apply({"edge": [(i, f"n{i}")]})
            assert reader.refresh() is not None
            assert set(reader["seen"]) == set(db["seen"])


@pytest.mark.slow
def test_snapshots_take_the_place_of_journals(bucket: Bucket, address: str, tmp_path: Path) -> None:
    with made(address, retention=3) as db:
        options = db._history.store.manifest.options
        object.__setattr__(options, "journal_epochs", 4)
        for i in range(30):
            db.apply({"edge": [(i, f"n{i}")]})
    assert seen(address) == {"a", *(f"n{i}" for i in range(30))}
    keys = bucket.keys(tmp_path.name)
    with elastalog.open(store=elastalog.Store(address, read_only=True)) as db:
        epochs = [entry.epoch for entry in db.log()]
        assert epochs[-1] == 31
        assert len(epochs) < 20
        needed = db._history.store.manifest.names()
    journals = {key for key in keys if key.startswith("journal")}
    assert {key.partition(".log")[0] + ".log" for key in journals} == {n for n in needed if n.startswith("journal")}
    assert {key for key in keys if key.startswith(("facts", "dictionary", "manifest"))} <= needed
    with elastalog.open(store=address) as db:
        db.apply({"edge": [(99, "last")]})
    assert "last" in seen(address)


def test_two_writers(address: str) -> None:
    with made(address) as db:
        with pytest.raises(ElastalogError) as raised:
            elastalog.open(store=address)
        assert code_of(raised) == "E0804"
        assert "its lease runs out in" in str(raised.value.diagnostics[0].notes)
        db.apply({"edge": [(2, "b")]})
    with elastalog.open(store=address) as db:  # released
        assert len(db["seen"]) == 2


@pytest.mark.slow
def test_a_writer_whose_lease_ran_out_commits_nothing_more(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lease, "seconds", 0.5)
    monkeypatch.setattr(Lease, "_renew", lambda self: None)  # as if its process had been stopped
    first = made(address)
    first.apply({"edge": [(2, "b")]})
    with pytest.raises(ElastalogError):
        elastalog.open(store=address)
    time.sleep(2.5)  # until its lease has run out: servers round to seconds
    with elastalog.open(store=address) as second:
        for told in (first, first):
            with pytest.raises(ElastalogError) as raised:
                told.apply({"edge": [(3, "lost")]})
            assert code_of(raised) in ("E0878", "E0809")
        assert {text for (text,) in first["seen"]} == {"a", "b"}
        # The object of the first one lies where the next epoch of the second is to be. It does not count.
        assert seen(address) == {"a", "b"}
        second.apply({"edge": [(4, "kept")]})
        assert seen(address) == {"a", "b", "kept"}
    first.close()
    with elastalog.open(store=address) as third:
        third.apply({"edge": [(5, "later")]})
    assert seen(address) == {"a", "b", "kept", "later"}


def test_epochs_that_were_acknowledged_stay_whoever_writes(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers that both believe to have the lease: none loses what the other was told is committed."""
    monkeypatch.setattr(Lease, "_refuse_if_held", lambda self, found: None)
    monkeypatch.setattr(Lease, "_renew", lambda self: None)
    told = {"a"}
    with made(address):
        pass
    for i in range(4):
        sessions = [elastalog.open(store=address), elastalog.open(store=address)]
        for j in range(3):
            for k, session in enumerate(sessions):
                text = f"{i}-{j}-{k}"
                with suppress(ElastalogError):
                    session.apply({"edge": [(i, text)]})
                    told.add(text)
        for session in sessions:
            session.close()
    assert len(told) > 4
    assert told <= seen(address)


@pytest.mark.slow
def test_a_crash_between_the_put_and_its_acknowledgement(address: str) -> None:
    with made(address):
        pass
    script = f"""
import elastalog
from elastalog.storage.objects.lease import Lease
from tests.failpoints import stop_at
Lease.seconds = 0.5
db = elastalog.open(store={address!r})
with stop_at(1, "journal.write.before", "exit"):
    db.apply({{"edge": [(2, "b")]}}, source="feed", batch=1)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == EXIT_CODE, done.stderr.decode()[-2000:]
    assert seen(address) == {"a", "b"}
    time.sleep(2.5)  # until its lease has run out
    with elastalog.open(store=address) as db:
        assert db.apply({"edge": [(2, "b")]}, source="feed", batch=1).is_repeated
        db.apply({"edge": [(4, "d")]}, source="feed", batch=2)
    assert seen(address) == {"a", "b", "d"}


@pytest.mark.filterwarnings("ignore:.*`facts` were not read")
@pytest.mark.parametrize("point", ["relation.write.after", "manifest.write.before", "pointer.write.before"])
def test_a_crash_while_a_store_is_made(address: str, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    monkeypatch.setattr(Lease, "_refuse_if_held", lambda self, found: None)
    with pytest.raises(Stopped), stop_at(1, point):
        made(address)
    with elastalog.open(PROGRAM, {"edge": [(1, "other")]}, store=address) as db:
        assert len(db["seen"]) == 1
    if point != "pointer.write.before":
        assert seen(address) == {"other"}
    else:  # the pointer was put: the store is there
        assert seen(address) == {"a"}


def test_answers_that_get_lost(bucket: Bucket, address: str, quick: None, tmp_path: Path) -> None:
    """A put is carried out, its answer is not heard: asked again, the server has it already."""
    with made(address) as db, bucket.troubled(Trouble(("late 503",), only="PUT", first=1)):
        for i in range(3):
            db.apply({"edge": [(i, f"n{i}")]})
        assert bucket.met()[f"PUT /bucket/{tmp_path.name}/journal-1.log.3"] == 1
    assert seen(address) == {"a", "n0", "n1", "n2"}


@pytest.mark.slow
def test_a_renewal_whose_answer_is_lost_for_good(
    bucket: Bucket, address: str, quick: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is its holder's all the same."""
    monkeypatch.setattr(Patience, "attempts", 1)
    monkeypatch.setattr(Lease, "seconds", 0.9)
    lease = f"PUT /bucket/{tmp_path.name}/LEASE"
    with made(address) as db:
        with bucket.troubled(Trouble(("late 503",), only=lease, first=3)):  # as often as a request is repeated
            for _ in range(100):
                if bucket.met()[lease] == 3:
                    break
                time.sleep(0.1)
        time.sleep(1.5)
        db.apply({"edge": [(2, "b")]})
    assert seen(address) == {"a", "b"}


def test_a_server_that_says_once_that_nothing_is_there(bucket: Bucket, address: str, tmp_path: Path) -> None:
    """What a writer before may have left is removed only where there is no store."""
    made(address).close()
    before = bucket.keys(tmp_path.name)
    once = Trouble(("404",), only=f"GET /bucket/{tmp_path.name}/CURRENT", first=1)
    with bucket.troubled(once), pytest.raises(ElastalogError) as raised:
        elastalog.open(store=address)
    assert code_of(raised) == "E0876"
    assert bucket.keys(tmp_path.name) == before
    with elastalog.open(store=address) as db:
        db.apply({"edge": [(2, "b")]})
    assert seen(address) == {"a", "b"}


def test_a_server_that_is_away(bucket: Bucket, address: str, quick: None) -> None:
    with made(address) as db:
        with bucket.troubled(Trouble(("503",))), pytest.raises(ElastalogError) as raised:
            db.apply({"edge": [(2, "b")]})
        assert code_of(raised) == "E0877"
        assert {text for (text,) in db["seen"]} == {"a"}
        # Whether it was put after all nobody knows: the store has to be looked at anew.
        with pytest.raises(ElastalogError) as raised:
            db.apply({"edge": [(2, "b")]})
        assert code_of(raised) == "E0809"
    with elastalog.open(store=address) as db:
        db.apply({"edge": [(2, "b")]})
    assert seen(address) == {"a", "b"}


def test_a_server_that_passes_over_conditions(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import obstore

    whole = obstore.put
    monkeypatch.setattr(obstore, "put", lambda store, name, data, **_: whole(store, name, data))
    with pytest.raises(ElastalogError) as raised:
        made(address)
    assert code_of(raised) == "E0876"
    assert "If-None-Match" in str(raised.value)


@pytest.mark.parametrize("place", ["hdfs://namenode/store", "ftp://there/store"])
def test_schemes_without_conditions(place: str) -> None:
    with pytest.raises(ElastalogError) as raised:
        made(place)
    assert code_of(raised) == "E0876"


def test_without_obstore(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ElastalogError) as raised:
        made(address)
    assert code_of(raised) == "E0876"
    assert raised.value.diagnostics[0].help == 'pip install "elastalog[cloud]"'


def test_something_else_is_there(bucket: Bucket, address: str, tmp_path: Path) -> None:
    bucket.client.put_object(Bucket="bucket", Key=f"{tmp_path.name}/photo.jpg", Body=b"x")
    with pytest.raises(ElastalogError) as raised:
        made(address)
    assert code_of(raised) == "E0802"
    assert "photo.jpg" in bucket.keys(tmp_path.name)


def test_commands(bucket: Bucket, address: str, tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("1\ta\n")
    (tmp_path / "one.diff").write_text('+edge(2,"b").\n')

    def run(*words: str) -> Any:
        result = command(*words)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "secret-word" not in result.output
        return result

    program, facts = str(tmp_path / "p.dl"), str(tmp_path)
    assert run("init", address, program, "-F", facts).exit_code == 0
    again = run("init", address, program, "-F", facts)
    assert again.exit_code == 1
    assert "E0802" in again.output
    assert run("apply", address, str(tmp_path / "one.diff")).exit_code == 0
    assert run("query", address, "seen(X)").stdout.split() == ['"a"', '"b"']
    copy = bucket.address(f"{tmp_path.name}-copy")
    assert run("backup", address, copy).exit_code == 0
    assert run("apply", copy, str(tmp_path / "one.diff")).exit_code == 0
    assert seen(copy) == {"a", "b"}
    assert run("verify", address).exit_code == 0
    streamed = run("stream", program, "--source", facts, "--store", address)
    assert (streamed.exit_code, "needs --checkpoint" in streamed.output) == (2, True)
    assert run("backup", address, copy).exit_code == 1
