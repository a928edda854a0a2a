"""Several threads give what one gives: facts, levels and counts; and they end when they should."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

import elastalog
from elastalog.backends.kernel import evaluation
from elastalog.backends.kernel.bootstrap.shared_growth import SharedGrowth
from elastalog.backends.kernel.store import crew as crews
from elastalog.backends.kernel.store.crew import Crew
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import LimitReached
from tests.closures import CLOSURE
from tests.engine.judging import followed, levels_of
from tests.forcing import forced
from tests.refusals import refused

# Facts of three and of no columns, mutual recursion, negation, arithmetic, comparisons, constants, symbols, two strata.
MIXED = """
.decl edge(x: number, y: number)
.input edge
.decl named(x: number, name: symbol)
named(x, cat("n", to_string(x % 7))) :- edge(x, _).
.decl odd, even(x: number, y: number)
odd(x, y) :- edge(x, y), x != y.
even(x, z) :- odd(x, y), edge(y, z).
odd(x, z) :- even(x, y), edge(y, z), z > 2.
.decl far(x: number, d: number, y: number)
far(x, 1, y) :- edge(x, y).
far(x, d + 1, z) :- far(x, d, y), edge(y, z), d < 6, !odd(z, x).
.decl kin(a: symbol, b: symbol)
kin(a, b) :- even(x, y), named(x, a), named(y, b), a != b.
.decl some()
some() :- far(_, d, _), d >= 4.
.decl two(x: number, y: number)
two(x, 7) :- even(x, x), some().
two(x, y) :- odd(x, y), even(y, x).
two(x * 1000003 * 1000003, y) :- two(x, y), x < 40, x > 0.
.output odd, even, far, kin, two
"""


@pytest.fixture(params=[(1, 64), (50, 1 << 12)], ids=["little room", "some room"])
def lowered(request: pytest.FixtureRequest) -> Iterator[None]:
    """Thresholds so low that small data take the ways of large data."""
    rows, room = request.param
    ways = dict.fromkeys(("machine_share_from", "share_loading_from", "share_round_from", "least_shared_growth"), rows)
    with forced(**ways, machine_work_of_share=16, machine_least_share=1, least_shared_room=room):
        yield


def graph(nodes: int, edges: int, seed: int) -> np.ndarray[Any, Any]:
    return np.unique(np.random.default_rng(seed).integers(0, nodes, (edges, 2)), axis=0)


def state(program: str, facts: dict[str, Any], relations: list[str], **options: Any) -> dict[str, set[tuple[Any, ...]]]:
    """The facts of relations, with their levels and counts where there are any."""
    with elastalog.open(program, facts, engine="local", **options) as db:
        return read_state(db, relations)


def read_state(db: elastalog.Session, relations: list[str]) -> dict[str, set[tuple[Any, ...]]]:
    result = {}
    for name in relations:
        annotated = db._backend.facts(name)
        values = list(db[name])
        assert len(set(values)) == len(values)
        if annotated.level is not None and annotated.count is not None:
            numbers = zip(annotated.level.tolist(), annotated.count.tolist(), strict=True)
            result[name] = {(*value, *number) for value, number in zip(values, numbers, strict=True)}
        else:
            result[name] = set(values)
    return result


def closure_by_matrices(edges: np.ndarray[Any, Any], nodes: int) -> set[tuple[int, int, int, int]]:
    """Paths with their length and how many paths one edge shorter, and shortest too, they extend."""
    edge = np.zeros((nodes, nodes))  # of floats, whose product is fast, and exact for such numbers
    edge[edges[:, 0], edges[:, 1]] = 1
    result = set()
    known = np.zeros((nodes, nodes), np.bool_)
    latest, ways = edge > 0, edge.copy()
    length = 1
    while latest.any():
        for x, y in np.argwhere(latest).tolist():
            result.add((x, y, length, int(ways[x, y])))
        known |= latest
        ways = latest.astype(np.float64) @ edge
        latest = (ways > 0) & ~known
        length += 1
    return result


@pytest.mark.usefixtures("lowered")
@pytest.mark.parametrize("jobs", [2, 3, 5])
@pytest.mark.parametrize("levels", ["local", "global"])
@pytest.mark.parametrize(("nodes", "edges"), [(60, 90), (40, 400), (200, 260)])
def test_closure_with_levels_and_counts(nodes: int, edges: int, levels: str, jobs: int) -> None:
    edge = graph(nodes, edges, seed=nodes)
    found = state(CLOSURE, {"edge": edge.tolist()}, ["path"], levels=levels, jobs=jobs)
    assert found["path"] == closure_by_matrices(edge, nodes)


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "edges"), [pytest.param(1200, 1800, marks=pytest.mark.long), (600, 12_000)])
def test_closure_at_the_real_thresholds(nodes: int, edges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []
    share = SharedGrowth._share

    def noted(self: SharedGrowth) -> int:
        ended.append(share(self))
        return ended[-1]

    monkeypatch.setattr(SharedGrowth, "_share", noted)
    edge = graph(nodes, edges, seed=1)
    found = state(CLOSURE, {"edge": edge.tolist()}, ["path"], jobs=2)
    assert found["path"] == closure_by_matrices(edge, nodes)
    assert ended


# Five relations that grow at once, by rules with several heads and with one, all of which read each other.
TANGLED = """
.decl edge(x: number, y: number)
.input edge
.decl a, b(x: number, y: number)
.decl c(x: number)
.decl d(x: number, y: number, z: number)
.decl e(x: number)
a(x, y) :- edge(x, y), x % 3 = 0.
b(y, x), c(x) :- a(x, y), edge(y, _).
a(x, z), d(x, y, z) :- b(x, y), edge(y, z), c(y).
e(z) :- d(_, y, z), a(y, z).
c(y), e(x) :- edge(x, y), e(x), b(x, _).
b(x, z) :- a(x, y), b(y, z), e(z).
.output a, b, c, d, e
"""


# Rules that several threads may share and, beside them in the same rounds, rules that make texts.
SPELLED = """
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
.decl word(s: symbol, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
word(to_string(x), y) :- path(x, y), x < 4.
word(cat(s, "a"), z) :- word(s, y), edge(y, z), strlen(s) < 6.
word(cat("b", s), y) :- word(s, y), strlen(s) < 4.
path(x, strlen(s)) :- word(s, x).
.output path, word
"""


@pytest.mark.usefixtures("lowered")
@pytest.mark.parametrize("options", [{"strategy": "recompute"}, {"levels": "local"}, {"levels": "global"}], ids=str)
@pytest.mark.parametrize(
    ("program", "edge", "least"),
    [
        (MIXED, graph(45, 110, seed=3), dict.fromkeys(("odd", "even", "far", "kin", "two", "some"), 1)),
        (TANGLED, graph(70, 210, seed=9), dict.fromkeys("abcde", 21)),
        (SPELLED, graph(30, 60, seed=4), {"path": 1, "word": 301}),
    ],
    ids=["mixed", "rounds of many rules", "texts beside rules that threads share"],
)
def test_several_threads_give_what_one_gives(program: str, edge: Any, least: dict[str, int], options: Any) -> None:
    facts = {"edge": edge.tolist()}
    one = state(program, facts, list(least), jobs=1, **options)
    assert all(len(one[name]) >= number for name, number in least.items())
    for jobs in (2, 3):
        assert state(program, facts, list(least), jobs=jobs, **options) == one


# Strata that read each other or not, with texts that only one of them may make at a time.
STRATA = """
.decl edge(x: number, y: number)
.input edge
.decl a, b(x: number, y: number)
.decl c(x: number)
.decl spelled, marked(s: symbol)
.decl reach(x: number, y: number)
.decl last(s: symbol)
a(x, y) :- edge(x, y), x < y.
b(y, x) :- edge(x, y), x > y.
b(x, x) :- edge(x, _).
c(x) :- edge(x, x).
spelled(cat("s", to_string(x))) :- b(x, _).
reach(x, y) :- a(x, y).
reach(x, z) :- reach(x, y), a(y, z).
marked(cat("m", to_string(x))) :- edge(x, _), !c(x).
last(cat(s, t)) :- spelled(s), marked(t), a(x, _), s = cat("s", to_string(x)), t = cat("m", to_string(x)).
.output reach, last, b
"""


@pytest.mark.usefixtures("lowered")
def test_strata_beside_each_other_are_evaluated_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[list[str]] = []

    def noted(strata: Any, *arguments: Any) -> dict[int, int]:
        rounds.append([name for stratum in strata.values() for name in stratum.relations])
        return evaluate_together(strata, *arguments)

    evaluate_together = evaluation.evaluate_together
    monkeypatch.setattr(evaluation, "evaluate_together", noted)
    facts = {"edge": graph(45, 160, seed=5).tolist()}
    relations = ["a", "b", "c", "spelled", "marked", "reach", "last"]
    found = []
    for jobs in (1, 2, 3):
        with elastalog.open(STRATA, facts, engine="local", strategy="recompute", jobs=jobs) as db:
            watch = db._backend.watch
            rules = [(cost.clause.number, cost.derivations) for cost in db._backend.profile().clauses]
            found.append((read_state(db, relations), rules, watch.derivations, watch.rounds))
            assert bool(rounds) == (jobs > 1)
    assert {"a", "b", "c"} <= set(rounds[0])
    assert {"spelled", "marked"}.isdisjoint(rounds[0])  # their texts wait for their turn
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.usefixtures("lowered")
def test_updates_that_evaluate_anew() -> None:
    edge = graph(60, 120, seed=4).tolist()
    states = []
    for jobs in (1, 2):
        with elastalog.open(CLOSURE, {"edge": edge}, jobs=jobs, budget=0.0) as db:
            with db.update() as update:
                update.delete("edge", [tuple(fact) for fact in edge[::3]])
                update.insert("edge", [(1, 59), (59, 2)])
            states.append(read_state(db, ["path"]))
    kept = [fact for i, fact in enumerate(edge) if i % 3]
    expected = closure_by_matrices(np.array([*kept, (1, 59), (59, 2)]), 60)
    assert states == [{"path": expected}, {"path": expected}]


# Two rules for a head, a head that is only found by enumeration, negation, a stratum above, texts beside.
MAINTAINED = """
.decl edge(x: number, y: number)
.decl blocked(x: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z), !blocked(y).
.decl hub(x: number)
hub(x) :- path(x, y), path(y, x), edge(x, _).
.decl named(x: number, s: symbol)
named(x, cat("n", to_string(x))) :- hub(x).
named(y, s) :- named(x, s), edge(x, y), !blocked(y).
"""


@pytest.mark.parametrize("levels", ["local", "global"])
@pytest.mark.parametrize(
    ("jobs", "starts", "enumerate_from"), [(2, 1, 0), (5, 1, 0), (3, 5, 1 << 40), (2, 1 << 14, 1), (5, 1 << 14, 1)]
)
def test_updates_that_threads_share(jobs: int, levels: str, starts: int, enumerate_from: int) -> None:
    choice = random.Random(jobs * starts)
    with forced(share_update_from=0, shared_starts=starts, work_between_checks=5, enumerate_from=enumerate_from):
        facts = {"edge": set(map(tuple, graph(32, 80, seed=jobs).tolist())), "blocked": {(1,), (2,)}}
        options: dict[str, Any] = {"engine": "local", "levels": levels, "budget": None, "jobs": jobs}
        with followed(MAINTAINED, facts, "anew", **options) as session:
            for _ in range(5):
                edges = sorted(session.explicit["edge"])
                gone = {
                    "edge": set(choice.sample(edges, min(len(edges), choice.randrange(1, 25)))),
                    "blocked": session.explicit["blocked"],
                }
                come = {
                    "edge": {(choice.randrange(32), choice.randrange(32)) for _ in range(choice.randrange(20))},
                    "blocked": {(choice.randrange(32),)},
                }
                session.apply(come, gone)
            shared = session.db._backend.updates.maintenance.scheduler._shared
            assert shared._looked, "threads shared nothing"


def test_what_threads_spare_an_update_says_nothing_of_what_a_derivation_costs() -> None:
    edge = graph(60, 200, seed=2).tolist()
    some = {"edge": [tuple(fact) for fact in edge[::5]]}
    weights, efforts = [], []
    with forced(share_update_from=0, work_between_checks=5):
        for jobs in (1, 4):
            with elastalog.open(CLOSURE, {"edge": edge}, engine="local", budget=None, jobs=jobs) as db:
                watch, strategy = db._backend.watch, cast(Any, db._epochs.strategy)
                before = watch.effort
                db.apply(deleted=some)
                efforts.append(watch.effort - before)
                known = [known for known in strategy.costs._known.values() if known.weighed]
                weights.append(max(one.weight for one in known))
    assert efforts[1] < 0.8 * efforts[0]
    assert weights[0] / 2 < weights[1] < 2 * weights[0]


@pytest.mark.usefixtures("_none_left")
@pytest.mark.parametrize("fails_at", [1, 4, 15, 40])
def test_a_failure_in_an_update_that_threads_share(fails_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The epoch before is left, and the next update finds all in order."""
    edge = graph(40, 120, seed=7).tolist()
    checks = itertools.count()

    def check(self: Watch) -> None:
        if next(checks) == fails_at and threading.current_thread() is not threading.main_thread():
            raise LimitReached([])

    with (
        forced(share_update_from=0, shared_starts=64, work_between_checks=5),
        elastalog.open(CLOSURE, {"edge": edge}, engine="local", budget=None, jobs=3) as db,
    ):
        before = levels_of(db)
        some = {"edge": [tuple(fact) for fact in edge[::4]]}
        with monkeypatch.context() as patched:
            patched.setattr(Watch, "check", check)
            with contextlib.suppress(LimitReached):
                db.apply(deleted=some)
                db.apply(inserted=some)
        if db.epoch == 0:
            assert levels_of(db) == before
        for epochs in ({"deleted": some}, {"inserted": some}):
            db.apply(**epochs)
        assert levels_of(db) == before


@pytest.mark.parametrize("is_annotated", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_growth_keeps_every_row(width: int, is_annotated: bool) -> None:
    relation = KernelRelation("r", width, is_annotated, Crew(3))
    block = np.random.default_rng(5).permutation(3 * 7000).astype(np.int32)[: width * 7000].reshape(-1, width)
    relation.load(block)
    with forced(divide_table_from=1):
        relation.reserve(40_000)
    assert len(relation.table) * 11 >= 40_000 * 16
    assert np.count_nonzero(relation.table) == relation.used == 7000
    assert np.array_equal(relation.find(block), np.arange(7000))


@pytest.fixture
def _none_left() -> Iterator[None]:
    """A moment later there are no more threads than before: Spark may have some, in the same process."""
    before = threading.active_count()
    yield
    deadline = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


@pytest.mark.usefixtures("lowered", "_none_left")
def test_an_overflow_in_a_thread_is_reported() -> None:
    program = """
    .decl n(x: number)
    .input n
    .decl m(x: number)
    m(x * 4611686018427387904) :- n(x).
    .output m
    """
    with refused("E0601"):
        elastalog.open(program, {"n": [(x,) for x in range(500)]}, jobs=3)


@pytest.mark.usefixtures("lowered", "_none_left")
def test_a_time_limit_ends_all_threads() -> None:
    with pytest.raises(LimitReached):
        elastalog.open(CLOSURE, {"edge": graph(400, 4000, seed=1).tolist()}, jobs=2, limits=elastalog.Limits(time=0.01))


@pytest.mark.usefixtures("lowered", "_none_left")
def test_a_budget_ends_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    created = Watch.__init__

    def limited(self: Watch, *arguments: Any, **options: Any) -> None:
        created(self, *arguments, **options)
        self.allow(1000)

    monkeypatch.setattr(Watch, "__init__", limited)
    with pytest.raises(BudgetExceeded):
        elastalog.open(CLOSURE, {"edge": graph(100, 300, seed=1).tolist()}, jobs=2, strategy="recompute")


# Seconds of work each: blocks that a filter empties, blocks that a membership test empties, blocks of derived facts.
ENDLESS = {
    "filtered": "none(x, y) :- n(x), n(y), n(z), x + y + z < 0.",
    "denied": "none(x, y) :- n(x), n(y), z = (x + y) * 0, !n(z).",
    "derived": "none(x, y) :- n(x), n(y), n(z), x + y != z.",
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of the system")
@pytest.mark.parametrize("rule", ENDLESS.values(), ids=ENDLESS.keys())
@pytest.mark.usefixtures("_none_left", "uncollected")
def test_an_interruption_ends_all_threads(rule: str) -> None:
    program = f"""
    .decl n(x: number)
    .input n
    .decl none(x: number, y: number)
    {rule}
    .output none
    """

    def interrupt(number: int, frame: Any) -> None:
        interrupted.append(time.process_time())
        raise KeyboardInterrupt

    interrupted: list[float] = []
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            elastalog.open(
                program,
                {"n": [(x,) for x in range(20_000)]},
                jobs=2,
                strategy="recompute",
                limits=elastalog.Limits(time=60),
            )
        assert time.process_time() - interrupted[0] < 2.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_failure_of_one_thread_is_raised_when_all_have_ended() -> None:
    stopped = threading.Event()
    ended = []

    def work(number: int) -> None:
        if number == 1:
            raise ValueError("one")
        stopped.wait(30)
        ended.append(number)

    with pytest.raises(ValueError, match="one"):
        Crew(3).do(work, stopped.set)
    assert sorted(ended) == [0, 2]


def _others_at_work(work_of: Crew) -> set[threading.Thread]:
    """Has a crew of three meet; its threads but this one."""
    known: set[threading.Thread] = set()
    together = threading.Barrier(3)

    def work(number: int) -> None:
        known.add(threading.current_thread())
        together.wait(30)

    work_of.do(work, together.abort)
    assert len(known) == 3
    return known - {threading.current_thread()}


def test_limits_hold_in_every_thread() -> None:
    """They are known by the context, which a new thread does not have by itself."""
    seen: list[int | None] = []
    token = quota.LIMIT.set(1 << 30)
    try:
        Crew(3).do(lambda _: seen.append(quota.LIMIT.get()), lambda: None)
    finally:
        quota.LIMIT.reset(token)
    assert seen == [1 << 30] * 3


def test_threads_of_a_crew_stay_for_the_next_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "_PATIENCE", 60)
    crew = Crew(3)
    try:
        assert _others_at_work(crew) == _others_at_work(crew)
    finally:
        crew._dismiss()


def test_threads_of_a_crew_end_when_there_is_no_work() -> None:
    crew = Crew(3)
    for _ in range(2):
        for thread in _others_at_work(crew):
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_crew_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "_PATIENCE", 60)
    crew = Crew(3)
    try:
        _others_at_work(crew)
        child = os.fork()
        if not child:
            os._exit(len(_others_at_work(crew)))
        deadline = time.monotonic() + 30
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        if ended[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert ended == (child, 2 << 8)
    finally:
        crew._dismiss()


def test_a_crew_works_on_after_a_failure() -> None:
    crew = Crew(2)

    def fail(number: int) -> None:
        raise ValueError(number)

    for _ in range(2):
        with pytest.raises(ValueError, match=r"0|1"):
            crew.do(fail, lambda: None)
        done: list[int] = []
        crew.do(done.append, lambda: None)
        assert sorted(done) == [0, 1]


def test_a_crew_that_is_interrupted_leaves_no_thread_at_work() -> None:
    crew, stopped, ended = Crew(2), threading.Event(), []

    def work(number: int) -> None:
        if number == 0:
            signal.raise_signal(signal.SIGALRM)
        stopped.wait(30)
        ended.append(number)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            crew.do(work, stopped.set)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended == [1]
    crew.do(ended.append, lambda: None)
    assert sorted(ended[1:]) == [0, 1]


@pytest.mark.usefixtures("lowered")
def test_what_several_threads_count_is_what_one_counts() -> None:
    facts = {"edge": graph(70, 210, seed=9).tolist()}
    counted = []
    for jobs in (1, 2):
        with elastalog.open(TANGLED, facts, jobs=jobs, engine="local") as db:
            watch = db._backend.watch
            rules = [(cost.clause.number, cost.derivations) for cost in db._backend.profile().clauses]
            counted.append((watch.derivations, watch.rows, watch.rounds, rules))
    assert counted[0] == counted[1]


def test_small_programs_start_no_threads() -> None:
    script = (
        "import threading, elastalog\n"
        "program = '.decl e, p(x: number, y: number)\\np(x, y) :- e(x, y).\\np(x, z) :- p(x, y), e(y, z).'\n"
        "facts = {{'e': [(i, i + {step}) for i in range({size})]}}\n"
        "db = elastalog.open(program, facts, jobs={jobs}, engine='local')\n"
        "print(threading.active_count() > 1)"
    )
    for jobs, size, step, expected in ((1, 300, 1, "False"), (2, 300, 1, "False"), (2, 70_000, 70_000, "True")):
        command = [sys.executable, "-c", script.format(jobs=jobs, size=size, step=step)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == expected
