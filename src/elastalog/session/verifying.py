"""Is a materialisation the fixpoint of its rules?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastalog.evaluation.differences import Verification, compare
from elastalog.relations.tables import to_table

if TYPE_CHECKING:
    from elastalog.session.materialisation import Materialisation


def verify(now: Materialisation) -> Verification:
    """Evaluates the program anew over the explicit facts, and compares all facts, levels and counts."""
    with now.lock:
        again = now.another(now.program)
        tables = {
            name: to_table(schema, now.explicit_words(name), now.dictionary) for name, schema in now.schemas.items()
        }
        again.bootstrap({name: again.encode(name, table) for name, table in tables.items()})
        return compare(now.schemas, now.dictionary, now.backend, again.dictionary, again.backend)
