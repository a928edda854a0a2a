"""Several threads on one stratum: the start rows of a round are shared out, what is derived is inserted together.

`workers` replace those of `bootstrap.workers`, `shared_growth` are rounds in all threads, in the machine; `shared_head`
is a relation that all of them insert into (`store.inserting`), `meeting` where they get room, `growth` a wider table
that all fill. Uses `bootstrap` and the rooms below; without `jobs` nothing here is
imported.
"""
