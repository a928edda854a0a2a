"""Strata evaluated on sorted arrays of packed keys: on a GPU through CuPy, or by the same code on NumPy.

`arrays` is what differs between the two; `packing` turns rows of words into keys and back; `sorted_facts` keeps and
merges them; `running` follows a planned variant, chunk by chunk; `rounds` is semi-naive evaluation, whose rounds are
levels; `backend` puts it behind the protocol and holds a kernel, in which updates go on. CuPy is imported in `arrays`
alone.
"""
