"""A stratum from its explicit facts to its fixpoint: semi-naive rounds, global levels, rounds in the machine.

`fixpoint` has the rounds, `global_levels` those whose levels are heights of proofs across strata, `rebuild` what an
update does when it evaluates a stratum anew, `first_epoch` all strata of a small program in one compiled call. Uses
`machine` and `execution`.
"""
