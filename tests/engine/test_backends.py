"""A backend is a peer behind a protocol: how large that is, who makes backends, and that another one fits in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.engines import backend_maker
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.kernel.store import snapshot
from elastalog.backends.protocol import Backend, Capabilities
from elastalog.evaluation.changes import Update
from elastalog.evaluation.epochs import Epochs
from elastalog.evaluation.strategies import make_strategy
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.planning.lower import lower
from elastalog.program import Program
from elastalog.relations.words import Dictionary

CLOSURE = """
.decl edge, path(x: number, y: number)
.decl lonely(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
lonely(x) :- edge(x, _), !path(x, x).
"""
FACTS = {"edge": np.array([[1, 2], [2, 3], [3, 4]], np.int32), "path": np.array([[7, 8]], np.int32)}


class DeviceBackend:
    """Evaluates strata elsewhere, here in a kernel of its own for each, and leaves all else to the kernel it holds."""

    def __init__(self, program: LogicalProgram, dictionary: Dictionary, **options: Any) -> None:
        self.kernel = KernelBackend(program, dictionary, **options)
        self.capabilities = Capabilities()
        self.evaluated: list[tuple[str, ...]] = []
        self._dictionary = dictionary
        self._annotation = options["annotation"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def _evaluated(self, stratum: LogicalStratum) -> tuple[KernelBackend, int]:
        """Transfers in what the stratum reads in the state under way, and its explicit facts."""
        states = self.kernel.states
        device = KernelBackend(self.kernel.program, self._dictionary, annotation=self._annotation)
        for name in stratum.reads:
            device.states.restore(name, states.before(name), [states.changed_in(name)])
        device.load({name: self.kernel.updates.explicit_facts(name) for name in stratum.relations})
        self.evaluated.append(stratum.relations)
        return device, device.bootstrap(stratum)

    def bootstrap(self, stratum: LogicalStratum) -> int:
        device, derivations = self._evaluated(stratum)
        for name in stratum.relations:
            self.kernel.states.restore(name, device.states.of(name), ())
        return derivations

    def rebuild(self, stratum: LogicalStratum) -> int:
        device, derivations = self._evaluated(stratum)
        for name in stratum.relations:
            before = self.kernel.held.relations[name]
            self.kernel.receive(name, snapshot.changes_between(before, device.states.of(name)))
        self.kernel.updates.forget(stratum)
        return derivations


def started(make: Any, strategy: str = "elastic", is_global: bool = False) -> tuple[Any, Epochs]:
    program, dictionary = lower(Program.parse(CLOSURE).checked), Dictionary()
    annotation = Annotation(is_global=is_global)
    backend = make(program, dictionary, annotation=annotation)
    epochs = Epochs(backend, make_strategy(strategy, backend.watch, None))
    epochs.bootstrap(dict(FACTS))
    return backend, epochs


def states(backend: Backend) -> dict[str, set[tuple[int, ...]]]:
    """By relation: words, level, count of every fact."""
    found = {}
    for name in backend.program.relations:
        facts = backend.states.of(name)
        assert facts.level is not None
        assert facts.count is not None
        found[name] = set(map(tuple, np.column_stack((facts.words, facts.level, facts.count)).tolist()))
    return found


def test_the_protocol_is_small() -> None:
    members = {name for name in (*vars(Backend), *Backend.__annotations__) if not name.startswith("_")}
    assert len(members) <= 24


def test_the_engine_of_this_process_needs_no_cluster() -> None:
    assert backend_maker("local") is KernelBackend
    made = backend_maker("auto")(lower(Program.parse(CLOSURE).checked), Dictionary(), annotation=Annotation())
    assert isinstance(made, KernelBackend)


@pytest.mark.parametrize("engine", ["spark", "abacus"])
def test_there_is_no_engine_without_what_it_needs(engine: str) -> None:
    with pytest.raises(ValueError, match=engine):
        backend_maker(engine)


@pytest.mark.parametrize(
    ("annotation", "has_shifts"),
    [(Annotation(), True), (Annotation(is_kept=False), False), (Annotation(Support.EXPLICIT), False)],
)
def test_a_kernel_shifts_where_a_state_is_levels_and_counts(annotation: Annotation, has_shifts: bool) -> None:
    kernel = KernelBackend(lower(Program.parse(CLOSURE).checked), Dictionary(), annotation=annotation)
    assert (kernel.capabilities.shifts is not None) == has_shifts
    assert kernel.capabilities.elsewhere is None


def test_who_evaluates_elsewhere_hands_levels_and_counts_to_a_kernel() -> None:
    backend, _ = started(DeviceBackend)
    assert ("path",) in backend.evaluated
    # By hand: edges at level 1; (1, 3) and (2, 4) at 2, one derivation each; (1, 4) at 3, by two.
    assert states(backend)["path"] == {
        (7, 8, 0, 1), (1, 2, 1, 1), (2, 3, 1, 1), (3, 4, 1, 1), (1, 3, 2, 1), (2, 4, 2, 1), (1, 4, 3, 2),
    }  # fmt: skip


@pytest.mark.parametrize("is_global", [False, True])
def test_updates_go_on_in_the_kernel(is_global: bool) -> None:
    backend, epochs = started(DeviceBackend, is_global=is_global)
    alone, others = started(KernelBackend, is_global=is_global)
    backend.evaluated.clear()
    for deleted, inserted in ([[2, 3]], [[4, 1], [8, 9]]), ([[4, 1]], [[2, 3]]):
        update = Update({"edge": np.array(deleted, np.int32)}, {"edge": np.array(inserted, np.int32)})
        assert epochs.apply(update).impact == others.apply(update).impact
        assert states(backend) == states(alone)
    assert backend.evaluated == []


@pytest.mark.parametrize("is_global", [False, True])
def test_a_stratum_is_rebuilt_elsewhere_within_an_update(is_global: bool) -> None:
    backend, epochs = started(DeviceBackend, is_global=is_global)
    alone, others = started(KernelBackend, is_global=is_global)
    before = states(backend)
    deleted, inserted = {"edge": np.array([[1, 2]], np.int32)}, {"edge": np.array([[4, 2]], np.int32)}
    for is_committed in (False, True):
        backend.evaluated.clear()
        for each, strategy in ((backend, epochs.strategy), (alone, others.strategy)):
            each.begin(deleted, {**inserted, "path": np.array([[9, 1]], np.int32)}, frozenset({"path"}))
            strategy.update(each)
        assert backend.evaluated == [("path",)]
        came, went = backend.changes.facts()["path"]
        assert (9, 1) in set(map(tuple, came.tolist()))
        assert {(1, 2), (1, 3), (1, 4)} == set(map(tuple, went.tolist()))
        for each in (backend, alone):
            (each.commit if is_committed else each.rollback)()
        assert states(backend) == states(alone)
        if not is_committed:
            assert states(backend) == before
