"""A real browser, and a workbench to look at: one of each for a module. Screenshots are kept in `build/screenshots`."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SHOTS = ROOT / "build" / "screenshots"
_ADDRESS = re.compile(r"http://\S+")
PATIENCE = 60_000
"""Milliseconds that something may take to appear; machines that test are busy."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The Chromium of the system."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="pages are tested with playwright: install the extra dev"
    )
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("pages are tested where a browser is found: there is no chromium on the path")
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
        started = driver.chromium.launch(executable_path=path, args=arguments)
        yield started
        started.close()


class Served:
    """A workbench in a process of its own. `address` has the token in it."""

    def __init__(self, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "elastalog", "workbench", "--port", "0", *arguments]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.address = self._read_address()
        self.base = re.match(r"http://[^/]+", self.address)[0]

    def _read_address(self) -> str:
        told: list[str] = []
        stream, ends = self._process.stdout, time.monotonic() + 120
        while time.monotonic() < ends:
            if select.select([stream], [], [], 1)[0]:
                line = stream.readline()
                told.append(line)
                found = _ADDRESS.search(line)
                if found is not None:
                    return found[0]
                if not line:
                    break
        raise AssertionError(f"the workbench did not start: {''.join(told)}")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)


@pytest.fixture(scope="module")
def demo() -> Iterator[Served]:
    """The demonstration."""
    served = Served("--demo")
    yield served
    served.close()


class Windows:
    """Windows of one browser on one workbench. They note what went wrong in them, and whom they talked to. Those of a
    colour scheme are one person's: what they all load is loaded once, for every test of a module."""

    def __init__(self, browser: Any, served: Served) -> None:
        self._browser = browser
        self.served = served
        self.faults: list[str] = []
        self.hosts: set[str] = set()
        self._contexts: dict[str, Any] = {}

    def open(self, path: str = "/", *, width: int = 1280, height: int = 860, is_dark: bool = False) -> Any:
        """A new window with the given page; the first one comes with the token, as a person would."""
        scheme = "dark" if is_dark else "light"
        is_first = scheme not in self._contexts
        if is_first:
            self._contexts[scheme] = self._browser.new_context(color_scheme=scheme)
            self._contexts[scheme].set_default_timeout(PATIENCE)
        page = self._contexts[scheme].new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.on("pageerror", lambda error: self.faults.append(f"{page.url}: {error}"))
        page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: self._note(request.url))
        if is_first:
            page.goto(self.served.address)
        if path != "/" or not is_first:
            page.goto(self.served.base + path)
        page.wait_for_selector(".wb-page > *")
        return page

    def _note(self, url: str) -> None:
        if not url.startswith("data:"):
            self.hosts.add(re.sub(r"^ws", "http", re.match(r"\w+://[^/]*", url)[0]))

    def close_pages(self) -> None:
        for context in self._contexts.values():
            for page in context.pages:
                page.close()

    def close(self) -> None:
        for context in self._contexts.values():
            context.close()


@pytest.fixture(scope="module")
def opened(browser: Any, demo: Served) -> Iterator[Windows]:
    windows = Windows(browser, demo)
    yield windows
    windows.close()


@pytest.fixture
def windows(opened: Windows) -> Iterator[Windows]:
    """Windows on the demonstration. Nothing may go wrong in them, and they may talk to nobody else."""
    opened.faults.clear()
    yield opened
    opened.close_pages()
    assert opened.faults == []
    assert opened.hosts <= {opened.served.base}


@pytest.fixture(scope="session")
def keep() -> Callable[[Any, str], None]:
    """Keeps a picture of a window."""
    SHOTS.mkdir(parents=True, exist_ok=True)

    def shoot(page: Any, name: str) -> None:
        page.screenshot(path=SHOTS / f"{name}.png")

    return shoot
