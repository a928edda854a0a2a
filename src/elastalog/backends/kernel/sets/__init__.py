"""The state of the strategies that maintain sets: DRed, B/F, their counting forms, Counting, and look-ahead.

`set_update` offers what `backends.sets` names, over `set_facts` (vectors of touched entries); `set_rounds` hands rounds
to the machine; `heads_backward` and `remembered` look for derivations of given heads. The annotations of a row mean
something else here than in `levels`: see `set_operators`.
"""
