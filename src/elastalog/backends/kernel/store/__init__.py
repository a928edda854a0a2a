"""Relations of the kernel: rows of words, the set tables and indexes that find them, their annotations, transactions.

`relation` is the whole of one; `memory`, `set_table`, `inserting`, `postings` and `index` are its parts. `annotations`
says what facts carry and how an update writes it, `bookkeeping` has the operators that do; `transaction` reaches all
relations of the update under way, by their descriptors, and ends it; `snapshot` takes relations out of the kernel and
back. Uses `compile`.
"""
