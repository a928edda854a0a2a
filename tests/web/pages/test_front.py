"""What somebody meets who opens the workbench for the first time, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.web.pages.conftest import PATIENCE, Served, Windows
from tests.web.pages.test_walk import LEAK, action, epoch_of, fact_page, wait_for_epoch

QUESTION = quote('reaches("web", X)')
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pages")]


def test_the_demonstration_shows_the_way_in_three_steps(windows, keep):
    page = windows.open()
    page.wait_for_selector(".wb-guide >> text=Three steps")
    keep(page, "guide")
    page.click('[data-guide="1"]')
    page.wait_for_selector("text=Why it holds")
    page.go_back()
    page.click('[data-guide="2"]')
    page.wait_for_selector(f".wb-list >> text={LEAK}")
    action(page, "suggest").click()
    page.wait_for_selector(".wb-element")
    epoch = epoch_of(page)
    action(page, "apply").click()
    wait_for_epoch(page, epoch + 1)
    page.goto(windows.served.base + "/timeline")
    page.wait_for_selector("td:has-text('repair')")
    page.goto(windows.served.base + "/")
    action(page, "hide-guide").click()
    page.wait_for_selector(".wb-guide", state="hidden")


def test_an_unknown_address_is_404_and_leads_back(windows):
    page = windows.open()
    windows.faults.clear()
    answer = page.goto(windows.served.base + "/nothing")
    assert answer.status == 404
    assert page.get_attribute("html", "lang") == "en"
    page.click("text=Go to the facts")
    page.wait_for_selector(".wb-relations")
    for address, status in (("nope", 404), ("query", 405), ("at/1/nope", 404), ("program/", 200)):
        answer = page.request.get(f"{windows.served.base}/api/v1/{address}")
        assert (answer.status, "json" in answer.headers["content-type"]) == (status, True)
    windows.faults.clear()  # the browser notes the 404


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/facts?relation=calls", "calls · services.dl · Elastalog"),
        ("/repair", "Repair · services.dl · Elastalog"),
        ("/program", "Program · services.dl · Elastalog"),
    ],
)
def test_every_page_has_a_title_and_a_language(windows, path, title):
    page = windows.open(path)
    page.wait_for_function(f"document.title === {title!r}")
    assert page.get_attribute("html", "lang") == "en-US"


def test_an_empty_form_is_refused_and_stale_answers_go(windows):
    page = windows.open("/update")
    action(page, "add").click()
    page.wait_for_selector(".wb-fault >> text=no value for")
    assert "+calls" not in page.text_content(".cm-content")
    page.click(".cm-content")
    page.keyboard.insert_text('-calls("no", "such").')
    action(page, "preview").click()
    page.wait_for_selector("text=No fact would come or go.")
    page.click(".cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\n+nonsense")
    page.wait_for_selector("text=No fact would come or go.", state="detached")


def test_a_derived_fact_offers_what_to_delete(windows):
    page = windows.open(fact_page('reaches("shop.front", "shop.tax")'))
    page.wait_for_selector("text=It is derived")
    assert page.locator("text=Stage its deletion").count() == 0
    action(page, "find-deletion").click()
    page.wait_for_selector('.wb-list >> text=reaches("shop.front", "shop.tax")')
    action(page, "suggest").click()
    page.wait_for_selector(".wb-element")
    windows.open("/repair")


def test_an_absent_fact_stages_what_is_missing(windows):
    page = windows.open(fact_page('exposed("mail.front", "vault")'))
    page.wait_for_selector("text=Why it does not hold")
    assert page.locator("text=Stage its insertion").count() == 0
    assert action(page, "find-insertion").count() == 1
    page.goto(windows.served.base + fact_page('public("mail.front")'))
    page.wait_for_selector("text=Stage its insertion")


def test_a_stranger_is_asked_for_a_token(browser: Any, demo: Served) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    answer = page.goto(demo.base + "/timeline")
    assert answer.status == 401
    page.fill("#token", "wrong")
    page.press("#token", "Enter")
    page.wait_for_selector("text=This token is not known here.")
    page.fill("#token", demo.address.partition("token=")[2])
    page.click("text=Sign in >> nth=-1")
    page.wait_for_selector(".wb-table")
    assert "token" not in page.url
    context.close()


@pytest.fixture(scope="module")
def empty(browser: Any) -> Iterator[Windows]:
    served = Served()
    windows = Windows(browser, served)
    yield windows
    windows.close()
    served.close()


def test_a_program_begins_with_nothing(empty: Windows, keep: Any) -> None:
    page = empty.open()
    page.click("text=Begin on the page Program")
    page.wait_for_selector(".cm-content")
    page.get_by_label("relation").fill("calls")
    page.get_by_label("facts", exact=True).fill("caller,callee\nweb,cart\ncart,prices")
    action(page, "paste").click()
    page.wait_for_selector("text=may be a fact, or the names of the columns")
    page.locator(".q-select", has_text="header: detected").click()
    page.click("text=first line: names of columns")
    action(page, "paste").click()
    wait_for_epoch(page, 2)
    page.wait_for_selector(".cm-content >> text=.decl calls(caller: symbol, callee: symbol)")
    page.wait_for_selector("text=header: detected")
    page.click(".cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\nreaches(x, y) :- calls(x, y).\n")
    action(page, "preview").click()
    page.wait_for_selector(".wb-card:has-text('What would change') >> text=unknown relation")
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(
        ".decl calls(caller: symbol, callee: symbol)\n"
        ".decl reaches(x: symbol, y: symbol)\nreaches(x, y) :- calls(x, y).\n"
        "reaches(x, z) :- reaches(x, y), calls(y, z).\n"
    )
    page.wait_for_selector(".wb-card:has-text('What would change') >> text=press Preview")
    action(page, "commit").click()
    wait_for_epoch(page, 3)
    keep(page, "from-nothing")
    page.wait_for_selector("text=None: the program is fine.")
    page.goto(f"{empty.served.base}/facts?query={QUESTION}")
    page.wait_for_selector('td:has-text("prices")')
    assert empty.faults == []


def test_a_name_that_is_a_text_is_pointed_out_and_a_line_without_a_sign_is_shown_whole(empty: Windows) -> None:
    page = empty.open()
    for question in ("reaches(web, X)", 'reaches("web", prices)', "reaches(web, X), calls(X, Y)"):
        page.goto(f"{empty.served.base}/")
        page.get_by_label("ask about a fact, or a query").fill(question)
        page.keyboard.press("Enter")
        page.wait_for_selector("text=is a variable here, and stands for any text")
    page.goto(empty.served.base + fact_page('reaches("web", "pricess")'))
    page.wait_for_selector('text=did you mean "prices"?')
    page.goto(f"{empty.served.base}/update?text=calls(1)")
    assert page.locator(".wb-staged li .fact").text_content() == "calls(1)"


def test_an_answer_of_repair_fits_its_card_and_goes_with_its_faults(empty: Windows) -> None:
    page = empty.open("/repair?over=facts&wrong=" + quote('reaches("web", "prices")'), width=1100)
    action(page, "suggest").click()
    page.wait_for_selector(".wb-element")
    card = page.locator(".wb-card:has-text('Answer')").last
    assert card.evaluate("card => card.scrollWidth <= card.clientWidth")
    page.click(".wb-list >> text=Remove")
    page.wait_for_selector(".wb-element", state="detached")
