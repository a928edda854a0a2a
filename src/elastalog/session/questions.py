"""Reading a session: its relations, answers to queries, the costs of rules and relations (the profile behind
`--stats`), and the explainer and the debugger of its present program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from elastalog.analysis.functor_values import INVALID_TEXTS
from elastalog.analysis.listing import show_rule, show_value
from elastalog.analysis.pattern import Free, parse_pattern
from elastalog.analysis.program import Atom, Base, Comparison, Constant
from elastalog.analysis.query import Query, check_query, parameter_values
from elastalog.backends.protocol import Backend, Placed, StratumElsewhere
from elastalog.diagnostics.arguments import require_text
from elastalog.diagnostics.diagnostic import error, finding, warn_of
from elastalog.diagnostics.display import html_table
from elastalog.diagnostics.nearest import nearest
from elastalog.evaluation.changes import Changes, net_of
from elastalog.evaluation.queries import PatternQuery, ask, asking, derived_by, planned_pattern
from elastalog.late import dataclass
from elastalog.pipeline.spark.for_sessions import make_frame
from elastalog.planning.logical import HIDDEN, Clause
from elastalog.provenance.fact import Fact
from elastalog.relations.facts import Decodings, Relation
from elastalog.relations.functions import functions_for
from elastalog.relations.pairs import Rows
from elastalog.relations.records import NotOfType
from elastalog.relations.schema import Column, Schema
from elastalog.relations.words import Dictionary, row_to_write
from elastalog.session.materialisation import Materialisation
from elastalog.settings import SETTINGS
from elastalog.syntax.tree import nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from elastalog.debugging.answers import Suggestion
    from elastalog.debugging.debugger import Debugger
    from elastalog.debugging.history import Past
    from elastalog.evaluation.epochs import Epochs
    from elastalog.program import Program
    from elastalog.provenance.explain import Explainer, Explanations, Setting, Uses
    from elastalog.provenance.fact import Written
    from elastalog.session.history import History
    from elastalog.session.materialisation import Materialisation

_MOST_PATTERNS = 256
"""Queries of one atom whose plans are kept."""


def _warn_of_names(names: Iterable[str], dictionary: Dictionary) -> None:
    """Warns of variables that may be meant as texts, because a text of that name exists, ignoring case. A single
    capital letter is a variable to everybody."""
    for name in names:
        if len(name) == 1 and name.isupper():
            continue
        cases = (name,) if len(name) == 1 else dict.fromkeys((name, name.capitalize(), name.lower(), name.upper()))
        text = next((one for one in cases if dictionary.find_value(Base.SYMBOL, one) is not None), None)
        if text is not None:
            warn_of(finding("E0618.text", severity="warning", name=name, quoted=show_value(text)))


def warn_of_terms(terms: Sequence[object], dictionary: Dictionary) -> None:
    """Warns of texts in questions that no fact has ever had, and of variables that may be meant as texts."""
    _warn_of_names((term.name for term in terms if isinstance(term, Free) and term.name), dictionary)
    _warn_of_unknown(_unknown(terms, dictionary), dictionary, is_query=False)


def _unknown(values: Iterable[object], dictionary: Dictionary) -> list[str]:
    """The texts among values that no fact has ever had; answering the question may intern them."""
    find = dictionary.symbols.find
    return [value for value in values if isinstance(value, str) and find(value) is None]


def _are_codes(one: str, other: str) -> bool:
    """Whether two texts are different codes of a few letters, which are much alike and mean different things."""
    return len(one) == len(other) <= 3 and one.casefold() != other.casefold()


def _warn_of_unknown(texts: Collection[str], dictionary: Dictionary, is_query: bool = True) -> None:
    """A query may well ask whether a text exists: only a probable typo is worth a warning."""
    symbols = dictionary.symbols
    for text in texts:
        known = () if symbols.are_many else symbols.strings_from(0)
        near = nearest(text, (one for one in known if one not in texts and not _are_codes(one, text)))
        advice = None if near is None else f"did you mean `{show_value(near)}`?"
        if advice or not is_query:
            warn_of(finding("E0618.unknown", severity="warning", value=show_value(text), advice=advice))


def is_mentioned(word: int, base: Base, names: Iterable[str], backend: Backend) -> bool:
    """Whether a fact of some relations has a value, given as a word."""
    kinds = ((name, column, own) for name in names for column, own in enumerate(backend.program.relations[name].bases))
    return any(own == base and (backend.facts(name).words[:, column] == word).any() for name, column, own in kinds)


def texts_asked(query: Query, parameters: Mapping[str, object]) -> list[str]:
    """The texts that a query compares facts with, without the values of parameters, which are data and may well be
    new."""
    rules = query.program.rules
    sides = [one.arguments for one in nodes_of(Atom, rules)]
    sides += [(one.left, one.right) for one in nodes_of(Comparison, rules) if one.operator == "="]
    found = (one.value for side in sides for one in side if isinstance(one, Constant))
    return [*dict.fromkeys(one for one in found if isinstance(one, str) and one not in parameters.values())]


def without_doubt(answers: Relation, unknown: Collection[str] = ()) -> Relation:
    """Answers, with warnings of variables that may be meant as texts and, if there are no answers, of texts that no
    fact has."""
    columns = answers.schema.columns
    _warn_of_names((column.name for column in columns if column.base is Base.SYMBOL), answers.dictionary)
    if unknown and not len(answers):
        _warn_of_unknown(unknown, answers.dictionary)
    return answers


_FEW = 5
"""Facts that are listed where one is asked for and several match."""

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


class Reader:
    """Gives access to the facts of a materialisation."""

    def __init__(self, materialisation: Materialisation) -> None:
        self._materialisation = materialisation
        self._patterns: dict[str, PatternQuery | None] = {}
        self._program = materialisation.program

    def relation(self, name: str) -> Relation:
        """A live relation: it shows the latest epoch whenever it is read."""
        now = self._materialisation
        backend, lock, schema = now.backend, now.lock, now.schema(name)
        can = backend.capabilities
        equivalences, elsewhere = can.equivalences, can.elsewhere
        row, write = row_to_write(schema.arity)

        def contains(words: list[int]) -> bool:
            with lock:
                write(row, 0, *words)
                found: bool = backend.contains(name, row).item(0)
                return found

        return Relation(
            schema,
            now.dictionary,
            self._between_updates(lambda: backend.facts(name)),
            size=self._between_updates(lambda: backend.size(name)),
            pairs=None if equivalences is None else self._between_updates(lambda: equivalences.pairs(name)),
            contains=contains,
            filed=None if elsewhere is None else self._between_updates(partial(elsewhere.files, name)),
            make_frame=make_frame,
        )

    def _between_updates(self, read: Callable[Asked, Found]) -> Callable[Asked, Found]:
        """A way to read that waits for updates of other threads, since facts must not be read while they are being
        written."""

        def reading(*asked: Asked.args, **options: Asked.kwargs) -> Found:
            with self._materialisation.lock:
                return read(*asked, **options)

        return reading

    def relation_of(self, schema: Schema, words: Rows) -> Relation:
        """A relation of given facts."""
        return Relation.of(schema, self._materialisation.dictionary, words, make_frame)

    def explicit(self, name: str) -> Relation:
        """The explicit facts of a relation."""
        now = self._materialisation
        with now.lock:
            return self.relation_of(now.schema(name), now.explicit_words(name))

    def explicit_changes(self, past: Past, first: int, last: int) -> Changes:
        """The facts that are explicit in only one of two epochs."""
        now = self._materialisation
        net = net_of((done.deleted, done.inserted) for done in past.updates(min(first, last), max(first, last)))
        words = {name: (went, came) for name, (came, went) in net.items()} if last < first else net
        return Changes(words, Decodings(now.schemas, now.dictionary, make_frame))

    def only(self, written: Written, if_none: str = "E0608.none") -> Fact:
        """A fact given by the user, or the only one that matches a pattern. `if_none`: the error if none does. Called
        under the lock."""
        now = self._materialisation
        pattern = parse_pattern(written, now.program.checked) if isinstance(written, str) else None
        if pattern is not None:
            warn_of_terms(pattern.terms, now.dictionary)
        if pattern is None or pattern.is_fact:
            return now.fact(written)
        from elastalog.provenance.reading import Reading

        found = list(islice(Reading(now.backend, now.dictionary).fitting(pattern), _FEW + 1))
        if len(found) != 1:
            first = ", ".join(map(str, found[:_FEW])) + ", …" * (len(found) > _FEW)
            columns = zip(pattern.terms, now.schema(pattern.relation).columns, strict=True)
            names = (term.name for term, column in columns if isinstance(term, Free) and column.base is Base.SYMBOL)
            key, name = "E0608.several" if found else if_none, next(filter(None, names), None)
            raise error(key, pattern=str(written).strip(), first=first, name=name)
        return found[0]

    def query(self, text: str, parameters: Mapping[str, object]) -> Relation:
        """The answers to a query: a relation with one column per variable, or per argument of its head."""
        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        values = parameter_values(parameters) if parameters else {}
        now = self._materialisation
        with now.within(now.timeout, None, text):
            answers, pattern, unknown = None, self.pattern(text), list[str]()
            if pattern is not None and values.keys() == set(pattern.parameters):
                with suppress(ValueError, NotOfType):  # what is wrong is said below
                    given = [values[name] for name in pattern.parameters]
                    key = pattern.key(now.dictionary, given)
                    if key is None:
                        unknown = _unknown(pattern.constants, now.dictionary)
                    answers = pattern.answers(now.dictionary, now.backend, key)
            if answers is None:
                query = check_query(text, now.program.tree, now.program.checked, values)
                unknown = _unknown(texts_asked(query, values), now.dictionary)
                answers = self.ask(query)
        return without_doubt(answers, unknown)

    def pattern(self, text: str) -> PatternQuery | None:
        """A query of one atom, planned for the present program; None for any other query. Called under the lock."""
        program = self._materialisation.program
        if self._program is not program or len(self._patterns) > _MOST_PATTERNS:
            self._program = program
            self._patterns.clear()
        if text in self._patterns:
            return self._patterns[text]
        found = self._patterns[text] = planned_pattern(text, program.checked, self._materialisation.schemas)
        return found

    def asking(self, text: str, parameters: Mapping[str, object], time_limit: float | None) -> Callable[[], Relation]:
        """A function that answers a query over the present facts, without the lock."""
        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        values = parameter_values(parameters)
        now = self._materialisation
        watch = now.own_watch(time_limit, text)
        assert watch.quota is not None
        with now.lock, watch.quota:
            query = check_query(text, now.program.tree, now.program.checked, values)
            unknown = _unknown(texts_asked(query, values), now.dictionary)
            answer = asking(query, now.backend, now.dictionary, watch, is_later=True)

        def later() -> Relation:
            assert watch.quota is not None
            with watch.quota, now.observed(text):
                INVALID_TEXTS.clear()
                answers = answer()
            if INVALID_TEXTS:
                with now.lock:
                    now.tell_invalid_texts(query)
            if not len(answers):
                _warn_of_unknown(unknown, now.dictionary)
            return answers

        return later

    def ask(self, query: Query) -> Relation:
        """The answers to a query that has been checked."""
        now = self._materialisation
        with now.asking():
            INVALID_TEXTS.clear()
            answers = ask(query, now.backend, now.dictionary, now.watch)
            if INVALID_TEXTS:
                now.tell_invalid_texts(query)
            return answers

    def derived_by(self, relation: str, rules: Collection[int]) -> Relation:
        """What rules of a relation, given by number, derive from the present facts in one step."""
        now = self._materialisation
        with now.asking():
            return derived_by(rules, now.schema(relation), now.backend, now.dictionary, now.watch)

    def answers_in(self, query: Query, texts: Iterable[str]) -> Relation:
        """The answers to a query that is part of the program, with texts that occur nowhere else in it."""
        now = self._materialisation
        with now.lock:
            schema = Schema(query.name, tuple(Column(column.name, column.base) for column in query.columns))
            words = now.backend.facts(query.name).words[:, : schema.arity].copy()
            unknown = [] if len(words) else [text for text in texts if not self._is_given(text)]
            return without_doubt(Relation.of(schema, now.dictionary, words, make_frame), unknown)

    def _is_given(self, text: str) -> bool:
        """Whether an explicit fact has a text, or may have: facts held elsewhere are not fetched to find out."""
        now, checked = self._materialisation, self._materialisation.program.checked
        if now.backend.capabilities.elsewhere is not None:
            return True
        word = now.dictionary.symbols.find(text)
        names = (n for n in checked.relations if n[0] != HIDDEN and (checked.is_given(n) or checked.has_facts(n)))
        return word is not None and is_mentioned(word, Base.SYMBOL, names, now.backend)

    def statistics(self) -> Statistics:
        """The costs of rules and relations."""
        with self._materialisation.lock:
            return statistics_of(self._materialisation.backend)


class Answerers:
    """The explainer and the debugger of the present program; both keep what they found for the epoch it belongs to.
    Used in a block of `asking`, which holds the lock and the time. `undo` applies a suggestion."""

    def __init__(
        self, materialisation: Materialisation, history: History, undo: Callable[[Suggestion], Changes]
    ) -> None:
        self._materialisation = materialisation
        self._history = history
        self.undo = undo
        self._program: Program | None = None
        self._debugged = 0
        self._explained = -1
        self._uses: Uses | None = None
        self._is_written_out = False

    @property
    def explanations(self) -> Explanations:
        """Answers why and why not."""
        self._follow()
        now = self._materialisation
        is_annotated = now.epochs.strategy.annotation.has_levels_only
        if not is_annotated and now.backend.program.merged and self._explained != now.epoch:
            # Chains of pairs that a recursion finds go by levels, or they would lead in circles.
            self._explainer = self._explaining(now.with_levels())
            self._explained = now.epoch
        return self._explainer.now()

    @property
    def uses(self) -> Uses:
        """Answers what facts are used for."""
        self._follow()
        if self._uses is None:
            from elastalog.provenance.explain import Uses

            self._uses = Uses(self._materialisation.program)
        return self._uses

    @property
    def debugger(self) -> Debugger:
        """Answers which changes are to blame, and how to repair them."""
        self._follow()
        now = self._materialisation
        if now.backend.program.equivalences and (self._debugged != now.epoch or not self._is_written_out):
            # Its graphs are of facts and rules, and know nothing of classes.
            epochs = now.written_out()
            self._make_debugger(replace(now.setting, backend=epochs.backend), epochs)
            self._is_written_out = True
        return self._debugger

    def _follow(self) -> None:
        now = self._materialisation
        if self._program is now.program:
            return
        functions_for(now.program.checked, now.dictionary.functions)  # proofs apply them again
        self._program = now.program
        self._uses = None
        self._is_written_out = False
        self._explainer = self._explaining(now.setting)
        self._explained = -1
        self._make_debugger(now.setting, now.epochs)

    def in_a_trial(self) -> Explainer:
        """Answers why and why not in a state that is being tried."""
        from elastalog.provenance.explain import Explainer

        now = self._materialisation
        return Explainer(now.setting, lambda: now.epoch)

    def _explaining(self, setting: Setting) -> Explainer:
        from elastalog.provenance.explain import Explainer

        now = self._materialisation
        # Levels that were made for one epoch are no longer there in the next.
        known = now.epochs.touched_since if setting.backend is now.backend else lambda epoch: None
        gone = partial(self._history.past.gone, SETTINGS.epochs_of_candidates, SETTINGS.rows_compared)
        return Explainer(setting, lambda: now.epoch, now.asking, known, gone)

    def _make_debugger(self, setting: Setting, epochs: Epochs) -> None:
        from elastalog.debugging.debugger import Debugger

        now = self._materialisation
        past = self._history.past
        self._debugger = Debugger(now.program, setting, epochs, past, now.fact, self.undo, now.evaluate_anew)
        self._debugged = epochs.number


# --- what rules and relations cost -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleStatistics:
    """The cost of one rule in the last bootstrap of its stratum. `number` is None for an internal rule that serves a
    negation or an aggregate of the program."""

    number: int | None
    relation: str
    text: str
    stratum: int
    derivations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RelationStatistics:
    """The number of facts of a relation, and their memory with annotations and indexes."""

    name: str
    facts: int
    bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class Statistics:
    """Rules in the order of evaluation, relations in the order of declaration; `hidden_bytes` is the memory of internal
    relations. `elsewhere`: strata whose last bootstrap was outside this process; `places`: where strata with rules are
    evaluated from the start, and why."""

    rules: tuple[RuleStatistics, ...]
    relations: tuple[RelationStatistics, ...]
    hidden_bytes: int
    elsewhere: tuple[StratumElsewhere, ...] = ()
    places: tuple[Placed, ...] = ()

    @property
    def bytes(self) -> int:
        return self.hidden_bytes + sum(relation.bytes for relation in self.relations)

    def __repr__(self) -> str:
        costly = sorted(self.rules, key=lambda rule: -rule.seconds)[:10]
        lines = [f"  {r.seconds:.3f} s, {r.derivations:,} derivations: {r.text}" for r in costly]
        lines += [f"  {r.name}: {r.facts:,} facts, {r.bytes:,} bytes" for r in self.relations[:10]]
        return "\n".join([f"{len(self.rules)} rules, {len(self.relations)} relations, {self.bytes:,} bytes", *lines])

    def _repr_html_(self) -> str:
        rules = [
            (f"{r.seconds:.3f}", f"{r.derivations:,}", r.text) for r in sorted(self.rules, key=lambda r: -r.seconds)
        ]
        relations = [(r.name, f"{r.facts:,}", f"{r.bytes:,}") for r in self.relations]
        return html_table("rules", ("seconds", "derivations", "rule"), rules) + html_table(
            f"relations: {self.bytes:,} bytes", ("relation", "facts", "bytes"), relations
        )


def statistics_of(backend: Backend) -> Statistics:
    """The statistics of a backend, between updates."""
    rules: list[RuleStatistics] = []
    # Rules may have come, gone and got other numbers since they were last evaluated from the start.
    numbers = {show_rule(rule): rule.number for rule in backend.program.checked.rules}
    stored = backend.program.relations
    profile = backend.profile()
    for cost in profile.clauses:
        clause, text = cost.clause, _text(cost.clause, stored)
        if clause.rule is None or text in numbers:
            number = None if clause.rule is None else numbers[text]
            rules.append(RuleStatistics(number, clause.head, text, cost.stratum, cost.derivations, cost.seconds))
    relations = tuple(
        RelationStatistics(name, backend.size(name), profile.bytes[name]) for name in backend.program.checked.relations
    )
    hidden = sum(profile.bytes[name] for name, relation in stored.items() if relation.is_hidden)
    return Statistics(tuple(rules), relations, hidden, profile.elsewhere, profile.places)


def _text(clause: Clause, stored: Container[str]) -> str:
    if clause.rule is not None:
        return show_rule(clause.rule)
    read = ", ".join(dict.fromkeys(scan.relation for scan in clause.scans if scan.relation in stored))
    return f"{clause.head} from {read}" if read else clause.head
