"""The elastic state: the update of a stratum that keeps a level and a count for every fact.

`stratum_update` is the algorithm, phase by phase, with the plan of a stratum's variants, which `dense` and `sets` use
too. `drive` goes through all strata that hear of changes below them and of nothing else, `course` through one of them.
The phases run in `machine`.
"""
