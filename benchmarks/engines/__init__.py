"""The engines that the benchmarks compare. Each module is an `Engine` of protocol.py."""
