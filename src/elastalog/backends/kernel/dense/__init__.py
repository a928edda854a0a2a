"""The dense state: for every fact and level the number of its derivations there.

`counted_fixpoint` is the bootstrap, `dense_update` the update; both differ from `bootstrap` and `levels` in what
becomes of a derivation. The vectors are in `store.count_vectors`.
"""
