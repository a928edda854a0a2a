"""What every fact carries from epoch to epoch, beside its words: chosen by the strategy, kept by the backend."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from elastalog.late import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Support(Enum):
    """What is kept for every fact from epoch to epoch."""

    LEVELS = "its level and the number of its derivations at that level"
    EXPLICIT = "whether it is explicit"
    NONRECURSIVE = "also C_nr: 1 if it is explicit, + the number of its derivations by non-recursive rules"
    EVERY = "also C_r: the number of its derivations by recursive rules"
    VECTORS = "the number of its derivations at every level"


@dataclass(frozen=True, slots=True)
class Annotation:
    """`is_kept`: without, facts carry nothing, and relations can only be evaluated anew. `is_global`: levels are
    heights of whole proofs; otherwise facts of lower strata count as level 0."""

    support: Support = Support.LEVELS
    is_kept: bool = True
    is_global: bool = False

    @property
    def has_levels(self) -> bool:
        """Whether every fact has a level and a count; the strategies that maintain sets keep other things."""
        return self.is_kept and self.support in (Support.LEVELS, Support.VECTORS)

    @property
    def has_levels_only(self) -> bool:
        """Whether a level and a count are all that a fact has."""
        return self.is_kept and self.support is Support.LEVELS

    def are_explicit(self, level: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
        """Which facts are explicit, by what stands for their level outside a backend: those of level 0, or of an even
        one where sets are maintained."""
        if self.support in (Support.LEVELS, Support.VECTORS):
            is_zero: npt.NDArray[Any] = level == 0
            return is_zero
        is_even: npt.NDArray[Any] = (level >= 0) & (level & 1 == 0)
        return is_even
