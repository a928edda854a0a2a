"""Texts that the driver has no memory for: `python -m benchmarks.spark_texts [TEXTS] [--limit MIB]`.

Spark makes facts of two texts each, all of them different, and numbers them; tasks evaluate a rule on them, and follow
an update. This process (its Java side is another) may have LIMIT MiB of its own, which the texts would exceed: their
arrays lie in files. With 20,000,000 texts of 19 letters they are some 900 MB.
"""

from __future__ import annotations

import os
import time

import click

import elastalog
import elastalog.spark
from benchmarks.driver_memory import Peak, limit
from elastalog.pipeline.spark import large_facts
from elastalog.relations import large_interner

PROGRAM = """
.decl pair(x: symbol, y: symbol)
.decl turned(y: symbol, x: symbol)
turned(y, x) :- pair(x, y).
"""
MOST_IN_MEMORY = 4 << 20
"""Bytes beyond which an array of texts lies in a file."""


@click.command()
@click.argument("number", metavar="TEXTS", default=1_000_000)
@click.option("--limit", "mebibytes", default=1000, show_default=True, help="MiB that the driver may have.")
@click.option("--java", default="4g", show_default=True, help="Memory of Spark's Java process.")
def main(number: int, mebibytes: int, java: str) -> None:
    """Prints what it took."""
    os.environ[large_interner.VARIABLE] = str(MOST_IN_MEMORY)
    spark = elastalog.spark.session(
        2, memory=java, settings={"spark.elastalog.leastRows": "0", large_facts.SETTING: "0"}
    )
    half = number // 2
    frame = spark.range(half).selectExpr(
        "concat('left  ', lpad(id * 7919 % 1000000007, 13, '0')) AS x",
        "concat('right ', lpad(id * 7907 % 1000000007, 13, '0')) AS y",
    )
    limit(mebibytes)
    with Peak() as peak:
        began = time.perf_counter()
        with elastalog.open(PROGRAM, {"pair": frame}, engine="spark", spark=spark) as db:
            opened = time.perf_counter() - began
            began = time.perf_counter()
            db.apply({"pair": [("new left", "new right")]}, {"pair": [(f"left  {0:013}", f"right {0:013}")]})
            updated = time.perf_counter() - began
            known, facts = len(db._dictionary.symbols), len(db["turned"])
    print(f"{known:,} texts, {facts:,} facts; {opened:.1f} s to number and evaluate, {updated:.1f} s for an update")
    print(
        f"the driver had at most {peak.own:,} MiB of its own, of {mebibytes:,}, and {peak.mapped:,} MiB of files mapped"
    )
    spark.stop()


if __name__ == "__main__":
    main()
