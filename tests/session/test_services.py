"""What programs that live on a session use: previews, news of epochs, times, copies, other programs."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import elastalog
from elastalog import ElastalogError
from elastalog.cli.main import cli
from elastalog.session import settings as session_settings
from elastalog.session.settings import processors
from tests.closures import CLOSURE
from tests.refusals import refused

PROGRAM = """
.decl edge(from: number, to: number)
.input edge
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
.decl lonely(x: number)
lonely(x) :- edge(x, _), !path(x, 4).
.output path
"""
FAR = ".decl far(x: number)\nfar(x) :- path(1, x), !edge(1, x)."
EDGES = [(1, 2), (2, 3), (3, 4), (9, 10)]


def opened(**options: object) -> elastalog.Session:
    return elastalog.open(PROGRAM, {"edge": EDGES}, **options)


def shown(changes: elastalog.Changes) -> dict[str, tuple[list[object], list[object]]]:
    return {name: (sorted(c.inserted), sorted(c.deleted)) for name, c in changes.items()}


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dred"])
def test_a_preview_tells_what_an_update_changes_and_does_nothing(strategy: str) -> None:
    with opened(strategy=strategy) as db:
        before = {name: sorted(db[name]) for name in db}
        told = db.preview({"edge": [(4, 5)]}, {"edge": [(2, 3)]})
        assert {name: sorted(db[name]) for name in db} == before
        assert db.epoch == 1
        done = db.apply({"edge": [(4, 5)]}, {"edge": [(2, 3)]})
        assert shown(told) == shown(done)
        found = db.verify()  # levels are those of the strategy
        assert not found.missing
        assert not found.unwanted


def test_a_preview_of_rules() -> None:
    with opened() as db:
        told = db.preview(
            added=".decl far(x: number)\nfar(x) :- path(1, x), !edge(1, x).",
            removed=["lonely(x) :- edge(x, _), !path(x, 4)."],
        )
        assert sorted(told["far"].inserted) == [(3,), (4,)]
        assert sorted(told["lonely"].deleted) == [(9,)]
        assert "far" not in db
        assert sorted(db["lonely"]) == [(9,)]
        assert db.apply({"edge": [(10, 11)]}).impact > 0
        assert db.verify().is_exact


def test_uses_of_a_fact() -> None:
    with opened() as db:
        assert sorted(map(str, db.uses("edge(2, 3)"))) == ["path(2, 3)", "path(2, 4)"]
        assert sorted(map(str, db.uses("path(3, 4)"))) == ["path(2, 4)"]
        assert sorted(map(str, db.uses("edge(3, 4)", all=True))) == ["path(1, 4)", "path(2, 4)", "path(3, 4)"]
        assert sorted(map(str, db.uses("path(3, 4)", all=True))) == ["path(1, 4)", "path(2, 4)"]
        assert db.epoch == 1
        assert sorted(db["lonely"]) == [(9,)]
        with refused("E0701"):
            db.uses("edge(7, 8)")


AGGREGATES = """
.decl node(x: number)
.decl edge(x: number, y: number)
.decl degree(x: number, n: number)
degree(x, n) :- node(x), n = count : { edge(x, _) }.
.decl far(x: number, m: number)
far(x, max y : { edge(x, y), y > 2 ; node(y), y = x }) :- node(x).
.decl total(n: number)
total(n) :- n = sum d : { degree(_, d) }.
.decl nested(n: number)
nested(n) :- n = sum k : { node(x), k = count : { edge(x, y), node(y) } }.
"""


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ("edge(1, 2)", ["degree(1, 2)", "nested(3)"]),
        ("edge(1, 3)", ["degree(1, 2)", "far(1, 3)", "nested(3)"]),
        ("edge(9, 9)", []),
        ("degree(1, 2)", ["total(3)"]),
        ("node(3)", ["degree(3, 0)", "far(3, 3)", "nested(3)"]),
    ],
)
def test_uses_go_through_aggregates_that_range_over_the_fact(fact: str, expected: list[str]) -> None:
    facts = {"node": [(1,), (2,), (3,)], "edge": [(1, 2), (1, 3), (2, 3), (9, 9)]}
    with elastalog.open(AGGREGATES, facts) as db:
        assert sorted(map(str, db.uses(fact))) == expected


def test_uses_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(AGGREGATES + "node(1).\nedge(1, 2).\n")

    def uses(*words: str) -> str:
        return CliRunner().invoke(cli, ["explain", str(tmp_path / "p.dl"), "edge(1, 2)", *words]).stdout

    assert uses("--uses") == "degree(1, 1)\n"
    assert uses("--uses", "all") == "degree(1, 1)\ntotal(1)\n"
    assert uses("--uses", "--format", "json") == '["degree(1, 1)"]\n'


def test_functions_are_told_of_epochs_and_their_faults_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []
    with opened() as db:

        @db.on_commit
        def note(changes: elastalog.Changes) -> None:
            heard.append(changes.impact)

        @db.on_commit
        def fail(changes: elastalog.Changes) -> None:
            raise RuntimeError("no")

        with caplog.at_level(logging.INFO, "elastalog.session"):
            db.apply({"edge": [(4, 5)]}, source="crawler", batch=7)
            db.apply({"edge": [(4, 5)]})
            db.preview({"edge": [(5, 6)]})
        assert heard == [6]
        assert "failed when it was told of epoch 2" in caplog.text
        assert "epoch 2: 1 explicit facts inserted, 0 deleted, 6 changes" in caplog.text
        assert "(from crawler 7)" in caplog.text
        with pytest.raises(TypeError):
            db.on_commit(5)


@pytest.mark.parametrize("has_store", [False, True])
def test_changes_since_an_epoch_are_net(tmp_path: Path, has_store: bool) -> None:
    with opened(store=tmp_path / "store" if has_store else None) as db:
        db.apply({"edge": [(4, 5)]})
        db.apply({"edge": [(20, 21)]}, {"edge": [(4, 5)]})
        db.apply({}, {"edge": [(9, 10)]})
        since = shown(db.changes_since(1))
        assert since["edge"] == ([(20, 21)], [(9, 10)])
        assert since["path"] == ([(20, 21)], [(9, 10)])
        assert shown(db.changes_since(4)) == {}
        assert sorted(db.changes_since(3)["edge"].deleted) == [(9, 10)]
        for epoch in (0, 5):
            with refused("E0813"):
                db.changes_since(epoch)


def test_the_log_has_times_and_batches_as_they_were_given(tmp_path: Path) -> None:
    began = datetime.now(UTC) - timedelta(seconds=1)
    for store in (None, tmp_path / "store"):
        with opened(store=store) as db:
            db.apply({"edge": [(4, 5)]}, source="crawler", batch=7)
            db.apply({"edge": [(5, 6)]}, source="crawler", batch="8")
            entries = db.log()
            assert [entry.batch for entry in entries] == [None, 7, "8"]
            assert all(began <= entry.time <= datetime.now(UTC) for entry in entries)
            assert db.engine.is_applied("crawler", "7")
            assert db.engine.is_applied("crawler", 8)
    with elastalog.open(store=tmp_path / "store") as db:
        assert [entry.batch for entry in db.log()] == [None, 7, "8"]
        assert db.engine.is_applied("crawler", 7)


def test_an_epoch_by_its_time(tmp_path: Path) -> None:
    with opened(store=tmp_path / "store") as db:
        first = db.log()[0].time
        db.apply({"edge": [(4, 5)]})
        assert db.at(datetime.now(UTC)).epoch == 2
        assert db.at(datetime.now()).epoch == 2
        assert db.at(first).epoch == 1
        with refused("E0813"):
            db.at(first - timedelta(days=1))


def test_a_reader_follows_its_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(store=path) as writer, elastalog.open(store=elastalog.Store(path, read_only=True)) as reader:
        edges = reader["edge"]
        assert not reader.refresh()
        writer.apply({"edge": [(4, 5)]})
        writer.change_rules(".decl far(x: number)\nfar(x) :- path(1, x), !edge(1, x).")
        assert reader.epoch == 1
        assert reader.refresh()
        assert reader.epoch == 3
        assert sorted(reader["far"]) == [(3,), (4,), (5,)]
        assert reader.explain("path(1, 5)").height == 4
        assert sorted(edges) == EDGES
        with pytest.raises(ElastalogError):
            writer.refresh()
        with pytest.raises(ElastalogError):
            writer.at(1).refresh()
        with pytest.raises(ElastalogError):
            reader.apply({"edge": [(5, 6)]})


def test_a_copy_of_a_store_in_use(tmp_path: Path) -> None:
    with opened(store=tmp_path / "store") as db:
        db.apply({"edge": [(4, 5)]}, source="crawler", batch="monday")
        assert db.backup(tmp_path / "copies" / "one") == 2
        db.apply({"edge": [(5, 6)]})
        with elastalog.open(store=tmp_path / "copies" / "one") as copy:
            assert copy.epoch == 2
            assert copy.engine.recovery == ()
            assert sorted(copy["edge"]) == sorted([*EDGES, (4, 5)])
            assert copy.engine.is_applied("crawler", "monday")
            assert sorted(copy.at(1)["edge"]) == sorted(EDGES)
            assert copy.verify().is_exact
            copy.apply({"edge": [(7, 8)]})
        with refused("E0802"):
            db.backup(tmp_path / "copies" / "one")
    with pytest.raises(ElastalogError), opened() as db:
        db.backup(tmp_path / "other")


def test_updates_of_a_program_with_an_event_loop() -> None:
    async def work(db: elastalog.Session) -> int:
        changes = await asyncio.gather(
            asyncio.to_thread(db.apply, {"edge": [(4, 5)]}), asyncio.to_thread(db.apply, {"edge": [(20, 21)]})
        )
        return sum(change.impact for change in changes)

    with opened() as db:
        assert asyncio.run(work(db)) == 9
        assert db.epoch == 3


NEXT = PROGRAM.replace("lonely(x) :- edge(x, _), !path(x, 4).", "lonely(x) :- edge(x, _), !path(x, 3).") + (
    ".decl far(x: number)\nfar(x) :- path(1, x), !edge(1, x).\nedge(3, 30).\n"
)


def test_another_program_is_an_update(tmp_path: Path) -> None:
    with opened(store=tmp_path / "store") as db:
        told = shown(db.upgrade(NEXT, preview=True))
        assert db.epoch == 1
        done = shown(db.upgrade(NEXT))
        assert told == done
        assert db.epoch == 2
        assert sorted(db["lonely"]) == [(3,), (9,)]
        assert sorted(db["far"]) == [(3,), (4,), (30,)]
        assert db.verify().is_exact
        assert db.upgrade(NEXT).impact == 0
        assert db.epoch == 2
    with elastalog.open(NEXT, store=tmp_path / "store") as db:
        assert (3, 30) in db["edge"]
        db.upgrade(PROGRAM)
        assert (3, 30) not in db["edge"]
        assert sorted(db["far"]) == []
    with refused("E0810"):
        elastalog.open(NEXT, store=tmp_path / "store")


def test_a_relation_keeps_its_attributes() -> None:
    with opened() as db, refused("E0820"):
        db.upgrade(
            PROGRAM.replace("lonely(x: number)", "lonely(x: float)").replace("lonely(x) :-", "lonely(to_float(x)) :-")
        )


def test_what_lies_between_two_epochs_shows_like_changes(tmp_path: Path) -> None:
    with opened(store=tmp_path / "store") as db:
        db.apply({"edge": [(4, 5)]})
        between = db.diff(1, 2)
        assert between.impact == 6
        assert repr(between).splitlines()[0] == "6 changes"
        assert "  edge: +1 -0" in repr(between).splitlines()
        assert sorted(between["edge"].inserted) == [(4, 5)]
        assert list(db.diff(1, 1)) == []
        unchanged = db.diff(1, 1)["edge"]
        assert (list(unchanged.inserted), list(unchanged.deleted), unchanged.moved.num_rows) == ([], [], 0)
        with pytest.raises(ElastalogError, match="E0606"):
            between["none"]


def test_a_query_is_answered_for_the_epoch_in_which_it_was_asked() -> None:
    with opened() as db:
        answer = db.engine.asking("path(?a, X)", {"a": 1})
        db.apply(deleted={"edge": [(1, 2)]})
        assert sorted(answer()) == [(2,), (3,), (4,)]
        assert sorted(db.engine.asking("path(1, X)")()) == []
        with pytest.raises(ElastalogError, match="E0603"):
            db.engine.asking("path(A, B), path(C, D), A + B + C + D < 0", time_limit=-1)()


def test_a_twin_follows_what_the_first_committed() -> None:
    with opened() as db:
        twin = db.engine.twin()
        update = db.update()
        update.insert("edge", [(4, 5)])
        update.add_rules(FAR)
        made = update.as_update()
        record = db.engine.commit(made)
        assert len(twin["path"]) == 7
        twin.engine.follow(made, record)
        assert twin.epoch == db.epoch == 2
        assert {name: sorted(twin[name]) for name in twin} == {name: sorted(db[name]) for name in db}
        assert str(twin.blame("far(5)")) == str(db.blame("far(5)"))


# --- how many threads a session has by default ------------------------------------------------------------------------


PROGRAM_THREADS = ".decl e, p(x: number)\np(x) :- e(x)."


def test_as_many_as_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(5)))
    monkeypatch.setattr(session_settings, "_granted", session_settings._granted.__wrapped__)  # looked at once otherwise
    for text, expected in {"max 100000\n": 5, "300000 100000\n": 3, "50000 100000\n": 1, "nothing": 5}.items():
        monkeypatch.setattr(Path, "read_text", lambda path, encoding, text=text: text)
        assert processors() == expected
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))
    assert processors() == 16


def test_one_in_a_process_of_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(processors).result() == 1
    monkeypatch.setitem(sys.modules, "pyspark.worker", SimpleNamespace())
    assert processors() == 1


@pytest.mark.parametrize("jobs", ["auto", 1, 3])
def test_sessions_take_it(jobs: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastalog.session.opening.processors", lambda: 7)
    with elastalog.open(PROGRAM_THREADS, facts={"e": [(1,)]}, jobs=jobs, engine="local") as db:
        assert set(db["p"]) == {(1,)}
        assert db._now.settings.jobs == (7 if jobs == "auto" else jobs) if hasattr(db, "_now") else True


def test_no_threads_are_refused() -> None:
    with pytest.raises(elastalog.ElastalogError, match="jobs"):
        elastalog.open(PROGRAM_THREADS, jobs=0)
    with pytest.raises(elastalog.ElastalogError, match="jobs"):
        elastalog.open(PROGRAM_THREADS, jobs="many")


# --- observers hear of commits and questions; spans of OpenTelemetry are made of that ---------------------------------


@pytest.fixture
def spans() -> tuple[TracerProvider, InMemorySpanExporter]:
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def test_commits_strata_and_questions_are_spans(spans: Any) -> None:
    provider, exporter = spans
    with elastalog.instrument(elastalog.open(CLOSURE, {"edge": [(1, 2)]}), provider) as db:
        db.apply({"edge": [(2, 3)]}, source="crawler", batch=1)
        (stratum, *_), commit = exporter.get_finished_spans()[:-1], exporter.get_finished_spans()[-1]
        assert commit.name == "elastalog.commit"
        told = {"epoch": 2, "inserted": 1, "deleted": 0, "impact": 3, "source": "crawler"}
        assert commit.attributes == {f"elastalog.{name}": value for name, value in told.items()}
        assert stratum.name == "elastalog.stratum"
        assert stratum.parent.span_id == commit.context.span_id
        assert commit.start_time <= stratum.start_time <= stratum.end_time <= commit.end_time
        exporter.clear()
        db.query("path(1, X)")
        db.explain("path(1, 3)")
        with pytest.raises(elastalog.ElastalogError):
            db.query("pth(1, X)")
        found = exporter.get_finished_spans()
        asked = [(span.name, span.attributes["elastalog.asked"], span.status.is_ok) for span in found]
        assert asked == [
            ("elastalog.question", "path(1, X)", True),
            ("elastalog.question", "path(1, 3)", True),
            ("elastalog.question", "pth(1, X)", False),
        ]


def test_spans_belong_to_the_span_around(spans: Any) -> None:
    provider, exporter = spans
    with elastalog.instrument(elastalog.open(CLOSURE, {"edge": [(1, 2)]}), provider) as db:
        with provider.get_tracer("test").start_as_current_span("request") as request:
            db.apply({"edge": [(2, 3)]})
            db.query("path(1, X), X > 1")
        outer = {span.name for span in exporter.get_finished_spans() if span.parent is not None}
        assert outer == {"elastalog.commit", "elastalog.stratum", "elastalog.question"}
        commit = next(span for span in exporter.get_finished_spans() if span.name == "elastalog.commit")
        assert commit.parent.span_id == request.get_span_context().span_id


def test_an_observer_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        def committed(self, record: object, ended: int) -> None:
            raise ValueError

        def asked(self, text: str, began: int, error: BaseException | None) -> None:
            raise ValueError

    with elastalog.open(CLOSURE, {"edge": [(1, 2)]}) as db, caplog.at_level(logging.ERROR):
        db.engine.observe(Failing())
        assert db.apply({"edge": [(2, 3)]}).impact == 3
        assert len(db.query("path(1, X)")) == 2
    assert len(caplog.records) == 2
