"""What stands on every page, as it is built for a browser: none is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="the pages need the extra web")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiled")]

LEAK = "fact=exposed(%22help.front%22,%22vault%22)"
SHOWN = {
    "/": "Three steps through this example",
    "/facts?relation=reaches&levels=1": ">level</a>",
    "/facts?relation=calls&where=catalog": "calls",
    "/facts?relation=nope": "E0606",
    "/facts?query=calls(X,Y),secret(Y)": "Answers",
    f"/fact?{LEAK}": "What if it went?",
    f"/fact?{LEAK}&view=graph": "<svg role=",
    "/fact?fact=exposed(%22mail.front%22,%22vault%22)": "Why it does not hold",
    "/fact?fact=exposed(X,%22vault%22)": "Why nothing else fits it",
    "/fact": "No fact",
    "/program?line=3": "Paste facts",
    "/program?epoch=2": "This is epoch 2",
    "/update?text=%2Bnonsense": "wb-fault",
    "/update?insert=calls(%22a%22,%22b%22)": "1 to insert",
    "/timeline?from=1&to=3": "From epoch 1 to epoch 3",
    f"/repair?{LEAK.replace('fact=', 'wrong=')}&over=facts": "minus",
    "/engine": "Placement",
}
"""A part of what each page shows."""

BUILD = """
import asyncio, json, sys
from pathlib import Path

import httpx
from nicegui import Client

from elastalog.web.app import make_app
from elastalog.web.pages.demo import live_through, open_demo
from elastalog.web.pages.frame import mount_pages
from elastalog.web.service import Service
from elastalog.web.settings import Settings


def shown(client):
    return "\\n".join(str(element.props) for element in client.elements.values())


async def main(folder, wanted):
    service = Service(open_demo(Path(folder) / "store"))
    live_through(service)
    app = make_app(service, Settings(hosts=("testserver",)))
    mount_pages(app, service, title="services.dl", is_demo=True)
    found = {}
    async with app.router.lifespan_context(app):
        asking = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://testserver")
        for path, part in wanted.items():
            before = set(Client.instances)
            answer = await asking.get(path)
            (client,) = (one for name, one in Client.instances.items() if name not in before)
            for _ in range(600):  # what is built after the answer
                if part in shown(client):
                    break
                await asyncio.sleep(0.1)
            found[path] = [answer.status_code, shown(client)]
    service.close()
    print(json.dumps(found))


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Status and elements of every page."""
    folder = str(tmp_path_factory.mktemp("built"))
    command = [sys.executable, "-c", BUILD, folder, json.dumps(SHOWN)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=True)
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("path", SHOWN)
def test_a_page_is_built_without_a_browser(built: dict[str, tuple[int, str]], path: str) -> None:
    status, elements = built[path]
    assert (status, SHOWN[path] in elements) == (200, True)
    assert "This should not have happened" not in elements
