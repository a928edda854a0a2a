"""The workloads: a program, its facts, and how many facts each relation should hold in the end."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from benchmarks import expected, generate

if TYPE_CHECKING:
    import pyarrow as pa

Facts: TypeAlias = "dict[str, pa.Table]"

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
DATA_VARIABLE = "ELASTALOG_DATA"

_INPUT = re.compile(r'^\.input\s+(\w+)(?:\(filename="([^"]+)"\))?', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Workload:
    """`folder` names the part of the data folder that `load` reads; None: the facts are generated. `rules` names the
    same program among the prototype's, `sql` among the queries for DuckDB, where they can express it."""

    name: str
    program: Path
    load: Callable[[Path], Facts]
    expected: Mapping[str, int] = field(default_factory=dict)
    folder: str | None = None
    rules: str | None = None
    sql: str | None = None

    def is_available(self, data: Path | None) -> bool:
        return self.folder is None or (data is not None and (data / self.folder).is_dir())

    def facts(self, data: Path | None) -> Facts:
        """The facts of every input relation, as Arrow tables, read or generated now."""
        if self.folder is None:
            return self.load(Path())
        if data is None:
            raise ValueError(f"workload {self.name} needs the data folder: --data DIR or {DATA_VARIABLE}")
        return self.load(data / self.folder)


def data_folder(option: str | None) -> Path | None:
    """The folder given by `--data`, or else by the environment, or none."""
    chosen = option or os.environ.get(DATA_VARIABLE)
    return Path(chosen).expanduser() if chosen else None


def as_tables(arrays: generate.Arrays) -> Facts:
    import pyarrow as pa

    return {
        name: pa.table({f"c{index}": column for index, column in enumerate(rows.T)}) for name, rows in arrays.items()
    }


def as_arrays(facts: Facts) -> generate.Arrays:
    """Integer tables as the row-major arrays that the prototype takes."""
    import numpy as np

    return {
        name: np.ascontiguousarray(np.column_stack([column.to_numpy() for column in table.columns]), dtype=np.int32)
        for name, table in facts.items()
    }


def _generated(make: Callable[[], generate.Arrays]) -> Callable[[Path], Facts]:
    return lambda _: as_tables(make())


def _files_of(program: Path) -> Callable[[Path], Facts]:
    """A loader of the Parquet files that the `.input` lines of a program name."""

    def load(folder: Path) -> Facts:
        import pyarrow.parquet as pq

        inputs = _INPUT.findall(program.read_text(encoding="utf-8"))
        return {relation: pq.read_table(folder / (file or f"{relation}.parquet")) for relation, file in inputs}

    return load


def _graph(file: str) -> Callable[[Path], Facts]:
    def load(folder: Path) -> Facts:
        import pyarrow.parquet as pq

        return {"edge": pq.read_table(folder / file)}

    return load


def _data_set(name: str, counts: Mapping[str, int], rules: str | None = None, sql: str | None = None) -> Workload:
    program = EXAMPLES / f"{name}.dl"
    return Workload(name, program, _files_of(program), counts, folder=name, rules=rules, sql=sql)


def _closure(
    name: str, load: Callable[[Path], Facts], counts: Mapping[str, int], folder: str | None = None
) -> Workload:
    program = EXAMPLES / "transitive_closure.dl"
    return Workload(name, program, load, counts, folder=folder, rules="TC", sql="closure")


def closure_of(file: Path) -> Workload:
    """The closure of the graph in a Parquet file of two columns; how large it is nobody has said."""
    return _closure(file.stem, lambda _: _graph(file.name)(file.parent), {})


WORKLOADS: tuple[Workload, ...] = (
    _closure("closure-sparse", _generated(generate.sparse_graph), expected.CLOSURE_SPARSE),
    _closure("closure-grid", _generated(generate.grid), expected.CLOSURE_GRID),
    _closure("closure-chain", _generated(generate.chain), expected.CLOSURE_CHAIN),
    _closure("closure-dense", _generated(generate.dense_graph), expected.CLOSURE_DENSE),
    _closure("closure-1M", _generated(lambda: generate.components(20)), expected.CLOSURE_20_COMPONENTS),
    _closure("closure-5M", _generated(lambda: generate.components(100)), expected.CLOSURE_100_COMPONENTS),
    _closure("closure-25M", _generated(lambda: generate.components(500)), expected.CLOSURE_500_COMPONENTS),
    Workload("el-completion", EXAMPLES / "galen.dl", _generated(generate.ontology), expected.ONTOLOGY, rules="GALEN"),
    Workload(
        "el-completion-large",
        EXAMPLES / "galen.dl",
        _generated(generate.large_ontology),
        expected.LARGE_ONTOLOGY,
        rules="GALEN",
    ),
    Workload(
        "sspe",
        EXAMPLES / "sspe.dl",
        _generated(lambda: generate.weighted_acyclic_graph(nodes=10_000, edges=100_000)),
        expected.PATH_LENGTHS,
        sql="sspe",
    ),
    Workload(
        "points-to",
        HERE / "programs" / "points_to.dl",
        _generated(generate.points_to),
        expected.POINTS_TO,
        rules="ANDERSEN",
    ),
    _closure("closure-OL", _graph("OL.cedge_7035.parquet"), expected.CLOSURE_OL, folder="graphs"),
    _closure("closure-TG", _graph("TG.cedge_23874.parquet"), expected.CLOSURE_TG, folder="graphs"),
    Workload(
        "same-generation-OL",
        EXAMPLES / "same_generation.dl",
        _graph("OL.cedge_7035.parquet"),
        expected.SAME_GENERATION_OL,
        folder="graphs",
        sql="same_generation",
    ),
    _data_set("lubm", expected.LUBM),
    _data_set("crdt", expected.CRDT, sql="crdt"),
    _data_set("doop", expected.DOOP),
    _data_set("galen", expected.GALEN, rules="GALEN"),
)

BY_NAME: Mapping[str, Workload] = {workload.name: workload for workload in WORKLOADS}
