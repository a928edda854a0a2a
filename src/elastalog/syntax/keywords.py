"""The words and operators of the dialect."""

from __future__ import annotations

# fmt: off
FUNCTORS = frozenset([
    "band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "land", "lor", "lnot",
    "lxor", "min", "max", "cat", "strlen", "substr", "ord", "to_number", "to_string", "to_unsigned",
    "to_float", "itof", "itou", "ftoi", "ftou", "utoi", "utof", "range",
])
# fmt: on
AGGREGATES = frozenset({"count", "sum", "min", "max", "mean"})
CONSTRAINTS = frozenset({"match", "contains"})
ENDS = frozenset({"starts_with", "ends_with"})
"""Constraints, unless a relation has the name."""
TEXT_TESTS = CONSTRAINTS | ENDS
"""The comparisons of texts, which are written like atoms."""
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
NOT = "not "
"""What the operator of a negated comparison begins with, `not <`; programs write `!(x < y)`."""
RESERVED = FUNCTORS | AGGREGATES | CONSTRAINTS | {"true", "false", "nil", "as", "autoinc"}
"""Words that can not name a relation or a variable."""

PRECEDENCE = {
    "lor": 1,
    "lxor": 2,
    "land": 3,
    "bor": 4,
    "bxor": 5,
    "band": 6,
    "bshl": 7,
    "bshr": 7,
    "bshru": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
    "%": 9,
    "^": 11,
}
"""Binding power of the infix operators; all associate to the left except `^`."""

PREFIX_PRECEDENCE = 10
"""Binding power of unary minus, `bnot` and `lnot`: weaker than `^`, so that `-2^2` is `-(2^2)`."""

PREFIXES = {"-": "neg", "bnot": "bnot", "lnot": "lnot"}

DIRECTIVES = (
    "decl",
    "type",
    "number_type",
    "symbol_type",
    "input",
    "output",
    "printsize",
    "limitsize",
    "plan",
    "strict",
    "pragma",
    "functor",
    "comp",
    "init",
    "override",
    "lattice",
)
LATTICE_OPERATORS = ("Bottom", "Top", "Lub", "Glb", "Leq")

IO_QUALIFIERS = frozenset({"input", "output", "printsize"})
"""Qualifiers of the old style that stand for a directive."""

QUALIFIERS = IO_QUALIFIERS | {
    "btree",
    "btree_delete",
    "brie",
    "eqrel",
    "magic",
    "no_magic",
    "inline",
    "no_inline",
    "overridable",
}

LARGEST_UNSIGNED = 2**64 - 1
SMALLEST_NUMBER = -(2**63)
