"""The state of the strategies that maintain sets: DRed, B/F, their counting forms, Counting, and look-ahead.

`set_update` offers what `backends.sets` names, over vectors of touched entries; `set_plan` has the variants, and hands
rounds to the machine; `heads_backward` looks for derivations of given heads. The annotations of a row mean something
else here than in `levels`: see `set_operators`.
"""
