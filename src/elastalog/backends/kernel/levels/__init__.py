"""The elastic state: the update of a stratum that keeps a level and a count for every fact.

`stratum_update` is the algorithm, phase by phase, with the plan of a stratum's variants, which `dense` and `sets` use
too. The phases run in `machine`.
"""
