"""What seeded runs came to, summed in a file: each run goes on with the seeds after those of the runs before it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.torture.trials import KINDS, Tally


@dataclass(slots=True)
class Line:
    """The sum of all trials of a kind, from the seeds below `next_seed`. A trial that failed stays in `failed`, with
    the end of its message, until it passes; then it is `mended`."""

    next_seed: int = 1
    trials: int = 0
    attacks: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)
    mended: list[int] = field(default_factory=list)

    def add(self, tally: Tally) -> None:
        """Adds trials of the next seeds."""
        self.next_seed += tally.trials
        self.trials += tally.trials
        self.attacks += tally.attacks
        self.seconds = round(self.seconds + tally.seconds, 1)
        self.longest = round(max(self.longest, tally.longest), 2)
        self.failed |= {str(seed): trace.strip().splitlines()[-1][:300] for seed, trace in tally.failed.items()}

    def add_again(self, tally: Tally) -> None:
        """Adds what trials that had failed came to."""
        self.mended += [int(seed) for seed in self.failed if int(seed) not in tally.failed]
        self.attacks += tally.attacks
        self.failed = {str(seed): trace.strip().splitlines()[-1][:300] for seed, trace in tally.failed.items()}


def read(path: Path) -> dict[str, Line]:
    written = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {kind: Line(**written.get(kind, {})) for kind in KINDS}


def write(path: Path, lines: Mapping[str, Line]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps({kind: asdict(line) for kind, line in lines.items()}, indent=1) + "\n")
    os.replace(temporary, path)


def table(lines: Mapping[str, Line]) -> str:
    """The sums as a table in Markdown."""
    rows = [
        "| attack | trials | attacks | failures | mended | seconds | longest |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for kind, line in lines.items():
        rows.append(
            f"| {kind} | {line.trials:,} | {line.attacks:,} {KINDS[kind].unit} | {len(line.failed)}"
            f" | {len(line.mended)} | {line.seconds:,.0f} | {line.longest:.1f} s |"
        )
    return "\n".join(rows)
