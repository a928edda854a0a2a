"""Inputs that are made to take more memory or time than anybody has, each with its program and its facts."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAIRS = ".decl e(x: number, y: number)\n"
READ = f"{PAIRS}.input e\n"
TEXTS = ".decl t(x: symbol)\n.input t\n"


@dataclass(frozen=True, slots=True)
class Hostile:
    """`facts`: rows by relation, or nothing if `write` has written files. `update`: rows that are inserted later."""

    program: str
    facts: dict[str, Any] | None = None
    write: Callable[[Path], None] | None = None
    update: dict[str, Any] = field(default_factory=dict)


def packed(name: str, line: bytes, times: int) -> Callable[[Path], None]:
    """A gzip file of one line, again and again."""

    def write(folder: Path) -> None:
        block = line * (1 + (1 << 20) // len(line))
        with gzip.open(folder / name, "wb", compresslevel=1) as out:
            for _ in range(times * len(line) // len(block) + 1):
                out.write(block)

    return write


def text_file(name: str, make: Callable[[], str | bytes]) -> Callable[[Path], None]:
    """A file of what is made when it is needed."""

    def write(folder: Path) -> None:
        made = make()
        (folder / name).write_bytes(made if isinstance(made, bytes) else made.encode())

    return write


def parquet(columns: Callable[[], dict[str, Any]], **options: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet as pq

        made = columns()
        name = "t" if "x" in made and len(made) == 1 else "e"
        pq.write_table(pa.table(made), folder / f"{name}.parquet", **options)

    return write


def _zeros(rows: int) -> dict[str, Any]:
    import numpy as np

    return {"x": np.zeros(rows, np.int64), "y": np.zeros(rows, np.int64)}


def _long_texts(rows: int, length: int) -> dict[str, Any]:
    import pyarrow as pa

    return {"x": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * length]).cast(pa.string())}


def sqlite(folder: Path) -> None:
    with sqlite3.connect(folder / "e.db") as base:
        base.execute("CREATE TABLE e AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3000000)"
                     " SELECT x, x * 7 AS y FROM n")  # fmt: skip


def chain(length: int) -> dict[str, Any]:
    return {"e": [(x, x + 1) for x in range(length)]}


def dense(nodes: int, degree: int) -> dict[str, Any]:
    return {"e": [(x, (x * 31 + k * 17) % nodes) for x in range(nodes) for k in range(degree)]}


CLOSURE = f"{PAIRS}.decl p(x: number, y: number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
MANY = {"e": [(x, x) for x in range(20_000)]}
GROWING = ".decl n(x: number)\nn(x + 1) :- n(x), x >= 0.\n"
MACROS = "#define A0 x, x\n" + "".join(f"#define A{n + 1} A{n}, A{n}\n" for n in range(30))
INLINED = (
    ".decl i0(x: number) inline\ni0(x) :- e(x, _).\ni0(x) :- e(_, x).\n"
    + "".join(f".decl i{n + 1}(x: number) inline\ni{n + 1}(x) :- i{n}(x), i{n}(x).\n" for n in range(12))
)  # fmt: skip

HOSTILE: dict[str, Hostile] = {
    # --- files
    "gzip of pairs": Hostile(READ, write=packed("e.facts.gz", b"1\t2\n", 60_000_000)),
    "gzip of one line": Hostile(TEXTS, write=packed("t.facts.gz", b"x", 300_000_000)),
    "gzip of JSON lines": Hostile(READ, write=packed("e.jsonl.gz", b"[1, 2]\n", 30_000_000)),
    "gzip of empty lines": Hostile(READ, write=packed("e.facts.gz", b"\n", 200_000_000)),
    "gzip in gzip": Hostile(
        READ, write=text_file("e.facts.gz", lambda: gzip.compress(gzip.compress(bytes(50_000_000))))
    ),
    "Parquet of equal pairs": Hostile(READ, write=parquet(lambda: _zeros(30_000_000), compression="zstd")),
    "Parquet of long texts": Hostile(TEXTS, write=parquet(lambda: _long_texts(500, 1_000_000), compression="zstd")),
    "Parquet of one text": Hostile(TEXTS, write=parquet(lambda: _long_texts(1, 300_000_000), compression="zstd")),
    "a line of a million columns": Hostile(READ, write=text_file("e.facts", lambda: "1\t" * 1_000_000 + "1\n")),
    "a quote that does not end": Hostile(
        f'{PAIRS}.input e(rfc4180="true", delimiter=",", filename="e.csv")\n',
        write=text_file("e.csv", lambda: '"' + "a,\n" * 15_000_000),
    ),
    "JSON lines nested deeply": Hostile(READ, write=text_file("e.jsonl", lambda: "[" * 200_000 + "]" * 200_000 + "\n")),
    "JSON lines with a huge number": Hostile(READ, write=text_file("e.jsonl", lambda: f"[1, {'9' * 2_000_000}]\n")),
    "a large JSON array": Hostile(
        f'{PAIRS}.input e(IO="json", filename="e.json")\n',
        write=text_file("e.json", lambda: json.dumps([[1, 2]] * 3_000_000)),
    ),
    "a large SQLite table": Hostile(f'{PAIRS}.input e(IO=sqlite, dbname="e.db")\n', write=sqlite),
    "long texts": Hostile(
        TEXTS, write=text_file("t.facts", lambda: "".join(f"{n}{'x' * 1_000_000}\n" for n in range(300)))
    ),
    "many texts": Hostile(TEXTS, write=text_file("t.facts", lambda: "".join(f"text {n}\n" for n in range(4_000_000)))),
    "a number of a million digits": Hostile(READ, write=text_file("e.facts", lambda: f"1\t{'9' * 1_000_000}\n")),
    "bytes that are no text": Hostile(TEXTS, write=text_file("t.facts", lambda: bytes(range(1, 256)) * 200_000)),
    # --- growth
    "counting without end": Hostile(GROWING, {"n": [(0,)]}),
    "counting without end, after an update": Hostile(GROWING, {"n": [(-5,)]}, update={"n": [(0,)]}),
    "texts that grow": Hostile('.decl t(x: symbol)\nt(cat(x, "a")) :- t(x).\n', {"t": [("",)]}),
    "texts that double": Hostile(".decl t(x: symbol)\nt(cat(x, x)) :- t(x).\n", {"t": [("ab",)]}),
    "numbers as texts": Hostile(".decl t(x: symbol)\nt(to_string(to_number(x) + 1)) :- t(x).\n", {"t": [("1",)]}),
    "records that grow": Hostile(".type R = [a: number, b: R]\n.decl r(x: R)\nr([1, x]) :- r(x).\n", {"r": [(None,)]}),
    "branches that grow": Hostile(
        ".type B = L {} | N {a: B, b: B}\n.decl b(x: B)\nb($L()).\nb($N(x, y)) :- b(x), b(y).\n"
    ),
    "numbers of derivations": Hostile(".decl n(x: number)\nn(autoinc()) :- e(_, _), e(_, _).\n" + PAIRS, MANY),
    "numbers that wander": Hostile(
        ".decl n(x: number)\nn(y) :- n(x), (y = 3 * x + 1 ; y = x / 2 ; y = x + 7), y < 9000000000000.\n",
        {"n": [(27,)]},
    ),
    "a limit that is far away": Hostile(GROWING + ".limitsize n(n=9000000000)\n", {"n": [(0,)]}),
    "a range without end": Hostile(PAIRS + "e(x, 1) :- x = range(0, 1000000000000).\n"),
    "ranges within ranges": Hostile(PAIRS + "e(x, z) :- x = range(0, 100000), y = range(0, 100000), z = x + y.\n"),
    # --- joins
    "a product of four": Hostile(
        f"{PAIRS}.decl p(a: number, b: number, c: number, d: number)\n"
        "p(a, b, c, d) :- e(a, _), e(b, _), e(c, _), e(d, _).\n",
        MANY,
    ),
    "a product that fails": Hostile(
        PAIRS + ".decl p(a: number)\np(a) :- e(a, _), e(b, _), e(c, _), a + b + c < 0.\n", MANY
    ),
    "a product that is denied": Hostile(
        PAIRS + ".decl q(x: number, y: number)\n.decl p(a: number)\np(a) :- e(a, _), e(b, _), e(c, _), !q(b, c).\n",
        MANY,
    ),
    "a long chain": Hostile(CLOSURE, chain(30_000)),
    "a dense graph": Hostile(CLOSURE, dense(6_000, 20)),
    "a dense graph, after an update": Hostile(CLOSURE, {"e": [(1, 2)]}, update=dense(6_000, 20)),
    "one class of everything": Hostile(
        PAIRS
        + ".decl s(x: number, y: number) eqrel\ns(x, y) :- e(x, y).\n"
        + ".decl p(x: number, y: number)\np(x, y) :- s(x, y).\n",
        chain(30_000),
    ),
    "a choice among a product": Hostile(
        PAIRS + ".decl c(x: number, y: number) choice-domain x\nc(x, y) :- e(x, _), e(y, _).\n", MANY
    ),
    "a subsumption that does not end": Hostile(
        PAIRS
        + ".decl d(x: number, l: number)\nd(0, 0).\nd(y, l + 1) :- d(x, l), e(x, y).\nd(x, a) <= d(x, b) :- b > a.\n",
        {"e": [(0, 1), (1, 0)]},
    ),
    # --- aggregates and functions
    "a count of a product": Hostile(
        PAIRS + ".decl p(n: number)\np(n) :- n = count : { e(_, _), e(_, _), e(_, _) }.\n", MANY
    ),
    "a least of a product": Hostile(
        PAIRS + ".decl p(n: number)\np(n) :- n = min x + y + z : { e(x, _), e(y, _), e(z, _) }.\n", MANY
    ),
    "two hundred aggregates": Hostile(
        PAIRS
        + ".decl p(n: number)\np(x) :- e(x, _), "
        + ", ".join(f"n{n} = count : {{ e(x, _) }}" for n in range(200))
        + ".\n",
        {"e": [(1, 2), (2, 3)]},
    ),
    "aggregates nested deeply": Hostile(
        PAIRS + ".decl p(n: number)\np(n) :- n = " + "count : { e(_, x), x < " * 40 + "1" + " }" * 40 + ".\n",
        {"e": [(1, 2)]},
    ),
    "an expression that backtracks": Hostile(
        TEXTS.replace(".input t\n", "") + '.decl p(x: symbol)\np(x) :- t(x), match("((a+)+)+b", x).\n',
        {"t": [("a" * 200_000,)]},
    ),
    "expressions in facts": Hostile(
        ".decl t(x: symbol)\n.decl p(x: symbol)\np(x) :- t(x), t(y), match(x, y).\n",
        {"t": [("(a|b|c)*" * 300 + str(n),) for n in range(300)] + [("a" * 50_000,)]},
    ),
    # --- programs
    "a literal of 20 MB": Hostile('.decl t(x: symbol)\nt("' + "x" * 20_000_000 + '").\n'),
    "deep nesting": Hostile(PAIRS + "e(1, " + "(" * 50_000 + "1" + ")" * 50_000 + ").\n"),
    "a rule of ten thousand atoms": Hostile(PAIRS + "e(x, x) :- " + ", ".join(["e(x, x)"] * 10_000) + ".\n"),
    "a hundred thousand rules": Hostile(
        PAIRS + "".join(f"e({n}, {n + 1}) :- e({n + 1}, {n}).\n" for n in range(100_000))
    ),
    "ten thousand relations": Hostile("".join(f".decl r{n}(x: number)\n" for n in range(10_000)) + "r1(x) :- r2(x).\n"),
    "a product of alternatives": Hostile(PAIRS + "e(x, x) :- " + ", ".join(["(e(x, _) ; e(_, x))"] * 40) + ".\n"),
    "macros that double": Hostile(MACROS + PAIRS + ".decl p(x: number)\np(1) :- e(A30).\n"),
    "inlining that doubles": Hostile(PAIRS + INLINED + ".decl p(x: number)\np(x) :- i12(x).\n", {"e": [(1, 2)]}),
    "a component within itself": Hostile(".comp C { .init c = C }\n.init c = C\n"),
    "names that are nearly alike": Hostile(
        "".join(f".decl relation{n}(x: number)\n" for n in range(2_000))
        + "".join(f"relatiom{n}(1).\n" for n in range(2_000))
    ),
}
