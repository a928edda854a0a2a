# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""Random programs and updates under a random strategy: facts, levels and counts are those of the reference."""

from __future__ import annotations

import os
import signal
from random import Random

import elastalog
from elastalog.analysis.values import sort_key
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.provenance.check import check_proof
from tests.engine.judging import LEVEL_KINDS, facts_of, judge
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case
from tests.reference.cases import parse_accepted

ALL = Features(ranges=True, text_functors=True, tested_groups=True, records=True)


def differential(seed: int) -> None:
    """Every epoch beside the reference, and a proof of a fact of each relation."""
    random = Random(seed)
    program, updates = seeded_case(seed, ALL)
    strategy = random.choice(sorted(STRATEGIES))
    kind = random.choice(LEVEL_KINDS) if strategy == "elastic" else "local"
    tree, explicit = parse_accepted(program.text), program.explicit
    try:
        db = elastalog.open(
            program.text, facts=program.facts, strategy=strategy, levels=kind, jobs=random.choice((1, 2))
        )
    except ElastalogError as error:
        # `check` accepts what only recursion binds and an aggregate tests; `counting` accepts no recursion.
        assert error.diagnostics[0].code in ("E0602", *(["E0901"] if strategy == "counting" else [])), error
        return
    with db:
        for update in [None, *updates]:
            if update is not None:
                db.apply(update.inserted, update.deleted)
                explicit = update.apply_to(explicit)
            judge(db, tree, explicit, kind, is_annotated=strategy == "elastic")
            facts = facts_of(db)
            for name in db:
                for values in sorted(db[name], key=sort_key)[:1]:
                    verdict = check_proof(db.explain((name, values)), db.program.checked, explicit, facts)
                    assert verdict.accepted, verdict.reason


def interrupts(seed: int) -> None:
    """Ctrl-C at a random instant of an update: the epoch before it stands, or the next one does."""
    random = Random(seed)
    program, updates = seeded_case(seed)
    tree, explicit = parse_accepted(program.text), program.explicit
    with elastalog.open(program.text, facts=program.facts) as db:
        for update in updates:
            before = db.epoch
            handler = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
            signal.setitimer(signal.ITIMER_REAL, random.random() * 0.004 + 1e-5)
            try:
                db.apply(update.inserted, update.deleted)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, handler)
            if db.epoch > before:
                explicit = update.apply_to(explicit)
            judge(db, tree, explicit)
