"""A short tour on local Spark: facts through Spark, rules in tasks, a stream of updates, a proof, a suggestion,
Parquet.

What is missing on this machine (Java, pyspark) is said, and the tour goes on without it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import elastalog

PROGRAM = """
.decl calls(caller: symbol, callee: symbol)      // a service calls another
.decl public(service: symbol)                    // anybody may call it
.decl secret(service: symbol)                    // holds data that must not get out
.input calls
.input public
.input secret

.decl reaches(caller: symbol, callee: symbol)
reaches(x, y) :- calls(x, y).
reaches(x, z) :- reaches(x, y), calls(y, z).

.decl exposed(service: symbol, secret: symbol)
exposed(x, y) :- public(x), reaches(x, y), secret(y).
.output exposed

.decl twin(x: symbol, y: symbol)                 // called alike, all the way up to a public service
twin(x, y) :- public(p), calls(p, x), calls(p, y).
twin(x, y) :- twin(u, v), calls(u, x), calls(v, y).
"""
LEAK = ("exposed", ("front-000", "vault"))
TEAMS, SERVICES, LAYERS = 60, 80, 8

started = time.perf_counter()


def say(text: str) -> None:
    print(f"\n{time.perf_counter() - started:6.1f} s  ── {text}", flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    print(f"          {text} ", end="", flush=True)
    began = time.perf_counter()
    yield
    print(f"({time.perf_counter() - began:.1f} s)", flush=True)


def made_up_facts() -> dict[str, pa.Table]:
    """Teams of services in layers, each calling a few of the next layer."""
    random = np.random.default_rng(1)
    calls: set[tuple[str, str]] = set()
    for team in range(TEAMS):
        for layer in range(LAYERS):
            for place in range(SERVICES // LAYERS):
                for callee in random.integers(0, SERVICES // LAYERS, 3):
                    below = (f"t{team:02}-{layer}-{place}", f"t{team:02}-{layer + 1}-{callee}")
                    calls.add(below)
        calls |= {(f"front-{team:03}", f"t{team:02}-0-{place}") for place in range(3)}
    calls.add(("keeper", "vault"))
    return {
        "calls": pa.table(list(zip(*sorted(calls), strict=True)), names=["caller", "callee"]),
        "public": pa.table({"service": [f"front-{team:03}" for team in range(TEAMS)]}),
        "secret": pa.table({"service": ["vault"]}),
    }


def updates() -> list[list[tuple[str, str, str]]]:
    """Five harmless updates, and a sixth with a mistake among its changes."""
    harmless = [
        [
            ("+", f"t{team:02}-0-0", f"new-{number}"),
            ("-", f"front-{team:03}", f"t{team:02}-0-1"),
            ("+", f"new-{number}", "log"),
        ]
        for number, team in enumerate((3, 14, 15, 9, 26), 1)
    ]
    faulty = [("+", f"t00-{LAYERS}-{i}", "log") for i in range(10)]
    faulty += [("+", f"t00-{LAYERS}-4", "keeper"), ("+", "keeper", "log")]
    return [*harmless, faulty]


@contextmanager
def prepared_kernel() -> Iterator[None]:
    """On a machine where the kernel is not compiled yet, this process does it, in the meantime. Otherwise every worker
    of Spark would, and all of them for themselves."""

    def evaluate_a_little() -> None:
        calls = [(f"s{layer}-{i}", f"s{layer + 1}-{j}") for layer in (0, 1) for i in range(30) for j in range(30)]
        elastalog.open(PROGRAM, facts={"calls": calls, "public": [("s0-0",)], "secret": [("s2-0",)]}).close()

    preparing = Thread(target=evaluate_a_little)
    preparing.start()
    try:
        yield
    finally:
        preparing.join()


def start_spark() -> Any | None:
    from elastalog.diagnostics.diagnostic import ElastalogError

    try:
        with step("starting local Spark"), prepared_kernel():
            import elastalog.spark

            # The demonstration is small: without this the driver would evaluate every stratum itself.
            return elastalog.spark.session(os.cpu_count(), memory="1g", settings={"spark.elastalog.leastRows": "1000"})
    except ElastalogError as error:
        print(f"\n{error}\n          going on without Spark")
        return None


def open_on_spark(spark: Any, facts: Path, store: Path) -> elastalog.Session:
    import elastalog.spark

    sources = {name: elastalog.spark.parquet(str(facts / f"{name}.parquet")) for name in ("calls", "public", "secret")}
    with step("reading Parquet through Spark, evaluating, storing"):
        db = elastalog.open(PROGRAM, facts=sources, engine="spark", spark=spark, store=store)
    from elastalog.backends.spark.backend import SparkBackend

    assert isinstance(db._backend, SparkBackend)
    strata = {stratum.number: stratum for stratum in db._backend.program.strata}
    for number, placement in db._backend.placements.items():
        print(f"          {', '.join(strata[number].relations)}: {placement.where}: {placement.why}")
    return db


def stream_on_spark(spark: Any, db: elastalog.Session, folder: Path) -> None:
    import elastalog.spark

    (folder / "updates").mkdir()
    for number, rows in enumerate(updates(), 1):
        table = pa.table(list(zip(*rows, strict=True)), names=["op", "caller", "callee"])
        file = folder / "updates" / f"{number}.parquet"
        parquet.write_table(table, file)
        os.utime(file, (number, number))  # Spark takes the oldest first
    stream = (
        spark.readStream.schema("op string, caller string, callee string")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "updates"))
    )
    with step("six updates by Structured Streaming, each an epoch"):
        elastalog.spark.apply_updates(
            stream, db, relation="calls", checkpoint=folder / "checkpoint", changes=folder / "feed", available_now=True
        ).wait()
    feed = elastalog.spark.change_feed(spark, folder / "feed", "reaches")
    for row in feed.groupBy("epoch", "op").count().orderBy("epoch", "op").collect():
        print(f"          epoch {row['epoch']}: {row['op']}{row['count']:,} reaches")


def without_spark(facts: dict[str, pa.Table], store: Path) -> elastalog.Session:
    with step("evaluating in this process, storing"):
        db = elastalog.open(PROGRAM, facts=facts, store=store)
    with step("six updates, each an epoch"):
        for number, rows in enumerate(updates(), 1):
            sides = {sign: [row[1:] for row in rows if row[0] == sign] for sign in "+-"}
            db.apply({"calls": sides["+"]}, {"calls": sides["-"]}, source="demo", batch=number)
    return db


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="elastalog-demo-") as name:
        folder = Path(name)
        say("Facts: services that call each other.")
        facts = made_up_facts()
        (folder / "facts").mkdir()
        for relation, table in facts.items():
            parquet.write_table(table, folder / "facts" / f"{relation}.parquet")
        print(f"          {facts['calls'].num_rows:,} calls, {facts['public'].num_rows} public services, one vault")

        say("Who reaches what? Whole fixpoints in tasks where the stratum falls apart, an exchange where it does not.")
        spark = start_spark()
        db = (
            without_spark(facts, folder / "store")
            if spark is None
            else open_on_spark(spark, folder / "facts", folder / "store")
        )
        print(f"          {len(db['reaches']):,} reaches, {len(db['twin']):,} twins, {len(db['exposed'])} exposed")

        if spark is not None:
            say("The world changes: a stream of updates, exactly once.")
            stream_on_spark(spark, db, folder)
        print(f"          epoch {db.epoch}: {len(db['reaches']):,} reaches, {len(db['exposed'])} exposed")

        say("A secret is exposed since the last update. Why?")
        print(db.explain(LEAK))

        say("What is the smallest part of that update to undo?")
        suggestion = db.suggest(unwanted=[LEAK])
        print(suggestion)
        with step("undoing it"):
            suggestion.apply()
        print(f"          epoch {db.epoch}: {len(db['exposed'])} exposed")

        say("Out again, as Parquet.")
        if spark is None:
            parquet.write_table(db["reaches"].to_arrow(), folder / "reaches.parquet")
            print(f"          {parquet.read_metadata(folder / 'reaches.parquet').num_rows:,} rows written")
        else:
            import elastalog.spark

            with step("writing reaches through Spark"):
                elastalog.spark.write(db, "reaches", "parquet", str(folder / "reaches.parquet"))
            back = spark.read.parquet(str(folder / "reaches.parquet"))
            print(f"          {back.count():,} rows written, {back.select('caller').distinct().count():,} callers")
        db.close()
        say("Done.")


if __name__ == "__main__":
    main()
