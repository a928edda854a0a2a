"""Random syntax trees that a parser can give."""

from __future__ import annotations

from hypothesis import strategies as st

from elastalog.syntax import tree as t
from elastalog.syntax.keywords import FUNCTORS, PRECEDENCE, RESERVED
from tests.syntax.strip_spans import NOWHERE

names = st.from_regex(r"[A-Za-z_?][A-Za-z0-9_?]{0,5}", fullmatch=True).filter(lambda n: n != "_" and n not in RESERVED)
strings = st.text(max_size=8)

leaves = st.one_of(
    st.builds(t.Variable, names, st.just(NOWHERE)),
    st.just(t.Wildcard(NOWHERE)),
    st.builds(t.Integer, st.integers(-(2**63), 2**63 - 1), st.just(False), st.just(NOWHERE)),
    st.builds(t.Integer, st.integers(0, 2**64 - 1), st.just(True), st.just(NOWHERE)),
    st.builds(t.Float, st.floats(allow_nan=False, allow_infinity=False), st.just(NOWHERE)),
    st.builds(t.String, strings, st.just(NOWHERE)),
)


def call(functor: str, *arguments: t.Term) -> t.Call:
    return t.Call(functor, arguments, NOWHERE, NOWHERE)


def _calls(inner: st.SearchStrategy[t.Term]) -> st.SearchStrategy[t.Term]:
    return st.one_of(
        st.builds(call, st.sampled_from(sorted(PRECEDENCE)), inner, inner),
        st.builds(call, st.sampled_from(["neg", "bnot", "lnot"]), inner),
        st.builds(call, st.sampled_from(sorted(FUNCTORS - {"bnot", "lnot"})), inner, inner),
        st.builds(call, st.sampled_from(["cat", "min", "substr"]), inner, inner, inner),
        st.builds(call, st.sampled_from(["strlen", "ord", "to_number"]), inner),
        st.builds(
            t.Aggregate, st.sampled_from(["sum", "min", "max", "mean"]), inner, _bodies(inner, 1), st.just(NOWHERE)
        ),
        st.builds(t.Aggregate, st.just("count"), st.none(), _bodies(inner, 1), st.just(NOWHERE)),
    )


def _atoms(inner: st.SearchStrategy[t.Term]) -> st.SearchStrategy[t.Atom]:
    arguments = st.lists(inner, max_size=3).map(tuple)
    return st.builds(t.Atom, names, arguments, st.just(NOWHERE), st.just(NOWHERE))


def _bodies(inner: st.SearchStrategy[t.Term], depth: int) -> st.SearchStrategy[t.Body]:
    operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "match", "contains"])
    comparisons = st.builds(t.Comparison, operators, inner, inner, st.just(NOWHERE), st.just(NOWHERE))
    literals: list[st.SearchStrategy[t.Literal]] = [
        _atoms(inner),
        st.builds(t.Negation, _atoms(inner), st.just(NOWHERE)),
        comparisons,
        st.builds(t.NegatedGroup, st.tuples(comparisons), st.just(NOWHERE)),
        st.builds(t.Truth, st.booleans(), st.just(NOWHERE)),
    ]
    if depth > 0:
        inside = _bodies(inner, depth - 1)
        alternatives = st.lists(inside, min_size=2, max_size=3).map(tuple)
        literals.append(st.builds(t.Disjunction, alternatives, st.just(NOWHERE)))
        groups = inside.filter(lambda body: not (len(body) == 1 and isinstance(body[0], t.Atom)))
        literals.append(st.builds(t.NegatedGroup, groups, st.just(NOWHERE)))
    return st.lists(st.one_of(literals), min_size=1, max_size=3).map(tuple)


terms: st.SearchStrategy[t.Term] = st.recursive(leaves, _calls, max_leaves=8)
plans = st.builds(
    t.Plan,
    st.lists(
        st.tuples(st.integers(0, 9), st.lists(st.integers(1, 9), max_size=3).map(tuple)), min_size=1, max_size=2
    ).map(tuple),
    st.just(NOWHERE),
)
_heads = st.lists(_atoms(terms), min_size=1, max_size=2).map(tuple)
clauses = st.builds(t.Clause, _heads, st.just(()), st.none(), st.just(NOWHERE)) | st.builds(
    t.Clause, _heads, _bodies(terms, 2), st.none() | plans, st.just(NOWHERE)
)
relations = st.builds(
    t.RelationDeclaration,
    names,
    st.lists(st.builds(t.Attribute, names, names, st.just(NOWHERE), st.just(NOWHERE)), max_size=3).map(tuple),
    st.lists(st.sampled_from([("btree", NOWHERE), ("inline", NOWHERE), ("no_magic", NOWHERE)]), max_size=2).map(tuple),
    st.just(NOWHERE),
    st.just(NOWHERE),
)
types = st.one_of(
    st.builds(t.TypeDeclaration, names, st.just(kind), parents.map(tuple), st.just(NOWHERE), st.just(NOWHERE))
    for kind, parents in [
        ("subtype", st.lists(st.tuples(names, st.just(NOWHERE)), min_size=1, max_size=1)),
        ("alias", st.lists(st.tuples(names, st.just(NOWHERE)), min_size=1, max_size=1)),
        ("union", st.lists(st.tuples(names, st.just(NOWHERE)), min_size=2, max_size=3)),
    ]
)
directives = st.builds(
    t.Directive,
    st.sampled_from(["input", "output", "printsize", "limitsize"]),
    names,
    st.lists(st.tuples(names, strings, st.just(NOWHERE)), max_size=2).map(tuple),
    st.just(NOWHERE),
    st.just(NOWHERE),
)
items = st.one_of(clauses, relations, types, directives, st.builds(t.Pragma, strings, strings, st.just(NOWHERE)))
