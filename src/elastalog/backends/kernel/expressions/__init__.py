"""What happens to a block of bindings between joins: constants, copies, functors, comparisons, ranges, folds.

`actions` makes one closure of the actions of a step; `terms`, `ranges`, `functors` and `string_functions` make columns
of values for it, exactly, with the diagnostics of what cannot be computed. Knows `store` for memory only.
"""
