"""What threads do without locks, as a model: every interleaving of their steps, each of which is one access to memory
that they share, leaves what it must; and mistakes that one could make are found.

`insert` follows `store.inserting._insert` line by line, over a table of four slots; `meet` follows `arrive`,
`let_pass`, `look` and `sleep` of `jit.atomics`. All accesses are in one order, as these have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import pytest

SLOTS = 4


class Wrong(Exception):
    """Something that must not be."""


Step = Callable[[Any, Any], tuple[Any, Any] | None]


def explore(shared: Any, threads: tuple[Any, ...], step: Step, is_done: Callable[[Any], bool]) -> Iterator[Any]:
    """All states of shared memory in which threads can end. Raises Wrong if some cannot go on."""
    seen = {(shared, threads)}
    left = [(shared, threads)]
    while left:
        shared, threads = left.pop()
        if all(map(is_done, threads)):
            yield shared, threads
            continue
        is_stuck = True
        for number, thread in enumerate(threads):
            after = None if is_done(thread) else step(shared, thread)
            if after is not None:
                is_stuck = False
                state = after[0], (*threads[:number], after[1], *threads[number + 1 :])
                if state not in seen:
                    seen.add(state)
                    left.append(state)
        if is_stuck:
            raise Wrong("nobody can go on")


# --- insertion -----------------------------------------------------------------------------------------------------


class Store(NamedTuple):
    table: tuple[int, ...] = (0,) * SLOTS  # a row + 1
    rows: tuple[str, ...] = ("",) * 8
    count: tuple[int, ...] = (0,) * 8
    given: int = 0
    room: int = 8
    turn: int = 2


class Inserting(NamedTuple):
    facts: tuple[str, ...]
    at: str = "look"
    slot: int = -1
    row: int = -1
    own: int = 0
    end: int = 0


def put(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])


def home(fact: str) -> int:
    """Facts of one letter begin at the same slot."""
    return ord(fact[0]) % SLOTS


def insert(store: Store, thread: Inserting, mistake: str = "") -> tuple[Store, Inserting] | None:
    """The next step of a thread."""
    fact, following = thread.facts[0], thread._replace(facts=thread.facts[1:], at="look", slot=-1)
    slot = home(fact) if thread.slot < 0 else thread.slot
    match thread.at:
        case "look":
            entry = store.table[slot]
            if entry:
                return store, thread._replace(at="compare", slot=slot, row=entry - 1)
            return store, thread._replace(at="take" if thread.own == thread.end else "write", slot=slot)
        case "take":
            first = store.given
            if first + store.turn > store.room:
                return store._replace(given=first + store.turn), thread._replace(facts=(), at="full")
            taken = thread._replace(at="write", own=first, end=first + store.turn)
            return store._replace(given=first + store.turn), taken
        case "write":
            if mistake == "row after slot" and store.rows[thread.own] == "":
                written = store
            else:
                written = store._replace(rows=put(store.rows, thread.own, fact))
            return written._replace(count=put(store.count, thread.own, 1)), thread._replace(at="put")
        case "put":
            entry = store.table[slot]
            if entry and mistake != "no comparison":
                return store, thread._replace(at="compare", row=entry - 1)
            written = store._replace(table=put(store.table, slot, thread.own + 1))
            if mistake == "row after slot":
                return written, thread._replace(at="late")
            return written, following._replace(own=thread.own + 1)
        case "late":
            return store._replace(rows=put(store.rows, thread.own, fact)), following._replace(own=thread.own + 1)
        case "compare":
            if not store.rows[thread.row]:
                raise Wrong("a slot refers to a row that is not written")
            if store.rows[thread.row] == fact:
                return store, thread._replace(at="count")
            return store, thread._replace(at="look", slot=(slot + 1) % SLOTS)
        case "count":
            if mistake == "count in two steps":
                return store, thread._replace(at="add", end=thread.end + 100 * store.count[thread.row])
            return store._replace(count=put(store.count, thread.row, store.count[thread.row] + 1)), following
        case "add":
            seen, end = divmod(thread.end, 100)
            return store._replace(count=put(store.count, thread.row, seen + 1)), following._replace(end=end)
    raise AssertionError(thread.at)


def check_inserted(store: Store, threads: tuple[Inserting, ...], given: tuple[tuple[str, ...], ...]) -> None:
    """Every fact once, with as many derivations as were found; what is left of turns closes the gaps."""
    rows = [entry - 1 for entry in store.table if entry]
    facts = [store.rows[row] for row in rows]
    derived = [fact for some in given for fact in some]
    if sorted(facts) != sorted(set(derived)):
        raise Wrong(f"{facts} of {derived}")
    if any(store.count[row] != derived.count(store.rows[row]) for row in rows):
        raise Wrong(f"{store.count} of {derived}")
    gaps = {row for thread in threads for row in range(thread.own, thread.end)}
    if sorted(rows) != [row for row in range(store.given) if row not in gaps]:
        raise Wrong(f"rows {rows}, gaps {gaps}")


def inserted(given: tuple[tuple[str, ...], ...], turn: int, mistake: str = "") -> int:
    """Tries all interleavings; returns how many ends there are."""
    threads = tuple(Inserting(facts) for facts in given)
    number = 0
    for store, ended in explore(
        Store(turn=turn), threads, lambda store, thread: insert(store, thread, mistake), lambda t: not t.facts
    ):
        check_inserted(store, ended, given)
        number += 1
    return number


PAIRS = [*product(("a1", "a2", "b1"), repeat=2)]
"""Two facts from the same slot on, and one that may find its own taken."""


@pytest.mark.parametrize("turn", [1, 2])
def test_facts_are_inserted_once_whoever_is_faster(turn: int) -> None:
    ends = [inserted((first, second), turn) for first in PAIRS for second in PAIRS]
    assert max(ends) > 1


@pytest.mark.parametrize("mistake", ["no comparison", "count in two steps", "row after slot"])
def test_the_model_finds_mistakes_of_insertion(mistake: str) -> None:
    def all_pairs() -> None:
        for first, second in product(PAIRS, PAIRS):
            inserted((first, second), 1, mistake)

    with pytest.raises(Wrong):
        all_pairs()


def test_threads_that_find_no_room_leave_off_with_what_they_have() -> None:
    given = ("a1", "a2"), ("b1", "b2")
    threads = tuple(Inserting(facts) for facts in given)
    ends = [*explore(Store(turn=2, room=3), threads, insert, lambda t: not t.facts)]
    assert ends
    for store, ended in ends:
        rows = {entry - 1 for entry in store.table if entry}
        assert {thread.at for thread in ended} == {"look", "full"}
        assert rows == {0, 1}
        assert len({store.rows[row] for row in rows}) == 2


# --- the barrier ---------------------------------------------------------------------------------------------------


class Gate(NamedTuple):
    arrived: int = 0
    passed: int = 0
    sleeping: int = 0
    asleep: frozenset[int] = frozenset()
    came: tuple[int, ...] = ()  # how often each thread has


class Meeting(NamedTuple):
    number: int
    left: int
    at: str = "begin"
    before: int = 0


def meet(gate: Gate, thread: Meeting, mistake: str = "") -> tuple[Gate, Meeting] | None:
    """The next step of a thread; None if it sleeps."""
    over = thread._replace(at="begin", left=thread.left - 1)
    match thread.at:
        case "begin":
            came = put(gate.came, thread.number, gate.came[thread.number] + 1)
            return gate._replace(came=came), thread._replace(at="arrive", before=gate.passed)
        case "arrive":
            is_last = gate.arrived + 1 == len(gate.came)
            return gate._replace(arrived=gate.arrived + 1), thread._replace(at="one" if is_last else "look")
        case "one":
            if len(set(gate.came)) > 1:
                raise Wrong("one has not come")
            return gate._replace(arrived=0), thread._replace(at="ask" if mistake == "asks too early" else "open")
        case "open":
            opened = gate._replace(passed=gate.passed + 1)
            return opened, over if mistake == "asks too early" else thread._replace(at="ask")
        case "ask":
            if mistake == "asks too early":
                woken = gate._replace(asleep=frozenset()) if gate.sleeping else gate
                return woken, thread._replace(at="open")
            return gate, thread._replace(at="wake") if gate.sleeping else over
        case "wake":
            return gate._replace(asleep=frozenset()), over
        case "look":
            return gate, after_waiting(gate, thread, over) if gate.passed != thread.before else thread._replace(
                at="lie"
            )
        case "lie":
            return gate._replace(sleeping=gate.sleeping + 1), thread._replace(at="sleep")
        case "sleep":  # in the system, one step
            if mistake != "sleeps anyway" and gate.passed != thread.before:
                return gate, thread._replace(at="rise")
            return gate._replace(asleep=gate.asleep | {thread.number}), thread._replace(at="asleep")
        case "asleep":
            return None if thread.number in gate.asleep else (gate, thread._replace(at="sleep"))
        case "rise":
            return gate._replace(sleeping=gate.sleeping - 1), after_waiting(gate, thread, over)
    raise AssertionError(thread.at)


def after_waiting(gate: Gate, thread: Meeting, over: Meeting) -> Meeting:
    if min(gate.came) < gate.came[thread.number]:
        raise Wrong("a thread has passed before all had come")
    return over


def met(threads: int, times: int, mistake: str = "") -> int:
    begun = tuple(Meeting(number, times) for number in range(threads))
    gate = Gate(came=(0,) * threads)
    ends = [
        gate for gate, _ in explore(gate, begun, lambda gate, thread: meet(gate, thread, mistake), lambda t: not t.left)
    ]
    assert all((gate.passed, gate.arrived, gate.sleeping) == (times, 0, 0) for gate in ends)
    return len(ends)


@pytest.mark.parametrize(("threads", "times"), [(2, 3), (3, 2)])
def test_all_pass_a_barrier_and_nobody_too_early(threads: int, times: int) -> None:
    assert met(threads, times)


@pytest.mark.parametrize("mistake", ["asks too early", "sleeps anyway"])
def test_the_model_finds_mistakes_of_the_barrier(mistake: str) -> None:
    with pytest.raises(Wrong, match="nobody can go on"):
        met(2, 2, mistake)
