# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""Sessions of one program under many strategies, compared with one evaluation by the reference after every epoch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random
from typing import Any

import elastalog
from elastalog.analysis.values import sort_key
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.provenance.check import check_proof
from elastalog.session import Session
from elastalog.syntax import tree as syntax
from tests.engine.judging import Facts, Kind, comparable, facts_of, levels_of
from tests.reference.evaluator import evaluate, program_of
from tests.reference.levels import Levels, levels

ALWAYS: tuple[dict[str, Any], ...] = ({"strategy": "elastic"},)
OTHERS: tuple[dict[str, Any], ...] = (
    {"strategy": "elastic", "levels": "global"},
    {"strategy": "elastic", "budget": None, "jobs": 2},
    {"strategy": "recompute"},
    {"strategy": "dense"},
    {"strategy": "dredc"},
    {"strategy": "counting"},
    *({"strategy": name, "marks": marks} for name in ("dred", "bf", "bfc") for marks in ("none", "eager", "linked")),
)
"""How else a session may be opened. `marks`: every update is announced one ahead."""


@dataclass(slots=True)
class Runner:
    """A session with the marks that its updates are announced with; `limit`: a relation that may be cut short."""

    db: Session
    options: dict[str, Any]
    marks: str = "none"
    is_cut: bool = False

    @property
    def is_annotated(self) -> bool:
        return self.options["strategy"] == "elastic"


class Comparison:
    """Sessions of a program. Those that refuse it do so for a reason that the program gives."""

    def __init__(
        self, text: str, tree: syntax.Tree, facts: Any, random: Random, number: int, always: Any = ALWAYS
    ) -> None:
        """Opens `always`, and some of the others."""
        self.tree = tree
        self.limits = {
            item.relation: int({key: value for key, value, _ in item.parameters}["n"])
            for item in tree.items
            if isinstance(item, syntax.Directive) and item.kind == "limitsize"
        }
        self.has_subsumption = bool(program_of(tree).subsumptions)
        self.is_choosing = self.has_subsumption or any(program_of(tree).choices.values())
        self.compared = 0
        self.runners = []
        for chosen in (*always, *random.sample(OTHERS, number)):
            options = {name: value for name, value in chosen.items() if name != "marks"}
            try:
                db = elastalog.open(text, facts=facts, **options)
            except ElastalogError as error:
                self._require_reason(error.diagnostics[0].code, options)
            else:
                self.runners.append(Runner(db, options, chosen.get("marks", "none")))

    def _require_reason(self, code: str, options: dict[str, Any]) -> None:
        # `counting` accepts no recursion.
        is_global, strategy = options.get("levels") == "global", options["strategy"]
        allowed = {
            "E0901": strategy == "counting",
            "E0902": is_global and bool(self.limits),
            "E0905": self.is_choosing and (is_global or strategy not in ("elastic", "recompute")),
        }
        assert allowed.get(code), (code, options)

    def apply(self, change: Callable[[Runner], object]) -> None:
        """Changes every session; one that a limit has cut short refuses it."""
        kept = []
        for runner in self.runners:
            sizes = {name: len(runner.db[name]) for name in self.limits}
            try:
                change(runner)
            except ElastalogError as error:
                assert error.diagnostics[0].code == "E0615", error
                assert any(sizes[name] >= limit for name, limit in self.limits.items()), error
            else:
                assert not runner.is_cut, f"an answer cut short was maintained: {runner.options}"
                kept.append(runner)
        self.runners = kept

    def judge(self, explicit: Facts) -> None:
        """The facts of every session are those of the reference, and so are levels and counts where they are kept."""
        wanted, expected = self._expected(explicit)
        for runner in self.runners:
            found = facts_of(runner.db)
            self.compared += 1
            if found != wanted:
                runner.is_cut = self._is_cut(found, wanted)
                assert runner.is_cut, (runner.options, runner.marks, found, wanted)
            elif runner.is_annotated and not self.has_subsumption:
                kind = runner.options.get("levels", "local")
                kept, pairs = levels_of(runner.db), expected[kind]
                classes = runner.db._backend.program.equivalences
                if kind == "local" and classes != program_of(self.tree).classes:
                    # What was kept by rules stays so when a change of rules would allow classes.
                    pairs = self._levels(explicit, "local", classes)
                different = {fact: (kept[fact], pair) for fact, pair in pairs.items() if kept[fact] != pair}
                assert not different, (runner.options, different)

    def prove(self, explicit: Facts) -> None:
        """A fact of every relation has a proof in every session that the checker accepts."""
        for runner in self.runners:
            if not runner.is_cut:
                facts = {name: set(runner.db[name]) for name in runner.db}
                for name in runner.db:
                    for values in sorted(runner.db[name], key=sort_key)[:1]:
                        proof = runner.db.explain((name, values))
                        verdict = check_proof(proof, runner.db.program.checked, explicit, facts)
                        assert verdict.accepted, (runner.options, verdict.reason)

    def close(self) -> None:
        for runner in self.runners:
            runner.db.close()

    def _expected(self, explicit: Facts) -> tuple[Facts, dict[str, Levels]]:
        """All facts, and their levels and counts by kind, as far as someone keeps them. Of what is subsumed there are
        none."""
        if self.has_subsumption:
            facts = evaluate(self.tree, explicit, with_text_facts=False)
            return {name: set(map(comparable, found)) for name, found in facts.items()}, {}
        is_global = any(runner.options.get("levels") == "global" for runner in self.runners)
        kinds: tuple[Kind, ...] = ("local", "global") if is_global else ("local",)
        expected = {kind: self._levels(explicit, kind) for kind in kinds}
        wanted: Facts = {name: set() for name in program_of(self.tree).schemas}
        for name, fact in expected["local"]:
            wanted[name].add(fact)
        return wanted, {str(kind): found for kind, found in expected.items()}

    def _levels(self, explicit: Facts, kind: Kind, classes: Collection[str] | None = None) -> Levels:
        found = levels(self.tree, explicit, kind, with_text_facts=False, classes=classes)
        return {(name, comparable(fact)): pair for (name, fact), pair in found.items()}

    def _is_cut(self, found: Facts, wanted: Facts) -> bool:
        """Whether a limit explains the difference: it was reached, by facts that there are."""
        return any(found[name] <= wanted[name] and len(found[name]) >= limit for name, limit in self.limits.items())
