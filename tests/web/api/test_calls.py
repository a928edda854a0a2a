"""Every call over HTTP: what it answers, and what it refuses; what is asked of the present can be asked of any
epoch that is kept: uses, what if, blame, repairs, why not."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.messages import messages
from elastalog.diagnostics.quota import Quota
from elastalog.web.metrics import HELP
from elastalog.web.problems import diagnostics_told, problem
from elastalog.web.settings import Limits
from elastalog.web.writing import edits
from tests.storage.scripted import write_snapshot
from tests.tables import table
from tests.web.api.conftest import FACTS, PROGRAM, READ_TOKEN, TOKEN, Running

AS_WRITER = {"Authorization": f"Bearer {TOKEN}"}
ABOUT_SESSIONS = ("E0604", "E0607", "E0620", "E0626", "E0641", "E0642", "E0670", "E0705")
"""What no request over HTTP can be at fault for."""
AS_READER = {"Authorization": f"Bearer {READ_TOKEN}"}


@pytest.fixture
def http(running: Running) -> httpx.Client:
    return httpx.Client(base_url=f"{running.url}/api/v1", headers=AS_WRITER, timeout=30)


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["code"] == code
    assert problem["status"] == status
    assert problem["diagnostics"][0]["code"] == code
    return problem


def test_health_needs_no_token(running: Running) -> None:
    answer = httpx.get(f"{running.url}/api/v1/health")
    assert answer.json()["status"] == "ok"
    assert answer.json()["epoch"] == 1


@pytest.mark.parametrize(
    "path", ["relations", "relations/path", "metrics", "proof?fact=path(1,3)", "epochs", "changes", "program"]
)
def test_everything_else_needs_one(running: Running, path: str) -> None:
    answer = httpx.get(f"{running.url}/api/v1/{path}")
    refused(answer, 401, "E0923")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    refused(httpx.get(f"{running.url}/api/v1/{path}", headers={"Authorization": "Bearer x"}), 401, "E0923")


def test_a_reader_may_not_write(running: Running) -> None:
    with httpx.Client(base_url=f"{running.url}/api/v1", headers=AS_READER) as http:
        refused(http.post("/updates", json={"inserted": {"edge": [[4, 5]]}}), 403, "E0924")
        refused(http.patch("/program", json={"added": "path(x, x) :- edge(x, _)."}), 403, "E0924")
        assert http.post("/updates/preview", json={"inserted": {"edge": [[4, 5]]}}).json()["impact"] == 5


def test_relations_tell_columns_counts_and_the_last_change(http: httpx.Client) -> None:
    http.post("/updates", json={"deleted": {"edge": [[1, 2]]}}).raise_for_status()
    found = {one["name"]: one for one in http.get("/relations").json()["relations"]}
    assert found["path"] == {
        "name": "path",
        "columns": [{"name": "from", "type": "number"}, {"name": "to", "type": "number"}],
        "facts": 3, "inserted": 0, "deleted": 3, "rules": 2, "is_input": False, "is_output": True,
    }  # fmt: skip


def test_rows_come_by_pages(http: httpx.Client) -> None:
    page = http.get("/relations/path?order=-from,to&offset=1&limit=2").json()
    assert (page["rows"], page["total"], page["offset"]) == ([[2, 3], [2, 4]], 6, 1)
    page = http.get("/relations/path", params={"where": "from = 1, to > 2", "order": "to", "annotations": True}).json()
    assert page["rows"] == [[1, 3], [1, 4]]
    assert page["levels"] == [2, 3]
    assert http.get("/relations/path?order=-@level&limit=1").json()["rows"] == [[1, 4]]


def test_pages_have_every_row_once_though_many_are_equal_in_their_order(start: Callable[..., Running]) -> None:
    nan, least = float("nan"), float("-inf")
    facts = {"f": [(i, (nan, least, -1.5, 2.0)[i % 4]) for i in range(12_000)]}
    reading = start(".decl f(i: number, x: float)", facts, None).service.reading
    for order, values in (("x", ["nan", "-inf", "-1.5", "2.0"]), ("-x", ["2.0", "-1.5", "-inf", "nan"])):
        rows = [
            row
            for offset in range(0, 12_000, 1000)
            for row in reading.page("f", order=order, offset=offset, limit=1000).rows
        ]
        assert {i for i, _ in rows} == set(range(12_000))
        assert [text for text, _ in groupby(str(x) for _, x in rows)] == values


def test_alternatives_are_among_the_rows_of_the_relation(http: httpx.Client) -> None:
    def rows(where: str) -> list[list[int]]:
        answer = http.get("/relations/edge", params={"where": where}).raise_for_status()
        return sorted(answer.json()["rows"])

    assert rows("from = 1 ; to = 4") == [[1, 2], [3, 4]]
    assert rows("from = 9 ; path(from, to)") == [[1, 2], [2, 3], [3, 4]]
    assert rows("from = 1 // or others") == [[1, 2]]


def test_columns_may_have_words_of_the_language_as_names(http: httpx.Client) -> None:
    declared = ".decl total(from: number, count: number)\ntotal(1, 3). total(2, 5).\n"
    http.patch("/program", json={"added": declared}).raise_for_status()
    for where in ("from = 2", "count_ > 4"):
        assert http.get("/relations/total", params={"where": where}).json()["rows"] == [[2, 5]]


def test_a_filter_names_columns_and_nothing_else(http: httpx.Client) -> None:
    for where in ("text = one", 'txt = "one"', "of > n", "text = one ; of = 1"):
        answer = http.get("/relations/label", params={"where": where})
        refused(answer, 422, "E0618")
    assert answer.json()["help"] == 'name one of the columns; a text stands in quotes: `"one"`'
    found = http.get("/relations/label", params={"where": 'text = "one", edge(of, x), x < 3'})
    assert found.json()["rows"] == [[1, "one"]]


def test_rows_come_in_every_form(http: httpx.Client) -> None:
    def fetched(form: str) -> httpx.Response:
        return http.get("/relations/label", headers={"Accept": form})

    assert fetched("text/csv").text == '"of","text"\n1,"one"\n'
    table = pa.ipc.open_stream(fetched("application/vnd.apache.arrow.stream").content).read_all()
    assert table.to_pylist() == [{"of": 1, "text": "one"}]
    parquet = pq.read_table(io.BytesIO(fetched("application/vnd.apache.parquet").content))
    assert parquet.to_pylist() == [{"of": 1, "text": "one"}]
    assert fetched("text/csv;q=0.1, application/json").json()["rows"] == [[1, "one"]]
    refused(fetched("application/xml"), 406, "E0931")


def test_pages_that_there_are_not_are_refused(http: httpx.Client) -> None:
    refused(http.get("/relations/paths"), 404, "E0606")
    refused(http.get("/relations/path?order=height"), 422, "E0920")
    refused(http.get("/relations/path?limit=20000"), 422, "E0920")
    refused(http.get("/relations/path?limit=-1"), 400, "E0926")
    refused(http.get("/relations/path", params={"where": "from >"}), 422, "E0110")


def test_epochs_that_are_not_kept_are_gone(start: Callable[..., Running], tmp_path: Path) -> None:
    path = tmp_path / "short.store"
    with elastalog.open(PROGRAM, FACTS, store=path) as db:
        for number in range(5, 9):
            db.apply({"edge": [(4, number)]})
            write_snapshot(db)
    running = start(session=elastalog.open(store=elastalog.Store(path, retention=1)))
    first = running.session.log()[0].epoch
    assert first > 1
    api = f"{running.url}/api/v1"
    refused(httpx.get(f"{api}/at/{first - 1}/relations", headers=AS_READER), 410, "E0813")


def test_what_is_no_epoch_is_said(http: httpx.Client) -> None:
    told = "`epoch`: an epoch is a number, or the one in force at a time, such as `2026-11-18T09:30`"
    for path in ("/at/yesterday/relations", "/relations?epoch=xy", "/proof?fact=path(1,3)&epoch=last"):
        answer = http.get(path)
        refused(answer, 400, "E0926")
        assert [one["message"] for one in answer.json()["diagnostics"]] == [told]
    assert http.get("/diff?from=x&to=2").json()["detail"] == "`query.from`: a whole number is expected, not `x`"


@pytest.mark.parametrize("call", ["relations", "uses?fact=edge(1,2)"])
def test_without_a_store_the_past_is_gone(start: Callable[..., Running], call: str) -> None:
    running = start(store=None)
    running.service.writing.commit(edits({"edge": [(4, 5)]}))
    refused(httpx.get(f"{running.url}/api/v1/at/1/{call}", headers=AS_READER), 410, "E0815")


def test_queries_bind_parameters_and_are_refused_with_a_place(http: httpx.Client) -> None:
    asked = {"query": "label(X, ?t)", "parameters": {"t": 'one") , edge(1, 2'}}
    assert http.post("/query", json=asked).json()["total"] == 0
    assert http.post("/query", json={"query": "label(X, ?t)", "parameters": {"t": "one"}}).json()["rows"] == [[1]]
    problem = refused(http.post("/query", json={"query": "path(1, X), X >"}), 422, "E0110")
    assert problem["diagnostics"][0]["labels"][0]["line"] == 1
    refused(http.post("/query", json={"text": "path(1, X)"}), 400, "E0926")
    found = refused(
        http.post("/query", content=b'{"query": }', headers={"Content-Type": "application/json"}), 400, "E0926"
    )
    assert found["detail"] == "the body is not JSON: expecting value (character 10)"
    found = refused(http.post("/query", data={"query": "path(1, X)"}), 400, "E0926")
    assert found["detail"] == "the `Content-Type` of the body is `application/x-www-form-urlencoded`"
    assert found["help"] == "send JSON, with the header `Content-Type: application/json`"
    assert refused(http.post("/query"), 400, "E0926")["detail"] == "`body`: an object is expected"


def test_a_question_that_takes_too_long_is_cancelled(start: Callable[..., Running]) -> None:
    many = {"edge": [(i, i + 1) for i in range(300)], "label": []}
    running = start(facts=many, limits=Limits(seconds=0.5))
    asked = {"query": "n(B) :- path(A, B), path(C, D), path(E, F), A + C + E + B + D + F < 0"}
    answer = httpx.post(f"{running.url}/api/v1/query", json=asked, headers=AS_READER, timeout=30)
    assert answer.status_code == 504, answer.text
    assert answer.json()["code"] in ("E0603", "E0921")
    assert httpx.get(f"{running.url}/api/v1/relations/path?limit=1", headers=AS_READER).status_code == 200


def test_too_many_questions_at_once_are_refused(start: Callable[..., Running]) -> None:
    running = start(limits=Limits(waiting=0))
    answer = httpx.get(f"{running.url}/api/v1/relations", headers=AS_READER)
    refused(answer, 503, "E0922")
    assert answer.headers["retry-after"] == "1"


def test_requests_that_are_too_large_are_refused(start: Callable[..., Running]) -> None:
    running = start(limits=Limits(body=1000))
    url = f"{running.url}/api/v1/updates"
    large = {"inserted": {"label": [[1, "x" * 2000]]}}
    refused(httpx.post(url, json=large, headers=AS_WRITER), 413, "E0925")
    parts = (part for part in [b'{"inserted": {"label": [[1, "', b"x" * 2000, b'"]]}}'])
    streamed = {**AS_WRITER, "Content-Type": "application/json"}
    refused(httpx.post(url, content=parts, headers=streamed), 413, "E0925")


def test_updates_are_refused_for_what_is_wrong_with_them(http: httpx.Client) -> None:
    refused(http.post("/updates", json={"inserted": {"edges": [[1, 2]]}}), 404, "E0606")
    refused(http.post("/updates", json={"inserted": {"edge": [["a", 2]]}}), 422, "E0502")
    refused(http.post("/updates", json={"insert": {"edge": [[1, 2]]}}), 400, "E0926")
    refused(http.post("/updates", json={"inserted": {"edge": [[4, 5]]}, "after": 9}), 409, "E0938")
    assert http.get("/health").json()["epoch"] == 1


@pytest.mark.parametrize("text", table(__file__, "rules over the network may not name files or code"))
def test_rules_over_the_network_may_not_name_files_or_code(http: httpx.Client, text: str) -> None:
    refused(http.patch("/program", json={"added": text}), 422, "E0927")
    refused(http.patch("/program", json={"program": PROGRAM + text}), 422, "E0927")
    refused(http.post("/updates", json={"added_rules": text}), 422, "E0927")
    refused(http.post("/updates/preview", json={"added_rules": text}), 422, "E0927")
    checked = http.post("/program/check", json={"program": PROGRAM + text}).json()
    assert not checked["is_correct"]
    assert "E0927" in [one["code"] for one in checked["diagnostics"]]
    declared = ".decl closed(x: number)\n.input closed(IO=updates)\n"  # which reads nothing
    assert http.post("/updates/preview", json={"added_rules": declared}).status_code == 200


def test_bad_rows_that_may_pass_are_reported(start: Callable[..., Running], tmp_path: Path) -> None:
    policy = elastalog.BadRows("quarantine", folder=tmp_path)
    running = start(session=elastalog.open(PROGRAM, {}, bad_rows=policy))
    rows = {"inserted": {"edge": [[4, 5], ["x", 5]]}}
    told = httpx.post(f"{running.url}/api/v1/updates", json=rows, headers=AS_WRITER).json()
    (report,) = told["reports"]
    kept = tmp_path / "edge.bad.jsonl"
    assert (report["relation"], report["loaded"], report["bad"], report["quarantine"]) == ("edge", 1, 1, str(kept))
    assert report["first_bad"] == [json.loads(line) for line in kept.read_text().splitlines()]
    assert told["inserted"] == 1


def test_an_update_says_whether_bad_rows_may_pass(http: httpx.Client) -> None:
    rows = {"inserted": {"edge": [[4, 5], ["x", 5]]}}
    refused(http.post("/updates", json=rows), 422, "E0502")
    told = http.post("/updates", json={**rows, "bad_rows": "skip"}).json()
    assert (told["inserted"], [one["bad"] for one in told["reports"]]) == (1, [1])
    answer = http.post("/updates", json={**rows, "bad_rows": "quarantine"})
    refused(answer, 400, "E0926")
    assert "`--bad-rows quarantine`" in answer.text


def test_a_program_is_checked_with_places(http: httpx.Client) -> None:
    assert http.post("/program/check", json={"program": PROGRAM}).json()["is_correct"]
    wrong = http.post("/program/check", json={"program": PROGRAM + "path(x, y) :- edge(x, _).\n"}).json()
    assert not wrong["is_correct"]
    assert wrong["diagnostics"][0]["labels"][0]["line"] == PROGRAM.count("\n") + 1


def test_why_and_why_not(http: httpx.Client) -> None:
    assert http.get("/proof?fact=path(1,3)").json()["height"] == 2
    shallow = http.get("/proof?fact=path(1,4)&depth=1").json()
    assert [node["expanded"] for node in shallow["nodes"] if node["text"] == "path(2, 4)"] == [False]
    assert len(http.get("/derivations?fact=path(1,3)").json()["derivations"]) == 1
    assert http.get("/why-not?fact=path(4,1)").json()["instantiations"]
    assert http.get("/uses?fact=edge(3,4)").json()["total"] == 1
    assert http.get("/uses?fact=edge(3,4)&all=true").json()["total"] == 3
    refused(http.get("/proof?fact=path(4,1)"), 404, "E0701")
    refused(http.get("/why-not?fact=path(1,3)"), 409, "E0702")
    refused(http.get("/why-not?fact=path(4,1)&bindings=3"), 400, "E0926")
    refused(http.get("/proof"), 400, "E0926")


def test_changes_by_long_poll(http: httpx.Client) -> None:
    assert http.get("/changes?since=1").status_code == 204
    http.post("/updates", json={"inserted": {"edge": [[4, 5]]}}).raise_for_status()
    event = http.get("/changes?since=1&relations=path&wait=5").json()
    assert (event["since"], event["epoch"], event["impact"]) == (1, 2, 5)
    assert list(event["relations"]) == ["path"]
    cut = http.get("/changes?since=1&rows=1").json()
    assert cut["is_cut"]
    refused(http.get("/changes?since=1&relations=nothing"), 404, "E0606")


def test_changes_by_events_and_after_a_break(running: Running, http: httpx.Client) -> None:
    for i in range(4, 8):
        http.post("/updates", json={"inserted": {"edge": [[i, i + 1]]}}).raise_for_status()

    def heard(number: int, **headers: str) -> list[str]:
        sent = {**AS_READER, "Accept": "text/event-stream", **headers}
        with httpx.stream("GET", f"{running.url}/api/v1/changes?since=1", headers=sent) as stream:
            found: list[str] = []
            for line in stream.iter_lines():
                if line.startswith("id: "):
                    found.append(line.removeprefix("id: "))
                if len(found) == number:
                    break
            return found

    assert heard(3) == ["1", "2", "3"]
    assert heard(3, **{"Last-Event-ID": "3"}) == ["3", "4", "5"]
    answer = http.get("/changes", headers={"Accept": "text/event-stream", "Last-Event-ID": "x"})
    refused(answer, 400, "E0926")


def test_history(http: httpx.Client) -> None:
    http.post("/updates", json={"inserted": {"edge": [[4, 5]]}}).raise_for_status()
    assert [one["epoch"] for one in http.get("/epochs").json()["epochs"]] == [2, 1]
    diff = http.get("/diff?from=1&to=2").json()
    assert http.get("/diff?from=1").json() == diff
    assert diff["relations"]["path"]["inserted_count"] == 4
    assert http.get("/diff?from=2&to=1").json()["relations"]["path"]["deleted_count"] == 4
    assert [one["what"] for one in http.get("/turns?fact=path(1,5)").json()["turns"]] == ["appeared"]


def test_metrics_are_prometheus_text(http: httpx.Client) -> None:
    http.post("/updates", json={"inserted": {"edge": [[4, 5]]}}).raise_for_status()
    while "elastalog_writer_waiting 0\n" not in (answer := http.get("/metrics")).text:
        pass  # readers follow what was written
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"  # Prometheus reads no other
    text = answer.text
    assert "elastalog_epoch 2\n" in text
    assert 'elastalog_facts{relation="path"} 10\n' in text
    assert "elastalog_epochs_total 1\n" in text
    assert "elastalog_changed_facts_total 5\n" in text
    assert 'elastalog_requests_total{call="/updates",status="200"} 1\n' in text
    for gauge in ("questions_waiting", "writer_waiting", "readers"):  # this call is not counted
        assert f"elastalog_{gauge} 0\n" in text
    http.post("/query", json={"query": "path(1, X)"}).raise_for_status()
    lines = http.get("/metrics").text.splitlines()
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert [line.split()[2] for line in lines if line.startswith("# HELP ")] == typed
    assert sorted(typed) == sorted(HELP)


def test_other_hosts_and_other_sites_are_refused(running: Running) -> None:
    url = f"{running.url}/api/v1/relations"
    refused(httpx.get(url, headers={**AS_WRITER, "Host": "evil.example"}), 421, "E0928")
    refused(httpx.get(url, headers={**AS_WRITER, "Origin": "https://evil.example"}), 403, "E0929")
    refused(httpx.get(url, headers={**AS_WRITER, "Origin": "null"}), 403, "E0929")
    assert httpx.get(url, headers={**AS_WRITER, "Origin": running.url}).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.example"}, {"Host": "evil.example"}])
def test_a_socket_of_a_stranger_is_refused(running: Running, headers: dict[str, str]) -> None:
    opening = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    assert httpx.get(f"{running.url}/anything", headers={**opening, **headers}).status_code == 403


@pytest.mark.parametrize("hosts", [{}, {"hosts": ("*",)}])
def test_headers_that_are_no_addresses_are_refused(start: Callable[..., Running], hosts: dict[str, Any]) -> None:
    running = start(**hosts)
    url = f"{running.url}/api/v1/health"
    for origin in ("http://[", "http://[::1", "http://", "://", "file://", "http://127.0.0.1:abc"):
        refused(httpx.get(url, headers={"Origin": origin}), 403, "E0929")
    for host in ("127.0.0.1:abc", "127.0.0.1:99999999", "[", "[::1"):
        answer = httpx.get(f"{running.url}/?token={READ_TOKEN}", headers={"Host": host})
        assert answer.status_code == (303 if hosts else 421)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00"])
def test_an_epoch_before_all_is_not_kept(http: httpx.Client, moment: str) -> None:
    refused(http.get("/relations/edge", params={"epoch": moment}), 410, "E0813")
    refused(http.get(f"/at/{moment}/relations"), 410, "E0813")


@pytest.mark.parametrize(
    ("body", "status", "code", "detail"),
    [
        ('{"inserted": {"weight": [[1e400]]}}', 400, "E0926", "`1e400` does not fit any type of numbers"),
        (f'{{"deleted": {{"edge": [[{"7" * 5000}, 1]]}}}}', 400, "E0926", "does not fit any type of numbers"),
        ('{"inserted": {"edge": [[4, 5]], "edge": [[5, 6]]}}', 400, "E0926", "the object has `edge` twice"),
        ('{"inserted": {"\\ud800": [[4, 5]]}}', 404, "E0606", "there is no relation `\ud800`"),
    ],
)
def test_a_body_is_taken_as_it_was_written_or_refused(
    http: httpx.Client, body: str, status: int, code: str, detail: str
) -> None:
    kind = {"Content-Type": "application/json"}
    for call in ("/updates", "/updates/preview"):
        assert detail in refused(http.post(call, content=body, headers=kind), status, code)["detail"]
    assert http.get("/health").json()["epoch"] == 1


def test_the_token_of_a_page_becomes_a_cookie(running: Running) -> None:
    with httpx.Client(base_url=running.url, follow_redirects=False, timeout=30) as browser:
        assert browser.get("/facts?token=wrong").status_code == 401
        answer = browser.get(f"/facts?relation=path&token={TOKEN}")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/facts?relation=path"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert browser.get("/api/v1/relations").status_code == 200
        update = {"inserted": {"edge": [[4, 5]]}}
        refused(browser.post("/api/v1/updates", json=update), 403, "E0929")
        assert browser.post("/api/v1/updates", json=update, headers={"Origin": running.url}).status_code == 200
        # A token in the address of a call is none.
        refused(httpx.get(f"{running.url}/api/v1/relations?token={TOKEN}"), 401, "E0923")
        assert browser.get(f"{running.url}//evil.example/x?token={TOKEN}").headers["location"] == "/evil.example/x"


def test_the_bare_address_leads_to_the_reference(running: Running) -> None:
    browser = httpx.Client(base_url=running.url, follow_redirects=False, timeout=30)
    unknown = browser.get("/")
    assert unknown.status_code == 401
    assert 'name="token"' in unknown.text
    assert "/api/docs" in unknown.text
    assert browser.get("/api/docs").status_code == 200
    assert browser.get(f"/?token={TOKEN}").headers["location"] == "/"
    assert browser.get("/").headers["location"] == "/api/docs"


def test_answers_tell_what_they_warn_of(http: httpx.Client) -> None:
    """In JSON beside everything else, otherwise in a header."""
    asked = {"query": "label(1, one)"}
    answer = http.post("/query", json=asked).json()
    assert answer["rows"] == [["one"]]
    assert [(one["code"], one["severity"]) for one in answer["warnings"]] == [("E0618", "warning")]
    answer = http.post("/query", json=asked, headers={"Accept": "text/csv"})
    assert answer.text.split() == ['"one"', '"one"']
    assert json.loads(answer.headers["X-Elastalog-Warnings"])[0]["code"] == "E0618"
    assert http.post("/query", json={"query": 'label(X, "one")'}).json()["rows"] == [[1]]
    assert "warnings" not in http.post("/query", json={"query": 'label(X, "one")'}).json()
    answer = http.post("/query", json={"query": 'label(X, "onee")'}).json()
    assert answer["rows"] == []
    assert 'no fact mentions "onee"' in json.dumps(answer["warnings"]).replace("\\", "")
    answer = http.get("/why-not", params={"fact": "label(7, one)"}).json()
    assert [one["code"] for one in answer["warnings"]] == ["E0618"]
    refused(http.post("/suggest", json={"unwanted": ["label(1, one)"], "over": "facts"}), 422, "E0608")


@pytest.mark.parametrize(("call", "told"), table(__file__, "parameters that a call has not are refused"))
def test_parameters_that_a_call_has_not_are_refused(http: httpx.Client, call: str, told: str) -> None:
    method, path = call.split()
    body = {"json": {"query": "path(1, X)"}} if method == "POST" else {}
    assert refused(http.request(method, path, **body), 400, "E0926")["help"] == told


def test_explicit_facts_are_asked_for_alone(http: httpx.Client) -> None:
    assert http.get("/relations/path?explicit=true").json()["total"] == 0
    assert http.get("/relations/edge?explicit=true&limit=1").json()["rows"] == [[1, 2]]
    for more in ("where=from=1", "order=from", "annotations=true"):
        refused(http.get(f"/relations/edge?explicit=true&{more}"), 400, "E0926")


@pytest.mark.parametrize(("call", "told"), table(__file__, "advice speaks of calls over http"))
def test_advice_speaks_of_calls_over_http(http: httpx.Client, call: str, told: str) -> None:
    method, path = call.split()
    body = {"/query": {"query": "path(?a, X)"}, "/suggest": {"unwanted": ["path(9, 9)"]}}.get(path)
    problem = http.request(method, path, json=body).json()
    others = ("`db.", "--", "(as a command", "elastalog log", "in the shell", "`query`", "`explain`")
    for help_ in (problem["help"], problem["diagnostics"][0]["help"]):
        assert told in help_
        assert not any(other in help_ for other in others)


@pytest.mark.parametrize(
    ("call", "body", "detail", "advice"),
    [
        ("/updates", {"insert": {}}, "`body.insert`: this call has no such field", "did you mean `inserted`?"),
        ("/undo", {"number": 2}, "`body.number`: this call has no such field",
         "it has `epoch`, `preview`, `rows`, `source`"),
        ("/suggest", {"over": "fact"}, "`body.over`: this is `update` or `facts`", "see /api/docs"),
    ],
)  # fmt: skip
def test_what_a_body_may_hold_is_told(http: httpx.Client, call: str, body: Any, detail: str, advice: str) -> None:
    answer = http.post(call, json=body)
    refused(answer, 400, "E0926")
    assert (answer.json()["detail"], answer.json()["help"]) == (detail, advice)


@pytest.mark.parametrize(
    "key",
    [key for key in messages() if key[:3] in ("E06", "E07", "E10") and key.partition(".")[0] not in ABOUT_SESSIONS],
)
def test_no_advice_that_an_answer_may_have_speaks_of_python_or_of_commands(key: str) -> None:
    for advice in messages()[key].helps:
        (told,) = diagnostics_told([Diagnostic(key[:5], "", help=advice)])
        assert not re.search(r"db\.\w|`--(?!question)|elastalog |Python", told["help"]), told["help"]
        assert told.get("help_in_python", advice) == advice


def test_warnings_have_advice_for_http_and_our_client_has_its_own(running: Running, http: httpx.Client) -> None:
    (warned,) = http.post("/updates", json={"deleted": {"path": [[1, 4]]}}).json()["warnings"]
    assert warned["help"] == "`GET /proof?fact=…` shows from what; `POST /suggest` finds which facts to delete"
    with running.connect() as db:
        with pytest.warns(UserWarning, match=r"`suggest` \(on the command line `debug --unwanted`\)"):
            db.apply(deleted={"path": [(1, 4)]})
        with pytest.raises(ElastalogError, match="= help: `explain` says why"):
            db.why_not("path(1, 2)")


def test_where_the_store_lies_is_not_told(running: Running, http: httpx.Client) -> None:
    told = refused(http.get("/at/9/relations"), 404, "E0813")
    assert running.session.engine.store is not None
    assert running.session.engine.store.name not in json.dumps(told)


def test_facts_may_be_objects(http: httpx.Client) -> None:
    rows = [{"from": 4, "to": 5}, {"TO": 7, "from": 6, "weight": 1}, [8, 9]]
    answer = http.post("/updates", json={"inserted": {"edge": rows}}).json()
    assert answer["relations"]["edge"]["inserted"] == [[4, 5], [6, 7], [8, 9]]
    assert [(one["code"], "`weight`" in one["message"]) for one in answer["warnings"]] == [("E0535", True)]
    told = refused(http.post("/updates", json={"inserted": {"edge": [{"from": 4}]}}), 422, "E0501")
    assert told["detail"] == "row 1 given for `edge`: the row has no value for `to`"
    for rows in ([1, 2], {"from": 1, "to": 2}, ["edge(1, 2)"]):
        told = refused(http.post("/updates", json={"inserted": {"edge": rows}}), 400, "E0926")
        assert 'facts are a list of lists, `[[1, 2]]`, or of objects, `[{"from": 1, "to": 2}]`' in told["detail"]


def test_values_in_objects_are_read_as_those_in_lists(start: Callable[..., Running]) -> None:
    program = ".type P = [x: number, y: float]\n.decl at(name: symbol, place: P, weight: float)\n.input at"
    running = start(program, {"at": []}, store=None)
    row = {"weight": "NaN", "place": [1, "inf"], "name": "NaN"}
    answer = httpx.post(f"{running.url}/api/v1/updates", json={"inserted": {"at": [row]}}, headers=AS_WRITER).json()
    assert answer["relations"]["at"]["inserted"] == [["NaN", [1, "inf"], "nan"]]


@pytest.mark.parametrize(
    "path",
    ["/at/9/relations", "/relations?epoch=9", "/relations/path?epoch=9", "/diff?from=1&to=9", "/changes?since=9"],
)
def test_an_epoch_that_is_still_to_come_is_told_as_such(http: httpx.Client, path: str) -> None:
    found = refused(http.get(path), 404, "E0813")
    assert found["detail"] == "there is no epoch 9: the store keeps epochs 1 to 1"
    assert found["help"] == "epoch 9 is still to come; see `GET /epochs`"


@pytest.mark.parametrize(
    ("where", "message", "places"),
    [
        ("text='one'", "a string is written with double quotes", [(6, 11)]),
        ('of > 0, of = "x"', "`=` compares a number with a symbol", [(9, 11), (14, 17)]),
        ("  nosuch(of).", "unknown relation `nosuch`", [(3, 9)]),
        ("of = ", "expected a term, found the end", [(6, 6)]),
    ],
)
def test_faults_of_a_filter_are_placed_in_it(http: httpx.Client, where: str, message: str, places: Any) -> None:
    (found,) = http.get("/relations/label", params={"where": where}).json()["diagnostics"]
    assert (found["message"], [(one["column"], one["end_column"]) for one in found["labels"]]) == (message, places)


def test_the_last_epoch_is_taken_back_once_under_a_key(http: httpx.Client) -> None:
    http.post("/updates", json={"inserted": {"edge": [[4, 5]]}})
    would = http.post("/undo", json={"preview": True}).json()
    assert (would["impact"], would["relations"]["edge"]["deleted"]) == (5, [[4, 5]])
    for is_repeated in (False, True):
        done = http.post("/undo", json={"source": "notebook"}, headers={"Idempotency-Key": "u"}).json()
        assert (done["epoch"], done["is_repeated"]) == (3, is_repeated)
    other = http.post("/undo", json={"epoch": 2, "source": "notebook"}, headers={"Idempotency-Key": "u"})
    refused(other, 422, "E0932")
    assert [one["source"] for one in http.get("/epochs").json()["epochs"]] == ["notebook", None, None]


def test_values_that_json_has_not_may_be_of_relations_that_the_same_update_declares(http: httpx.Client) -> None:
    new = {"added_rules": ".decl weight(of: number, is: float)\n", "inserted": {"weight": [[1, "inf"], [2, 3]]}}
    for call in ("/updates/preview", "/updates"):
        told = http.post(call, json=new).raise_for_status().json()
        assert sorted(told["relations"]["weight"]["inserted"]) == [[1, "inf"], [2, 3.0]]
    again = {"inserted": {"weight": [[1, "inf"], [4, "nan"]]}}
    assert http.post("/updates", json=again).json()["relations"]["weight"]["inserted"] == [[4, "nan"]]


def test_every_call_says_what_it_does_and_takes_the_same_at_any_epoch(running: Running) -> None:
    paths = httpx.get(f"{running.url}/api/openapi.json").json()["paths"]
    calls = {(path, method): call for path, methods in paths.items() for method, call in methods.items()}
    assert all(call["description"] for call in calls.values())
    earlier = [(path, method) for path, method in calls if "/at/{epoch}" in path]
    assert ("/api/v1/at/{epoch}/relations/{relation}", "get") in earlier
    for path, method in earlier:
        told, now = calls[path, method], calls[path.replace("/at/{epoch}", ""), method]
        assert told.get("requestBody") == now.get("requestBody")
        assert {one["name"] for one in told["parameters"]} == {one["name"] for one in now["parameters"]}


def test_a_client_needs_no_framework() -> None:
    code = "import sys, elastalog.client; print({'fastapi', 'pydantic', 'starlette'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_repair_takes_candidates(http: httpx.Client) -> None:
    none = http.post("/suggest", json={"missing": ["path(8, 9)"], "rejected": ["edge(8, _)"]}).json()
    assert none["help"].startswith("other changes may do it: name them as `candidates`, facts to insert")
    for candidates in (['label(1, "nobody")'], {"label": [[1, "nobody"]]}):
        found = http.post("/suggest", json={"missing": ['named("nobody")'], "candidates": candidates}).json()
        assert found["undo"]["inserted"] == {"label": [[1, "nobody"]]}


def test_a_repair_says_what_becomes_of_each_element(http: httpx.Client) -> None:
    http.post("/updates", json={"inserted": {"edge": [[4, 1]]}, "deleted": {"edge": [[1, 2]]}})
    found = http.post("/suggest", json={"unwanted": ["path(4, 1)"], "missing": ["path(1, 2)"]}).json()
    elements = {(one["sign"], one["fact"], one["undoing"]) for one in found["elements"]}
    assert elements == {("+", "edge(4, 1)", "delete"), ("-", "edge(1, 2)", "insert")}
    assert found["undo"]["deleted"] == {"edge": [[4, 1]]}


def test_an_address_may_end_in_a_slash(http: httpx.Client) -> None:
    assert http.get("/relations/").json() == http.get("/relations").json()
    assert http.get("/relations/path/?limit=1").json()["total"] == 6


def test_calls_that_there_are_not(http: httpx.Client) -> None:
    refused(http.get("/nothing"), 404, "E0930")
    refused(http.delete("/relations/path"), 405, "E0930")
    assert http.get("/query").json()["help"] == "call it with POST; see /api/docs"
    answer = http.put("/program", json={"program": ""})
    assert answer.json()["help"] == "call it with GET or PATCH; see /api/docs"
    assert answer.headers["allow"] == "GET, PATCH"
    assert http.get("/query").json()["title"] == "no such call"
    for wrong, right in (("/relatons", "relations"), ("/whynot?fact=path(4,1)", "why-not"), ("/at/1/proofs", "proof")):
        told = refused(http.get(wrong), 404, "E0930")
        assert told["help"] == f"did you mean `{right}`?"
        assert http.get(wrong.replace(wrong.split("?")[0].split("/")[-1], right)).status_code != 404
    assert http.get("/nothing/like/it").json()["help"] == "see /api/docs"


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("GET", "/at/yesterday/relations", None, ["`epoch`: an epoch is a number, or the one in force at a time"]),
        ("GET", "/relations/path?limit=-1", None, ["`query.limit`: at least 0 is expected"]),
        ("GET", "/relations/path?limit=x", None, ["`query.limit`: a whole number is expected, not `x`"]),
        ("GET", "/relations/path?explicit=maybe", None, ["`query.explicit`: `true` or `false` is expected"]),
        ("GET", "/proof", None, ["`query.fact`: this is missing"]),
        ("POST", "/query", {"query": 1, "seconds": 0},
         ["`body.query`: a text is expected", "`body.seconds`: more than 0 is expected"]),
        ("POST", "/query", [], ["`body`: an object is expected"]),
        ("POST", "/suggest", {"unwanted": "path(1, 2)", "weights": {"edge(1, 2)": "much"}},
         ["`body.unwanted`: a list is expected", "`body.weights.edge(1, 2)`: a number is expected"]),
    ],
)  # fmt: skip
def test_what_a_call_expects_is_told_in_words(http: httpx.Client, method: str, path: str, body: Any, told: Any) -> None:
    answer = http.request(method, path, **({} if body is None else {"json": body}))
    found = [one["message"] for one in refused(answer, 400, "E0926")["diagnostics"]]
    assert [one.startswith(expected) for one, expected in zip(found, told, strict=True)] == [True] * len(told)


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/localise", {}, "name facts as `unwanted` or `missing`"),
        ("/query", {"query": "label(?n, X)", "parameters": {"n": "one"}}, "give `?n` a number"),
        ("/query", {"query": "label(X, ?n)", "parameters": {"n": 1}}, 'give `?n` a text, as `"…"`'),
        ("/program/removed", {"removed": [99], "preview": True}, "give a number from 1 to"),
    ],
)
def test_advice_is_in_the_terms_of_http(http: httpx.Client, path: str, body: Any, told: str) -> None:
    http.post("/updates", json={"inserted": {"edge": [[4, 5]]}})
    method, path = ("PATCH", "/program") if path == "/program/removed" else ("POST", path)
    found = http.request(method, path, json=body).json()["help"]
    assert found.startswith(told)
    assert not re.search("--|elastalog|Python|db\\.", found)


def test_advice_about_times_and_time_is_in_the_terms_of_http(http: httpx.Client) -> None:
    assert http.get("/at/2001-01-01T00:00:00Z/relations").json()["help"] == "`GET /epochs` has the time of every epoch"
    slow = http.post("/query", json={"query": "path(X, Y)", "seconds": 1e-9}).json()
    assert "or allow more `seconds`" in slow["help"]
    assert http.post("/query", json={"query": "path(X, Y)", "seconds": 5}).status_code == 200


def test_advice_about_the_limit_of_an_evaluation_is_in_the_terms_of_http() -> None:
    with pytest.raises(ElastalogError) as slow:
        Quota(0).look()
    told = json.loads(problem(slow.value.diagnostics).body)
    assert (told["code"], told["help"].startswith("allow more: `seconds` in the body")) == ("E0603", True)


def test_the_last_epoch_is_taken_back_without_a_body(http: httpx.Client) -> None:
    http.post("/updates", json={"inserted": {"edge": [[4, 5]]}})
    assert http.post("/undo").json()["epoch"] == 3
    assert http.get("/epochs").json()["epochs"][0]["source"] == "undo of epoch 2"
    assert http.get("/relations/edge").json()["total"] == 3


def test_the_reference_asks_nothing_from_elsewhere(running: Running) -> None:
    page = httpx.get(f"{running.url}/api/docs")
    assert "/api/v1/relations/{relation}" in page.text
    assert "http" not in page.text.replace("HTTP", "").replace("httpvalidation", "")
    assert "script" not in page.text
    assert "\\n" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    described = httpx.get(f"{running.url}/api/openapi.json").json()
    assert "/api/v1/at/{epoch}/proof" in described["paths"]


HOSTILE = [
    "<script>alert(1)</script>", 'a "quoted", text', "line\nbreak\r\nand\ttab", "=1+2", "\u202eright to left",
    "x" * 1_000_000, "\x00\x1b[31m", "\u2028", "'; drop table", "ümläut 🦉",
]  # fmt: skip


def test_hostile_values_go_through_every_form_unharmed(http: httpx.Client) -> None:
    rows = [[number, text] for number, text in enumerate(HOSTILE)]
    http.post("/updates", json={"inserted": {"label": rows}, "deleted": {"label": [[1, "one"]]}}).raise_for_status()
    sent = sorted(rows)
    answer = http.get("/relations/label?limit=100")
    assert sorted(answer.json()["rows"]) == sent
    assert answer.headers["x-content-type-options"] == "nosniff"
    written = http.get("/relations/label", headers={"Accept": "text/csv"})
    assert "attachment" in written.headers["content-disposition"]
    csv.field_size_limit(1 << 22)
    read = list(csv.reader(io.StringIO(written.text, newline="")))[1:]
    assert sorted([int(number), text] for number, text in read) == sent
    arrow = http.get("/relations/label", headers={"Accept": "application/vnd.apache.arrow.stream"}).content
    table = pa.ipc.open_stream(arrow).read_all()
    assert sorted([row["of"], row["text"]] for row in table.to_pylist()) == sent
    event = http.get("/changes?since=1", headers={"Accept": "application/json"}).json()
    assert sorted(event["relations"]["label"]["inserted"]) == sent
    fact = f"label(0, {json.dumps(HOSTILE[0])})"
    assert http.get("/proof", params={"fact": fact}).json()["fact"]["values"] == [0, HOSTILE[0]]


@pytest.fixture(params=["client", "session"])
def past(request: pytest.FixtureRequest, running: Running) -> Any:
    """The second epoch of four, over HTTP and in Python."""
    running.service.writing.commit(edits({"edge": [(4, 5)]}))  # 2
    running.service.writing.commit(edits(deleted={"edge": [(1, 2), (4, 5)]}))  # 3
    running.service.writing.commit(edits({"edge": [(5, 6)]}))  # 4
    return (running.connect() if request.param == "client" else running.session).at(2)


def test_uses_and_what_would_go(past: Any) -> None:
    assert sorted(map(str, past.uses("edge(4, 5)"))) == ["path(4, 5)"]
    assert sorted(map(str, past.uses("edge(4, 5)", all=True))) == [f"path({x}, 5)" for x in (1, 2, 3, 4)]


def test_a_preview_is_of_the_facts_of_then(past: Any) -> None:
    changes = past.preview({"edge": [(5, 6)]})
    assert sorted(changes["path"].inserted) == [(x, 6) for x in range(1, 6)]
    assert past.epoch == 2
    with pytest.raises(ElastalogError, match="E0814"):
        past.apply({"edge": [(5, 6)]})


def test_who_did_it_and_what_to_undo(past: Any) -> None:
    assert past.blame("path(1, 5)").epoch == 2
    found = past.suggest(unwanted=["path(1, 5)"])
    assert [str(one) for one in found.elements] == ["+edge(4, 5)"]
    assert found.epochs == (1, 2)
    with pytest.raises(ElastalogError, match="E0814"):
        found.apply()
    assert [str(one) for one in past.localise(unwanted=["path(1, 5)"]).elements] == ["+edge(4, 5)"]


def test_a_repair_of_the_past_is_not_done_to_the_present(running: Running, past: Any) -> None:
    asked = {"unwanted": ["path(1, 5)"]}
    told = httpx.post(f"{running.url}/api/v1/at/2/suggest", json=asked, headers=AS_WRITER).json()
    refused = httpx.post(f"{running.url}/api/v1/updates", json=told["undo"], headers=AS_WRITER)
    assert (refused.status_code, refused.json()["code"]) == (409, "E0938")


def test_patterns_can_be_asked_why_not(running: Running, past: Any) -> None:
    found = past.why_not("path(1, X)")
    assert (found.pattern, found.present) == ("path(1, X)", 4)
    now = running.connect().why_not("path(1, X)")
    assert now.present == 0
    assert str(now) == str(running.session.why_not("path(1, X)"))


FAULT = {"unwanted": ["path(1, 2)"]}


@pytest.mark.parametrize(("epoch", "status"), [(9, 404), (0, 410), (-5, 410)])
@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("uses?fact=edge(4,5)", None), ("why-not?fact=path(1,X)", None), ("relations", None),
        ("blame", {"fact": "path(1, 2)"}), ("suggest", FAULT), ("localise", FAULT), ("updates/preview", {}),
    ],
)  # fmt: skip
def test_an_epoch_that_is_gone_is_so_for_all(http: httpx.Client, epoch: int, status: int, call: str, body: Any) -> None:
    answer = http.get(f"/at/{epoch}/{call}") if body is None else http.post(f"/at/{epoch}/{call}", json=body)
    refused(answer, status, "E0813")
