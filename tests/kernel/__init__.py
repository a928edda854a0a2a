"""The kernel, from inside."""

from __future__ import annotations

from typing import Any


def plans_of(db: Any) -> dict[int, Any]:
    """How the strata of a session are maintained that have been planned, by their numbers."""
    kinds = db._backend.evaluation.kinds.items()
    return {number: kind.plan for number, kind in kinds if "plan" in vars(kind)}
