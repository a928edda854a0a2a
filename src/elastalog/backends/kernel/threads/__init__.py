"""Several threads on one stratum: the start rows of a round are shared out, what is derived is inserted together.

`workers` replace those of `bootstrap.workers`, `shared_round` is a round in all threads, `shared_head` a relation that
all of them insert into, `inserting` and `growth` are the operators that need no locks for that. Uses `bootstrap` and
the rooms below; without `jobs` nothing here is imported.
"""
