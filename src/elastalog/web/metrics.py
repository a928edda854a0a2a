"""What a service counts, as Prometheus reads it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from elastalog.diagnostics.quota import resident_bytes
from elastalog.evaluation.epochs import EpochRecord

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper ends of the classes of durations, in seconds."""

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Durations:
    """How often something took how long."""

    classes: list[int] = field(default_factory=lambda: [0] * len(BOUNDS))
    number: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.number += 1
        self.seconds += seconds
        for place, bound in enumerate(BOUNDS):
            self.classes[place] += seconds <= bound


class Metrics:
    """Counted since the service began. Threads may count at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[Labels]] = {}
        self._durations: dict[str, dict[Labels, Durations]] = {}

    def count(self, name: str, number: float = 1, **labels: str) -> None:
        """Adds to a counter."""
        with self._lock:
            self._counts.setdefault(name, Counter())[tuple(sorted(labels.items()))] += number  # type: ignore[assignment]

    def took(self, name: str, seconds: float, **labels: str) -> None:
        """Notes how long something took."""
        with self._lock:
            known = self._durations.setdefault(name, {})
            known.setdefault(tuple(sorted(labels.items())), Durations()).add(seconds)

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
        """All of it in the text format of Prometheus; `now` has what is so at this moment, single numbers or numbers by
        relation."""
        with self._lock:
            return "\n".join([*_gauges(now), *self._counters(), *self._histograms()]) + "\n"

    def _counters(self) -> Iterator[str]:
        for name, by_labels in sorted(self._counts.items()):
            yield f"# TYPE {name} counter"
            yield from (f"{name}{_written(labels)} {_number(value)}" for labels, value in sorted(by_labels.items()))

    def _histograms(self) -> Iterator[str]:
        for name, by_labels in sorted(self._durations.items()):
            yield f"# TYPE {name} histogram"
            for labels, known in sorted(by_labels.items()):
                for bound, number in zip(BOUNDS, known.classes, strict=True):
                    yield f"{name}_bucket{_written((*labels, ('le', f'{bound:g}')))} {number}"
                yield f"{name}_bucket{_written((*labels, ('le', '+Inf')))} {known.number}"
                yield f"{name}_sum{_written(labels)} {known.seconds:.6f}"
                yield f"{name}_count{_written(labels)} {known.number}"


def _gauges(now: Mapping[str, float | Mapping[str, float]]) -> Iterator[str]:
    for name, value in {**now, "elastalog_memory_bytes": resident_bytes()}.items():
        yield f"# TYPE {name} gauge"
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
