"""Clusters of processes: a master and two workers, each in a folder of its own, with nothing in common but a server
that speaks S3. The same results, levels and counts as in one process, also when executors are killed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import elastalog
from tests.object_store import Bucket
from tests.spark.conftest import CLUSTER, environment_of_children

pytestmark = [pytest.mark.slow, pytest.mark.long]

KILLS = int(os.environ.get("ELASTALOG_KILLS", "10"))
"""How many executors are killed in each phase."""

PATIENCE = 600
"""Seconds after which a silent process counts as lost: a machine with much to do may hold one up for a minute. What is
killed is noticed at once, by its connections."""

SUITE = (
    "aggregates", "consensus", "filed_facts", "placement", "programs", "results", "texts",
    "update_programs", "updates",
)  # fmt: skip
"""The modules about what is evaluated; the others are about what Spark's Java side reads and writes."""

EDGES = ".decl edge(x: number, y: symbol)\n.decl link(x: symbol, y: symbol)\n.decl path(x: symbol, y: symbol)\n"
LINKS = EDGES + 'link(cat("n", to_string(x)), y) :- edge(x, y).\npath(x, y) :- link(x, y).\n'
PROGRAMS = {
    "decomposed": LINKS + "path(x, z) :- path(x, y), link(y, z).\n",
    "exchanging": LINKS + "path(x, z) :- path(x, y), path(y, z).\n",
}
SIZE = 60
FACTS = {"edge": [(i, f"n{i + 1}") for i in range(SIZE)]}
UPDATES = [
    ({"edge": [(SIZE, f"n{SIZE + 1}")]}, {"edge": [(0, "n1")]}),
    ({"edge": [(0, "n1")]}, {"edge": [(30, "n31")]}),
]


WORKER = ("--host", "127.0.0.1", "--cores", "1", "--memory", "700m", "--webui-port", "0")


