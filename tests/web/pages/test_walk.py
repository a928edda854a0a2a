"""A walk through every page of the demonstration, as a person would take it, in a real browser.

The steps follow each other: each goes on from the epoch that the one before has made.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from elastalog.web.pages.demo import SCENARIO

# The steps share a server and a browser, and some go on from where others ended: one process runs them all.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pages")]

LEAK = 'exposed("help.front", "vault")'
OTHER_LEAK = 'exposed("help.front", "diary")'


def fact_page(fact: str) -> str:
    return f"/fact?fact={quote(fact)}"


def epoch_of(page: Any) -> int:
    return int(page.text_content("#epoch"))


def wait_for_epoch(page: Any, epoch: int) -> None:
    page.wait_for_function(f"document.getElementById('epoch').textContent === '{epoch}'")


def action(page: Any, name: str) -> Any:
    return page.locator(f'[data-action="{name}"]').first


def replace_text(page: Any, old: str, new: str) -> None:
    """Puts the program with one part replaced into the editor, as if it was typed."""
    program = (SCENARIO / "services.dl").read_text()
    assert old in program
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(program.replace(old, new))


def test_the_token_becomes_a_cookie_and_leaves_the_address(windows):
    page = windows.open()
    assert "token" not in page.url
    cookies = [cookie for cookie in page.context.cookies() if cookie["httpOnly"]]
    assert [cookie["sameSite"] in ("Lax", "Strict") for cookie in cookies] == [True]
    assert page.evaluate("document.cookie") == ""


def test_facts_are_listed_by_relation_with_what_the_last_epoch_did(windows, keep):
    page = windows.open()
    assert page.locator('[data-relation="reaches"] .count').text_content() == "410"
    assert page.locator('[data-relation="reaches"] .last').text_content() == "+41 −2"
    page.click('[data-relation="reaches"]')
    page.wait_for_url("**/facts?relation=reaches")
    page.wait_for_selector(".wb-pager:has-text('1 – 50 of 410')")
    assert page.locator(".wb-table tbody tr").count() == 50
    keep(page, "facts")


def test_a_table_pages_sorts_and_filters_on_the_server(windows):
    page = windows.open("/facts?relation=calls")
    page.click('.wb-table th a:has-text("callee")')
    page.wait_for_url("**order=callee")
    page.wait_for_selector('.wb-table th[aria-sort="ascending"]')
    first = page.locator(".wb-table tbody tr").first
    assert first.locator("td").nth(1).text_content() == '"diary"'
    page.keyboard.press("]")
    page.wait_for_url("**page=2")
    page.wait_for_selector(".wb-pager:has-text('51 – 100 of 104')")
    field = page.get_by_label("filter")
    field.fill("mail.")
    field.press("Enter")
    page.wait_for_url("**where=mail.")
    page.wait_for_selector(".wb-pager:has-text('of 18')")
    for row in page.locator(".wb-table tbody tr").all():
        assert "mail." in row.text_content()
    field = page.get_by_label("filter")
    field.fill("caller = callee")
    field.press("Enter")
    page.wait_for_selector("text=Nothing fits")
    page.go_back()
    page.wait_for_selector(".wb-pager:has-text('of 18')")


def test_a_wrong_filter_is_a_diagnostic(windows):
    page = windows.open("/facts?relation=calls&where=nowhere+%3E+1")
    page.wait_for_selector(".wb-fault")
    assert "nowhere" in page.text_content(".wb-fault")


def test_a_proof_opens_three_levels_deep_and_has_an_address(windows, keep):
    page = windows.open(fact_page(LEAK))
    rules = page.locator(".wb-tree .rule")
    assert "exposed(x, y) :- public(x), reaches(x, y), secret(y)." in rules.first.text_content()
    for path in ("0.1", "0.1.0", "0.1.0.0"):
        page.click(f'[data-path="{path}"]')
        page.wait_for_selector(f'.wb-tree [data-path="{path}"] >> text=▼')
    page.wait_for_selector('.wb-tree >> text=calls("help.chat", "mail.writer")')
    page.wait_for_url("**open=0.1.0.0")
    again = windows.open(page.url.removeprefix(windows.served.base))
    again.wait_for_selector('.wb-tree >> text=calls("help.chat", "mail.writer")')
    assert "line 15" in again.text_content(".wb-tree")
    keep(again, "proof")


def test_a_proof_is_drawn_as_a_graph(windows, keep):
    page = windows.open(fact_page(OTHER_LEAK))
    page.click('.wb-choice >> text="graph"')
    page.wait_for_selector(".wb-graph svg .goal")
    assert page.locator(".wb-graph g").count() == 17
    page.wait_for_url("**view=graph")
    keep(page, "proof-graph")


def test_a_missing_fact_says_why_not_down_to_what_is_missing(windows, keep):
    page = windows.open()
    page.keyboard.press("/")
    page.keyboard.type('exposed("shop.front", "vault").')
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Why it does not hold")
    failing = page.locator(".wb-literals li.fails").first
    assert 'reaches("shop.front", "vault")' in failing.text_content()
    keep(page, "why-not")
    failing.locator("a").click()
    page.wait_for_selector('.wb-fact-title:has-text("reaches(")')
    page.wait_for_selector('.wb-literals li.fails >> text=!guarded("gate")')


def test_a_question_that_is_no_fact_is_answered(windows):
    page = windows.open()
    page.get_by_label("ask about a fact").fill('reaches("shop.front", x), secret(x), !guarded(x)')
    page.keyboard.press("Enter")
    page.wait_for_selector("text=No answers")
    page.get_by_label("ask about a fact").fill('reaches(x, "vault")')
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("relation=reaches&where=callee"))
    page.wait_for_selector(".wb-table")


def test_a_pattern_says_what_fits_and_why_nothing_else_does(windows, keep):
    page = windows.open()
    page.get_by_label("ask about a fact").fill('exposed("shop.front", X)')
    page.keyboard.press("Enter")
    action(page, "why-not").click()
    page.wait_for_selector("text=Why nothing else fits it")
    page.wait_for_selector("text=0 facts there")
    near = page.locator(".wb-why-not").first
    assert 'exposed("shop.front", "' in near.text_content()
    assert near.locator("li.fails").count() == 1
    keep(page, "why-not-pattern")
    page.click("text=Show what is there")
    page.wait_for_selector("text=Nothing fits")


def test_the_past_is_asked_what_rests_on_a_fact_and_since_when(windows, keep):
    page = windows.open(fact_page(LEAK) + "&epoch=6")
    page.wait_for_selector("text=This is epoch 6")
    page.wait_for_selector("text=Used for")
    page.wait_for_selector("text=Since epoch")
    action(page, "what-if").click()
    page.wait_for_selector("text=Nothing else would go")
    keep(page, "fact-then")


def test_a_deletion_is_previewed_and_nothing_happens(windows, keep):
    page = windows.open(fact_page('calls("mail.archive", "vault")'))
    action(page, "what-if").click()
    page.wait_for_selector(f".wb-list >> text={LEAK}")
    page.click("text=Stage its deletion")
    page.wait_for_selector('.cm-content >> text=-calls("mail.archive", "vault").')
    action(page, "preview").click()
    page.wait_for_selector(f'[data-changed="exposed"] .minus >> text={LEAK}')
    page.wait_for_selector("text=Forecast of the elastic choice")
    keep(page, "update")
    assert epoch_of(page) == 6


def test_a_mistake_in_a_rule_is_shown_at_its_place(windows, keep):
    page = windows.open("/program")
    page.wait_for_selector(".cm-content .hl-relation")
    replace_text(
        page,
        "exposed(x, y) :- public(x), reaches(x, y), secret(y).",
        "exposed(x, y) :- public(x), reachs(x, y), secret(y).",
    )
    page.wait_for_selector(".cm-content .hl-fault")
    assert page.text_content(".cm-content .hl-fault") == "reachs"
    assert "line 19, column 29" in page.text_content(".wb-findings")
    keep(page, "program-mistake")
    action(page, "commit").click()
    page.wait_for_selector(".wb-stack .wb-fault >> text=reachs")
    assert epoch_of(page) == 6


def test_a_change_of_rules_is_previewed_committed_seen_by_others_and_undone(windows, keep):
    other = windows.open("/facts?relation=exposed")
    page = windows.open("/program")
    page.wait_for_selector(".cm-content .hl-relation")
    replace_text(
        page,
        "exposed(x, y) :- public(x), reaches(x, y), secret(y).",
        'exposed(x, y) :- public(x), reaches(x, y), secret(y), y != "diary".',
    )
    action(page, "preview").click()
    page.wait_for_selector(f'[data-changed="exposed"] .minus >> text={OTHER_LEAK}')
    assert epoch_of(page) == 6
    action(page, "commit").click()
    page.wait_for_selector(".wb-committed >> text=Epoch 7")
    keep(page, "program-committed")
    wait_for_epoch(other, 7)
    other.wait_for_selector('[data-relation="exposed"] .last >> text=−1')
    other.wait_for_selector(".wb-pager:has-text('of 1')")
    action(page, "undo").click()
    wait_for_epoch(other, 8)
    other.wait_for_selector(".wb-pager:has-text('of 2')")
    page.wait_for_function("document.querySelector('.cm-content').innerText.includes('secret(y).')")


def test_two_windows_see_each_others_commits(windows):
    one, other = windows.open("/update"), windows.open("/update")
    epoch = epoch_of(one)
    for page, made in ((one, "one"), (other, "other")):
        page.get_by_label("caller: symbol").fill(made)
        page.get_by_label("callee: symbol").fill("log")
        action(page, "add").click()
        page.wait_for_selector("text=1 to insert")
        action(page, "commit").click()
        page.wait_for_selector(".wb-committed")
        epoch += 1
        wait_for_epoch(one, epoch)
        wait_for_epoch(other, epoch)
    one.click('[data-key="1"]')
    one.click('[data-relation="calls"]')
    one.wait_for_selector("text=of 106")


def test_two_faults_lead_to_a_repair_that_can_be_refused_applied_and_undone(windows, keep):
    page = windows.open(fact_page(LEAK))
    action(page, "mark-wrong").click()
    page.wait_for_selector(".wb-nav .wb-badge >> text=1")
    page.goto(windows.served.base + fact_page(OTHER_LEAK))
    action(page, "mark-wrong").click()
    page.wait_for_selector(".wb-nav .wb-badge >> text=2")
    page.click(".wb-nav a[title=Repair]")
    page.wait_for_selector(f".wb-list >> text={OTHER_LEAK}")
    page.click('.wb-choice >> text="all given facts"')
    page.wait_for_url("**over=facts**")
    action(page, "suggest").click()
    page.wait_for_selector('.wb-element >> text=public("help.front")')
    page.wait_for_selector(".wb-tag >> text=minimum")
    action(page, "reject").click()
    page.wait_for_selector(".wb-tag >> text=kept")
    page.wait_for_selector("text=Change 2 explicit facts")
    assert 'public("help.front")' not in page.locator(".wb-element .fact").all_text_contents()
    keep(page, "repair")
    epoch = epoch_of(page)
    action(page, "apply").click()
    page.wait_for_selector(".wb-committed")
    wait_for_epoch(page, epoch + 1)
    page.wait_for_selector(f'[data-changed="exposed"] .minus >> text={LEAK}')
    assert page.locator(".wb-nav .wb-badge").count() == 0
    action(page, "undo").click()
    wait_for_epoch(page, epoch + 2)
    page.goto(windows.served.base + fact_page(LEAK))
    page.wait_for_selector("text=Why it holds")


def test_facts_and_rules_are_staged_together_and_each_can_be_taken_away(windows, keep):
    page = windows.open("/update")
    epoch = epoch_of(page)
    page.get_by_label("caller: symbol").fill("new.service")
    page.get_by_label("callee: symbol").fill("vault")
    action(page, "add").click()
    page.wait_for_selector("text=1 to insert")
    page.get_by_label("a rule", exact=True).fill("exposed(x, y) :- calls(x, y), secrets(y).")
    action(page, "add-rule").click()
    page.wait_for_selector(".wb-fault >> text=secrets")
    page.get_by_label("a rule", exact=True).fill("exposed(x, y) :- calls(x, y), secret(y).")
    action(page, "add-rule").click()
    page.wait_for_selector("text=1 rule to add")
    action(page, "preview").click()
    page.wait_for_selector('[data-changed="exposed"] .plus >> text=exposed("new.service", "vault")')
    keep(page, "update-rules")
    assert page.locator(".wb-staged li").count() == 2
    page.locator(".wb-staged [data-line='1']").click()
    page.wait_for_selector("text=1 rule to add", state="detached")
    assert page.locator(".wb-staged li").count() == 1
    page.get_by_label("a rule", exact=True).fill("exposed(x, y) :- calls(x, y), secret(y).")
    action(page, "add-rule").click()
    page.wait_for_selector("text=1 rule to add")
    action(page, "commit").click()
    page.wait_for_selector(f".wb-committed >> text=Epoch {epoch + 1}")
    page.wait_for_selector('[data-changed="exposed"] .plus >> text=exposed("new.service", "vault")')
    action(page, "undo").click()
    page.wait_for_selector(f"text=Undone, as epoch {epoch + 2}")
    page.goto(windows.served.base + fact_page('exposed("new.service", "vault")'))
    page.wait_for_selector("text=does not hold")


def test_the_past_can_be_compared_and_looked_at(windows, keep):
    page = windows.open("/timeline?from=5&to=6")
    page.wait_for_selector("text=From epoch 5 to epoch 6")
    page.wait_for_selector(f'[data-changed="exposed"] .plus >> text={LEAK}')
    keep(page, "timeline")
    page.goto(windows.served.base + "/facts?relation=exposed&epoch=5")
    page.wait_for_selector("text=This is epoch 5")
    page.wait_for_selector("text=No facts")
    page.goto(windows.served.base + fact_page(LEAK) + "&epoch=5")
    page.wait_for_selector("text=does not hold")
    assert action(page, "mark-missing").count() == 0
    page.click("text=Back to the present")
    page.wait_for_selector("text=Why it holds")


def test_the_engine_shows_strata_rules_and_memory(windows, keep):
    page = windows.open("/engine")
    page.wait_for_selector('.wb-graph svg .recursive text:has-text("reaches")')
    assert page.locator(".wb-graph path.weak").count() == 2
    page.wait_for_selector("text=reaches(x, z) :- reaches(x, y), calls(y, z), !guarded(y).")
    page.wait_for_selector("text=no GPU or cluster is available")
    assert page.locator(".wb-graph text.note:has-text('kernel')").count() == 4
    keep(page, "engine")


@pytest.mark.parametrize(
    "path", ["/facts?relation=reaches", fact_page(LEAK), "/program", "/update", "/timeline", "/repair", "/engine"]
)
def test_every_page_fits_a_phone_and_the_dark(windows, keep, path):
    page = windows.open(path, width=390, height=844, is_dark=True)
    page.wait_for_selector(".wb-card")
    page.wait_for_timeout(300)
    keep(page, f"phone-dark-{path.strip('/').partition('?')[0]}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    light = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
    assert max(light) < 60


def test_keys_lead_to_pages_and_rows(windows):
    page = windows.open("/facts?relation=calls")
    page.wait_for_selector("[data-row]")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(".wb-fact-title")
    for key, name in zip("23456", ("program", "update", "timeline", "repair", "engine"), strict=True):
        page.keyboard.press(key)
        page.wait_for_url(f"**/{name}**")
        page.wait_for_selector(".wb-head")
        page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    page.wait_for_selector(".q-dialog >> text=Keys")
    page.keyboard.press("Escape")


def test_dark_and_light_are_remembered(windows):
    page = windows.open("/engine")
    page.keyboard.press("d")
    page.wait_for_selector("body.body--dark")
    page.reload()
    page.wait_for_selector("body.body--dark")


def test_an_address_that_is_none_says_so(windows):
    page = windows.open(fact_page("nothing(1)"))
    page.wait_for_selector(".wb-fault >> text=there is no relation nothing")
    page.goto(windows.served.base + "/facts?relation=exposed&epoch=99")
    page.wait_for_selector(".wb-fault")
