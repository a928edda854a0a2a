"""Rule changes in a store: durable, crash-safe, and part of its history."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import FindingWarning
from elastalog.evaluation.stored import DurableEpochs
from elastalog.program import rule_texts
from elastalog.session import Session
from elastalog.storage.administration import check_files
from elastalog.storage.entries import ProgramChange
from elastalog.storage.manifest import Options
from tests.closures import CLOSURE as REACH
from tests.engine.judging import facts_of
from tests.failpoints import EXIT_CODE, Stopped, recording, stop_at
from tests.refusals import refused
from tests.rules.playing import apply, case_of, step_of
from tests.rules.test_random import is_stratified
from tests.storage.conftest import folder as folder
from tests.storage.scripted import FACTS, PROGRAM, State, in_child, state_of, write_snapshot


@pytest.fixture(params=[False, True], ids=["by the commit", "in the background"])
def snapshots(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to write snapshots, for lives with many of them."""
    monkeypatch.setattr(DurableEpochs, "in_background", request.param)


# Hidden relations get other names (the aggregate's rule has another number), come, and go.
STEPS: tuple[tuple[str, list[int | str], dict[str, Any]], ...] = (
    ("", ["path(x, z) :- path(x, y), edge(y, z)."], {"edge": [(3, 4)]}),
    (".decl ends(x: number)\nends(y) :- edge(_, y), !edge(y, _).\nends(77).", [], {}),
    ("path(x, z) :- path(x, y), edge(y, z).", [1], {"label": [(10**13, "further")]}),
    ("", [2], {"edge": [(4, 5), (1, 3)], "ends": [(78,)]}),
    ("path(x, y) :- edge(x, y).\nlone(t) :- label(_, t), 2 < count : { ends(_) }.", [], {"label": [(9, "nine")]}),
    ("edge(x, z) :- path(x, y), edge(y, z).", ["ends(y) :- edge(_, y), !edge(y, _)."], {}),
)


def go_on(session: Session, committed: Callable[[int], None] = lambda epoch: None, last: int = 99) -> None:
    for number, (added, removed, facts) in enumerate(STEPS, 2):
        if session.epoch < number <= last:
            with session.update("script", number) as update:
                update.remove_rules(removed)
                if added:
                    update.add_rules(added)
                for name, rows in facts.items():
                    update.insert(name, rows)
            committed(session.epoch)


def rules_of(session: Session) -> tuple[str, ...]:
    return rule_texts(session.program)


def expected() -> dict[int, tuple[State, tuple[str, ...]]]:
    session = elastalog.open(PROGRAM, facts=FACTS)
    states = {1: (state_of(session), rules_of(session))}
    go_on(session, lambda epoch: states.update({epoch: (state_of(session), rules_of(session))}))
    return states


EXPECTED = expected()
LAST = 1 + len(STEPS)


def create(path: Path, **options: Any) -> Session:
    session = elastalog.open(PROGRAM, facts=FACTS)
    session._history.keep_in(path, Options(**{"journal_epochs": 2, "retention": 100, **options}))
    return session


@pytest.mark.usefixtures("snapshots")
@pytest.mark.parametrize("journal_epochs", [1, 2, 100])
def test_reopening_after_every_epoch(folder: Path, journal_epochs: int) -> None:
    path = folder / "store"
    create(path, journal_epochs=journal_epochs).close()
    for number in range(1, LAST + 1):
        with elastalog.open(store=path) as session:
            assert session.epoch == number
            assert (state_of(session), rules_of(session)) == EXPECTED[number]
            assert session.verify().is_exact
            for earlier in range(1, number + 1):
                with session.at(earlier) as past:
                    assert (state_of(past), rules_of(past)) == EXPECTED[earlier]
            if number < LAST:
                added, removed, facts = STEPS[number - 1]
                with session.update("script", number + 1) as update:
                    update.remove_rules(removed)
                    if added:
                        update.add_rules(added)
                    for name, rows in facts.items():
                        update.insert(name, rows)
        assert check_files(path)[0] == []
    for number in range(1, LAST + 1):
        with elastalog.open(store=elastalog.Store(path, at=number)) as past:
            assert (state_of(past), rules_of(past)) == EXPECTED[number]


def test_facts_go_on_after_rules_have_changed(folder: Path) -> None:
    path = folder / "store"
    with create(path) as session:
        go_on(session)
        session.apply({"edge": [(5, 1)]}, {"label": [(1, "one")]})
        state = state_of(session)
    with elastalog.open(store=path) as session:
        assert state_of(session) == state
        assert session.verify().is_exact


def test_a_batch_with_rules_is_applied_once(folder: Path) -> None:
    with create(folder / "store") as session:
        for _ in range(2):
            session.change_rules("lone(t) :- label(_, t).", ["path(x, y) :- edge(x, y)."], source="s", batch=1)
        assert session.epoch == 2
    with elastalog.open(store=folder / "store") as session:
        with refused("E0932"):
            session.change_rules('lone(t) :- label(_, t), t != "x".', source="s", batch=1)
        session.change_rules("lone(t) :- label(_, t).", ["path(x, y) :- edge(x, y)."], source="s", batch=1)
        assert (session.epoch, len(session.program.checked.rules)) == (2, 4)


