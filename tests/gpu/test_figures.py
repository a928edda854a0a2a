"""The figures of the GPU were taken with the code that is here: where there is none, nobody can take them again."""

from __future__ import annotations

import json

from benchmarks import gpu


def test_what_was_measured_is_what_is_here() -> None:
    kept = json.loads(gpu.RESULTS.read_text(encoding="utf-8"))
    assert kept["digest"] == gpu.digest(), (
        "backends/gpu is not what benchmarks/results/gpu.json was measured with: run `python -m benchmarks.gpu` on a "
        "machine with a GPU, and copy its figures to benchmarks/RESULTS.md"
    )
    assert set(kept) >= {case.name for case in gpu.CASES} | {"machine", "day"}
