"""Hypothesis strategies: random stratified programs and sequences of updates for them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.generators.choices import DrawnChoices
from tests.generators.construction import Features, GeneratedProgram, build_program
from tests.generators.updates import Update, build_updates


@st.composite
def programs(
    draw: st.DrawFn,
    *,
    negation: bool = True,
    aggregates: bool = True,
    arithmetic: bool = True,
    disjunctions: bool = True,
    symbols: bool = True,
    recursion: bool = True,
    several_heads: bool = True,
    text_facts: bool = True,
    tested_groups: bool = False,
) -> GeneratedProgram:
    """Programs that the checker accepts and whose evaluation terminates, with explicit facts."""
    features = Features(
        negation=negation,
        aggregates=aggregates,
        arithmetic=arithmetic,
        disjunctions=disjunctions,
        symbols=symbols,
        recursion=recursion,
        several_heads=several_heads,
        text_facts=text_facts,
        tested_groups=tested_groups,
    )
    return build_program(DrawnChoices(draw), features)


@st.composite
def updates(draw: st.DrawFn, program: GeneratedProgram, most: int = 4) -> list[Update]:
    """One to `most` updates, each made for the explicit facts that the earlier ones leave."""
    return build_updates(DrawnChoices(draw), program, most)
