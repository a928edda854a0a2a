"""Streams of updates: each is applied once, whatever happens in between, and the change feed tells what it changed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import elastalog
import elastalog.spark
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.commands import run
from tests.object_store import Bucket
from tests.refusals import refused
from tests.spark.conftest import environment_of_children

PROGRAM = """
.decl edge, path(x: number, y: number)
.input edge
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
SCHEMA = "op string, x bigint, y bigint"


def put(folder: Path, number: int, rows: list[tuple[str, int, int]]) -> None:
    """A file of a stream, which appears whole."""
    folder.mkdir(exist_ok=True)
    columns = list(zip(*rows, strict=True))
    table = pa.table({"op": columns[0], "x": columns[1], "y": columns[2]})
    parquet.write_table(table, folder / f".{number}")
    os.utime(folder / f".{number}", (number, number))  # Spark takes the oldest first
    os.rename(folder / f".{number}", folder / f"{number:04}.parquet")


def source(spark: Any, folder: Path) -> Any:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def play(spark: Any, db: Any, tmp_path: Path, **options: Any) -> elastalog.spark.StreamHandle:
    handle = elastalog.spark.apply_updates(
        source(spark, tmp_path / "in"),
        db,
        relation="edge",
        checkpoint=tmp_path / "notes",
        available_now=True,
        **options,
    )
    handle.wait()
    return handle


