"""The papers, reproduced: one module a paper, one function a table or figure.

`python -m benchmarks.papers [--quick] [--only NAME ...] [--data DIR] [--pages-only]`; `make papers` is the same.
"""
