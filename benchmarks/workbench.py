"""The workbench on a program with a million facts: how long until its first page can be used, and a row's proof seen.

`python -m benchmarks.workbench`; needs the extra `web`, playwright and a Chromium. Times are those of a browser on the
same machine: from the request until the rows of the first page stand there and answer clicks, with a browser that has
never been there, and with one that has; and from the click on a row until its proof stands there.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import elastalog

PROGRAM = """
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
"""
CHAINS, LENGTH = 6_000, 18


def facts() -> dict[str, pa.Table]:
    """Chains of edges: a million paths."""
    start = np.arange(CHAINS)[:, None] * 100 + np.arange(LENGTH)[None, :]
    return {"edge": pa.table({"x": start.reshape(-1), "y": start.reshape(-1) + 1})}


def serve(store: Path) -> str:
    """A workbench in a thread of this process. Returns its address."""
    import uvicorn

    from elastalog.web.app import listen, make_app
    from elastalog.web.pages.frame import mount_pages
    from elastalog.web.service import Service

    session = elastalog.open(PROGRAM, facts(), store=store)
    print(f"{sum(len(session[name]) for name in session):,} facts")
    service = Service(session)
    app = make_app(service)
    mount_pages(app, service, title="million.dl")
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def first_page(context: Any, address: str) -> float:
    """Seconds until the table stands there and the window listens to the server."""
    page = context.new_page()
    began = time.perf_counter()
    page.goto(f"{address}/facts?relation=path")
    page.wait_for_selector(".wb-table [data-row]")
    page.wait_for_function("window.socket?.connected !== false")
    taken = time.perf_counter() - began
    page.close()
    return taken


CLOCK = """() => {
window.shown = new Promise(done => {
    addEventListener("click", () => {
        const began = performance.now();
        const look = () => document.querySelector(".wb-tree .wb-node")
            && (watch.disconnect(), requestAnimationFrame(() => done(performance.now() - began)));
        const watch = new MutationObserver(look);
        watch.observe(document.body, {childList: true, subtree: true});
    }, {capture: true, once: true});
});
}"""
"""Notes in the browser itself when a row is clicked, and when the frame is drawn that has its proof: what steers the
browser from outside takes as long as the page."""


def proofs(context: Any, address: str, number: int) -> list[float]:
    """Seconds from the click on a row until its proof stands there."""
    page = context.new_page()
    found = []
    for offset in range(1, number + 1):
        page.goto(f"{address}/facts?relation=path&page={offset * 17}")
        page.wait_for_selector(".wb-table [data-row]")
        page.wait_for_timeout(300)
        page.evaluate(CLOCK)
        page.click(f".wb-table tbody tr:nth-child({offset}) [data-row]")
        found.append(page.evaluate("window.shown") / 1000)
    return found


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        address = serve(Path(folder) / "store")
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        cold = [first_page(browser.new_context(), address) for _ in range(rounds)]
        context = browser.new_context()
        warm = [first_page(context, address) for _ in range(rounds + 1)][1:]
        shown = proofs(context, address, rounds)
        for name, taken in (("first page, new browser", cold), ("first page again", warm), ("proof of a row", shown)):
            print(f"{name}: median {1e3 * statistics.median(taken):.0f} ms, worst {1e3 * max(taken):.0f} ms")
        browser.close()


if __name__ == "__main__":
    main()