def test_every_batch_is_an_epoch_and_the_feed_tells_its_changes(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in", 1, [("+", 1, 2), ("+", 2, 3)])
    put(tmp_path / "in", 2, [("-", 2, 3), ("+", 2, 4)])
    with elastalog.open(PROGRAM, facts={}) as db:
        handle = play(spark, db, tmp_path, changes=tmp_path / "feed")
        assert (handle.applied, handle.repeated, db.epoch) == (2, 0, 3)
        assert set(db["path"]) == {(1, 2), (2, 4), (1, 4)}
    feed = elastalog.spark.change_feed(spark, tmp_path / "feed", "path")
    assert {tuple(row) for row in feed.collect()} == {
        ("+", 1, 2, 2), ("+", 2, 3, 2), ("+", 1, 3, 2), ("-", 2, 3, 3), ("-", 1, 3, 3), ("+", 2, 4, 3), ("+", 1, 4, 3),
    }  # fmt: skip


def test_a_batch_that_comes_again_is_skipped(spark: Any, tmp_path: Path) -> None:
    """The session applies the first batch; then, before Spark notes it, something fails."""
    put(tmp_path / "in", 1, [("+", 1, 2)])
    put(tmp_path / "in", 2, [("-", 1, 2)])
    with elastalog.open(PROGRAM, facts={}, store=tmp_path / "store") as db:
        commit, calls = db._updates.commit, []

        def failing(update: Any, *rest: Any) -> Any:
            record = commit(update, *rest)
            calls.append(update.batch)
            if len(calls) == 1:
                raise OSError("the power failed")
            return record

        db._updates.commit = failing
        with pytest.raises(OSError, match="the power failed"):
            play(spark, db, tmp_path)
        assert db.epoch == 2
    # A new process would open the store again and start the stream with the same checkpoint.
    with elastalog.open(store=tmp_path / "store") as db:
        handle = play(spark, db, tmp_path)
        assert (handle.applied, handle.repeated, db.epoch) == (1, 1, 3)
        assert len(db["path"]) == 0


def test_the_feed_is_made_up_after_a_crash(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in", 1, [("+", 1, 2)])
    with elastalog.open(PROGRAM, facts={}, store=tmp_path / "store") as db:
        play(spark, db, tmp_path, changes=tmp_path / "feed")
        # An epoch is committed, and the process ends before the feed has it.
        db.apply({"edge": [(2, 3)]})
    put(tmp_path / "in", 2, [("+", 3, 4)])
    with elastalog.open(store=tmp_path / "store") as db:
        play(spark, db, tmp_path, changes=tmp_path / "feed")
    feed = elastalog.spark.change_feed(spark, tmp_path / "feed", "edge")
    assert sorted(tuple(row) for row in feed.collect()) == [("+", 1, 2, 2), ("+", 2, 3, 3), ("+", 3, 4, 4)]


def test_a_feed_is_not_continued_by_another_store(spark: Any, tmp_path: Path) -> None:
    """Even if that has as many epochs."""
    put(tmp_path / "in", 1, [("+", 1, 2)])
    with elastalog.open(PROGRAM, facts={}, store=tmp_path / "store") as db:
        play(spark, db, tmp_path, changes=tmp_path / "feed")
    with elastalog.open(PROGRAM, facts={}, store=tmp_path / "other") as db:
        for number in range(3):
            with refused("E1112", match="is of another store"):
                play(spark, db, tmp_path, changes=tmp_path / "feed")
            db.apply({"edge": [(number, 7)]})


def test_a_store_given_by_its_path_is_closed_if_the_stream_does_not_start(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in", 1, [("+", 1, 2)])
    elastalog.open(PROGRAM, facts={}, store=tmp_path / "store").close()
    options: Any = {"checkpoint": tmp_path / "notes"}
    stream = source(spark, tmp_path / "in").drop("y")
    with pytest.raises(ElastalogError, match="no column `y`"):
        elastalog.spark.apply_updates(stream, tmp_path / "store", relation="edge", **options)
    with pytest.raises(ElastalogError, match="no table `nowhere`"):
        elastalog.spark.apply_table(spark, "nowhere", tmp_path / "store", **options)
    (tmp_path / "diffs").mkdir()
    (tmp_path / "diffs" / "1.diff").write_text("+edge(1, 2).\n", encoding="utf-8")
    handle = elastalog.spark.apply_diff_files(
        spark, tmp_path / "diffs", tmp_path / "store", available_now=True, **options
    )
    handle.wait()  # nobody else held the lock
    with elastalog.open(store=elastalog.Store(tmp_path / "store", read_only=True)) as db:
        assert set(db["edge"]) == {(1, 2)}


@pytest.mark.parametrize(
    ("columns", "told"), [(("1 AS op", "x", "y"), "`op` is int, not string"), (("op", "x"), "no column `y`")]
)
def test_a_stream_of_other_columns_is_refused(spark: Any, tmp_path: Path, columns: tuple[str, ...], told: str) -> None:
    put(tmp_path / "in", 1, [("+", 1, 2)])
    stream = source(spark, tmp_path / "in").selectExpr(*columns)
    with elastalog.open(PROGRAM, facts={}) as db, pytest.raises(ElastalogError, match=told):
        elastalog.spark.apply_updates(stream, db, relation="edge", checkpoint=tmp_path / "notes")


def test_files_of_any_age_are_applied(spark: Any, tmp_path: Path) -> None:
    """Spark would pass over those that are a week older than one that it has seen."""
    (tmp_path / "in").mkdir()
    options: Any = {"checkpoint": tmp_path / "notes", "available_now": True, "changes": tmp_path / "feed"}
    with elastalog.open(PROGRAM, facts={}) as db:
        for number, age in ((1, 0), (2, 400), (3, 9000)):
            path = tmp_path / "in" / f"{number}.diff"
            path.write_text(f"+edge({number}, {number + 1}).\n", encoding="utf-8")
            os.utime(path, (time.time() - age * 86400,) * 2)
            elastalog.spark.apply_diff_files(spark, tmp_path / "in", db, **options).wait()
        assert set(db["edge"]) == {(1, 2), (2, 3), (3, 4)}


def test_a_strange_operation_is_refused_and_changes_nothing(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in", 1, [("+", 1, 2), ("*", 2, 3)])
    with elastalog.open(PROGRAM, facts={}) as db:
        with refused("E0522", match=r"`op` is `\*`, neither"):
            play(spark, db, tmp_path)
        assert (db.epoch, len(db["edge"])) == (1, 0)


def test_the_command_applies_the_files_of_a_folder(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n", encoding="utf-8")
    (tmp_path / "reach.dl").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.diff").write_text("+edge(2, 3).\n+edge(3, 4).\n", encoding="utf-8")
    (tmp_path / "in" / "2.diff").write_text("-edge(1, 2).\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = ["stream", "reach.dl", "-F", "facts", "--source", "in", "--store", "store", "--changes", "feed", "--once"]
    first = run(*words)
    assert first.exit_code == 0, first.output
    assert "epoch 3: 2 updates applied" in first.stderr
    shutil.rmtree("store.checkpoint")  # the notes of Spark are lost: the store still knows what it has
    assert "epoch 3: 0 updates applied, 2 had been before" in run(*words).stderr
    with elastalog.open(store=elastalog.Store(tmp_path / "store", read_only=True)) as db:
        assert set(db["path"]) == {(2, 3), (3, 4), (2, 4)}


def call(*arguments: str) -> Any:
    return run("stream", *arguments)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a program, facts, and two updates, of which the second adds a rule."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edge.facts").write_text("1\t2\n", encoding="utf-8")
    (tmp_path / "reach.dl").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.diff").write_text("+edge(2, 3).\n-edge(1, 2).\n", encoding="utf-8")
    (tmp_path / "in" / "2.diff").write_text("+rule: path(x, x) :- edge(x, _).\n", encoding="utf-8")
    return tmp_path


def test_the_command_tells_what_is_wrong_instead_of_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reach.dl").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.diff").write_text("+edge(2, 3\n", encoding="utf-8")
    (tmp_path / "edge.facts").touch()
    monkeypatch.chdir(tmp_path)
    log4j = spark._jvm.org.apache.logging.log4j
    streams = "org.apache.spark.sql.execution.streaming"
    try:
        failed = call("reach.dl", "--source", "in", "--once")
        assert (failed.exit_code, failed.stderr.count("error[E0520]")) == (1, 1)
        assert not log4j.LogManager.getLogger(f"{streams}.runtime.MicroBatchExecution").isErrorEnabled()
    finally:
        log4j.core.config.Configurator.setLevel(streams, log4j.Level.ERROR)


def test_a_store_at_an_address_is_made_and_goes_on(spark: Any, bucket: Bucket, watched: Path) -> None:
    pytest.importorskip("obstore", reason="needs obstore")
    address = bucket.address("streamed")
    command = ["reach.dl", "--source", "in", "--store", address, "--once"]
    refused = call(*command)
    assert refused.exit_code == 2
    assert "needs --checkpoint" in refused.stderr
    assert call(*command, "--checkpoint", "notes").stderr == "epoch 3: 2 updates applied\n"
    (watched / "in" / "3.diff").write_text("+edge(3, 4).\n", encoding="utf-8")
    assert call(*command, "--checkpoint", "notes").stderr == "epoch 4: 1 update applied\n"
    # Other notes: the store knows what it has.
    assert "3 had been before" in call(*command, "--checkpoint", "others").stderr
    with elastalog.open(store=elastalog.Store(address, read_only=True)) as db:
        assert set(db["path"]) == {(2, 3), (3, 4), (2, 4), (2, 2), (3, 3)}
    # A new store must not go by old notes.
    again = call("reach.dl", "--source", "in", "--store", bucket.address("new"), "--once", "--checkpoint", "notes")
    assert again.exit_code == 1
    assert "E1112" in again.stderr
    assert "secret-word" not in again.stderr


def test_a_new_store_at_the_same_place_gets_all_updates(spark: Any, watched: Path) -> None:
    command = ["reach.dl", "--source", "in", "--store", "store", "--once"]
    assert call(*command).stderr == "epoch 3: 2 updates applied\n"
    shutil.rmtree(watched / "store")
    assert call(*command).stderr == "epoch 3: 2 updates applied\n"
    # With a checkpoint of the user's own, that cannot be.
    named = [*command, "--checkpoint", "notes"]
    assert call(*named).stderr == "epoch 3: 0 updates applied, 2 had been before\n"
    shutil.rmtree(watched / "store")
    for _ in range(2):
        refused = call(*named)
        assert (refused.exit_code, "error[E1112]: the checkpoint `notes`" in refused.stderr) == (1, True)


def test_the_command_continues_a_store_as_it_is_told(spark: Any, watched: Path) -> None:
    command = ["reach.dl", "--source", "in", "--store", "store", "--once"]
    first = call(*command, "--show-changes", "--stats", "stats.json")
    assert first.stdout.splitlines() == [
        "// 1.diff", "-edge(1, 2).", "+edge(2, 3).", "-path(1, 2).", "+path(2, 3).", "// 2.diff", "+path(2, 2).",
    ]  # fmt: skip
    rows = json.loads((watched / "stats.json").read_text(encoding="utf-8"))
    assert [(row["batch"], row["epoch"], row["impact"]) for row in rows] == [("1.diff", 2, 4), ("2.diff", 3, 1)]
    # Its rules are others by now, but the program that it was made for is the same.
    (watched / "in" / "3.diff").write_text("+edge(3, 4).\n", encoding="utf-8")
    given = []
    with pytest.MonkeyPatch.context() as patch:
        reopen = elastalog.open
        patch.setattr(elastalog, "open", lambda *arguments, **options: given.append(options) or reopen(**options))
        again = call(*command, "--stats", "-j", "2", "--engine", "local", "--timeout", "5m", "--max-memory", "2G")
    wanted = {
        "jobs": 2,
        "engine": "local",
        "limits": elastalog.Limits(2 << 30, 300.0),
        "strategy": None,
        "levels": None,
    }
    assert [wanted.items() <= options.items() for options in given] == [True]
    assert (again.exit_code, "epoch 4: 1 update applied" in again.stderr, "3.diff" in again.stderr) == (0, True, True)
    assert call(*command, "--strategy", "recompute").exit_code == 1
    (watched / "reach.dl").write_text(PROGRAM + "path(7, 7).\n", encoding="utf-8")
    other = call(*command)
    assert (other.exit_code, "error[E0810]" in other.stderr) == (1, True)


# --- several updates in a micro-batch ------------------------------------------------------------------------------

STEPS = [
    (1, "+", 1, 2), (1, "+", 2, 3), (1, "+", 3, 1), (3, "-", 2, 3), (3, "+", 2, 4), (2, "+", 4, 1), (10, "+", 2, 3),
    (10, "-", 1, 2),
]  # fmt: skip


def put_steps(folder: Path, rows: list[tuple[int, str, int, int]]) -> None:
    folder.mkdir(exist_ok=True)
    columns = dict(zip(("n", "op", "x", "y"), zip(*rows, strict=True), strict=True))
    parquet.write_table(pa.table(columns), folder / "steps.parquet")


def play_steps(spark: Any, db: Any, tmp_path: Path, **options: Any) -> elastalog.spark.StreamHandle:
    stream = spark.readStream.schema(f"n bigint, {SCHEMA}").parquet(str(tmp_path / "in"))
    handle = elastalog.spark.apply_updates(
        stream, db, relation="edge", checkpoint=tmp_path / "notes", available_now=True, step="n", **options
    )
    handle.wait()
    return handle


@pytest.mark.parametrize(("strategy", "marks"), [("dred", "eager"), ("bf", "linked"), ("bfc", "eager")])
def test_every_step_is_an_epoch_that_knows_the_next(spark: Any, tmp_path: Path, strategy: str, marks: str) -> None:
    put_steps(tmp_path / "in", STEPS)
    announced = []
    with elastalog.open(PROGRAM, facts={}, strategy=strategy) as db:
        announce = db._updates.announce

        def noting(upcoming: Any, marks: str = "eager") -> None:
            update = upcoming.as_update()
            announced.append((update.batch, marks, db.epoch))
            announce(upcoming, marks)

        db._updates.announce = noting
        handle = play_steps(spark, db, tmp_path, marks=marks)
        assert (handle.applied, handle.repeated, db.epoch) == (4, 0, 5)
        # Step 1 is applied to epoch 1 and knows of step 2, and so on; of the first nobody was told, but asked whether.
        assert announced == [
            (None, marks, 1), ("0 step 2", marks, 1), ("0 step 3", marks, 2), ("0 step 10", marks, 3)
        ]  # fmt: skip
        # After 1: a cycle of 1, 2, 3. After 10: 2-3, 3-1, 2-4, 4-1.
        assert set(db["path"]) == {(2, 3), (3, 1), (2, 1), (2, 4), (4, 1)}


def test_steps_that_come_again_are_skipped_one_by_one(spark: Any, tmp_path: Path) -> None:
    """A failure in the middle of a micro-batch: Spark delivers all of it again."""
    put_steps(tmp_path / "in", STEPS)
    with elastalog.open(PROGRAM, facts={}, store=tmp_path / "store") as db:
        commit = db._updates.commit

        def failing(update: Any, *rest: Any) -> Any:
            if update.batch == "0 step 3":
                raise OSError("the power failed")
            return commit(update, *rest)

        db._updates.commit = failing
        with pytest.raises(OSError, match="the power failed"):
            play_steps(spark, db, tmp_path)
        assert db.epoch == 3
    with elastalog.open(store=tmp_path / "store") as db:
        handle = play_steps(spark, db, tmp_path)
        assert (handle.applied, handle.repeated, db.epoch) == (2, 2, 5)
        assert set(db["path"]) == {(2, 3), (3, 1), (2, 1), (2, 4), (4, 1)}


def test_files_that_are_there_together_come_in_the_order_of_their_names(spark: Any, tmp_path: Path) -> None:
    """However many there are, and however old. Those that are not on this machine too."""
    (tmp_path / "in").mkdir()
    for number in range(1, 41):
        text = f"{'+' if number % 2 else '-'}edge(1, 2).\n"
        (tmp_path / "in" / f"{number}.diff").write_text(text, encoding="utf-8")
        os.utime(tmp_path / "in" / f"{number}.diff", (1000 - number, 1000 - number))
    exists = Path.exists
    with pytest.MonkeyPatch.context() as patch, elastalog.open(PROGRAM, facts={}) as db:
        patch.setattr(Path, "exists", lambda path: path.name not in ("3.diff", "40.diff") and exists(path))
        options: Any = {"checkpoint": tmp_path / "notes", "available_now": True}
        handle = elastalog.spark.apply_diff_files(spark, tmp_path / "in", db, **options)
        handle.wait()
        # Each changes something, so each has its epoch.
        assert (handle.applied, len(db["edge"])) == (40, 0)
        assert [record.batch for record in db.log()][1:] == [f"{number}.diff" for number in range(1, 41)]


def test_a_file_at_fault_does_not_hold_up_those_before_it(spark: Any, tmp_path: Path) -> None:
    """Not even when it was looked at beforehand. What it declares itself, or a file before it, it may use."""
    (tmp_path / "in").mkdir()
    texts = (
        "+edge(1, 2).\n",
        "+rule: .decl far(x: number)\n+rule: far(y) :- path(1, y).\n+far(7).\n",
        "+far(9).\n",
        "+edge(1).\n",
    )
    for number, text in enumerate(texts, 1):
        (tmp_path / "in" / f"{number}.diff").write_text(text, encoding="utf-8")
    with elastalog.open(PROGRAM, facts={}, strategy="dred") as db:
        options: Any = {"checkpoint": tmp_path / "notes", "available_now": True, "marks": "eager"}
        handle = elastalog.spark.apply_diff_files(spark, tmp_path / "in", db, **options)
        with pytest.raises(ElastalogError, match=r"4\.diff"):
            handle.wait()
        assert (handle.applied, db.epoch) == (3, 4)
        assert set(db["far"]) == {(2,), (7,), (9,)}


def test_marks_that_a_strategy_has_not_are_refused_at_once(spark: Any, tmp_path: Path) -> None:
    put_steps(tmp_path / "in", STEPS)
    with elastalog.open(PROGRAM, facts={}) as db, pytest.raises(ElastalogError, match="no eager marks"):
        play_steps(spark, db, tmp_path, marks="eager")


def test_the_command_looks_ahead_without_a_store(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n", encoding="utf-8")
    (tmp_path / "reach.dl").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "in").mkdir()
    for number, text in ((1, "+edge(2, 3).\n+edge(3, 4).\n"), (2, "-edge(1, 2).\n"), (10, "+edge(4, 2).\n")):
        (tmp_path / "in" / f"{number}.diff").write_text(text, encoding="utf-8")
    base = ["stream", "reach.dl", "-F", "facts", "--source", "in", "--once"]
    monkeypatch.chdir(tmp_path)
    done = run(*base, "--strategy", "bfc", "--marks", "linked", "-D", "out")
    assert done.exit_code == 0, done.output
    assert "epoch 4: 3 updates applied" in done.stderr
    assert run(*base, "--changes", "feed").exit_code == 2
    rows = set((tmp_path / "out" / "path.csv").read_text(encoding="utf-8").splitlines())
    assert rows == {f"{x}\t{y}" for x in (2, 3, 4) for y in (2, 3, 4)}


UPDATES_A_RUN = 8


def last_epoch(feed: Path) -> int:
    """The last epoch that a stream has told of."""
    try:
        return int((feed / "_epoch").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def started_stream(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """A stream in a session of processes of its own; what it says goes into a file."""
    with (folder / "told").open("wb") as told:
        return subprocess.Popen(
            command, cwd=folder, env=environment_of_children(), stdout=told, stderr=told, start_new_session=True
        )


@pytest.mark.long
@pytest.mark.parametrize("kills", [2, 50])
def test_a_stream_killed_at_random_applies_every_update_once(tmp_path: Path, kills: int) -> None:
    """`kill -9`, and start again: mostly while updates are being applied, some times before the first. A number is
    toggled, so that a repetition would show."""
    choice = random.Random(7)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("", encoding="utf-8")
    (tmp_path / "reach.dl").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "in").mkdir()
    updates = 0

    def add_updates() -> None:
        nonlocal updates
        for _ in range(UPDATES_A_RUN):
            updates += 1
            sign = "+" if updates % 2 else "-"
            text = f"{sign}edge(0, 1).\n+edge({updates}, {updates + 1}).\n"
            (tmp_path / "in" / f".{updates}").write_text(text, encoding="utf-8")
            os.rename(tmp_path / "in" / f".{updates}", tmp_path / "in" / f"{updates}.diff")

    command = [
        sys.executable, "-m", "elastalog.cli.main", "stream", "reach.dl", "-F", "facts", "--source", "in", "--store",
        "store", "--changes", "feed",
    ]  # fmt: skip
    started = 10.0
    for number in range(kills):
        add_updates()
        before, began = last_epoch(tmp_path / "feed"), time.monotonic()
        process = started_stream(command, tmp_path)
        if number % 5 == 4:
            time.sleep(choice.uniform(0, started))
        else:
            while last_epoch(tmp_path / "feed") <= before:
                if process.poll() is not None:
                    # The Java process of the stream before may live on for a moment, and note a batch: Spark refuses
                    # to go on beside it. Whoever keeps a stream running starts it again.
                    said = (tmp_path / "told").read_text(encoding="utf-8")
                    assert "oncurrent update to the" in said, said[-3000:]
                    process = started_stream(command, tmp_path)
                assert time.monotonic() - began < 600, "nothing was applied"
                time.sleep(0.01)
            started = time.monotonic() - began
            time.sleep(choice.uniform(0, 0.3))
        # Every other time as when the machine fails, otherwise the Java process has to find out.
        if number % 2:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
    subprocess.run(
        [*command, "--once"], cwd=tmp_path, env=environment_of_children(), timeout=900, check=True, capture_output=True
    )
    with elastalog.open(store=elastalog.Store(tmp_path / "store", read_only=True)) as db:
        assert db.epoch == updates + 1
        assert set(db["edge"]) == {(n, n + 1) for n in range(1, updates + 1)}
    told = parquet.read_table(tmp_path / "feed" / "edge").group_by("epoch").aggregate([("x", "count")]).to_pydict()
    # The first update inserts two edges, those after it insert or delete one and insert another.
    assert dict(zip(told["epoch"], told["x_count"], strict=True)) == dict.fromkeys(range(2, updates + 2), 2)
