"""Questions to a session: why, why not, what for, and what broke it. Each holds the lock and has the session's time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from elastalog.analysis.pattern import parse_pattern
from elastalog.backends.watch import memory_as_limit
from elastalog.diagnostics.arguments import require_one_of
from elastalog.provenance.fact import Fact
from elastalog.relations.functions import functions_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from elastalog.analysis.program import Value
    from elastalog.database import Written
    from elastalog.debugging.answers import Blame, Localisation, Suggestion
    from elastalog.debugging.debugger import Debugger
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.epochs import Epochs
    from elastalog.program import Program
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.explain import Explainer, Setting
    from elastalog.provenance.proof import Proof
    from elastalog.provenance.uses import Uses
    from elastalog.session.history import History
    from elastalog.session.materialisation import Materialisation
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
        from elastalog.session.repair import undo

        return undo(suggestion, self._updates, self._history)

    def explain(self, fact: Written, depth: int | None) -> Proof:
        """The best proof of a fact."""
        with self._materialisation.asking():
            return self._answerers.explainer.explain(self._materialisation.fact(fact), depth)

    def derivations(self, fact: Written) -> tuple[Proof, ...]:
        """Every derivation of a fact."""
        with self._materialisation.asking():
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

    def why_not(self, fact: Written, limit: int, rule: int | None, bindings: Mapping[str, Value] | None) -> Absence:
        """Why a fact, or every fact of a pattern that is not there, does not hold."""
        with self._materialisation.asking():
            explainer = self._answerers.explainer
            pattern = parse_pattern(fact, self._materialisation.program.checked) if isinstance(fact, str) else None
            if pattern is not None and not pattern.is_fact:
                return explainer.explain_pattern(pattern, str(fact).strip().rstrip("."), limit, rule, bindings)
            return explainer.explain_absence(self._materialisation.fact(fact), limit, rule, bindings)

    def uses(self, fact: Written, is_all: bool) -> Iterator[Fact]:
        """The facts that follow directly from a fact, or all that would go with it."""
        from elastalog.provenance.uses import world_without

        with self._materialisation.asking():
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

        with self._materialisation.asking():
            unwanted = as_facts(unwanted, self._materialisation, self._reader.relation)
            return self._answerers.debugger.localise(
                unwanted, missing, epochs=epochs, time_limit=time_limit, news=on_progress
            )

    def suggest(self, asked: Repair, epochs: tuple[int, int] | None, over: str | None) -> Suggestion:
        """A smallest part of what happened, or set of changes of explicit facts, that removes all faults."""
        from elastalog.session.repair import suggest_over_facts, with_facts

        require_one_of("over", over or "update", ("update", "facts"))
        with self._materialisation.asking():
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
        with self._materialisation.asking():
            return self._answerers.debugger.blame(fact)


class Answerers:
    """The explainer and the debugger of the present program; both keep what they found for the epoch it belongs to.
    Asked in a block of `asking`, which holds the lock and the time. `undo` applies a suggestion."""

    def __init__(
        self, materialisation: Materialisation, history: History, undo: Callable[[Suggestion], Changes]
    ) -> None:
        self._materialisation = materialisation
        self._history = history
        self.undo = undo
        self._program: Program | None = None
        self._debugged = 0
        self._explained = -1
        self._uses: Uses | None = None
        self._is_written_out = False

    @property
    def explainer(self) -> Explainer:
        """Answers why and why not."""
        self._follow()
        now = self._materialisation
        is_annotated = now.setting.is_annotated
        if now.backend.program.merged and not is_annotated and self._explained != now.epoch:
            # Chains of pairs that a recursion finds go by levels, or they would lead in circles.
            with memory_as_limit():
                self._explainer = self._explaining(now.with_levels())
            self._explained = now.epoch
        return self._explainer

    @property
    def uses(self) -> Uses:
        """Answers what facts are used for."""
        self._follow()
        if self._uses is None:
            from elastalog.provenance.uses import Uses

            self._uses = Uses(self._materialisation.program)
        return self._uses

    @property
    def debugger(self) -> Debugger:
        """Answers what broke it."""
        self._follow()
        now = self._materialisation
        if now.backend.program.equivalences and (self._debugged != now.epoch or not self._is_written_out):
            # Its graphs are of facts and rules, and know nothing of classes.
            with memory_as_limit():
                epochs = now.written_out()
            self._make_debugger(replace(now.setting, backend=epochs.backend), epochs)
            self._is_written_out = True
        return self._debugger

    def _follow(self) -> None:
        now = self._materialisation
        if self._program is now.program:
            return
        # Most sessions are never asked.
        from elastalog.debugging.past import Past

        functions_for(now.program.checked, now.dictionary.functions)  # proofs apply them again
        self._program = now.program
        self._uses = None
        self._is_written_out = False
        self._explainer = self._explaining(now.setting)
        self._explained = -1
        past = Past(self._history.records, self._history.stored_if_any, lambda: now.epoch)
        self._past = past
        self._make_debugger(now.setting, now.epochs)

    def _explaining(self, setting: Setting) -> Explainer:
        from elastalog.provenance.explain import Explainer

        now = self._materialisation
        return Explainer(setting, lambda: now.epoch, now.asking)

    def _make_debugger(self, setting: Setting, epochs: Epochs) -> None:
        from elastalog.debugging.debugger import Debugger

        now = self._materialisation
        self._debugger = Debugger(now.program, setting, epochs, self._past, now.fact, self.undo, now.evaluate_anew)
        self._debugged = epochs.number
