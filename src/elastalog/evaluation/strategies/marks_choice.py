"""Whether look-ahead pays: marks by trial, counted in derivations and never in time, so that a replay chooses alike.

What marks save are derivations of the update that finds them, and what they cost is a look at the next update, as much
as some hundreds of derivations however small it is; and what is counted as saved is not always time. So they are tried
only where updates take far more than that, a few updates out of many, and kept for as long as updates that have them
take so much less than those that have none. A trial that is in vain costs a share of the updates in it, which are one
in thirty: far less than a fiftieth in all.
"""

from __future__ import annotations

from dataclasses import field

from elastalog.evaluation.strategies.marking import Marks
from elastalog.late import dataclass

LEAST_SAVING = 1_500
"""Derivations that marks must save an update: a few times what looking ahead costs."""

TRIAL = 3
"""Updates of a trial; the first of them still has the marks, or none, that were made before it."""

BETWEEN_TRIALS = 90
FIRST_TRIAL = 8
"""Updates before the first trial, so that it is known what they take."""

_MEMORY = 0.9


@dataclass(slots=True)
class Taken:
    """What updates of one kind took, the latest counting most: derivations by changed facts."""

    updates: float = 0.0
    changes: float = 0.0
    effort: float = 0.0

    def add(self, changes: int, effort: int) -> None:
        """Another one."""
        self.updates = _MEMORY * self.updates + 1
        self.changes = _MEMORY * self.changes + max(changes, 1)
        self.effort = _MEMORY * self.effort + effort

    @property
    def rate(self) -> float:
        """Derivations for a changed fact."""
        return self.effort / self.changes

    @property
    def usual(self) -> float:
        """Derivations of an update."""
        return self.effort / self.updates


@dataclass(slots=True)
class MarksChoice:
    """Which marks the next update makes. `plain` and `marked`: updates without any marks, and those that had and made
    some. `usual`: what is chosen outside trials."""

    plain: Taken = field(default_factory=Taken)
    marked: Taken = field(default_factory=Taken)
    usual: Marks = Marks.NONE
    _until_trial: int = FIRST_TRIAL
    _in_trial: int = 0

    def next(self) -> Marks:
        """The marks for an update that is about to come, another one being known."""
        if self._in_trial:
            self._in_trial -= 1
            if self._in_trial:
                return self._other()
            self.usual = Marks.LINKED if self._pays() else Marks.NONE
            self._until_trial = BETWEEN_TRIALS
            return self.usual
        self._until_trial -= 1
        if self._until_trial <= 0 and self._is_worth_a_trial():
            self._in_trial = TRIAL
            # What such updates took long ago says little of now.
            if self.usual is Marks.LINKED:
                self.plain = Taken()
            else:
                self.marked = Taken()
            return self._other()
        return self.usual

    def observe(self, changes: int, effort: int, *, is_marked: bool, is_looking: bool) -> None:
        """What an update took that had marks, or not, and made some, or not."""
        if is_marked and is_looking:
            self.marked.add(changes, effort)
        elif not is_marked and not is_looking:
            self.plain.add(changes, effort)

    def _other(self) -> Marks:
        return Marks.NONE if self.usual is Marks.LINKED else Marks.LINKED

    def _is_worth_a_trial(self) -> bool:
        """Whether updates take so much that marks could save enough."""
        known = self.marked if self.usual is Marks.LINKED else self.plain
        return known.updates > 0 and (self.usual is Marks.LINKED or known.usual > 2 * LEAST_SAVING)

    def _pays(self) -> bool:
        if not (self.plain.updates and self.marked.updates):
            return False
        changes = self.marked.changes / self.marked.updates
        return (self.plain.rate - self.marked.rate) * changes > LEAST_SAVING
