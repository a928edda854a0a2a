"""Tasks that die: the result is right all the same, or the evaluation fails as a whole and changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import elastalog
from tests.engine.judging import levels_of

EDGES = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n"
PROGRAMS = {
    "decomposed": EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n",
    "exchanging": EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), path(y, z).\n",
}
CHAIN = {"edge": [(i, i + 1) for i in range(700)]}


def python_workers() -> list[psutil.Process]:
    """The processes of Spark's Python workers, below the Java that this process started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "pyspark.daemon" in " ".join(process.cmdline()) and process.parent() is not None:
                found.append(process)
        except psutil.Error:
            continue
    # The first is the one that starts the others.
    return [process for process in found if not process.children()]


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_worker_killed_during_a_stratum(spark: Any, kind: str) -> None:
    killed = threading.Event()
    is_over = threading.Event()

    def kill_one() -> None:
        time.sleep(0.3)
        while not is_over.is_set():
            workers = [p for p in python_workers() if p.is_running() and p.cpu_percent(0.05) > 20]
            if workers:
                os.kill(workers[0].pid, signal.SIGKILL)
                killed.set()
                return

    local = elastalog.open(PROGRAMS[kind], facts=CHAIN)
    thread = threading.Thread(target=kill_one)
    thread.start()
    try:
        db = elastalog.open(PROGRAMS[kind], facts=CHAIN, engine="spark", spark=spark)
    finally:
        is_over.set()
        thread.join()
    assert len(db["path"]) == 700 * 701 // 2
    assert levels_of(db) == levels_of(local)
    if not killed.is_set():
        pytest.skip("the evaluation was over before a worker was found")


@pytest.mark.slow
def test_executors_in_processes_of_their_own(tmp_path: Path) -> None:
    """`local-cluster`: two executors, each a process, which share nothing with the driver but files."""
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import elastalog, elastalog.spark
            settings = {{
                "spark.master": "local-cluster[2,1,1024]",
                "spark.elastalog.leastRows": "0",
                "spark.elastalog.workplace": {str(tmp_path / "shared")!r},
            }}
            (__import__("pathlib").Path({str(tmp_path / "shared")!r})).mkdir()
            spark = elastalog.spark.session(2, settings=settings)
            for text in {list(PROGRAMS.values())!r}:
                edges = [(i, i + 1) for i in range(60)]
                db = elastalog.open(text, facts={{"edge": edges}}, engine="spark", spark=spark)
                where = [placement.where for placement in db._backend.placements.values()]
                print(len(db["path"]), where)
            spark.stop()
            """
        ),
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(elastalog.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["1830 ['tasks']", "1830 ['exchanging tasks']"]
