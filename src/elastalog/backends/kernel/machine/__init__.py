"""Rules over few rows and many rounds, run in compiled code: whole phases of an update or a bootstrap in one call.

`plan` turns bound variants into code and tables of addresses, `run` drives a machine and serves its wishes; what
differs between updates, growth, propagation and plain rounds is in the files named after them. Uses `execution` and
the rooms below; whoever starts a machine (bootstrap, levels, dense, sets) stands above it.
"""
