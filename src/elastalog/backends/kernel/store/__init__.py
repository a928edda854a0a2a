"""Facts at rest: relations as rows of words, their set tables, indexes, annotations and transactions.

A row number identifies a fact for good; `inserting` gives facts theirs, in one thread or in several that take `turns`.
`annotations` says what levels, counts and marks mean, `bookkeeping` and `count_vectors` change them, `transaction`,
`shifts` and `snapshot` take a relation from one epoch to another, out of the kernel and back. `whereabouts` and `homes`
say where relations are, for compiled code that works on many; `given` finds and changes explicit facts. It uses
`compile` alone; whoever evaluates rules stands above it.
"""