def test_the_log_names_rules(folder: Path) -> None:
    with create(folder / "store") as session:
        go_on(session)
    with elastalog.open(store=folder / "store") as session:
        entries = session.log()
        assert entries[1].removed_rules == ("path(x, z) :- path(x, y), edge(y, z).",)
        assert entries[2].added_rules == ("ends(y) :- edge(_, y), !edge(y, _).",)


def test_debugging_across_reopening(folder: Path) -> None:
    with create(folder / "store") as session:
        go_on(session)
    with elastalog.open(store=folder / "store") as session:
        blame = session.blame("ends(77)")
        assert (blame.epoch, [str(e) for e in blame.elements]) == (3, ["+ends(77)"])
        localisation = session.localise(missing=["path(1, 3)"], epochs=(1, 2))
        assert [str(e) for e in localisation.elements] == ["-path(x, z) :- path(x, y), edge(y, z)."]
        suggestion = session.suggest(unwanted=["edge(1, 4)"])
        assert [str(e) for e in suggestion.elements] == ["+edge(x, z) :- path(x, y), edge(y, z)."]
        suggestion.apply()
        assert (1, 4) not in session["edge"]
    with elastalog.open(store=folder / "store") as session:
        assert session.epoch == LAST + 1
        assert session.verify().is_exact


def test_the_program_that_a_store_was_made_for_opens_it_with_the_changed_rules(folder: Path) -> None:
    path, other = folder / "store", PROGRAM + 'label(9, "x") :- edge(1, _).\n'
    with create(path) as session:
        go_on(session)
        text, state = session.program.tree.source.text, state_of(session)
    for given in (PROGRAM, f"// a comment\n{PROGRAM}"):
        with pytest.warns(FindingWarning, match=r"E0810.*were changed (in|by) epoch") as caught:
            session = elastalog.open(given, store=path)
        assert len(caught) == 1
        with session:
            assert (session.program.tree.source.text, state_of(session)) == (text, state)
    elastalog.open(text, store=path).close()
    with refused("E0810") as found:
        elastalog.open(other, store=path)
    assert not found.value.diagnostics[0].notes
    with elastalog.open(store=path) as session:
        session.upgrade(other)
        session.change_rules("label(10, t) :- label(9, t).")
        state = state_of(session)
    with (
        pytest.warns(FindingWarning, match=rf"epoch.* {LAST + 2} \(1 added, 0 removed\)"),
        elastalog.open(other, store=path) as session,
    ):
        assert state_of(session) == state
    with refused("E0810"):
        elastalog.open(PROGRAM, store=path)


def test_an_upgrade_to_what_the_rules_have_become_is_noted(folder: Path) -> None:
    """Once they have changed again, a store opens with the program that it was last upgraded to."""
    path, rule = folder / "store", "label(10, t) :- label(9, t).\n"
    with create(path) as session:
        session.change_rules(rule)
    with elastalog.open(store=path) as session:
        session.upgrade(PROGRAM + rule)
        assert session.epoch == 3
        session.upgrade(PROGRAM + rule)
        assert session.epoch == 3
    with elastalog.open(store=path) as session:
        session.change_rules("label(11, t) :- label(9, t).")
    with pytest.warns(FindingWarning, match="E0810"):
        elastalog.open(PROGRAM + rule, store=path).close()


def test_rules_that_an_earlier_version_changed_may_be_those_of_another_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "store"
    written = ProgramChange.written
    with create(path) as session, monkeypatch.context() as earlier:
        earlier.setattr(
            ProgramChange, "written", lambda one: {k: v for k, v in written(one).items() if k != "made_for"}
        )
        session.change_rules("label(10, t) :- label(9, t).")
    with refused("E0810") as found:
        elastalog.open(PROGRAM, store=path)
    assert "or its rules were changed in epoch 2" in found.value.diagnostics[0].notes[0]
    with elastalog.open(store=path) as session:
        session.upgrade(PROGRAM)
        session.change_rules("label(11, t) :- label(9, t).")
    with pytest.warns(FindingWarning, match="E0810"):
        elastalog.open(PROGRAM, store=path).close()


@pytest.mark.usefixtures("snapshots")
@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_seeded(folder: Path, strategy: str) -> None:
    for seed in range(12):
        case, choice = case_of(seed), Random(seed)
        if not is_stratified(case.header + "".join(f"{rule}\n" for rule in case.pool)):
            continue
        path = folder / f"store-{seed}"
        session = elastalog.open(case.text, facts=case.facts, strategy=strategy)
        session._history.keep_in(
            path, Options(strategy=strategy, journal_epochs=choice.choice((1, 2, 4)), retention=50)
        )
        states = {1: (facts_of(session), rules_of(session))}
        for number in range(6):
            step = step_of(case, case.updates[number % len(case.updates)], choice)
            apply(session, step, choice)
            case.current = [rule for rule in case.current if rule not in step.removed] + step.added
            states[session.epoch] = facts_of(session), rules_of(session)
            if choice.random() < 0.5:
                session.close()
                session = elastalog.open(store=path)
            assert (facts_of(session), rules_of(session)) == states[session.epoch]
        for epoch, state in states.items():
            with session.at(epoch) as past:
                assert (facts_of(past), rules_of(past)) == state
        if strategy == "elastic":
            assert session.verify().is_exact
        session.close()


