"""Decodes the answers of a service into the values that a session returns: facts, changes, proofs, absences,
repairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from elastalog.analysis.pattern import parse_fact
from elastalog.analysis.program import Rule
from elastalog.analysis.values import NIL
from elastalog.backends.protocol import ChangedWords
from elastalog.debugging.answers import Blame, Element, Localisation, SideEffects, Suggestion
from elastalog.debugging.sandbox import Seconds
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.evaluation.changes import Changes, RelationChanges
from elastalog.evaluation.differences import Differences
from elastalog.program import Program
from elastalog.program.rule_change import RuleEdits, change_rules
from elastalog.provenance.absence import Absence, AbsenceSource, Instantiation, LiteralStatus, PatternAbsence
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Node, Premise, Proof, ProofSource
from elastalog.relations.facts import Decodings, Relation
from elastalog.relations.rows import row_from_json, values_of_fact
from elastalog.relations.schema import Schema, schema_named, schemas_of
from elastalog.relations.tables import to_words
from elastalog.relations.words import Dictionary


class Decoder:
    """Knows the program of the service; texts are interned in a dictionary of its own."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.schemas = schemas_of(program.checked)
        self.dictionary = Dictionary()
        self.dictionary.wraps = program.checked.wraps
        self._rules = {rule.number: rule for rule in program.checked.rules}

    def relation(self, schema: Schema, rows: Any) -> Relation:
        """Facts, from rows or an Arrow table."""
        words = to_words(schema, rows, self.dictionary)
        return Relation.of(schema, self.dictionary, words if words.shape[1] else np.zeros((len(words), 1), np.int32))

    def rows(self, schema: Schema, rows: Sequence[Sequence[Any]]) -> Relation:
        """Facts, from rows in JSON."""
        return self.relation(schema, [row_from_json(schema, row) for row in rows])

    def with_rules(self, added: str) -> Decoder:
        """A decoder that also knows rules which are yet to be added."""
        return Decoder(change_rules(self.program, RuleEdits((added,))).after) if added.strip() else self

    def fact(self, told: Mapping[str, Any] | str) -> Fact:
        """A fact, from its text or its JSON object."""
        if isinstance(told, str):
            return Fact(*parse_fact(told, self.program.checked))
        schema = schema_named(self.schemas, told["relation"])
        return Fact(schema.name, values_of_fact(schema, row_from_json(schema, told["values"])))

    # --- changes ---------------------------------------------------------------------------------------------------

    def changes(self, told: Mapping[str, Any]) -> Changes:
        """Changes by relation."""
        words: dict[str, tuple[Any, Any]] = {}
        cut: set[str] = set()
        for name, sides in told["relations"].items():
            schema = schema_named(self.schemas, name)
            words[name] = tuple(self.rows(schema, sides[side]).fact_words().words for side in ("inserted", "deleted"))  # type: ignore[assignment]
            if _is_cut(sides):
                cut.add(name)
        changes = ReportedChanges(words, Decodings(self.schemas, self.dictionary), told["impact"], frozenset(cut))
        changes.is_repeated, changes.ignored = told.get("is_repeated", False), told.get("ignored", 0)
        return changes

    def differences(self, told: Mapping[str, Any]) -> Differences:
        """The differences between two epochs, by relation."""
        words: dict[str, tuple[Any, Any]] = {}
        moved = {}
        for name, one in told["relations"].items():
            if _is_cut(one):
                raise LimitReached.of("E0925.getitem", relation=name)
            schema = schema_named(self.schemas, name)
            sides = ("inserted", "deleted", "moved")
            came, went, others = (self.rows(schema, one[side]).fact_words().words for side in sides)
            words[name] = came, went
            moved[name] = others, {f"@{key}": np.array(one[key], np.int32) for key in ("was", "level")}
        found = Differences(words, self.schemas, self.dictionary, moved)
        rules = told["rules"]
        found.added_rules, found.removed_rules = tuple(rules["added"]), tuple(rules["removed"])
        found.added_declarations = tuple(told["declarations"])
        return found

    # --- proofs ----------------------------------------------------------------------------------------------------

    def proof(self, told: Mapping[str, Any], source: ProofSource | None = None) -> Proof:
        """A proof, from its table of nodes; a node may have several parents."""
        nodes: Sequence[Mapping[str, Any]] = told["nodes"]
        made: dict[int, Node] = {}
        pending = [told["root"]]
        while pending:
            number = pending[-1]
            missing = [child for child in nodes[number]["children"] if child not in made]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            children = tuple(made[child] for child in nodes[number]["children"])
            made[number] = self._node(nodes[number], children, told["claim"], source)
        root = made[told["root"]]
        assert isinstance(root, Proof)
        return root

    def _node(
        self, told: Mapping[str, Any], children: tuple[Node, ...], claim: str, source: ProofSource | None
    ) -> Node:
        match told["kind"]:
            case "fact":
                rule = None if told["rule"] is None else self._rules[told["rule"]]
                below = cast("tuple[Premise, ...]", children)
                fact, given = self.fact(told), "given" in told
                return Proof(fact, rule, below, told["expanded"], told["height"], claim, source, is_given=given)
            case "aggregate":
                members = cast("tuple[Member, ...]", children)
                return AggregatePremise(told["text"], told["result"], told["members"], members)
            case "member":
                return Member(told["alternative"], cast("tuple[Premise, ...]", children))
            case kind:
                return Condition(kind, told["text"])

    def absence(self, told: Mapping[str, Any], source: AbsenceSource | None = None) -> Absence:
        """The reasons why a fact does not hold."""
        subject = told["fact"]["text"]
        found = tuple(self._instantiation(one, subject, source) for one in told["instantiations"])
        impossible = tuple((self._rules[one["rule"]], one["reason"]) for one in told["impossible"])
        rest: dict[str, Any] = {"notes": tuple(told.get("notes", ())), "further": told.get("further", "")}
        rest |= {name: told.get(name, 0) for name in ("more", "more_rules")}
        if "present" in told:
            fact = told["fact"]
            open_fact = Fact(fact["relation"], tuple(NIL if value is None else value for value in fact["values"]))
            return PatternAbsence(
                open_fact, found, impossible, told["is_exhaustive"], source, pattern=subject, present=told["present"],
                read=tuple(told.get("read", ())), **rest,
            )  # fmt: skip
        return Absence(self.fact(told["fact"]), found, impossible, told["is_exhaustive"], source, **rest)

    def _instantiation(
        self, told: Mapping[str, Any], subject: str, source: AbsenceSource | None = None
    ) -> Instantiation:
        def because(reason: Mapping[str, Any] | None) -> Absence | Proof | None:
            if reason is None:
                return None
            return self.proof(reason) if "nodes" in reason else self.absence(reason, source)

        literals = tuple(
            LiteralStatus(
                one["kind"],
                one["text"],
                one["status"],
                None if one["fact"] is None else self.fact(one["fact"]),
                because(one.get("because")),
            )
            for one in told["literals"]
        )
        conclusion = told.get("conclusion", subject)
        return Instantiation(self._rules[told["rule"]], told["bindings"], literals, tuple(told["free"]), conclusion)

    def knows_rules(self, told: Sequence[Mapping[str, Any]]) -> bool:
        """Whether this program has all the rules that an answer mentions."""
        return all(self._text(one["rule"]) == one["text"] for one in told)

    def _text(self, number: int) -> str | None:
        rule: Rule | None = self._rules.get(number)
        return None if rule is None else rule.text

    # --- repairs ---------------------------------------------------------------------------------------------------

    def localisation(self, told: Mapping[str, Any]) -> Localisation:
        """A part of an update that shows the faults."""
        return Localisation(**self._answer(told))

    def suggestion(self, told: Mapping[str, Any], undo: Callable[[Suggestion], Changes]) -> Suggestion:
        """A suggested repair."""
        others = told.get("side_effects")
        return Suggestion(
            **self._answer(told), rejected=tuple(self._elements(told.get("rejected", ()))), undo=undo,
            over=told["over"],
            side_effects=others and SideEffects(**{**others, "first": tuple(self._elements(others["first"]))}),
        )  # fmt: skip

    def blame(self, told: Mapping[str, Any]) -> Blame:
        """The epoch and the part of its update that brought a fact about or removed it."""
        elements = self._elements(told["elements"])
        return Blame(self.fact(told["fact"]), told["what"], told["epoch"], elements, None)

    def _answer(self, told: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "elements": self._elements(told["elements"]),
            "minimum": told["minimum"],
            "bound": told["bound"],
            "why_not_proven": told["why_not_proven"],
            "proofs": tuple(self.proof(one) for one in told["proofs"] if self.knows_rules(one["rules"])),
            "unwanted": tuple(map(self.fact, told["unwanted"])),
            "missing": tuple(map(self.fact, told["missing"])),
            "epochs": tuple(told["epochs"]),
            "update_size": told["update_size"],
            "seconds": Seconds(),
        }

    def _elements(self, told: Sequence[Mapping[str, str]]) -> list[Element]:
        return [
            Element(one["sign"], one["rule"] if "rule" in one else self.fact(one["fact"]))  # type: ignore[arg-type]
            for one in told
        ]


def _is_cut(told: Mapping[str, Any]) -> bool:
    """Whether only the first facts are listed."""
    sides = [side for side in ("inserted", "deleted", "moved") if side in told]
    return any(len(told[side]) < told[f"{side}_count"] for side in sides)


class ReportedChanges(Changes):
    """Changes as a service reported them. Reading a relation of which it listed only the first facts raises
    LimitReached."""

    def __init__(
        self,
        words: ChangedWords,
        decodings: Decodings,
        impact: int,
        cut: frozenset[str],
    ) -> None:
        super().__init__(words, decodings)
        self._impact = impact
        self._cut = cut

    def __getitem__(self, relation: str) -> RelationChanges:
        if relation in self._cut:
            raise LimitReached.of("E0925.getitem", relation=relation)
        return super().__getitem__(relation)

    items = Mapping.items
    values = Mapping.values

    @property
    def impact(self) -> int:
        return self._impact
