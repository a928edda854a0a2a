"""What variants of clauses are made of: joins on blocks of bindings, and views of what an update has changed.

`bound_variant` is a planned variant with what running it needs, which is done by `machine`; `join` is the join of batch
evaluation, `join_levels` that of updates, whose bindings carry levels (`level_views`); `aggregates` folds groups,
`classes` unites the members of equivalences. Uses `expressions` and `store`; does not know of rounds, levels of a
stratum or strategies.
"""
