"""Results of benchmarks as JSON files, added to from run to run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def keep_results(file: Path, results: dict[str, Any]) -> dict[str, Any]:
    """Writes results, and returns all there are: those of experiments that were not run this time stay."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    everything: dict[str, Any] = {**known, **results}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    return everything
