"""Observers hear of commits and questions; spans of OpenTelemetry are made of that."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import elastalog
from tests.closures import CLOSURE as PROGRAM


@pytest.fixture
def spans() -> tuple[TracerProvider, InMemorySpanExporter]:
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def test_commits_strata_and_questions_are_spans(spans: Any) -> None:
    provider, exporter = spans
    with elastalog.instrument(elastalog.open(PROGRAM, {"edge": [(1, 2)]}), provider) as db:
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
    with elastalog.instrument(elastalog.open(PROGRAM, {"edge": [(1, 2)]}), provider) as db:
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

    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}) as db, caplog.at_level(logging.ERROR):
        db.engine.observe(Failing())
        assert db.apply({"edge": [(2, 3)]}).impact == 3
        assert len(db.query("path(1, X)")) == 2
    assert len(caplog.records) == 2
