"""Is a materialisation the fixpoint of its rules?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from elastalog.backends.annotation import Support
from elastalog.backends.engines import by_sorted_arrays
from elastalog.evaluation.differences import Verification, compare
from elastalog.relations.tables import to_table

if TYPE_CHECKING:
    from elastalog.session.materialisation import Materialisation


def verify(now: Materialisation) -> Verification:
    """Evaluates the program anew over the explicit facts, in another way than sessions do, and compares all facts,
    levels and counts. A strategy that keeps other annotations is asked for these as well, in its own way."""
    with now.lock:
        if now.epochs.strategy.annotation.support is Support.LEVELS:
            return _compared(now, now.another(now.program, make_backend=by_sorted_arrays))
        again = now.another(now.program, strategy="elastic", make_backend=by_sorted_arrays)
        found = _compared(now, again, is_annotated=False)
        annotated = _compared(now, now.another(now.program))
        return found if annotated.is_exact else replace(annotated, same_way=found.same_way)


def _compared(now: Materialisation, again: Materialisation, is_annotated: bool = True) -> Verification:
    tables = {name: to_table(schema, now.explicit_words(name), now.dictionary) for name, schema in now.schemas.items()}
    _give_numbers(now, again)
    again.bootstrap({name: again.encode(name, table) for name, table in tables.items()})
    found = compare(now.schemas, now.dictionary, now.backend, again.dictionary, again.backend, is_annotated)
    same_way = {
        name for placed in again.backend.profile().places if placed.where == "kernel" for name in placed.relations
    }
    return replace(found, same_way=tuple(name for name in now.schemas if name in same_way))


def _give_numbers(now: Materialisation, again: Materialisation) -> None:
    """Which numbers derivations have is a matter of history (`autoinc`): another evaluation starts from the same."""
    for stratum in now.backend.program.strata:
        if (rule := stratum.numbering) is not None:
            name = rule.relation
            bases = now.backend.program.relations[name].bases
            rows = [
                [
                    again.dictionary.encode_value(base, now.dictionary.decode_value(base, word))
                    for base, word in zip(bases, row, strict=True)
                ]
                for row in now.backend.facts(name).words.tolist()
            ]
            again.backend.load({name: np.array(rows, np.int32).reshape(len(rows), len(bases))})
