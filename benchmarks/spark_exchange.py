"""Tasks that exchange, against one task that does it all: `python -m benchmarks.spark_exchange`.

By turns, in one local session of Spark, after a first turn that is not counted: seconds of an evaluation, and of an
update that deletes an edge. What counts are ratios within a run.
"""

from __future__ import annotations

import time
from typing import Any

import click

import elastalog
import elastalog.spark
from benchmarks.spark_case import Case, case_named, roads
from elastalog.backends.spark.placement import EXCHANGE_SETTING

WAYS = {"exchanging": "network", "one task": "never"}
TURNING = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(z, x) :- path(x, y), edge(y, z).
"""
"""Many small rounds, where `doubling` has few large ones."""


@click.command()
@click.argument("workloads", nargs=-1)
@click.option("--repeats", default=3, show_default=True)
@click.option("--workplace", default="", help="Where tasks find each other, and write: maybe an address.")
def main(workloads: tuple[str, ...], repeats: int, workplace: str) -> None:
    """Prints a table."""
    settings = {"spark.elastalog.leastRows": "0"} | ({"spark.elastalog.workplace": workplace} if workplace else {})
    spark = elastalog.spark.session(2, settings=settings)
    print(f"{'workload':<20}{'facts':>12}{'rounds':>8}{''.join(f'{way:>16}' for way in WAYS)}")
    for name in workloads or ("doubling:20", "doubling:100", "turning:2", "turning:20"):
        print(_row(spark, name, repeats), flush=True)
    spark.stop()


def _row(spark: Any, name: str, repeats: int) -> str:
    kind, _, size = name.partition(":")
    case = Case(TURNING, lambda: roads(int(size)), False) if kind == "turning" else case_named(name, None)
    facts = case.facts()
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    derived = rounds = 0
    for turn in range(repeats + 1):
        for way in WAYS:
            spark.conf.set(EXCHANGE_SETTING, WAYS[way])
            began = time.perf_counter()
            with elastalog.open(case.program, facts, engine="spark", spark=spark, budget=None) as db:
                derived = len(db["path"])
                evaluated = time.perf_counter() - began
                rounds = max(rounds, *(part.rounds for part in db.statistics().elsewhere))
                edge = next(iter(db["edge"]))
                began = time.perf_counter()
                db.apply({}, {"edge": [edge]})
                if turn:
                    seconds[way].append((evaluated, time.perf_counter() - began))
    least = "".join("{:>9.2f} /{:>5.2f}".format(*map(min, zip(*seconds[way], strict=True))) for way in WAYS)
    return f"{name:<20}{derived:>12,}{rounds:>8}{least}"


if __name__ == "__main__":
    main()
