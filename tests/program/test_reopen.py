"""Texts that were programs before stay programs, whatever later versions refuse."""

from __future__ import annotations

import pytest

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program
from tests.tables import table


@pytest.mark.parametrize(("text", "code"), table(__file__, "what was accepted before still opens"))
def test_what_was_accepted_before_still_opens(text: str, code: str) -> None:
    with pytest.raises(ElastalogError) as raised:
        Program.parse(text)
    assert {found.code for found in raised.value.diagnostics if found.severity == "error"} == {code}
    assert "p" in Program.reopen(text, "program.dl").checked.relations
