"""Random requests made from the description of the interface: each is answered as the description says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import elastalog
from elastalog.web.app import make_app
from elastalog.web.routes import at_any_epoch, at_the_last
from elastalog.web.service import Service
from elastalog.web.settings import Limits, Settings
from tests.web.api.conftest import FACTS, PROGRAM, TOKEN

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

LIMITS = Limits(seconds=2)
ROUTES = [*at_any_epoch.routes, *at_the_last.routes]
TRIED = [
    *((*route.methods, f"/api/v1{route.path}") for route in ROUTES),
    ("GET", "/api/v1/at/{epoch}/relations/{relation}"),
]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The description, over an application whose service is small."""
    store = tmp_path_factory.mktemp("described") / "store"
    service = Service(elastalog.open(PROGRAM, FACTS, store=store), LIMITS)
    app = make_app(service, Settings(token=TOKEN, hosts=("testserver", "localhost"), limits=LIMITS))
    yield schemathesis.openapi.from_asgi("/api/openapi.json", app)
    service.close()


@pytest.mark.parametrize(("method", "path"), TRIED)
@pytest.mark.slow
@pytest.mark.parametrize("examples", [6, pytest.param(300, marks=pytest.mark.long)])
def test_requests_are_answered_as_described(described: object, method: str, path: str, examples: int) -> None:
    operation = described[path][method.lower()]

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(data=st.data())
    def attempt(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy())
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {TOKEN}"}
        if case.query and "wait" in case.query:
            case.query["wait"] = 0  # nothing will happen meanwhile
        answer = case.call()
        assert answer.status_code < 500 or answer.status_code in (503, 504), answer.text
        told = operation.definition.raw["responses"]
        assert str(answer.status_code) in told, (answer.status_code, answer.text)
        if answer.status_code >= 400:
            problem = answer.json()
            assert problem["code"] != "internal"
            assert problem["diagnostics"]
        elif answer.status_code == 200:
            operation.validate_response(answer)

    attempt()
