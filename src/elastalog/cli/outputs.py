"""Writing what the `.output` and `.printsize` directives of a program ask for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from elastalog.cli.standard_output import fit_for_terminal

if TYPE_CHECKING:
    from elastalog.session import Session


def write_outputs(session: Session, output: str) -> list[Path]:
    """Obeys the directives: files in a folder, or with `-` everything to standard output. Returns the files written."""
    from elastalog.pipeline.files.write import print_facts, print_size, write_output

    files: list[Path] = []
    out = fit_for_terminal(sys.stdout.buffer)
    for name, relation in session.program.checked.relations.items():
        kinds = [directive.kind for directive in relation.directives]
        if output != "-" and "output" in kinds:
            files += write_output(relation, session[name].to_arrow(), output)
            continue
        for directive in relation.directives:
            if directive.kind == "output" and directive.parameters.get("IO") == "stdoutprintsize":
                print_size(name, len(session[name]), out)
            elif directive.kind == "output":
                print_facts(session.schemas[name], session[name].to_arrow(), out, directive.parameters)
            elif directive.kind == "printsize":
                print_size(name, len(session[name]), sys.stdout.buffer)
    sys.stdout.buffer.flush()
    return files
