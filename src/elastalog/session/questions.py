"""Questions to a session: why, why not, what for, and what broke it. Each holds the lock and has the session's time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from elastalog.analysis.pattern import parse_pattern
from elastalog.diagnostics.arguments import require_one_of
from elastalog.provenance.fact import Fact
from elastalog.session.answerers import Answerers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Blame, Localisation, Suggestion
    from elastalog.evaluation.changes import Changes
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.proof import Proof
    from elastalog.session.history import History
    from elastalog.session.materialisation import Materialisation, Written
    from elastalog.session.reading import Reader
    from elastalog.session.repair import Repair
    from elastalog.session.updating import Updates


class Questions:
    """What `Session` promises of explaining and debugging, over the present facts and the history."""

    def __init__(self, materialisation: Materialisation, history: History, reader: Reader, updates: Updates) -> None:
        self._materialisation = materialisation
        self._history = history
        self._reader = reader
        self._updates = updates
        self._answerers = Answerers(materialisation, history, self._undo)

    def _undo(self, suggestion: Suggestion) -> Changes:
        from elastalog.session.undoing import undo

        return undo(suggestion, self._updates, self._history)

    def explain(self, fact: Written, depth: int | None) -> Proof:
        """The best proof of a fact."""
        with self._materialisation.asking(fact):
            return self._answerers.explainer.explain(self._materialisation.fact(fact), depth)

    def derivations(self, fact: Written) -> tuple[Proof, ...]:
        """Every derivation of a fact."""
        with self._materialisation.asking(fact):
            return self._answerers.explainer.derivations(self._materialisation.fact(fact))

    def proofs(self, fact: Written, limit: int) -> Iterator[Proof]:
        """Distinct proofs of a fact, each looked for when it is asked for, while no other thread updates."""
        with self._materialisation.asking():
            found = self._answerers.explainer.proofs(self._materialisation.fact(fact), limit)
        return self._one_by_one(found)

    def _one_by_one(self, proofs: Iterator[Proof]) -> Iterator[Proof]:
        while True:
            with self._materialisation.asking():
                proof = next(proofs, None)
            if proof is None:
                return
            yield proof

    def explain_absence(
        self, fact: Written, limit: int, rule: int | None, bindings: Mapping[str, Value] | None
    ) -> Absence:
        """Why a fact, or every fact of a pattern that is not there, does not hold."""
        with self._materialisation.asking(fact):
            explainer = self._answerers.explainer
            pattern = parse_pattern(fact, self._materialisation.program.checked) if isinstance(fact, str) else None
            if pattern is not None and not pattern.is_fact:
                return explainer.explain_pattern(pattern, str(fact).strip().rstrip("."), limit, rule, bindings)
            return explainer.explain_absence(self._materialisation.fact(fact), limit, rule, bindings)

    def uses(self, fact: Written, is_all: bool) -> Iterator[Fact]:
        """The facts that follow directly from a fact, or all that would go with it."""
        from elastalog.provenance.uses import world_without

        with self._materialisation.asking(fact):
            explainer = self._answerers.explainer
            known = explainer.explain(self._materialisation.fact(fact), 0).fact
            if not is_all:
                return iter(self._answerers.uses.direct(known, self._reader.ask, explainer.derivations))
            derived = partial(self._reader.derived_by, known.relation)
            world = world_without(known, self._materialisation.program, derived)
            deleted = {known.relation: [known.values]}
            without = self._updates.pending(world.inserted, deleted, world.added, world.removed)
            gone = self._updates.preview(without)
            facts = [Fact(name, values) for name, changed in gone.items() for values in changed.deleted]
            return iter([other for other in facts if str(other) != str(known)])

    def localise(
        self,
        unwanted: Sequence[Any],
        missing: Sequence[Any],
        epochs: tuple[int, int] | None,
        time_limit: float | None,
        on_progress: Callable[[str], None] | None,
    ) -> Localisation:
        """A smallest part of what happened that alone shows all faults."""
        from elastalog.session.repair import as_facts

        with self._materialisation.asking(unwanted, missing):
            unwanted = as_facts(unwanted, self._materialisation, self._reader.relation)
            return self._answerers.debugger.localise(
                unwanted, missing, epochs=epochs, time_limit=time_limit, news=on_progress
            )

    def suggest(self, asked: Repair, epochs: tuple[int, int] | None, over: str | None) -> Suggestion:
        """A smallest part of what happened, or set of changes of explicit facts, that removes all faults."""
        from elastalog.session.repair import suggest_over_facts, with_facts

        require_one_of("over", over or "update", ("update", "facts"))
        with self._materialisation.asking(asked.unwanted, asked.missing):
            asked = with_facts(asked, self._materialisation, self._reader.relation)
            is_new = epochs is None and self._history.oldest == self._materialisation.epoch
            if over == "facts" or (over is None and (asked.candidates is not None or is_new)):
                return suggest_over_facts(self._materialisation, self._answerers, asked)
            return self._answerers.debugger.suggest(
                asked.unwanted,
                asked.missing,
                asked.rejected,
                asked.weights,
                epochs=epochs,
                time_limit=asked.time_limit,
                news=asked.on_progress,
            )

    def blame(self, fact: Written) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and what did that."""
        with self._materialisation.asking(fact):
            return self._answerers.debugger.blame(fact)
