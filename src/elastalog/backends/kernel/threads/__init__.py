"""Several threads on one stratum: the start rows of a variant are shared out, what is derived is inserted together.

`workers` replace those of `bootstrap.fixpoint`, `run` is one variant in all threads, `inserting` and `growth` are the
operators that need no locks. Uses `bootstrap` and the rooms below; without `jobs` nothing here is imported.
"""
