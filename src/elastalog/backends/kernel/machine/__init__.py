"""Rules over few rows and many rounds, run in compiled code: whole phases of an update or a bootstrap in one call.

`layout` has the records that machines work on, `code` and `plan` fill them in for a stratum, `workspace` holds blocks
and the queue. `driver` is the loop of all machines, `run` calls one and serves its wishes; `course` and `drive` are the
way through a stratum and from one to the next. What differs between updates, growth, propagation and plain rounds is in
the files named after them. Uses `execution` and the rooms below; whoever starts a machine (bootstrap, levels, dense,
sets) stands above it.
"""
