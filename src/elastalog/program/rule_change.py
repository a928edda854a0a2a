"""Changes of the rules of a program, made in its text: what is removed is cut out, what is added is appended. And the
difference between two programs as such a change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from elastalog.analysis.declare_relations import EVERY
from elastalog.analysis.program import Fact, Value
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, LimitReached, error, finding
from elastalog.diagnostics.nearest import nearest
from elastalog.diagnostics.source import Source, Span
from elastalog.late import dataclass
from elastalog.program.program import Program, is_closure, with_closures
from elastalog.program.single_rules import (
    ADDED,
    AddedText,
    SingleRule,
    facts_beside,
    judged_in,
    shown_rule,
    single_rules,
    span_of,
)
from elastalog.syntax.keywords import IO_QUALIFIERS
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_item
from elastalog.syntax.tree import Clause, Directive, Pragma, RelationDeclaration, Subsumption, Tree

_CHANGED = " (rules changed)"
REMOVED = "<removed rule>"
_DIRECTIVE = re.compile(rf"\s*\.({'|'.join(IO_QUALIFIERS)})\b")


@dataclass(frozen=True, slots=True)
class RuleEdits:
    """A requested change: program texts to add, rules to remove by number or by text, and directives to remove by text.
    `made_for`: the new program text, if it is an upgrade."""

    added: tuple[str, ...] = ()
    removed: tuple[int | str, ...] = ()
    made_for: str | None = None


@dataclass(frozen=True, slots=True)
class RuleChange:
    """From one program to another.

    `added`, `removed`: the rules, printed one by one; a rule that was there already is not among them. `facts`: those
    written in the added text. `union` has the rules of `after`, under the same numbers, and behind them those removed;
    `number_of` says which number in it a rule of `before` has. `text`: what was added, for errors in it; `directives`:
    those added, and those removed; `made_for` as in `RuleEdits`."""

    before: Program
    after: Program
    union: Program
    added: tuple[str, ...]
    removed: tuple[str, ...]
    facts: tuple[Fact, ...]
    number_of: Mapping[int, int]
    text: AddedText
    directives: tuple[tuple[str, ...], tuple[str, ...]]
    made_for: str | None = None

    @property
    def is_effective(self) -> bool:
        """Whether it changes anything: rules, the set of relations, directives, or the program that a store was made
        for."""
        sizes = {len(program.tree.items) for program in (self.before, self.after)}
        return bool(self.added or self.removed or any(self.directives) or self.made_for or len(sizes) > 1)

    @property
    def kept(self) -> int:
        """How many rules stay."""
        return len(self.before.checked.rules) - len(self.removed)

    @property
    def added_numbers(self) -> range:
        return range(self.kept + 1, self.kept + len(self.added) + 1)

    @property
    def removed_numbers(self) -> range:
        first = self.kept + len(self.added) + 1
        return range(first, first + len(self.removed))


def rule_texts(program: Program) -> tuple[str, ...]:
    """The rules of a program, printed, in the order of their numbers."""
    return tuple(rule.text for rule in _rules_of(program))


def rule_clauses(program: Program) -> tuple[Clause, ...]:
    """The rules of a program as clauses with one head and one conjunction each, in the order of their numbers."""
    return tuple(rule.alone for rule in _rules_of(program))


def removable_rules(program: Program) -> dict[int, Clause]:
    """The rules that an update may remove, by number, without their plans: all but those that `eqrel` stands for."""
    numbered = enumerate(_rules_of(program), 1)
    return {n: replace(rule.alone, plan=None) for n, rule in numbered if not is_closure(rule.clause, program.tree)}


def directive_texts(tree: Tree) -> dict[str, Directive]:
    """The directives of a tree that say what is read and written, by their printed texts."""
    return {print_item(item): item for item in _directives_of(tree)}


def _directives_of(tree: Tree) -> list[Directive]:
    return [item for item in tree.items if isinstance(item, Directive) and item.kind in IO_QUALIFIERS]


def _rules_of(program: Program) -> list[SingleRule]:
    items = program.tree.items
    return single_rules(items, program.tree.source, judged_in(items))


def change_rules(program: Program, edits: RuleEdits) -> RuleChange:
    """Applies edits to a program. As with facts, a rule that is both added and removed ends up present, and adding one
    that is there changes nothing. Raises ElastalogError when a text has errors, a rule to remove is unknown, the new
    program has errors, or it cannot be stratified together with the rules that go."""
    # Rules of components are written out first: each instance has its own, to be changed by itself.
    text_before = program.flat_text
    written = program.tree
    if program.is_flattened:
        written = with_closures(_parsed(text_before, program.tree.source.name))
    judged = judged_in(written.items)
    rules = single_rules(written.items, written.source, judged)
    added_text = "\n".join(edits.added)
    coming = _parsed(added_text, ADDED)
    judged_after = judged | judged_in(coming.items)
    coming_rules = single_rules(coming.items, coming.source, judged_after)
    wanted = {rule.shown for rule in coming_rules}
    told, coming_told = directive_texts(written), directive_texts(coming)
    named = [one for one in edits.removed if isinstance(one, str) and _DIRECTIVE.match(one)]
    untold = _directives_in(named, told).difference(coming_told)
    gone = _numbers([one for one in edits.removed if one not in named], rules, judged)
    gone = [n for n in gone if rules[n - 1].shown not in wanted]
    for n in gone:  # the rules that `eqrel` stands for go only with that word
        if is_closure(rules[n - 1].clause, written):
            raise error("E0616.closure", text=rules[n - 1].shown)
    for item in coming.items:
        if isinstance(item, Directive) and item.kind == "limitsize" and item.relation in program.checked.relations:
            raise error("E0616.limit", relation=item.relation)
    present = {rule.shown for rule in rules}
    fresh: list[SingleRule] = []
    for rule in coming_rules:
        if rule.shown not in present:
            present.add(rule.shown)
            fresh.append(rule)

    cut = [*(rules[n - 1] for n in gone), *_settled(written, rules, judged_after)]
    places, beside = _places(written, untold)
    kept_text = _without(text_before, rules, cut, places)
    if kept_text and not kept_text.endswith("\n"):
        kept_text += "\n"
    kept_text += "".join(f"{text}\n" for text in beside)
    appended = ""
    if added_text.strip():
        appended = _blanked(added_text, coming_rules, {id(rule) for rule in fresh}, *_places(coming, told))
    text = AddedText(added_text, len(kept_text))
    after = _after(program, kept_text + appended, text)
    removed = tuple(rules[n - 1].text for n in gone)
    union = _union(after, removed)
    kept = [n for n in range(1, len(rules) + 1) if n not in set(gone)]
    order = {number: place for place, number in enumerate(kept, 1)}
    order.update((number, len(kept) + len(fresh) + place) for place, number in enumerate(gone, 1))
    facts = tuple(fact for fact in after.checked.facts if fact.span.start >= len(kept_text))
    added = rule_texts(after)[len(kept) :]
    directives = tuple(each for each in coming_told if each not in told), tuple(each for each in told if each in untold)
    return RuleChange(program, after, union, added, removed, facts, order, text, directives, edits.made_for)


def with_rules(program: Program, texts: Sequence[str]) -> Program:
    """A program with rules appended that it had before. Raises ElastalogError if it cannot be stratified."""
    return _union(
        program,
        texts,
        "to look for faults, all rules that were in force since the earlier epoch are evaluated together",
        "ask about epochs closer to each other",
    )


def single_rule(text: str) -> str:
    """One rule, printed. Raises ElastalogError if the text is not exactly one rule."""
    tree = _parsed(_with_end(text), REMOVED)
    rules = single_rules(tree.items, tree.source)
    if len(rules) != 1:
        raise error("E0616.several", text=text)
    return rules[0].shown


def _with_end(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", ".strict")) or "\n.plan" in text else text + "."


def _parsed(text: str, name: str) -> Tree:
    tree, found = parse(Source(name, text))
    if any(diagnostic.severity == "error" for diagnostic in found):
        raise ElastalogError(found)
    return tree


def _settled(program: Tree, rules: Sequence[SingleRule], judged: frozenset[str]) -> list[SingleRule]:
    """Facts of the text that would be candidates from now on, because of what is being added. They are given facts and
    stay so, so the text must not contain them any more."""
    known = {id(rule.head) for rule in rules}
    return [rule for rule in single_rules(program.items, program.source, judged) if id(rule.head) not in known]


def _numbers(removed: Iterable[int | str], rules: Sequence[SingleRule], judged: frozenset[str]) -> list[int]:
    """The numbers of the rules to remove, each once, in order. A text stands for the first rule with that text that is
    not being removed already."""
    found: list[int] = []
    known = [rule.shown for rule in rules]
    for wanted in removed:
        if isinstance(wanted, int):
            if not 1 <= wanted <= len(rules):
                raise error("E0616.number", number=wanted, last=len(rules) or None)
            if wanted not in found:
                found.append(wanted)
            continue
        if not wanted.strip() or wanted.strip().isdecimal() or wanted.lstrip().startswith("."):
            is_declaration = wanted.lstrip().startswith(".")
            raise error("E0616.declaration" if is_declaration else "E0616.rule", text=wanted.strip())
        if any(rule.partition("(")[0] == wanted.strip() for rule in known):  # the relation alone
            raise _no_rule(wanted.strip(), known)
        tree = _parsed(_with_end(wanted), REMOVED)
        named = single_rules(tree.items, tree.source, judged)
        if any(isinstance(item, Subsumption) for item in tree.items):
            raise error("E0616.subsumption", text=wanted.strip())
        if not named:
            raise _no_rule(wanted.strip(), known)
        for rule in named:
            numbers = [n for n, shown in enumerate(known, 1) if shown == rule.shown]
            if not numbers:
                raise _no_rule(rule.shown, known)
            found += [n for n in numbers if n not in found][:1]
    return sorted(found)


def _directives_in(texts: Iterable[str], told: Collection[str]) -> set[str]:
    """The directives in texts, printed; they must be among those `told`."""
    found = {print_item(item) for text in texts for item in _parsed(text, REMOVED).items}
    for text in sorted(found.difference(told)):
        raise _no_rule(text, list(told))
    return found


# --- texts ---------------------------------------------------------------------------------------------------------


def _places(tree: Tree, unwanted: Collection[str]) -> tuple[list[Span], list[str]]:
    """The places of directives, and the texts of others that are written in the same place: `.output a, b`."""
    written: dict[int, list[Directive]] = {}
    for item in _directives_of(tree):
        written.setdefault(item.span.start, []).append(item)
    found = [own for own in written.values() if any(print_item(item) in unwanted for item in own)]
    beside = [text for own in found for text in map(print_item, own) if text not in unwanted]
    return [Span(own[0].span.start, own[-1].span.end) for own in found], beside


def _without(text: str, rules: Sequence[SingleRule], cut: Sequence[SingleRule], places: Sequence[Span]) -> str:
    """A program text without some rules, and what stands in some places. If a clause stands for several rules, the
    remaining ones are printed in its place."""
    pieces: list[str] = []
    done = 0
    gone = set(map(id, cut))
    rests = dict.fromkeys(places, "")
    for clause, own in _by_clause({id(rule): rule for rule in (*rules, *cut)}.values()):
        if any(id(rule) in gone for rule in own):
            kept = (*facts_beside(clause, own), *(rule.text for rule in own if id(rule) not in gone))
            rests[span_of(clause)] = "\n".join(kept)
    for (start, end), rest in sorted(rests.items()):
        pieces.append(text[done:start] + rest)
        done = end
        if not rest and pieces[-1].rpartition("\n")[2].strip() == "":
            # Nothing else stands before it in the line: if nothing stands behind it either, the line goes.
            line_end = text.find("\n", end)
            line_end = len(text) if line_end < 0 else line_end + 1
            if not text[end:line_end].strip():
                before, newline, _ = pieces[-1].rpartition("\n")
                pieces[-1] = before + newline
                done = line_end
    return "".join((*pieces, text[done:]))


def _blanked(
    text: str, rules: Sequence[SingleRule], fresh: set[int], places: Sequence[Span], beside: Sequence[str]
) -> str:
    """An added text in which rules that need not be added, and what stands in some places, are replaced by blanks, so
    that places in it stay the same. If a clause stands for several rules, the remaining ones are printed at the end,
    behind what stood `beside`."""
    behind, blank = [*beside], [*places]
    for clause, own in _by_clause(rules):
        if any(id(rule) not in fresh for rule in own):
            blank.append(span_of(clause))
            behind += facts_beside(clause, own)
            behind += [rule.text for rule in own if id(rule) in fresh]
    for start, end in blank:
        text = text[:start] + "".join(c if c == "\n" else " " for c in text[start:end]) + text[end:]
    return "\n".join((text.rstrip(), *behind)) + "\n"


def _by_clause(rules: Iterable[SingleRule]) -> list[tuple[Clause, list[SingleRule]]]:
    """The rules grouped by the clause that they come from, in the order of the text."""
    found: dict[int, tuple[Clause, list[SingleRule]]] = {}
    for rule in rules:
        found.setdefault(id(rule.clause), (rule.clause, []))[1].append(rule)
    return sorted(found.values(), key=lambda group: group[0].span.start)


# --- programs ------------------------------------------------------------------------------------------------------


def _after(program: Program, text: str, added: AddedText) -> Program:
    try:
        return Program.reopen(text, _changed_name(program))
    except ElastalogError as error:
        raise type(error)([added.placed(found) for found in _errors(error)]) from None


def _errors(error: ElastalogError) -> list[Diagnostic]:
    """The errors alone, since warnings are mostly about existing rules."""
    return [found for found in error.diagnostics if found.severity == "error"]


def _changed_name(program: Program) -> str:
    """The name in place of a file name: once rules have changed, lines of the program are not those of its file."""
    name = program.tree.source.name
    return name if name.endswith(_CHANGED) else name + _CHANGED


_REMOVED_COUNT = "rules that are removed count too: what they and the new ones derive is followed from one to the other"
_REMOVE_FIRST = "remove the old rules in an update of their own first"


def _union(after: Program, removed: Sequence[str], note: str = _REMOVED_COUNT, advice: str = _REMOVE_FIRST) -> Program:
    if not removed:
        return after
    source = after.tree.source
    text = source.text if source.text.endswith("\n") else source.text + "\n"
    try:
        whole = text + "".join(f"{shown_rule(rule)}\n" for rule in removed)
        return Program.reopen(whole, _changed_name(after))
    except LimitReached:
        raise
    except ElastalogError as error:
        raise ElastalogError(
            [replace(found, notes=(*found.notes, note), help=advice) for found in _errors(error)]
        ) from None


def _no_rule(text: str, rules: Sequence[str]) -> ElastalogError:
    """The error that the program has no such rule."""
    head = text.partition("(")[0].strip()
    near = nearest(text, rules) or next((rule for rule in rules if rule.partition("(")[0] == head), None)
    return error("E0616.text", text=text, near=near)


# --- from one program to another -------------------------------------------------------------------------------------


Facts = dict[str, list[tuple[Value, ...]]]


@dataclass(frozen=True, slots=True)
class ProgramDifference:
    """`declarations`, `directives`, `rules` and `facts` to add, as texts; directives and rules to remove; facts that
    only the earlier text has."""

    declarations: tuple[str, ...]
    directives: tuple[str, ...]
    rules: tuple[str, ...]
    facts: tuple[str, ...]
    removed_directives: tuple[str, ...]
    removed: tuple[str, ...]
    deleted: Facts

    @property
    def added(self) -> tuple[str, ...]:
        """All that is to be added, as program texts."""
        return *self.declarations, *self.directives, *self.rules, *self.facts

    @property
    def gone(self) -> tuple[str, ...]:
        """All that is to be removed, as program texts."""
        return *self.removed_directives, *self.removed


def difference(before: Program, after: Program) -> ProgramDifference:
    """What leads from one program to another, of which relations that the other does not declare keep their
    directives. Raises ElastalogError when a relation is declared in another way."""
    old, new = before.checked.relations, after.checked.relations
    changed = [
        n for n, r in new.items() if n in old and (r.attributes, r.choices) != (old[n].attributes, old[n].choices)
    ]
    if changed:
        raise ElastalogError([finding("E0820", name=name) for name in changed])
    old_items, new_items = (
        {print_item(item) for item in program.tree.items if isinstance(item, Subsumption)}
        for program in (before, after)
    )
    gone = old_items - new_items
    if gone:
        raise ElastalogError([finding("E0820.subsumption", subsumption=text) for text in sorted(gone)])
    old_rules, new_rules = (Counter(map(shown_rule, rule_texts(program))) for program in (before, after))
    written = {print_item(item) for item in before.tree.items}
    declarations = tuple(
        print_item(item)
        for item in after.tree.items
        if not isinstance(item, Clause | Directive | Pragma)
        and not (isinstance(item, RelationDeclaration) and item.name in old)
        and print_item(item) not in written
    )
    old_told, new_told = directive_texts(before.tree), directive_texts(after.tree)
    facts = (item for item in after.tree.items if isinstance(item, Clause) and not item.body)
    old_facts, new_facts = (
        {(fact.relation, fact.values) for fact in program.checked.facts} for program in (before, after)
    )
    deleted: Facts = {}
    for relation, values in sorted(old_facts - new_facts, key=repr):
        deleted.setdefault(relation, []).append(values)
    return ProgramDifference(
        declarations,
        tuple(text for text in new_told if text not in old_told),
        tuple((new_rules - old_rules).elements()),
        tuple(text for text in map(print_item, facts) if text not in written),
        tuple(text for text, of in old_told.items() if text not in new_told and of.relation in {EVERY, *new}),
        tuple((old_rules - new_rules).elements()),
        deleted,
    )
