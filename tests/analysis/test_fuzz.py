"""Any text that parses is checked: a program or diagnostics, never an exception."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from elastalog.analysis.check import check, flatten
from elastalog.diagnostics.diagnostic import render_text
from elastalog.diagnostics.source import Source
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_tree

DECLARATIONS = (
    ".type T <: symbol\n.type U = T\n.decl a(x: number)\n.decl b(x: number, y: symbol)\n"
    ".decl c(x: float, y: unsigned)\n.decl d(x: T)\n.decl e()\n.input a\n"
    ".decl g(x: number, y: symbol) inline\n.decl h(x: number) inline\n"
)
TERMS = st.recursive(
    st.sampled_from(["x", "y", "z", "_", "1", "-1", "2u", "1.5", '"s"', "9223372036854775808", "0x1f"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "^", "band", "land"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        st.tuples(st.sampled_from(["strlen", "to_number", "to_string", "-", "itof", "ord", "nope"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        st.tuples(inner, st.sampled_from(["T", "U", "number", "unsigned", "nope"])).map(
            lambda parts: f"as({parts[0]}, {parts[1]})"
        ),
        st.tuples(st.sampled_from(["min", "cat", "range", "substr"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
        st.tuples(st.sampled_from(["sum", "min", "mean", "count"]), inner, inner).map(
            lambda parts: (
                f"{parts[0]} {'' if parts[0] == 'count' else parts[1]} : {{ a({parts[1]}), b({parts[2]}, y) }}"
            )
        ),
    ),
    max_leaves=6,
)
ATOMS = st.one_of(
    TERMS.map(lambda term: f"a({term})"),
    st.tuples(TERMS, TERMS).map(lambda terms: f"b({terms[0]}, {terms[1]})"),
    st.tuples(TERMS, TERMS).map(lambda terms: f"c({terms[0]}, {terms[1]})"),
    TERMS.map(lambda term: f"d({term})"),
    st.tuples(TERMS, TERMS).map(lambda terms: f"g({terms[0]}, {terms[1]})"),
    TERMS.map(lambda term: f"h({term})"),
    TERMS.map(lambda term: f"k.a({term})"),
    st.sampled_from(["e()", "e(x)", "f(x)", "a()"]),
)
LITERALS = st.recursive(
    st.one_of(
        ATOMS,
        ATOMS.map(lambda atom: f"!{atom}"),
        st.tuples(TERMS, st.sampled_from(["=", "!=", "<", ">="]), TERMS).map(" ".join),
        st.tuples(TERMS, TERMS).map(lambda terms: f"match({terms[0]}, {terms[1]})"),
        st.tuples(TERMS, TERMS).map(lambda terms: f"!contains({terms[0]}, {terms[1]})"),
        st.sampled_from(["true", "false"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' ; '.join(parts)})"),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"!({', '.join(parts)})"),
    ),
    max_leaves=5,
)
CLAUSES = st.tuples(st.lists(ATOMS, min_size=1, max_size=2), st.lists(LITERALS, max_size=4)).map(
    lambda parts: f"{', '.join(parts[0])}{' :- ' if parts[1] else ''}{', '.join(parts[1])}."
)
SIGNS = "( ) , . :- ; ! { } : = < <: | + - *"
NAMES = '.decl .type .input .output .plan .comp .init .override a b x y _ 0 1 2 1.5 "s" number symbol sum count range'
WORDS = f"{SIGNS} {NAMES} min true as inline".split()


def run(text: str) -> None:
    written, _ = parse(Source("fuzz", text))
    tree, diagnostics = flatten(written)
    program = None
    if not any(diagnostic.severity == "error" for diagnostic in diagnostics):
        program, more = check(tree)
        diagnostics = (*diagnostics, *more)
        # What is flat prints as a program that is flat.
        again, faults = parse(Source("printed", print_tree(tree)))
        assert not faults
        assert flatten(again)[0] is again
    assert (program is None) == any(diagnostic.severity == "error" for diagnostic in diagnostics)
    for diagnostic in diagnostics:
        assert diagnostic.labels
        assert all(0 <= label.span.start <= label.span.end <= len(text) for label in diagnostic.labels)
        assert render_text(diagnostic)


# Drawing clauses takes most of the time; a program has several.
FEWER = settings(max_examples=settings().max_examples // 2)


@FEWER
@given(st.lists(CLAUSES, max_size=6))
def test_random_clauses(clauses: list[str]) -> None:
    run(DECLARATIONS + "\n".join(clauses))


@FEWER
@given(st.lists(CLAUSES, max_size=3), st.lists(CLAUSES, max_size=3))
def test_random_clauses_in_a_component(inside: list[str], outside: list[str]) -> None:
    component = f".comp C<N> {{ .decl a(x: N) {' '.join(inside)} }}\n.init k = C<number>\n.init l = C<symbol>\n"
    run(DECLARATIONS + component + "\n".join(outside))


@given(st.lists(st.sampled_from(WORDS), max_size=60))
def test_token_soup(words: list[str]) -> None:
    run(DECLARATIONS + " ".join(words))


@given(st.text(max_size=200))
def test_random_text(text: str) -> None:
    run(text)
