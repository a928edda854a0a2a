"""Any text, file, diff or argument gives a result or diagnostics."""

from __future__ import annotations

import gzip
import io
from random import Random
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import elastalog
from elastalog.diagnostics.catalogue import CATALOGUE
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.files.diff import read_diff
from elastalog.pipeline.files.policy import BadRows
from elastalog.program import Program
from elastalog.relations.schema import schemas_of
from tests.pipeline.reading import read_facts
from tests.storage.scripted import folder_in_memory
from tests.torture.changing import changed_programs, in_a_row

FACTS = Program.parse(".decl edge(x: number, y: symbol)\n.decl f(a: unsigned, b: float)\n.decl n()\n")
SCHEMAS = schemas_of(FACTS.checked)


CALLS = 12
FILES = 10
PROGRAMS = 25
"""How many programs one trial of the language tries."""


def language(seed: int) -> int:
    """Programs that are accepted, changed in a few places, or pieces in a row. Some of those still accepted are
    evaluated."""
    random = Random(seed)
    texts = [*changed_programs(random, PROGRAMS - 2), in_a_row(random), in_a_row(random)]
    for text in texts:
        try:
            Program.parse(text)
            if random.random() < 0.01:
                elastalog.open(text, limits=elastalog.Limits(time=2.0, memory=1 << 30)).close()
        except ElastalogError as error:
            _require_diagnostics(error, is_shown=random.random() < 0.25)
    return len(texts)


def facts(seed: int) -> int:
    """A file of any kind, changed in a few bytes, again and again."""
    random = Random(seed)
    name = random.choice(list(SCHEMAS))
    kind = random.choice((".facts", ".csv", ".jsonl", ".parquet", ".facts.gz", ".jsonl.gz"))
    whole = _file(random, name, kind.removesuffix(".gz"))
    if kind.endswith(".gz"):
        whole = gzip.compress(whole)
    with folder_in_memory() as folder:
        path = folder / f"{name}{kind}"
        for _ in range(FILES):
            path.write_bytes(_changed(random, whole))
            policy = BadRows(random.choice(("fail", "quarantine", "skip")), 3, folder)
            parameters = {"rfc4180": "true"} if kind == ".csv" and random.random() < 0.5 else {}
            try:
                read_facts(SCHEMAS[name], path, parameters, policy)
            except ElastalogError as error:
                _require_diagnostics(error)
    return FILES


def _changed(random: Random, whole: bytes) -> bytes:
    data = bytearray(whole)
    for _ in range(random.randrange(4)):
        if data:
            data[random.randrange(len(data))] = random.choice((0, 9, 10, 34, 44, 255, random.randrange(256)))
    if random.random() < 0.2:
        del data[random.randrange(len(data) + 1) :]
    return bytes(data)


def diffs(seed: int) -> None:
    """A diff, changed in a few characters."""
    random = Random(seed)
    lines = [
        random.choice(
            (
                f'{random.choice("+-")}edge({random.randrange(9)}, "a").',
                f"{random.choice('+-')}f({random.randrange(9)}u, 1.5)",
                "+n().",
                "+rule: edge(x, y) :- edge(x, y), n().",
                "// comment",
                "",
            )
        )
        for _ in range(random.randrange(8))
    ]
    text = list("\n".join(lines))
    for _ in range(random.randrange(5)):
        text.insert(random.randrange(len(text) + 1), random.choice('+-().,"\\\n\0é9 ' + "\u202e"))
    with folder_in_memory() as folder:
        path = folder / random.choice(("1.diff", "edge.csv", "edge.tsv", "1.update"))
        path.write_text("".join(text), encoding="utf-8")
        try:
            read_diff(path, SCHEMAS)
        except ElastalogError as error:
            _require_diagnostics(error)


def arguments(seed: int) -> int:
    """Calls with arguments that they were not made for. The session is what it was, or has the next epoch."""
    random = Random(seed)
    with elastalog.open(".decl edge(x: number, y: symbol)\n.decl p(x: number)\np(x) :- edge(x, _).") as db:
        db.apply({"edge": [(1, "a")]})
        for _ in range(CALLS):
            before = db.epoch, sorted(db["p"])
            call = random.choice(
                (db.query, db.explain, db.why_not, db.engine.fact, db.at, db.apply, db.explicit, db.change_rules)
            )
            try:
                call(_anything(random, 3))
            except ElastalogError as error:
                _require_diagnostics(error)
                assert (db.epoch, sorted(db["p"])) == before
    return CALLS


def _anything(random: Random, depth: int) -> Any:
    simple = (
        None, 0, -1, 2**70, 1.5, float("nan"), "", "edge", "p(1)", "edge(1, X)", "p(", b"p", "\0", True, object(), (),
        [], {}, "p(x) :- p(x).", ("p", (1,)), ("edge", (1, "a")), ("nobody", ()), {"edge": [(1, "b")]},
        {"edge": [(1,)]}, {"edge": 5},
    )  # fmt: skip
    if depth and random.random() < 0.3:
        inner = [_anything(random, depth - 1) for _ in range(random.randrange(3))]
        return random.choice((inner, tuple(inner), {"edge": inner}, {"p": inner, "q": inner}))
    return random.choice(simple)


def _file(random: Random, name: str, kind: str) -> bytes:
    count = random.randrange(5)
    numbers = [random.randrange(9) for _ in range(count)]
    columns: dict[str, list[Any]] = {
        "edge": {"x": numbers, "y": [random.choice("ab") for _ in range(count)]},
        "f": {"a": numbers, "b": [random.random() for _ in range(count)]},
        "n": {"()": [True] * count},
    }[name]
    rows = list(zip(*columns.values(), strict=True)) if name != "n" else [("()",)] * count
    if kind == ".parquet":
        out = io.BytesIO()
        parquet.write_table(pa.table(columns), out)
        return out.getvalue()
    if kind == ".jsonl":
        return b"".join(repr(list(row)).replace("'", '"').encode() + b"\n" for row in rows)
    return b"".join("\t".join(map(str, row)).encode() + b"\n" for row in rows)


def _require_diagnostics(error: ElastalogError, is_shown: bool = True) -> None:
    assert error.diagnostics
    for found in error.diagnostics:
        assert found.code in CATALOGUE, found
        assert found.message
    assert not is_shown or str(error)
