"""Pages of relations and of answers: what is read while nobody updates, and what is done with it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from elastalog.analysis.program import Value
from elastalog.backends.rows import places_in
from elastalog.relations.facts import FactWords, Relation
from elastalog.session import Session
from elastalog.syntax.keywords import RESERVED
from elastalog.web.limits import Limits
from elastalog.web.paging import Cut, Page, View, Views, cut_of, sorted_rows, taken
from elastalog.web.sides import Sides


class Pager:
    """Makes pages, and remembers what it sorted and filtered."""

    def __init__(self, sides: Sides, limits: Limits) -> None:
        self._sides = sides
        self._limits = limits
        self._views = Views(limits.cache)

    def page(
        self,
        session: Session,
        relation: str,
        where: str,
        cut: Cut,
        parameters: Mapping[str, Value],
        annotations: bool,
    ) -> Callable[[], Page]:
        """What makes a page of a relation, once the session need not be held any more."""
        source, epoch = session[relation], session.epoch
        if not where.strip() and not cut.order:
            facts = taken(source.fact_words(), slice(cut.offset, cut.offset + cut.limit)).copied()
            total = len(source)
            return lambda: _page(source, facts, epoch, cut, total, annotations)
        names = {name for name, _ in cut.order}
        is_annotated = annotations or not names.isdisjoint(("@level", "@count"))
        version = self._sides.version(session, None if where.strip() else relation)
        key = (relation, where, repr(sorted(parameters.items())), cut.order, is_annotated, version)
        known = self._views.find(key, cut)
        make = None if known is not None else self._maker(session, source, where, parameters, cut, is_annotated)

        def made() -> Page:
            view = known
            if view is None and make is not None:
                view = self._views.find(key, cut) or self._views.keep(key, make())
            assert view is not None
            part = taken(view.facts, slice(cut.offset, cut.offset + cut.limit))
            return _page(source, part, epoch, cut, view.total, annotations)

        return made

    def _maker(
        self,
        session: Session,
        source: Relation,
        where: str,
        parameters: Mapping[str, Value],
        cut: Cut,
        is_annotated: bool,
    ) -> Callable[[], View]:
        """What filters and sorts the facts of now."""
        schema, dictionary = source.schema, source.dictionary
        if not where.strip():
            facts = source.fact_words().copied()
            return lambda: View(sorted_rows(schema, facts, dictionary, cut), len(facts.words))
        columns = ", ".join(f"{name}_" if name in RESERVED else name for name in schema.names)
        # In brackets: alternatives are among the facts of the relation. On a line of its own: it may end in a comment.
        text = f"wanted({columns}) :- {schema.name}({columns}), ({where.strip().rstrip('.')}\n)"
        answer = session.engine.asking(text, parameters)
        all_facts = source.fact_words().copied() if is_annotated else None

        def filtered() -> View:
            words = answer().fact_words().words
            found = FactWords(words)
            if all_facts is not None:
                found = taken(all_facts, places_in(words, all_facts.words))
            return View(sorted_rows(schema, found, dictionary, cut) if cut.order else found, len(words))

        return filtered

    def answers(self, answers: Relation, epoch: int, cut: Cut) -> Page:
        """A page of the answers to a query."""
        facts = answers.fact_words()
        total = len(facts.words)
        if cut.order:
            facts = sorted_rows(answers.schema, facts, answers.dictionary, cut)
        part = taken(facts, slice(cut.offset, cut.offset + cut.limit))
        return _page(answers, part, epoch, cut, total, False)

    def cut(self, offset: int, limit: int | None, order: str | Sequence[str], most: int | None = None) -> Cut:
        """The part that is asked for; `most` rows, which is also what comes unless told."""
        usual = self._limits.page if most is None else most
        return cut_of(offset, usual if limit is None else limit, order, most or self._limits.rows)


def _page(source: Relation, facts: FactWords, epoch: int, cut: Cut, total: int, annotations: bool) -> Page:
    found = Relation.of(source.schema, source.dictionary, facts.words)
    if not annotations or facts.level is None or facts.count is None:
        return Page(found, epoch, cut.offset, total)
    return Page(found, epoch, cut.offset, total, tuple(facts.level.tolist()), tuple(facts.count.tolist()))
