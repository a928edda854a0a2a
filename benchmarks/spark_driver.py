"""What the driver holds of relations that only tasks hold: `python -m benchmarks.spark_driver [COMPONENTS]`.

A closure is evaluated by tasks and updated ten times, and nobody reads it. Told is by how much the memory of this
process (its Java side is another) has grown, beside the same in a session of the kernel alone.
"""

from __future__ import annotations

import resource
import time

import click
import psutil

import elastalog
import elastalog.spark
from benchmarks.spark_case import case_named

UPDATES = 10


def grown(name: str, **options: object) -> tuple[int, float, float, float]:
    """Facts, MiB that this process has grown by at most, seconds of the evaluation and of all updates."""
    case = case_named(name, None)
    facts = case.facts()
    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    with elastalog.open(case.program, facts, **options) as db:  # type: ignore[arg-type]
        evaluated = time.perf_counter() - began
        began = time.perf_counter()
        for i in range(UPDATES):
            db.apply({"edge": [(10_000_000 + i, 10_000_001 + i)]})
        updated = time.perf_counter() - began
        number = len(db["path"])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return number, (most - before) / (1 << 20), evaluated, updated


@click.command()
@click.argument("components", default=100)
def main(components: int) -> None:
    """Prints a table; tasks first, since the most memory of a process only grows."""
    spark = elastalog.spark.session(2, settings={"spark.elastalog.leastRows": "0"})
    name = f"closure-random:{components}"
    print(f"{'':<10}{'facts':>12}{'driver, MiB':>14}{'evaluation, s':>16}{'10 updates, s':>16}")
    for way, options in (("tasks", {"engine": "spark", "spark": spark}), ("kernel", {"engine": "local"})):
        number, memory, evaluated, updated = grown(name, **options)
        print(f"{way:<10}{number:>12,}{memory:>14,.0f}{evaluated:>16.2f}{updated:>16.2f}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
