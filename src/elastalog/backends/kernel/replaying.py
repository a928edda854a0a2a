"""Strata with subsumption once more, to see what has left them: proofs may rest on facts that are superseded."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.bootstrap.chosen_rounds import evaluate_chosen
from elastalog.backends.kernel.bootstrap.dominance import Leaving
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants
from elastalog.backends.kernel.evaluating import KernelEvaluation
from elastalog.backends.kernel.execution.backward import BackwardEvaluation
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import ClauseDerivations
from elastalog.planning.logical import LogicalStratum


class KernelReplays:
    """See `backends.protocol.Replays`."""

    def __init__(self, evaluation: KernelEvaluation) -> None:
        self._evaluation = evaluation

    def replay(self, stratum: LogicalStratum) -> KernelReplay | None:
        """Evaluates a stratum again, beside what is held of it, outside an update."""
        evaluation, held = self._evaluation, self._evaluation.held
        if stratum.number in evaluation.ranked and evaluation.ranks.has(stratum, held.relations, evaluation.dictionary):
            return None
        relations = {name: held.relations[name] for name in stratum.reads}
        for name in stratum.relations:
            old = held.relations[name]
            fresh = relations[name] = KernelRelation(name, old.width, is_annotated=True)
            if name not in evaluation.program.given:
                fresh.load(old.rows[: old.used][held.explicit_rows(old)])
        program, source = evaluation.program, evaluation.program.checked.source
        variants = StratumVariants(stratum, relations, evaluation.dictionary, source)
        left = Leaving()
        evaluate_chosen(stratum, variants, relations, program.relations, source, evaluation.watch, left)
        for name, facts in left.facts.items():
            _return(relations[name], facts)
        backward = BackwardEvaluation(program, relations, evaluation.dictionary, evaluation.watch)
        return KernelReplay(relations, left, backward)


def _return(relation: KernelRelation, facts: dict[tuple[int, ...], tuple[int, tuple[int, ...]]]) -> None:
    """Puts facts that have left back, at the levels that they had."""
    words = np.array(list(facts), np.int32).reshape(len(facts), relation.width)
    levels = np.array([level for level, _ in facts.values()], np.int32)
    is_gone = relation.find(words) < 0
    first = relation.used
    relation.load(words[is_gone])
    relation.level[first : relation.used] = levels[is_gone]


class KernelReplay:
    """See `backends.protocol.Replay`."""

    def __init__(self, relations: dict[str, KernelRelation], left: Leaving, backward: BackwardEvaluation) -> None:
        self._relations = relations
        self._left = left
        self._backward = backward

    def level(self, relation: str, row: tuple[int, ...]) -> int:
        stored = self._relations[relation]
        return int(stored.level[stored.find(np.array([row], np.int32))[0]])

    def superseded_by(self, relation: str, row: tuple[int, ...]) -> tuple[int, ...] | None:
        found = self._left.facts.get(relation, {}).get(row)
        return None if found is None else found[1]

    def derivations(self, relation: str, words: Matrix) -> list[ClauseDerivations]:
        return self._backward.derivations(relation, words)
