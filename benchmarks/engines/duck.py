"""The same programs in DuckDB, as recursive common table expressions, where those can express them.

They can not express mutual recursion (Doop, Galen, EL completion) or rules with several recursive atoms (points-to).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.engines.protocol import Evaluate, NotExpressibleError, Options
from benchmarks.workloads import Facts, Workload

CLOSURE = """
with recursive path(x, y) as (
    select * from edge
    union
    select e.x, p.y from edge e join path p on e.y = p.x
)
select count(*) from path
"""

SAME_GENERATION = """
with recursive same_generation(a, b) as (
    select distinct l.y, r.y from edge l join edge r on l.x = r.x where l.y <> r.y
    union
    select l.y, r.y from same_generation g join edge l on l.x = g.a join edge r on r.x = g.b
)
select count(*) from same_generation
"""

PATH_LENGTHS = """
with recursive d(node, length) as (
    select b.c1, b.c2 from b join source s on b.c0 = s.c0
    union
    select b.c1, d.length + b.c2 from d join b on b.c0 = d.node
)
select count(*) from d
"""

# The list order is found as in examples/crdt.dl; only the two recursive steps need recursion.
CRDT = """
with recursive
    inserted as (select 4 * ctr + node as id, 4 * parent_ctr + parent_node as parent from insert_input),
    removed as (select 4 * ctr + node as id from remove_input),
    value as (select id as element from inserted anti join removed using (id)),
    sibling as (
        select id as a, lead(id) over (partition by parent order by id desc) as b, parent,
            row_number() over (partition by parent order by id desc) as place
        from inserted
    ),
    next_sibling_anc(start, next) as (
        select a, b from sibling where b is not null
        union
        select s.a, n.next from next_sibling_anc n join sibling s on s.parent = n.start where s.b is null
    ),
    next_elem(a, b) as (
        select parent, a from sibling where place = 1
        union
        select start, next from next_sibling_anc where start not in (select parent from inserted)
    ),
    skip(a, b) as (
        select a, b from next_elem where a in (select element from value)
        union
        select s.a, n.b from skip s join next_elem n on n.a = s.b where s.b not in (select element from value)
    )
select count(*) from skip where b in (select element from value)
"""

# The query, and the relation that its count belongs to.
QUERIES: Mapping[str, tuple[str, str]] = {
    "closure": (CLOSURE, "path"),
    "same_generation": (SAME_GENERATION, "same_generation"),
    "sspe": (PATH_LENGTHS, "D"),
    "crdt": (CRDT, "nextVisible"),
}


def prepare(workload: Workload, facts: Facts, relations: Sequence[str], options: Options) -> Evaluate:
    import duckdb

    if workload.sql is None:
        raise NotExpressibleError(workload.name)
    query, relation = QUERIES[workload.sql]
    connection = duckdb.connect()
    connection.execute(f"set threads = {options.jobs}")
    for name, table in facts.items():
        given = table.rename_columns(["x", "y"]) if name == "edge" else table
        connection.register("given", given)
        connection.execute(f"create table {name} as select * from given")

    def evaluate() -> Mapping[str, int]:
        row = connection.execute(query).fetchone()
        assert row is not None
        return {relation: int(row[0])} if relation in relations else {}

    return evaluate
