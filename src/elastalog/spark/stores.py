"""Stores, read and written by Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elastalog.folders.addresses import is_address
from elastalog.pipeline.spark.stored_relations import stored_relation
from elastalog.pipeline.spark.workplace import new_folder

if TYPE_CHECKING:
    from elastalog.program import Program


def read_relation(
    spark: Any,
    store: str | os.PathLike[str],
    relation: str,
    *,
    epoch: int | None = None,
    annotations: bool = False,
) -> Any:
    """A relation of a store at an epoch, the last one by default, as a DataFrame; with `annotations`, columns `@level`
    and `@count` follow. Spark reads the store's own files: the driver looks at the journal only, and evaluates
    nothing; a relation with records it reads itself. The epoch stays what it is, whatever a writer of the store does
    meanwhile."""
    import elastalog
    from elastalog.analysis.program import Base
    from elastalog.evaluation.stored import stored_program, unmoved
    from elastalog.relations.schema import schema_named, schemas_of
    from elastalog.storage.fetching import fetch_store
    from elastalog.storage.parts import set_aside
    from elastalog.storage.store import Store

    root = fetch_store(store).folder if isinstance(store, str) and is_address(store) else Path(store)
    with unmoved(root):
        opened = Store.open(root, read_only=True, until=epoch)
        state = opened.state(epoch)
        program, _ = stored_program(opened, state, None, None, None)
        schema = schema_named(schemas_of(program.checked), relation)
        if any(column.base is Base.RECORD for column in schema.columns):
            with elastalog.open(store=elastalog.Store(root, at=state.epoch)) as db:
                return db[relation].to_spark(annotations, spark)
        parts = set_aside(state, relation, new_folder(spark, "stored"))
    return stored_relation(spark, schema, parts, annotations)


def init_store(
    spark: Any,
    store: str | os.PathLike[str],
    program: str | os.PathLike[str] | Program,
    facts: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Makes a new store of what follows from facts, evaluated on Spark. What tasks have derived they write into the
    store themselves, levels and counts included: the driver never holds it. `options` are those of `elastalog.open`."""
    import elastalog
    from elastalog.storage.objects.writing import refuse_existing_at

    refuse_existing_at(store)
    elastalog.open(program, facts, store=store, engine="spark", spark=spark, **options).close()
