"""Facts into plain text files straight from words: what most outputs are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from elastalog.pipeline.files.atomic import replacing
from elastalog.pipeline.files.format import Format, Kind
from elastalog.pipeline.files.paths import resolve_under
from elastalog.pipeline.files.write import CHARACTERS_OF_NUMBERS, Doubt, refuse, text_blocks
from elastalog.relations.tables import to_table

if TYPE_CHECKING:
    from elastalog.analysis.program import Relation
    from elastalog.relations.facts import Relation as Facts

LEAST_ROWS = 1 << 13
"""Facts below which it does not pay to load compiled operators."""


def write_lines(relation: Relation, facts: Facts, root: Path | str, doubt: Doubt = refuse) -> Path | None:
    """Obeys the only `.output` directive of a relation, if it has no other and asks for plain text, under `root`;
    returns the file, None if nothing was done. The file is the one that `write_output` would write."""
    told = [directive for directive in relation.directives if directive.kind in ("output", "printsize")]
    if len(told) != 1 or told[0].kind != "output" or told[0].parameters.get("IO", "file") != "file":
        return None
    parameters = told[0].parameters
    path = resolve_under(root, parameters.get("filename", f"{relation.name}.csv"))
    form = Format.of(parameters, path.name)
    is_plain = form.kind is Kind.TEXT and not (form.has_header or form.is_rfc4180 or form.is_gzip)
    is_short = len(form.delimiter) == 1 and form.delimiter.isascii() and form.delimiter not in CHARACTERS_OF_NUMBERS
    if not is_plain or not is_short or len(facts) < LEAST_ROWS:
        return None
    from elastalog.relations.blocks_of_lines import kinds_of, lines_of

    kinds = kinds_of(facts.schema)
    if kinds is None:
        return None
    words = facts.fact_words().words
    with replacing(path) as out:
        for part in lines_of(words, kinds, ord(form.delimiter), facts.dictionary):
            if isinstance(part, memoryview):
                out.write(part)
            else:
                for block in text_blocks(facts.schema, to_table(facts.schema, part, facts.dictionary), form, doubt):
                    out.write(block)
    return path
