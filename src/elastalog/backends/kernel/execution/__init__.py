"""A planned variant of a clause, bound to relations and run: blocks go from join to join.

`bound_variant` runs batch evaluation, `delta_variant` the variants of updates, which carry levels (`level_views`,
`join_levels`); `backward` finds the derivations of given facts, `aggregates` folds groups, `classes` unites the
members of equivalences. Uses `expressions` and `store`; does not know of rounds, levels of a stratum or strategies.
"""
