"""A program that uses the public interface as a typed client does: `make check` holds these types against the package,
and the tests run it.
"""

from __future__ import annotations

from typing import Any, assert_type

import elastalog

PROGRAM = """
.decl calls(caller: symbol, callee: symbol)
.decl reaches(caller: symbol, callee: symbol)
reaches(x, y) :- calls(x, y).
reaches(x, z) :- reaches(x, y), calls(y, z).
"""


def reached(db: elastalog.Database, start: str) -> set[str]:
    """Works with a session and with a client of a service alike."""
    found = db.query("reaches(?start, X)", start=start)
    assert_type(found, elastalog.Relation)
    return {str(row[0]) for row in found}


def main() -> list[str]:
    rows: list[tuple[str, str]] = [("web", "cart"), ("cart", "prices")]
    limits = elastalog.Limits(memory=1 << 34, time=60)
    with elastalog.open(PROGRAM, facts={"calls": rows}, limits=limits) as db:
        assert_type(db, elastalog.Session)
        assert_type(db.epoch, int)
        changes = db.apply({"calls": [("prices", "vault")]})
        assert_type(changes, elastalog.Changes)
        assert_type(changes.impact, int)
        with db.update() as update:
            assert_type(update, elastalog.PendingUpdate)
            update.insert("calls", [("vault", "log")])
        proof = db.explain('reaches("web", "vault")')
        assert_type(proof, elastalog.Proof)
        assert_type(db.suggest(unwanted=['reaches("web", "log")']), elastalog.Suggestion)
        assert_type(db.log(), tuple[elastalog.LogEntry, ...])
        prepared = db.prepare("reaches(?a, X)")
        assert_type(prepared, elastalog.PreparedQuery)
        first: tuple[Any, ...] = next(iter(prepared(a="cart")))
        print(proof, len(first))
        try:
            db.query("nothing(X)")
        except elastalog.ElastalogError as error:
            assert_type(error.diagnostics, tuple[elastalog.Diagnostic, ...])
        return sorted(reached(db, "web"))


if __name__ == "__main__":
    print(main())
