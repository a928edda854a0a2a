"""Attacks on every promise, from seeds: `python -m tests.torture` (or `make torture`) goes on for a while and prints a
table; `test_torture.py` makes a few trials of each kind. A trial that fails names its seed, and repeats with it:
`python -m tests.torture --kind damage --seed 17`."""
