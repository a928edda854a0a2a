"""The elastic state: the update of a stratum that keeps a level and a count for every fact.

`stratum_update` has the plan of a stratum's variants, which `dense` and `sets` use too. `drive` goes through all strata
that an update reaches, `course` through one of them. The algorithm, phase by phase, is in `machine.course`.
"""
