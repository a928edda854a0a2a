"""What is asked of the present can be asked of any epoch that is kept: uses, what if, blame, repairs, why not."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.provenance.absence import PatternAbsence
from tests.web.api.conftest import TOKEN, Running


@pytest.fixture
def past(running: Running) -> elastalog.Client:
    """A client of the second epoch of four."""
    running.service.writing.apply({"edge": [(4, 5)]})  # 2
    running.service.writing.apply(deleted={"edge": [(1, 2), (4, 5)]})  # 3
    running.service.writing.apply({"edge": [(5, 6)]})  # 4
    return running.connect().at(2)


def test_uses_and_what_would_go(past: elastalog.Client) -> None:
    assert sorted(map(str, past.uses("edge(4, 5)"))) == ["path(4, 5)"]
    assert sorted(map(str, past.uses("edge(4, 5)", all=True))) == [f"path({x}, 5)" for x in (1, 2, 3, 4)]


def test_a_preview_is_of_the_facts_of_then(past: elastalog.Client) -> None:
    changes = past.preview({"edge": [(5, 6)]})
    assert sorted(changes["path"].inserted) == [(x, 6) for x in range(1, 6)]
    assert past.epoch == 2
    with pytest.raises(ElastalogError, match="E0814"):
        past.apply({"edge": [(5, 6)]})


def test_who_did_it_and_what_to_undo(past: elastalog.Client) -> None:
    assert past.blame("path(1, 5)").epoch == 2
    found = past.suggest(unwanted=["path(1, 5)"])
    assert [str(one) for one in found.elements] == ["+edge(4, 5)"]
    assert found.epochs == (1, 2)
    with pytest.raises(ElastalogError, match="E0814"):
        found.apply()
    assert [str(one) for one in past.localise(unwanted=["path(1, 5)"]).elements] == ["+edge(4, 5)"]


def test_a_repair_of_the_past_is_not_done_to_the_present(running: Running, past: elastalog.Client) -> None:
    told = httpx.post(
        f"{running.url}/api/v1/at/2/suggest",
        json={"unwanted": ["path(1, 5)"]},
        headers={"Authorization": f"Bearer {TOKEN}"},
    ).json()
    refused = httpx.post(
        f"{running.url}/api/v1/updates", json=told["undo"], headers={"Authorization": f"Bearer {TOKEN}"}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "E0938")


def test_patterns_can_be_asked_why_not(running: Running, past: elastalog.Client) -> None:
    found = past.why_not("path(1, X)")
    assert isinstance(found, PatternAbsence)
    assert (found.pattern, found.present) == ("path(1, X)", 4)
    now = running.connect().why_not("path(1, X)")
    assert isinstance(now, PatternAbsence)
    assert now.present == 0
    assert str(now) == str(running.session.why_not("path(1, X)"))


@pytest.mark.parametrize("path", ["/uses?fact=edge(4,5)", "/why-not?fact=path(1,X)", "/relations"])
@pytest.mark.parametrize("epoch", [9, 0, -5])
def test_an_epoch_that_is_gone_is_gone_for_these_too(running: Running, path: str, epoch: int) -> None:
    answer = httpx.get(f"{running.url}/api/v1/at/{epoch}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.json()["code"]) == (410, "E0813")


@pytest.mark.parametrize("call", ["blame", "suggest", "localise", "updates/preview"])
def test_so_for_what_is_sent(running: Running, call: str) -> None:
    body = {"blame": {"fact": "path(1, 2)"}, "updates/preview": {}}.get(call, {"unwanted": ["path(1, 2)"]})
    answer = httpx.post(f"{running.url}/api/v1/at/9/{call}", json=body, headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.json()["code"]) == (410, "E0813")


def test_without_a_store_there_is_no_past_to_ask(start: Callable[..., Running]) -> None:
    running = start(store=None)
    running.service.writing.apply({"edge": [(4, 5)]})
    answer = httpx.get(f"{running.url}/api/v1/at/1/uses?fact=edge(1,2)", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.json()["code"]) == (410, "E0815")


def test_python_asks_the_past_by_a_session_of_it(running: Running, past: elastalog.Client) -> None:
    then = running.session.at(2)
    assert sorted(map(str, then.uses("edge(4, 5)", all=True))) == [f"path({x}, 5)" for x in (1, 2, 3, 4)]
    assert then.blame("path(1, 5)").epoch == 2
    assert [str(one) for one in then.suggest(unwanted=["path(1, 5)"]).elements] == ["+edge(4, 5)"]
    assert then.preview(deleted={"edge": [(4, 5)]}).impact == 5
