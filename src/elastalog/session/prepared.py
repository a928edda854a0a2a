"""Prepared decisions of a session: whether a fact holds, looked up by a plan made beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from elastalog.analysis.query import parameter_values, parameters_in
from elastalog.prepared import Decision, PreparedDecision, PreparedQuery
from elastalog.relations.records import NotOfType
from elastalog.relations.words import row_to_write

if TYPE_CHECKING:
    from elastalog.evaluation.queries import PatternQuery
    from elastalog.session.session import Session


class SessionDecision(PreparedDecision):
    """A decision made by a session. It is planned again when the rules change, or when asked of another session."""

    def __init__(self, session: Session, text: str, asked: PatternQuery) -> None:
        super().__init__(session, text, asked)
        self._session = session
        self._follow()

    def _follow(self) -> None:
        self._now = now = self._session._materialisation
        with now.lock:
            self._program = now.program
            asked = self._session._reader.pattern(self.text)
        assert asked is not None
        self._asked, self._relation = asked, asked.relation
        self._contains, self._dictionary = now.backend.contains, now.dictionary
        self._row, self._write = row_to_write(now.schema(asked.relation).arity)

    def _holds(self, values: Sequence[Any]) -> bool:
        now = self._session._materialisation
        with now.lock:  # rules do not change between planning and looking
            if now is not self._now or now.program is not self._program:
                self._follow()
            try:
                key = self._asked.key(self._dictionary, values)
            except (ValueError, NotOfType):
                return super()._holds(values)  # says what is wrong
            if key is None:
                parameter_values(dict(zip(self.parameters, values, strict=True)))  # not every text can be one
                return False
            self._write(self._row, 0, *(key or [0]))
            found: bool = self._contains(self._relation, self._row).item(0)
            return found

    def _hold(self, rows: Sequence[Sequence[Any]]) -> np.ndarray:
        now = self._session._materialisation
        found = np.zeros(len(rows), np.bool_)
        with now.lock:
            if now is not self._now or now.program is not self._program:
                self._follow()
            keys = []
            for number, row in enumerate(rows):
                try:
                    key = self._asked.key(self._dictionary, row)
                except (ValueError, NotOfType):
                    found[number] = super()._holds(row)
                    continue
                if key is not None:
                    keys.append((number, key or [0]))
            if keys:
                words = np.array([key for _, key in keys], np.int32)
                found[[number for number, _ in keys]] = self._contains(self._relation, words)
        return found

    def _explained(self, values: Sequence[Any]) -> Decision:
        with self._session._materialisation.lock:  # the answer and its reason are of one epoch
            return super()._explained(values)


def prepared(session: Session, text: str) -> PreparedQuery:
    """A prepared query; a decision if it is one atom without variables."""
    now = session._materialisation
    with now.lock:
        names = parameters_in(text, now.program.checked)
        asked = session._reader.pattern(text)
    if asked is not None and asked.is_decision:
        return SessionDecision(session, text, asked)
    return PreparedQuery(session, text, names)
