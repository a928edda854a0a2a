"""The metrics of a service, in the text format of Prometheus."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from elastalog.diagnostics.quota import resident_bytes
from elastalog.evaluation.epochs import EpochRecord

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds of the histogram buckets for durations, in seconds."""

HELP: Mapping[str, str] = {
    "elastalog_changed_facts_total": "Facts that came or went, explicit and derived.",
    "elastalog_commit_seconds": "Time that epochs took.",
    "elastalog_epoch": "The last committed epoch.",
    "elastalog_epochs_total": "Epochs committed since the service began.",
    "elastalog_facts": "Facts of each relation.",
    "elastalog_listeners": "Clients that follow the changes.",
    "elastalog_memory_bytes": "Resident memory of the process.",
    "elastalog_question_seconds": "Time that questions took.",
    "elastalog_questions_waiting": "Calls that wait or are being answered, this one aside.",
    "elastalog_readers": "Calls that read an epoch at this moment.",
    "elastalog_request_seconds": "Time that requests took.",
    "elastalog_requests_total": "Requests answered, by path and status.",
    "elastalog_stratum_derivations_total": "Derivations looked at, by stratum and by how it was evaluated.",
    "elastalog_stratum_seconds_total": "Time spent on each stratum.",
    "elastalog_uptime_seconds": "Time since the service began.",
    "elastalog_writer_waiting": "Updates that wait or are being applied.",
}

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters since the service began; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: defaultdict[tuple[str, str], Counter[tuple[str, Labels]]] = defaultdict(Counter)

    def count(self, name: str, number: float = 1, **labels: str) -> None:
        """Adds to a counter."""
        self._add(name, "counter", [("", tuple(labels.items()), number)])

    def took(self, name: str, seconds: float, **labels: str) -> None:
        """Records a duration."""
        own = tuple(labels.items())
        buckets = [("_bucket", (*own, ("le", f"{bound:g}")), float(seconds <= bound)) for bound in BOUNDS]
        all_of_them = ("_bucket", (*own, ("le", "+Inf")), 1.0)
        self._add(name, "histogram", [*buckets, all_of_them, ("_sum", own, seconds), ("_count", own, 1.0)])

    def _add(self, name: str, kind: str, amounts: Iterable[tuple[str, Labels, float]]) -> None:
        with self._lock:
            for end, labels, amount in amounts:
                self._series[name, kind][name + end, labels] += amount  # type: ignore[assignment]

    def asked(self, text: str, began: int, error: BaseException | None) -> None:
        """Counts a question, as an observer of the session."""
        outcome = "answered" if error is None else "failed"
        self.took("elastalog_question_seconds", (time.time_ns() - began) / 1e9, outcome=outcome)

    def committed(self, record: EpochRecord, ended: int) -> None:
        """Counts what an epoch did."""
        self.count("elastalog_epochs_total")
        self.count("elastalog_changed_facts_total", record.impact)
        self.took("elastalog_commit_seconds", record.seconds)
        for stratum in record.work.strata:
            labels = {"stratum": str(stratum.stratum), "how": stratum.how}
            self.count("elastalog_stratum_seconds_total", stratum.seconds, **labels)
            self.count("elastalog_stratum_derivations_total", stratum.derivations, **labels)

    def text(self, now: Mapping[str, float | Mapping[str, float]]) -> str:
        """All metrics in the text format of Prometheus; `now` has the present values of gauges, single or by
        relation."""
        lines = list(_gauges(now))
        with self._lock:
            for (name, kind), known in sorted(self._series.items()):
                lines.append(_head(name, kind))
                lines += [f"{series}{_written(labels)} {_number(value)}" for (series, labels), value in known.items()]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str) -> str:
    return f"# HELP {name} {HELP[name]}\n# TYPE {name} {kind}"


def _gauges(now: Mapping[str, float | Mapping[str, float]]) -> Iterator[str]:
    for name, value in {**now, "elastalog_memory_bytes": resident_bytes()}.items():
        yield _head(name, "gauge")
        if isinstance(value, Mapping):
            yield from (f"{name}{_written((('relation', key),))} {_number(one)}" for key, one in value.items())
        else:
            yield f"{name} {_number(value)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}"


def _written(labels: Iterable[tuple[str, str]]) -> str:
    parts = [f'{name}="{_escaped(value)}"' for name, value in labels]
    return f"{{{','.join(parts)}}}" if parts else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
