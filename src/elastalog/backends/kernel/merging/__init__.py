"""Updates of strata in which equivalences form classes: the classes that a change may concern are formed anew.

`merging_update` is the algorithm, `merging_plan` what a stratum needs of it: variants, derivations that follow from
pairs of equals, and the levels at which members come together.
"""
