"""Who answers questions to a session: the explainer and the debugger of its present program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from elastalog.backends.watch import memory_as_limit
from elastalog.relations.functions import functions_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from elastalog.debugging.answers import Suggestion
    from elastalog.debugging.debugger import Debugger
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.epochs import Epochs
    from elastalog.program import Program
    from elastalog.provenance.explain import Explainer, Setting
    from elastalog.provenance.uses import Uses
    from elastalog.session.history import History
    from elastalog.session.materialisation import Materialisation


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
