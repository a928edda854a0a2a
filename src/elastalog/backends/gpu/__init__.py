"""Strata evaluated on sorted arrays of packed keys: on a GPU, or by the same code on NumPy.

`arrays` is what differs between the two, with the kernels of `fused` and `joining`; `packing` turns rows of words into
keys and back; `sorted_facts` keeps and merges them; `running` follows a planned variant, chunk by chunk; `rounds` is
semi-naive evaluation, whose rounds are levels; `folding` is aggregates; `carrying` and `found` bring facts there and
back beside all that; `place` is where a kernel has strata evaluated, which then go on in it.
"""
