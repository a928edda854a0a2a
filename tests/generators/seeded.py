"""The same programs and updates from a seed, without hypothesis: for fast loops over thousands of cases."""

from __future__ import annotations

from tests.generators.choices import SeededChoices
from tests.generators.construction import Features, GeneratedProgram, build_program
from tests.generators.updates import Update, build_updates


def seeded_program(seed: int, features: Features | None = None) -> GeneratedProgram:
    return build_program(SeededChoices(seed), features or Features())


def seeded_case(
    seed: int, features: Features | None = None, most_updates: int = 4, percent: int = 70
) -> tuple[GeneratedProgram, list[Update]]:
    """A program and updates for it; the same seed always gives the same case."""
    choices = SeededChoices(seed)
    program = build_program(choices, features or Features())
    return program, build_updates(choices, program, most_updates, percent)
