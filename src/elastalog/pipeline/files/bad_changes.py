"""Bad rows of an update: gathered while it is filled, set aside when it is committed."""

from __future__ import annotations

import os
from collections.abc import Iterable

from elastalog.pipeline.files.policy import BadRow, BadRows, Report, quarantine_lines, refuse, report_of


class BadChanges:
    """What the policy lets pass of an update. Rows of several calls and files add up: the bound of `skip` holds for an
    update."""

    def __init__(self, policy: BadRows) -> None:
        self.policy = policy
        self._bad: dict[str, list[BadRow]] = {}
        self._files: dict[str, dict[str, None]] = {}
        self._loaded: dict[str, int] = {}
        self._converted: dict[str, int] = {}

    def add(self, relation: str, files: Iterable[str], loaded: int, bad: list[BadRow], converted: int = 0) -> None:
        """Takes note of rows of a relation. Raises ElastalogError if the policy does not let the bad ones pass."""
        gathered = [*self._bad.get(relation, ()), *bad]
        refuse(self.policy, relation, gathered)
        self._bad[relation] = gathered
        self._files.setdefault(relation, {}).update(dict.fromkeys(files))
        self._loaded[relation] = self._loaded.get(relation, 0) + loaded
        self._converted[relation] = self._converted.get(relation, 0) + converted

    def set_aside(self) -> None:
        """Appends bad rows to the quarantine, if that is the policy: a service has many updates, and the rows of all
        of them are kept. Done before the commit, so that none is lost whatever happens then."""
        if self.policy.policy != "quarantine":
            return
        for relation, bad in self._bad.items():
            if bad:
                path = self.policy.quarantine(relation)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("ab") as out:
                    out.write(quarantine_lines(bad))
                    out.flush()
                    os.fsync(out.fileno())

    @property
    def reports(self) -> tuple[Report, ...]:
        """What reading the update came to, by relation."""
        if not self._bad:
            return ()
        return tuple(
            report_of(
                self.policy, relation, self._files[relation], self._loaded[relation], bad, self._converted[relation]
            )
            for relation, bad in self._bad.items()
        )
