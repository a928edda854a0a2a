"""Observers of a session: told of every commit and every question, when it is over. Spans of OpenTelemetry, and the
metrics of a service, are made there and nowhere else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from elastalog.diagnostics.arguments import require_package

if TYPE_CHECKING:
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.session.session import Session


class Observer(Protocol):
    """What `db.engine.observe` takes. It is called under the lock of the session, so it should be quick; what goes
    wrong in it is logged."""

    def committed(self, record: EpochRecord, ended: int) -> None:
        """An epoch is there, and durable if a store keeps it. `ended`: in nanoseconds since 1970."""

    def asked(self, text: str, began: int, error: BaseException | None) -> None:
        """A question was answered just now, or ended with an error; it began at a time in nanoseconds."""


class Spans:
    """Makes spans of commits, of the strata within them, and of questions. They belong to the span that is current
    where the call was made."""

    def __init__(self, provider: Any = None) -> None:
        trace = require_package("opentelemetry.trace")
        self._trace = trace
        self._tracer = trace.get_tracer("elastalog", tracer_provider=provider)

    def committed(self, record: EpochRecord, ended: int) -> None:
        # The strata are one after the other, up to when the epoch was complete; then it is made durable.
        complete = int(record.time * 1e9)
        began = complete - int(record.seconds * 1e9)
        strata = record.work.strata
        attributes: dict[str, int | str] = {
            "elastalog.epoch": record.epoch,
            "elastalog.inserted": record.inserted,
            "elastalog.deleted": record.deleted,
            "elastalog.impact": record.impact,
        }
        if record.source is not None:
            attributes["elastalog.source"] = record.source
        span = self._tracer.start_span("elastalog.commit", start_time=began, attributes=attributes)
        within = self._trace.set_span_in_context(span)
        at = began
        for stratum in strata:
            told = {
                "elastalog.stratum": stratum.stratum,
                "elastalog.relations": stratum.relations,
                "elastalog.how": stratum.how,
                "elastalog.why": stratum.why,
                "elastalog.derivations": stratum.derivations,
            }
            one = self._tracer.start_span("elastalog.stratum", within, start_time=at, attributes=told)
            at += int(stratum.seconds * 1e9)
            one.end(at)
        span.end(max(ended, at))

    def asked(self, text: str, began: int, error: BaseException | None) -> None:
        span = self._tracer.start_span("elastalog.question", start_time=began, attributes={"elastalog.asked": text})
        if error is not None:
            span.record_exception(error)
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, type(error).__name__))
        span.end(time.time_ns())


def instrument(db: Session, tracer_provider: Any = None) -> Session:
    """Has a session make OpenTelemetry spans of its commits, the strata within them, and its questions, with the
    provider that is given or the global one. Needs `pip install elastalog[otel]`. Returns the session."""
    db.engine.observe(Spans(tracer_provider))
    return db
