"""Strata evaluated on sorted arrays of packed keys: on a GPU, or by the same code on NumPy.

`driver` reaches the device, `kernels.cu` is all that runs there, `starting` starts it beside other work;
`device_arrays` are arrays by the names of NumPy, and `fused` passes over them that NumPy makes in several. `arrays` is
what differs between the two. `packing` turns rows of words into keys and back; `sorted_facts` keeps and merges them;
`joining` is pairs; `running` follows a planned variant, chunk by chunk; `rounds` is semi-naive evaluation, whose rounds
are levels; `folding` is aggregates; `found` brings facts back beside all that. `place` is where a kernel has strata
evaluated, which then go on in it; it forecasts which of those that the kernel has begun had better.
"""