@dataclass(frozen=True, slots=True)
class Cluster:
    """How a driver finds it: settings of its session."""

    settings: dict[str, str]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def standalone(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pyspark = pytest.importorskip("pyspark")
    from elastalog.pipeline.spark.session import provide_java

    provide_java()
    home = Path(pyspark.__file__).parent
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, kind: str, *arguments: str) -> None:
        own = tmp_path_factory.mktemp(name)
        log = (own / "log").open("wb")
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        environment = {
            **environment_of_children(), "SPARK_HOME": str(home), "TMPDIR": str(own), "SPARK_LOCAL_DIRS": str(own),
            "SPARK_WORKER_DIR": str(own), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": f"-Dspark.worker.timeout={PATIENCE}",
        }  # fmt: skip
        started.append(subprocess.Popen(command, cwd=own, env=environment, stdout=log, stderr=log))

    start("master", "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    wait_for(port)
    for name in ("one", "other"):
        start(name, "worker.Worker", *WORKER, master)
    try:
        yield Cluster(
            {
                "spark.master": master,
                "spark.executor.memory": "600m",
                "spark.elastalog.workplace": bucket.address("standalone"),
            }
        )
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


def wait_for(port: int) -> None:
    for _ in range(300):
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError("the master did not start")


def drive(tmp_path: Path, settings: dict[str, str], body: str, timeout: float = 900) -> list[Any]:
    """What a driver prints, line by line as JSON."""
    script = tmp_path / "driver.py"
    beginning = f"""
        import elastalog, elastalog.spark, json, os, random, signal, threading, time
        import psutil

        settings = {{
            "spark.elastalog.leastRows": "0", "spark.default.parallelism": "2",
            "spark.network.timeout": "{PATIENCE}s", **{settings!r},
        }}
        spark = elastalog.spark.session(2, memory="700m", settings=settings)
        PROGRAMS, FACTS, UPDATES = {PROGRAMS!r}, {FACTS!r}, {UPDATES!r}

        def wait_for_executors():
            # Two must be there, or tasks that exchange would be one.
            for _ in range(300):
                if spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == 3:
                    break
                time.sleep(0.2)

        wait_for_executors()

        def states(db):
            rows = db["path"].to_arrow(annotations=True).to_pydict()
            return sorted(map(list, zip(*rows.values())))

        def executors():
            found = []
            for process in psutil.process_iter():
                try:
                    line = " ".join(process.cmdline())
                    if "CoarseGrainedExecutorBackend" in line and spark.sparkContext.applicationId in line:
                        found.append(process)
                except psutil.Error:
                    pass
            return found

        def timed(work):
            began = time.monotonic()
            return work(), time.monotonic() - began

        def killed_during(work, seconds):
            # What the work returns, and whether an executor was killed within so many seconds, while it went on.
            wait_for_executors()
            victim, done, hit = random.choice(executors()), threading.Event(), []
            def kill():
                if not done.wait(random.uniform(0.0, seconds)):
                    os.kill(victim.pid, signal.SIGKILL)
                    hit.append(victim.pid)
            thread = threading.Thread(target=kill)
            thread.start()
            try:
                found = insisted(work)
            finally:
                done.set()
                thread.join()
            return found, bool(hit)

        def insisted(work):
            # An evaluation fails as a whole, and changes nothing, if executors die again and again.
            for attempt in range(5):
                try:
                    return work()
                except elastalog.ElastalogError as error:
                    assert error.diagnostics[0].code == "E1107", error
                    time.sleep(3)
            return work()
    """
    script.write_text(textwrap.dedent(beginning) + textwrap.dedent(body) + "\nspark.stop()\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment_of_children(), capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def wanted(kind: str) -> list[Any]:
    """The states of `path` after the evaluation and after each update, in one process."""
    found = []
    with elastalog.open(PROGRAMS[kind], FACTS, budget=None) as db:
        for inserted, deleted in [({}, {}), *UPDATES]:
            db.apply(inserted, deleted)
            rows = db["path"].to_arrow(annotations=True).to_pydict()
            found.append(sorted(map(list, zip(*rows.values(), strict=True))))
    return found


SAME = """
    for kind, text in PROGRAMS.items():
        with elastalog.open(text, FACTS, budget=None, engine="spark", spark=spark) as db:
            found = [states(db)]
            for inserted, deleted in UPDATES:
                db.apply(inserted, deleted)
                found.append(states(db))
            where = sorted({p.where for p in db._backend.placements.values()})
            print(json.dumps([kind, where, found]))
"""


@pytest.fixture(params=["standalone", "local-cluster"])
def cluster(request: pytest.FixtureRequest, bucket: Bucket) -> Cluster:
    """Either kind, with a workplace at an address."""
    if request.param == "standalone":
        found: Cluster = request.getfixturevalue("standalone")
        return found
    return Cluster({"spark.master": "local-cluster[2,1,2048]", "spark.elastalog.workplace": bucket.address("local")})


def test_the_suite(cluster: Cluster, tmp_path: Path) -> None:
    """The tests of this folder that have a session, as they are."""
    settings = {**cluster.settings, "spark.default.parallelism": "2", "spark.executor.cores": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not long", "-p", "no:cacheprovider",
         f"--basetemp={tmp_path / 't'}",
         *(f"tests/spark/test_{name}.py" for name in SUITE)],
        cwd=Path(__file__).parents[2], env={**environment_of_children(), CLUSTER: json.dumps(settings)},
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]


def test_the_same_results(cluster: Cluster, tmp_path: Path) -> None:
    found = drive(tmp_path, cluster.settings, SAME)
    assert [line[0] for line in found] == list(PROGRAMS)
    assert [line[1] for line in found] == [["tasks"], ["exchanging tasks", "tasks"]]
    for name, _, states in found:
        assert states == wanted(name)


KILLED = f"""
    from elastalog.backends.spark import backend

    backend.memory_allowed = lambda memory: 0  # so that tasks update what they have exchanged, too
    random.seed(7)
    for kind, text in PROGRAMS.items():
        def evaluate():
            return elastalog.open(text, FACTS, budget=None, engine="spark", spark=spark)

        (inserted, deleted) = UPDATES[0]
        for _ in range(2):  # the second time as it will be
            db, of_evaluation = timed(evaluate)
            _, of_update = timed(lambda: db.apply(inserted, deleted))
            db.close()
        kills = [0, 0]
        for _ in range({4 * KILLS}):
            db, first = killed_during(evaluate, of_evaluation)
            with db:
                evaluated = states(db)
                _, second = killed_during(lambda: db.apply(inserted, deleted), of_update)
                kills = [kills[0] + first, kills[1] + second]
                print(json.dumps([kind, first, second, evaluated, states(db)]), flush=True)
            if min(kills) >= {KILLS}:
                break
"""


def test_executors_killed_at_random_moments(standalone: Cluster, tmp_path: Path) -> None:
    """In each phase: evaluation and update, of tasks that decompose and of those that exchange."""
    found = drive(tmp_path, standalone.settings, KILLED, timeout=7200)
    kills = dict.fromkeys(((kind, phase) for kind in PROGRAMS for phase in ("evaluation", "update")), 0)
    for kind, first, second, evaluated, updated in found:
        assert [evaluated, updated] == wanted(kind)[:2]
        kills[kind, "evaluation"] += first
        kills[kind, "update"] += second
    assert min(kills.values()) >= KILLS, kills
