"""Random updates of a generated program, from any source of choices."""

from __future__ import annotations

from dataclasses import dataclass

from elastalog.analysis.values import sort_key
from tests.generators.choices import Choices, chance, pick, several
from tests.generators.construction import Fact, GeneratedProgram, build_fact


@dataclass(frozen=True, slots=True)
class Update:
    """Facts to delete and to insert, by relation; a fact may be absent or present already, listed twice, or in both."""

    deleted: dict[str, list[Fact]]
    inserted: dict[str, list[Fact]]

    def apply_to(self, explicit: dict[str, set[Fact]]) -> dict[str, set[Fact]]:
        """The explicit facts after the update; of a fact in both lists the insertion wins."""
        names = [*explicit, *(name for name in (*self.deleted, *self.inserted) if name not in explicit)]
        return {
            name: (explicit.get(name, set()) - set(self.deleted.get(name, ()))) | set(self.inserted.get(name, ()))
            for name in names
        }


def build_updates(choices: Choices, program: GeneratedProgram, most: int = 4, percent: int = 70) -> list[Update]:
    """One update, then as long as a chance of `percent` says so, `most` at most."""
    explicit, updates = program.explicit, list[Update]()
    for _ in several(choices, 1, most, percent):
        build = build_stir if chance(choices, 25) else build_update
        updates.append(build(choices, program, explicit))
        explicit = updates[-1].apply_to(explicit)
    return updates


def build_update(choices: Choices, program: GeneratedProgram, explicit: dict[str, set[Fact]]) -> Update:
    size, percent = (12, 90) if chance(choices, 15) else (3, 55)
    deleted: dict[str, list[Fact]] = {}
    inserted: dict[str, list[Fact]] = {}
    for _ in several(choices, 0, size, percent):
        name = pick(choices, list(program.schemas) if chance(choices, 20) else program.inputs)
        present = sorted(explicit.get(name, ()), key=sort_key)
        fact = (
            pick(choices, present)
            if present and not chance(choices, 15)
            else build_fact(choices, program.schemas[name])
        )
        deleted.setdefault(name, []).append(fact)
        if chance(choices, 8):
            pick(choices, (deleted, inserted)).setdefault(name, []).append(fact)
    for _ in several(choices, 0, size, percent):
        name = pick(choices, list(program.schemas) if chance(choices, 20) else program.inputs)
        present = sorted(explicit.get(name, ()), key=sort_key)
        fact = pick(choices, present) if present and chance(choices, 15) else build_fact(choices, program.schemas[name])
        inserted.setdefault(name, []).append(fact)
        if chance(choices, 8):
            pick(choices, (inserted, deleted)).setdefault(name, []).append(fact)
    return Update(deleted, inserted)


def build_stir(choices: Choices, program: GeneratedProgram, explicit: dict[str, set[Fact]]) -> Update:
    """Changes every input relation, so that what supports a fact and what denies it change together."""
    gone = {
        name: [fact for fact in sorted(explicit.get(name, ()), key=sort_key) if chance(choices, 30)]
        for name in program.inputs
    }
    come = {name: [build_fact(choices, program.schemas[name]) for _ in several(choices, 0, 5, 75)] for name in gone}
    return Update(gone, come)
