"""What the driver holds of relations that only tasks hold: `python -m benchmarks.spark_driver [COMPONENTS]`.

A closure is evaluated by tasks and updated ten times, and nobody reads it. Told is how much memory of its own this
process (its Java side is another) had at most, and has grown by, beside the same in a session of the kernel alone.
With `--limit MIB` it may have no more than that, and only tasks are measured: 1,900 components are 100 million facts.
With `--shares N` tasks are so many, two at a time: each then holds an Nth of the facts.
"""

from __future__ import annotations

import time

import click
import psutil

import elastalog
import elastalog.spark
from benchmarks.driver_memory import Peak, limit
from benchmarks.spark_case import case_named

UPDATES = 10


def measured(name: str, **options: object) -> str:
    """A line: facts, MiB that this process has grown by and had at most, seconds of the evaluation and of all
    updates."""
    case = case_named(name, None)
    facts = case.facts()
    before = psutil.Process().memory_info().rss >> 20
    with Peak() as peak:
        began = time.perf_counter()
        with elastalog.open(case.program, facts, **options) as db:  # type: ignore[arg-type]
            evaluated = time.perf_counter() - began
            began = time.perf_counter()
            for i in range(UPDATES):
                db.apply({"edge": [(10_000_000 + i, 10_000_001 + i)]})
            updated = time.perf_counter() - began
            number = len(db["path"])
    grown = max(0, peak.own + peak.mapped - before)
    return f"{number:>12,}{grown:>14,}{peak.own:>12,}{evaluated:>16.2f}{updated:>16.2f}"


@click.command()
@click.argument("components", default=100)
@click.option("--limit", "mebibytes", type=int, help="MiB that the driver may have, its Java process apart.")
@click.option("--java", default="1g", show_default=True, help="Memory of Spark's Java process.")
@click.option("--shares", default=2, show_default=True, help="How many tasks there are, two at a time.")
def main(components: int, mebibytes: int | None, java: str, shares: int) -> None:
    """Prints a table; tasks first, since the most memory of a process only grows."""
    settings = {"spark.elastalog.leastRows": "0", "spark.elastalog.shares": str(shares)}
    spark = elastalog.spark.session(2, memory=java, settings=settings)
    if mebibytes is not None:
        limit(mebibytes)
    print(f"{'':<10}{'facts':>12}{'grown, MiB':>14}{'own, MiB':>12}{'evaluation, s':>16}{'10 updates, s':>16}")
    name = f"closure-random:{components}"
    print(f"{'tasks':<10}{measured(name, engine='spark', spark=spark)}", flush=True)
    spark.stop()
    if mebibytes is None:
        print(f"{'kernel':<10}{measured(name, engine='local')}", flush=True)


if __name__ == "__main__":
    main()
