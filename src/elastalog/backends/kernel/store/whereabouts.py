"""Where relations and indexes are, as compiled code finds them that works on many: records that stay where they are for
as long as the relation or the index lives, whatever becomes of its arrays."""

from __future__ import annotations

from ctypes import Structure

from elastalog.backends.kernel.compile.records import record, record_at


@record
class Place(Structure):
    """Of a relation: `used` rows and `touched_used` entries, and the arrays that they are in. `changed`: the entries
    that strata above hear of in the update under way. `given`: those of explicit facts that it changes in a relation
    with rules; first `going` of them that are deleted, then `coming` that are inserted."""

    rows: int
    width: int
    room: int
    table: int
    table_size: int
    shift: int
    level: int
    count: int
    touched: int
    touched_room: int
    is_annotated: int
    used: int
    touched_used: int
    changed: int
    changed_number: int
    given: int
    going: int
    coming: int


@record
class Whereabouts(Place):
    """The same, kept for as long as the relation lives: how far it goes here and nowhere else, arrays as written down
    by `KernelRelation.lay_out`. `number`: that of the relation in its program."""

    number: int


@record
class IndexWhereabouts(Structure):
    """Of an index; `added` rows are in it, which is kept here and nowhere else."""

    columns: int
    columns_number: int
    kind: int
    keys: int
    keys_size: int
    shift: int
    slots: int
    slots_size: int
    pool: int
    pool_size: int
    state: int
    state_size: int
    added: int


whereabouts_at = record_at(Whereabouts)
index_whereabouts_at = record_at(IndexWhereabouts)
