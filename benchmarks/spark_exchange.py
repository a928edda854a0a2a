"""How tasks exchange: over the network, through files, one stage a round: `python -m benchmarks.spark_exchange`.

By turns, in one local session of Spark, after a first run that is not counted. What counts are ratios within a run.
"""

from __future__ import annotations

import time

import click

import elastalog
import elastalog.spark
from benchmarks.spark_case import case_named
from elastalog.backends.spark.placement import EXCHANGE_SETTING

WAYS = ("files", "network", "stages")


@click.command()
@click.argument("workloads", nargs=-1)
@click.option("--repeats", default=3, show_default=True)
def main(workloads: tuple[str, ...], repeats: int) -> None:
    """Prints a table."""
    spark = elastalog.spark.session(2, settings={"spark.elastalog.leastRows": "0"})
    print(f"{'workload':<20}{'facts':>12}{''.join(f'{way:>12}' for way in WAYS)}")
    for name in workloads or ("doubling:100", "doubling:20"):
        case = case_named(name, None)
        facts = case.facts()
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        derived = 0
        for turn in range(repeats + 1):
            for way in WAYS:
                spark.conf.set(EXCHANGE_SETTING, way)
                began = time.perf_counter()
                with elastalog.open(case.program, facts, engine="spark", spark=spark) as db:
                    derived = len(db["path"])
                    if turn:
                        seconds[way].append(time.perf_counter() - began)
        least = "".join(f"{min(seconds[way]):>12.2f}" for way in WAYS)
        print(f"{name:<20}{derived:>12,}{least}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
