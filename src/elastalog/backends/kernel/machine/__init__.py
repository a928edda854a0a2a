"""Rules over few rows and many rounds, run in compiled code: whole phases of an update or a bootstrap in one call.

`layout` has the records that machines work on, `plan` fills them in for a stratum. `rounds` is the loop of all of them,
`run` calls one and serves its wishes. Updates: `drive` goes from stratum to stratum, `stratum_update` through the
phases of one, `inputs` has what reaches it, `heads` what becomes of derivations, `rederivation` what is looked for
again, `bucket_queue` what waits for its level. Bootstraps: `growth`, in threads with `shares`. Strategies that maintain
sets: `set_rounds`. Whatever else is to be done with derivations, `enumeration` hands them on. Uses `execution` and the
packages below; bootstrap, levels, dense and sets, which start machines, stand above it.
"""
