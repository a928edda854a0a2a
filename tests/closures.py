"""The closure of a relation, and what is reached from some nodes, as many tests need them."""

from __future__ import annotations

REACH = """
.decl edge, path(from: number, to: number)
.input edge
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
.output path
"""
"""Read and written."""

CLOSURE = """
.decl edge, path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
"""Recursive on the left."""

RIGHT_CLOSURE = """
.decl edge, path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""
"""Recursive on the right."""

FROM_SOURCES = """
.decl source(x: number)
.decl edge(x: number, y: number)
.decl reach(x: number)
reach(x) :- source(x).
reach(y) :- reach(x), edge(x, y).
"""
"""What is reached from sources."""