# --- crashes -------------------------------------------------------------------------------------------------------


def stopped_lives(folder: Path, first: int, last: int) -> Iterator[tuple[Path, int]]:
    """Stores that were stopped at every failpoint between two epochs, with the last epoch that was told of."""
    base = folder / "base"
    with create(base, journal_epochs=1) as session:
        go_on(session, last=first)
    shutil.copytree(base, folder / "recorded")
    with recording() as reached, elastalog.open(store=folder / "recorded") as session:
        go_on(session, last=last)
    for number in range(1, len(reached) + 1):
        path = folder / "stopped"
        shutil.copytree(base, path)

        def work(tell: Callable[[int], None], path: Path = path, number: int = number) -> None:
            with stop_at(number, action="exit"), elastalog.open(store=path) as session:
                tell(session.epoch)
                go_on(session, tell, last)

        status, committed = in_child(work)
        assert os.waitstatus_to_exitcode(status) == EXIT_CODE, reached[number - 1]
        yield path, committed
        shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.usefixtures("snapshots")
@pytest.mark.parametrize("snapshots", [False], indirect=True)  # failpoints are counted in one thread
def test_a_crash_at_every_failpoint_leaves_the_epoch_before_or_after(folder: Path) -> None:
    first, last = 2, 3
    epochs = set()
    for path, committed in stopped_lives(folder, first, last):
        with elastalog.open(store=path) as session:
            epochs.add(session.epoch)
            assert session.epoch in (committed, committed + 1) or (committed == 0 and session.epoch == first)
            assert (state_of(session), rules_of(session)) == EXPECTED[session.epoch]
        assert check_files(path)[0] == []
        if committed % 3 == 0:
            with elastalog.open(store=path) as session:
                go_on(session)
                assert (state_of(session), rules_of(session)) == EXPECTED[LAST]
    assert epochs == set(range(first, last + 1))


def test_a_write_that_fails_leaves_session_and_store_at_the_epoch_before(folder: Path) -> None:
    with create(folder / "store", journal_epochs=100) as session:
        for point in ("journal.write.before", "journal.write.middle", "journal.fsync.before"):
            with pytest.raises(Stopped), stop_at(1, point):
                session.change_rules("lone(t) :- label(_, t).", [1, 3])
            assert (state_of(session), rules_of(session), session.epoch) == (*EXPECTED[1], 1)
        go_on(session)
        assert (state_of(session), rules_of(session)) == EXPECTED[LAST]
    with elastalog.open(store=folder / "store") as session:
        assert (state_of(session), rules_of(session)) == EXPECTED[LAST]


OVERFLOWS = "path(x * 4611686018427387904, y) :- edge(x, y)."


def test_errors_in_added_rules_are_placed_in_the_added_text(tmp_path: Path) -> None:
    def refused(**change: Any) -> str:
        with pytest.raises(elastalog.ElastalogError) as raised:
            session.change_rules(**change)
        return str(raised.value)

    with elastalog.open(REACH, {"edge": [(3, 4)]}, store=tmp_path / "store"):
        pass
    for _ in range(2):  # of the program as it was made, and of one that has been changed
        with elastalog.open(store=tmp_path / "store") as session:
            told = refused(added="\n.decl path(x: number)")
            assert "--> <added rules>:2:7" in told
            assert "note: first declared here: `.decl edge, path(x: number, y: number)`" in told
            told = refused(added=OVERFLOWS)  # found while it is evaluated
            assert "`3 * 4611686018427387904` does not fit" in told
            assert "--> <added rules>:1:6" in told
            session.change_rules(added=f"path({session.epoch}, x) :- edge(x, _).", removed=2)


def test_lines_of_a_changed_program_are_not_said_to_be_in_its_file(tmp_path: Path) -> None:
    def told_by(session: elastalog.Session) -> str:
        with pytest.raises(elastalog.ElastalogError) as raised:
            session.apply({"edge": [(3, 4)]})
        return str(raised.value)

    path = tmp_path / "store"
    (tmp_path / "reach.dl").write_text(REACH)
    with elastalog.open(tmp_path / "reach.dl", store=path) as session:
        session.change_rules(added=OVERFLOWS)
        line = len(REACH.splitlines()) + 1
        assert f"--> {tmp_path / 'reach.dl'} (rules changed):{line}:6" in told_by(session)
    with elastalog.open(store=path) as session:
        assert f"--> {path} (program since epoch 2):{line}:6" in told_by(session)
        assert session.at(1).program.tree.source.name == str(path / "program.dl")
        write_snapshot(session)
    with elastalog.open(store=path) as session:
        name = session.program.tree.source.name
        assert f"--> {name}:{line}:6" in told_by(session)
        assert Path(name).read_text() == session.program.tree.source.text
