"""The elastic state: the update of a stratum that keeps a level and a count for every fact.

`plan` has a stratum's variants for updates, which `dense` and `sets` use too; `scheduler` goes through all strata that
an update reaches, or through one of them. The algorithm, phase by phase, is in `machine.stratum_update`.
"""
