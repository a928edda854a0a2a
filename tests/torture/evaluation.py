# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""Random programs and updates under all strategies: facts, levels and counts are those of the reference."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import replace
from random import Random

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.session import Session
from elastalog.settings import SETTINGS
from tests.engine.judging import judge
from tests.forcing import THREADS, drawn, forced
from tests.generators.construction import EVERYTHING, Features, GeneratedProgram
from tests.generators.seeded import seeded_case
from tests.generators.strata import large_case
from tests.generators.updates import Update
from tests.interrupting import interrupted_at
from tests.poisoning import poisoned
from tests.reference.cases import parse_accepted
from tests.rules.playing import UNSTRATIFIED, apply, case_of, is_stratified, step_of
from tests.torture.changing import ALL
from tests.torture.comparing import HERE, Comparison, Lineup

MAINTAINED = Features(
    ranges=True, text_functors=True, tested_groups=True, records=True, branches=True, nested_aggregates=True
)
"""What every strategy accepts, but for recursion."""
FEATURES = (
    MAINTAINED,
    MAINTAINED,
    ALL,
    Features(recursion=False, nested_aggregates=True, branches=True),
    Features(equivalences=True, branches=True),
    Features(choices=True, subsumptions=True, records=True),
)
CHANGING = (
    Features(arithmetic=False),
    Features(arithmetic=False, equivalences=True),
    Features(arithmetic=False, recursion=False, nested_aggregates=True),
    Features(disjunctions=True),
    Features(arithmetic=False, choices=True),
)


def differential(seed: int, lineup: Lineup = HERE) -> int:
    """Every epoch of several strategies beside the reference, and proofs at the end."""
    random = Random(seed)
    program, updates = seeded_case(seed, random.choice(FEATURES), 12, 92)
    text = program.text + limit(random, [name for name in program.schemas if name not in program.inputs])
    explicit = program.explicit
    compared = Comparison(text, program.facts, lineup.drawn(random))
    is_judged = compared.judge(explicit)
    for number, update in enumerate(updates if is_judged else ()):
        following = updates[(number + random.choice((1, 1, 1, 2))) % len(updates)]
        compared.advance(update, following)
        explicit = update.apply_to(explicit)
        if not (is_judged := compared.judge(explicit)):
            break
    if is_judged:
        compared.prove()
    compared.close()
    return compared.compared


def threads(seed: int) -> int:
    """The same with several threads, which share out ranges of any size instead of large ones only."""
    random = Random(seed)
    program, updates = seeded_case(seed, random.choice(FEATURES[:4]), 8, 92)
    with forced(**THREADS):
        compared = Comparison(program.text, program.facts, THREADED.drawn(random))
        compared.follow(program.explicit, updates)
        compared.close()
    return compared.compared


THREADED = Lineup(
    (
        {"strategy": "elastic", "jobs": 2},
        {"strategy": "elastic", "jobs": 3, "levels": "global"},
        {"strategy": "elastic", "jobs": 2, "budget": 0.0},
        {"strategy": "recompute", "jobs": 2},
    )
)


def settings(seed: int) -> int:
    """Random programs with everything that the language has, and settings at their extremes."""
    random = Random(seed)
    features = replace(EVERYTHING, recursion=seed % 4 != 0, subsumptions=seed % 5 == 0, choices=seed % 3 == 0)
    return _under_settings(random, *seeded_case(seed, features, 12, 92))


def strata(seed: int) -> int:
    """The same with programs of one large stratum."""
    return _under_settings(Random(seed), *large_case(seed))


def _under_settings(random: Random, program: GeneratedProgram, updates: list[Update]) -> int:
    explicit = program.explicit
    values: dict[str, float] = drawn(random)
    ways = [{**way, "jobs": random.choice((1, 1, 2, 3))} for way in HERE.drawn(random)]
    try:
        with forced(**values), poisoned():
            compared = Comparison(program.text, program.facts, ways)
            is_judged = compared.judge(explicit)
            for update in updates if is_judged else ():
                if random.random() < 0.2:  # other mechanisms go on with what these have left
                    values |= drawn(random)
                    for name, value in values.items():
                        setattr(SETTINGS, name, value)
                compared.advance(update)
                explicit = update.apply_to(explicit)
                if not compared.judge(explicit):
                    break
            compared.close()
    except BaseException as error:
        error.add_note(f"with settings {values}")
        raise
    return compared.compared


def limit(random: Random, derived: list[str]) -> str:
    """Now and then a limit of a derived relation, reached or not."""
    if random.random() < 0.85:
        return ""
    return f".limitsize {random.choice(derived)}(n={random.choice((2, 5, 9, 1000))})\n"


def rule_changes(seed: int, lineup: Lineup = HERE) -> int:
    """Rules come and go with facts, under several strategies, beside the reference."""
    random = Random(seed)
    case = case_of(seed, random.choice(CHANGING), 8)
    if not is_stratified(case.text):
        return 0
    compared = Comparison(case.text, case.facts, lineup.drawn(random))
    for number in range(8):
        step = step_of(case, case.updates[number % len(case.updates)], random)
        rules = [rule for rule in case.current if rule not in step.removed] + step.added
        ways = random.random()
        union = case.header + "".join(f"{rule}\n" for rule in dict.fromkeys((*case.current, *rules)))
        is_refused = not is_stratified(union)
        kept = []
        for runner in compared.runners:
            epoch = runner.db.epoch
            try:
                apply(runner.db, step, Random(ways))
            except ElastalogError as error:
                code = error.diagnostics[0].code
                assert code in (*(UNSTRATIFIED if is_refused else ()), "E0901", "E0616"), (error, runner.way)
                assert runner.db.epoch == epoch
                if is_refused:
                    kept.append(runner)
            else:
                assert not is_refused, runner.way
                kept.append(runner)
        compared.runners = kept
        if not kept:
            break
        if not is_refused:
            case.current, case.explicit = rules, step.update.apply_to(case.explicit)
            compared.tree = parse_accepted(case.text)
        if not compared.judge(case.explicit):
            break
    compared.close()
    return compared.compared


def _apply_for_a_while(db: Session, update: Update, seconds: float) -> None:
    handler = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with suppress(KeyboardInterrupt):  # outside of what disarms the timer: it may fire there
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            db.apply(update.inserted, update.deleted)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, handler)


def interrupts(seed: int) -> int:
    """Ctrl-C at a random instant of an update: the epoch before it stands, or the next one does."""
    random = Random(seed)
    program, updates = seeded_case(seed, None, 8, 90)
    tree, explicit = parse_accepted(program.text), program.explicit
    with elastalog.open(program.text, facts=program.facts) as db:
        for update in updates:
            before = db.epoch
            if random.random() < 0.5:  # some places are passed too quickly for a timer to meet them
                with suppress(KeyboardInterrupt), interrupted_at(int(4000 ** random.random())):
                    db.apply(update.inserted, update.deleted)
            else:
                _apply_for_a_while(db, update, random.random() * 0.004 + 1e-5)
            if db.epoch > before:
                explicit = update.apply_to(explicit)
            judge(db, tree, explicit)
    return len(updates)
