"""How far components are written out."""

from __future__ import annotations

import pytest

from elastalog.analysis import instantiate
from tests.analysis.checking import accepted, only_error

END = ".comp C{} {{ .decl r(x: number) r(1). }}\n.init c = C0\n"
HOLDING = ".comp C{} {{ .init c = C{} }}\n"
INHERITING = ".comp C{} : C{} {{ }}\n"


def chain(link: str, length: int) -> str:
    return "".join(link.format(i, i + 1) for i in range(length)) + END.format(length)


@pytest.mark.parametrize(
    ("link", "message"),
    [(HOLDING, "instances hold others more than 100 deep"), (INHERITING, "components inherit more than 100 deep")],
)
def test_a_long_chain_is_no_circle(link: str, message: str) -> None:
    error = only_error(chain(link, 100))
    assert (error.code, error.message) == ("E0222", message)
    accepted(chain(link, 99))


@pytest.mark.parametrize(
    "link", [".comp C{0} {{ .init a = C{1} .init b = C{1} }}\n", ".comp C{0} : C{1}, C{1} {{ }}\n"]
)
def test_components_that_double_come_to_an_end(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instantiate, "MOST_LAYERS", 1000)
    error = only_error(chain(link, 50))
    assert (error.code, error.message) == ("E0222", "instances make the program larger than 1,000 components")
