"""Questions to a session: why, why not, and what broke it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from elastalog.analysis.program import Value
from elastalog.debugging.answers import Blame, Localisation, Suggestion
from elastalog.debugging.debugger import Debugger
from elastalog.provenance.absence import Absence
from elastalog.provenance.explain import Explainer
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from elastalog.relations.thread_lock import ThreadLock


class Questions(ABC):
    """The part of a session that explains."""

    _lock: ThreadLock
    _explainer: Explainer
    _debugger: Debugger

    @abstractmethod
    def fact(self, written: str | tuple[str, tuple[Value, ...]]) -> tuple[str, tuple[Value, ...]]: ...

    @abstractmethod
    def _start_clock(self) -> None: ...

    # --- explaining ------------------------------------------------------------------------------------------------

    def explain(self, fact: str | tuple[str, tuple[Value, ...]], depth: int | None = None) -> Proof:
        """Why a fact holds: its best proof, to a depth (all the way by default), as a tree that can be expanded."""
        with self._lock:
            return self._explainer.explain(Fact(*self.fact(fact)), depth)

    def derivations(self, fact: str | tuple[str, tuple[Value, ...]]) -> tuple[Proof, ...]:
        """Every derivation of a fact that holds, as proofs of one level."""
        with self._lock:
            return self._explainer.derivations(Fact(*self.fact(fact)))

    def proofs(self, fact: str | tuple[str, tuple[Value, ...]], limit: int = 10) -> Iterator[Proof]:
        """Distinct proofs of a fact, lowest first, found as they are asked for. In none is a fact below itself."""
        with self._lock:
            found = self._explainer.proofs(Fact(*self.fact(fact)), limit)
        return self._one_by_one(found)

    def _one_by_one(self, proofs: Iterator[Proof]) -> Iterator[Proof]:
        """Each is looked for while no other thread updates."""
        while True:
            with self._lock:
                proof = next(proofs, None)
            if proof is None:
                return
            yield proof

    def explain_absence(
        self,
        fact: str | tuple[str, tuple[Value, ...]],
        limit: int = 5,
        *,
        rule: int | None = None,
        bindings: Mapping[str, Value] | None = None,
    ) -> Absence:
        """Why a fact does not hold: the derivations of it that fail nearest to success, best first. `rule`, by its
        number in the relation, and `bindings`, values of its variables, restrict the search."""
        with self._lock:
            return self._explainer.explain_absence(Fact(*self.fact(fact)), limit, rule, bindings)

    # --- debugging -------------------------------------------------------------------------------------------------

    def localise(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        *,
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Localisation:
        """A smallest part of the last update, or of what happened between two epochs, that alone shows all faults:
        facts that hold and are unwanted, facts that do not and are missing. After `time_limit` seconds (60) a small
        part that shows them."""
        with self._lock:
            self._start_clock()
            return self._debugger.localise(unwanted, missing, epochs, time_limit, on_progress)

    def suggest(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        rejected: Sequence[Any] = (),
        weights: Mapping[Any, float] | None = None,
        time_limit: float | None = None,
        *,
        epochs: tuple[int, int] | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Suggestion:
        """A smallest part of the last update, or of what happened between two epochs, whose undoing removes all faults.
        `rejected` elements (`+edge(1,2)`) stay applied; `weights` say how dear it is to undo an element, 1 by
        default."""
        with self._lock:
            self._start_clock()
            return self._debugger.suggest(unwanted, missing, rejected, weights, epochs, time_limit, on_progress)

    def blame(self, fact: str | tuple[str, tuple[Value, ...]]) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""
        with self._lock:
            self._start_clock()
            return self._debugger.blame(fact)
