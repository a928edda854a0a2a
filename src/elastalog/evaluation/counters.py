"""Work counters of an update, under the same names for every strategy."""

from __future__ import annotations

from dataclasses import asdict

from elastalog.late import dataclass


@dataclass(slots=True)
class Counters:
    """How many facts each phase moved. They count effects, not candidates: each fact once a phase, however many
    derivations led to it.

    `over_deletions`: facts that DRed and DRed^c deleted by rules before looking for other derivations;
    `rederivations`: those they found again. `deletions`: facts that lost a derivation and had to be checked
    (backward/forward checking), or whose counter reached 0 (Counting), or that left their level (dense). `backward`:
    facts whose derivations were searched; `forward`: facts found to follow from proved ones. `insertions`: facts
    added by rules. `marked_explicit`, `marked_implicit`: facts that look-ahead has marked because the next update
    questions them; `marked_positive`: implicit facts deleted now that the next update certainly brings back.
    `derivations`: derivations enumerated, in all phases."""

    over_deletions: int = 0
    rederivations: int = 0
    insertions: int = 0
    deletions: int = 0
    backward: int = 0
    forward: int = 0
    marked_explicit: int = 0
    marked_implicit: int = 0
    marked_positive: int = 0
    derivations: int = 0

    def __iadd__(self, other: Counters) -> Counters:
        # Written out: this happens for every stratum of an update.
        self.over_deletions += other.over_deletions
        self.rederivations += other.rederivations
        self.insertions += other.insertions
        self.deletions += other.deletions
        self.backward += other.backward
        self.forward += other.forward
        self.marked_explicit += other.marked_explicit
        self.marked_implicit += other.marked_implicit
        self.marked_positive += other.marked_positive
        self.derivations += other.derivations
        return self

    def as_dict(self) -> dict[str, int]:
        return asdict(self)
