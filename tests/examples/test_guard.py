"""The service of `examples/guard`: who may pass, why, and what would let someone in."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
from starlette.testclient import TestClient

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "guard"


def module(name: str) -> Any:
    found = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    made = importlib.util.module_from_spec(found)
    sys.modules[name] = made  # FastAPI looks annotations up there
    found.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def service() -> Any:
    return module("service")


@pytest.fixture
def client(service: Any) -> TestClient:
    return TestClient(service.create())


def read(client: TestClient, user: str) -> Any:
    return client.get("/documents/plan", headers={"X-User": user})


def decision(client: TestClient, user: str, action: str) -> Any:
    return client.get("/decisions", params={"user": user, "action": action, "resource": "plan"}).json()


def change(client: TestClient, user: str = "root", **sides: Any) -> Any:
    return client.post("/policy", json=sides, headers={"X-User": user})


def test_who_may_passes_and_others_are_told_why_not(client: TestClient) -> None:
    assert read(client, "ann").json()["user"] == "ann"
    assert read(client, "bob").status_code == 200, "interns are staff"
    refused = client.put("/documents/plan", json={"text": "Mine."}, headers={"X-User": "bob"})
    assert refused.status_code == 403
    assert 'deny("bob", "write", "plan")' in refused.json()["detail"]["reason"]
    told = decision(client, "bob", "write")
    assert told["smallest_change"] == {"insert": [], "delete": ['deny("bob", "write", "plan")']}


def test_the_smallest_change_lets_someone_in(client: TestClient) -> None:
    told = decision(client, "eve", "read")["smallest_change"]
    assert (len(told["insert"]), told["delete"]) == (1, [])
    relation, _, rest = told["insert"][0].partition("(")
    row = [value.strip().strip('"') for value in rest.rstrip(")").split(",")]
    assert ["eve", "read", "plan"] in change(client, insert={relation: [row]}).json()["allowed"]
    assert read(client, "eve").status_code == 200


def test_delegations_end_with_what_they_rest_on(client: TestClient) -> None:
    told = change(client, insert={"delegate": [["ann", "eve", "plan"], ["eve", "zoe", "plan"]]}).json()
    assert ["zoe", "read", "plan"] in told["allowed"]
    reason = decision(client, "zoe", "read")
    assert reason["allowed"]
    assert 'delegate("eve", "zoe", "plan")' in reason["because"]
    denied = change(client, insert={"deny": [["eve", "read", "plan"]]}).json()["denied"]
    assert sorted(denied) == [["eve", "read", "plan"], ["zoe", "read", "plan"]]
    assert read(client, "zoe").status_code == 403
    assert read(client, "ann").status_code == 200


def test_only_administrators_change_the_policy_and_mistakes_are_refused(client: TestClient) -> None:
    assert change(client, "ann", insert={"member": [["ann", "admins"]]}).status_code == 403
    wrong = change(client, insert={"membr": [["ann", "admins"]]})
    assert (wrong.status_code, "did you mean `member`" in wrong.text) == (422, True)
    assert change(client, insert={"member": [["ann", "admins"]]}).status_code == 200
    assert change(client, "ann", insert={"member": [["zoe", "staff"]]}).status_code == 200


def test_a_store_keeps_the_policy(service: Any, tmp_path: Path) -> None:
    first = service.Policy(service.FACTS, str(tmp_path / "policy"))
    first.change({"member": [["zoe", "staff"]]}, {})
    first.db.close()
    assert service.Policy(None, str(tmp_path / "policy")).may("zoe", "read", "plan")


def test_the_load_is_answered_while_the_policy_changes(service: Any) -> None:
    found = asyncio.run(module("load").load(0.5, readers=3))
    assert found["requests a second"] > 0
    assert found["refused"] > 0
    assert found["changes"] > 0
