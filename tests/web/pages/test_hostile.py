"""Values that would like to be more than values, in every page; who may only read; and what a page may load."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.web.pages.conftest import PATIENCE, Served, Windows

# The steps share a server and a browser, and some go on from where others ended: one process runs them all.
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.xdist_group("pages")]

PROGRAM = """
.decl said(who: symbol, what: symbol)
.input said(filename="said.parquet")
.decl heard(what: symbol)
heard(what) :- said(_, what).
.output heard
"""
HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "' onmouseover='window.hacked = 1",
    "\u202egpj.exe\u2066",
    "two\nlines\tand a tab",
    "`${window.hacked = 1}`",
    "{{ constructor.constructor('window.hacked = 1')() }}",
    "\\",
    "",
    "🦕" * 40,
]
LONG = "long " * 200_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "hostile.dl").write_text(PROGRAM)
    texts = [*HOSTILE, LONG]
    names = [f"<b>{number}</b>" for number in range(len(texts))]
    parquet.write_table(pa.table({"who": names, "what": texts}), folder / "said.parquet")
    started = Served(str(folder / "hostile.dl"), "-F", str(folder), "--read-token", "only-to-read")
    yield started
    started.close()


@pytest.fixture
def hostile(browser: Any, served: Served) -> Iterator[Windows]:
    opened = Windows(browser, served)
    yield opened
    opened.close()
    assert opened.faults == []
    assert opened.hosts <= {served.base}


def is_harmless(page: Any) -> bool:
    return bool(page.evaluate("window.hacked === undefined && !document.querySelector('.wb-page img, .wb-page b b')"))


def test_hostile_values_stay_values_in_tables(hostile, keep):
    page = hostile.open("/facts?relation=said&order=what")
    page.wait_for_selector(".wb-table")
    assert page.locator(".wb-table tbody tr").count() == len(HOSTILE) + 1
    text = page.text_content(".wb-table")
    assert '"<script>window.hacked = 1</script>"' in text
    assert "\u202e" not in text
    assert "two\\nlines" in text
    assert "1,000,000 characters" in text
    assert len(page.content()) < 300_000
    assert is_harmless(page)
    keep(page, "hostile")


def test_hostile_values_stay_values_on_the_page_of_a_fact(hostile):
    page = hostile.open("/facts?relation=heard")
    for text in HOSTILE:
        page.get_by_label("ask about a fact").fill(f"heard({json.dumps(text, ensure_ascii=False)})")
        page.keyboard.press("Enter")
        page.wait_for_selector(".wb-fact-title >> text=heard")
        page.wait_for_selector(".wb-tree .fact >> text=said")
        page.locator(".wb-tree a.fact").nth(1).click()
        page.wait_for_selector(".wb-fact-title >> text=said")
        page.wait_for_selector(".wb-tree .wb-tag >> text=given")
        assert is_harmless(page)


def test_a_very_long_text_is_cut_and_can_be_seen_whole(hostile):
    page = hostile.open("/facts?relation=heard&where=" + quote("strlen(what) > 1000"))
    page.click(".wb-table [data-row]")
    page.wait_for_selector("text=Why it holds")
    assert len(page.url) < 300
    assert len(page.content()) < 300_000
    page.click("text=Show all of it")
    page.wait_for_selector(".wb-long")
    assert len(page.text_content(".wb-long")) == len(LONG)


def test_hostile_values_can_be_staged_and_marked(hostile):
    page = hostile.open("/update")
    page.get_by_label("who: symbol").fill(HOSTILE[0])
    page.get_by_label("what: symbol").fill(HOSTILE[1])
    page.click('[data-action="add"]')
    page.wait_for_selector("text=1 to insert")
    page.click('[data-action="preview"]')
    page.wait_for_selector('[data-changed="said"] .plus')
    assert is_harmless(page)
    page.goto(hostile.served.base + "/repair?wrong=" + quote('heard("<script>window.hacked = 1</script>")'))
    page.wait_for_selector(".wb-list .fact")
    assert is_harmless(page)
    page.goto(hostile.served.base + "/engine")
    page.wait_for_selector(".wb-graph svg")


def test_hostile_addresses_are_answered_by_a_diagnostic_or_nothing(hostile):
    for path in (
        "/fact?fact=%3Cscript%3E",
        "/facts?query=%22%3E%3Cb%3E",
        "/facts?relation=%3Cimg%3E",
        "/timeline?from=x&to=-1",
        "/program?line=9999999",
    ):
        page = hostile.open(path)
        assert is_harmless(page)


def test_a_page_may_load_only_its_own_and_runs_no_script_without_its_nonce(served):
    key = served.address.partition("token=")[2]
    answer = urlopen(Request(served.base + "/facts", headers={"Authorization": f"Bearer {key}"}))
    policy = answer.headers["Content-Security-Policy"]
    body = answer.read().decode()
    nonce = re.search("'nonce-([^']+)'", policy)[1]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert body.count("<script") == body.count(f'<script nonce="{nonce}"') > 3
    assert "http://" not in re.sub(r'xmlns="[^"]+"|http://www.w3.org/[^\s"\\]*', "", body)


def test_without_the_token_there_is_no_page_and_no_socket(browser, served):
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    assert page.goto(served.base + "/facts").status == 401
    assert page.goto(served.base + "/_nicegui_ws/socket.io/?EIO=4&transport=polling").status == 401
    context.close()


def test_who_may_only_read_can_change_nothing(browser, served, keep):
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(served.base + "/program?token=only-to-read")
    page.wait_for_selector(".cm-content")
    assert page.locator('[data-action="commit"]').count() == 0
    page.goto(served.base + "/update")
    page.wait_for_selector("text=Nothing can be changed here")
    page.goto(served.base + "/fact?fact=" + quote('heard("")'))
    page.wait_for_selector("text=Why it holds")
    assert page.locator('[data-action="mark-wrong"]').count() == 0
    page.goto(served.base + "/repair?wrong=" + quote('heard("")'))
    page.wait_for_selector("text=Faults")
    assert page.locator('.wb-list >> text=heard("")').count() == 0
    context.close()
