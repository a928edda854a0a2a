"""Is a materialisation the fixpoint of its rules?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
        _give_numbers(now, again)
        again.bootstrap({name: again.encode(name, table) for name, table in tables.items()})
        return compare(now.schemas, now.dictionary, now.backend, again.dictionary, again.backend)


def _give_numbers(now: Materialisation, again: Materialisation) -> None:
    """Which numbers derivations have is a matter of history (`autoinc`): another evaluation starts from the same."""
    for stratum in now.backend.program.strata:
        if stratum.aggregate is not None and stratum.aggregate.is_numbering:
            name = stratum.aggregate.relation
            bases = now.backend.program.relations[name].bases
            rows = [
                [
                    again.dictionary.encode_value(base, now.dictionary.decode_value(base, word))
                    for base, word in zip(bases, row, strict=True)
                ]
                for row in now.backend.facts(name).words.tolist()
            ]
            again.backend.load({name: np.array(rows, np.int32).reshape(len(rows), len(bases))})
