"""One Spark session for all tests of this folder. Without pyspark or Java they are skipped, and say so."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.spark.without_spark import tasks_in_this_process

HERE = Path(__file__).parent
IN_PROCESS = {
    "test_aggregates", "test_consensus", "test_native_source", "test_one_task", "test_ontologies", "test_operation",
    "test_placement", "test_programs", "test_results", "test_transports", "test_update_programs", "test_updates",
    "test_workplace",
}  # fmt: skip
"""Modules that also run the tasks of the backend without Spark."""

CLUSTER = "ELASTALOG_TEST_CLUSTER"
"""The variable with settings of a session, as JSON: then the tests that have one run on that cluster, and no others."""

NO_DERBY_LOG = "-Dderby.stream.error.file=/dev/null"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Most of what a small session costs is Java loading classes and compiling: its first compiler is enough for it, and
the classes of Spark are taken as they are."""


def environment_of_children() -> dict[str, str]:
    """For processes of their own that start Spark: this package, and a Java that starts quickly."""
    return {
        **os.environ, "JAVA_TOOL_OPTIONS": QUICK_START, "PYTHONPATH": str(Path(elastalog.__file__).parents[1])
    }  # fmt: skip


def wait_for_executors(session: Any, number: int) -> None:
    """Waits until so many executors are there: with fewer, tasks that exchange would be fewer."""
    for _ in range(600):
        if session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() > number:  # the driver is one of them
            return
        time.sleep(0.2)
    raise TimeoutError("the executors did not start")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if CLUSTER in os.environ:
        others = [item for item in items if "spark" not in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            # One test process has a session: a second Java would load and compile the same once more. It is the largest
            # group, so it is begun first. Tasks in the test's own process need none.
            fixtures = set(getattr(item, "fixturenames", ()))
            if item.path.stem not in IN_PROCESS or "spark" in fixtures:
                item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture
def near(tmp_path: Path) -> Iterator[Any]:
    """A session whose tasks run in this process."""
    with tasks_in_this_process(tmp_path) as session:
        yield session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from elastalog.pipeline.spark.session import java_options, provide_java, spark_session

    try:
        provide_java()
    except ElastalogError as error:
        pytest.skip(str(error))
    session = spark_session(
        2,
        memory="1g",
        settings={
            "spark.driver.extraJavaOptions": f"{java_options()} {QUICK_START} {NO_DERBY_LOG}",
            "spark.elastalog.leastRows": "0",  # no stratum is too small for tasks
            **json.loads(os.environ.get(CLUSTER, "{}")),
        },
    )
    if CLUSTER in os.environ:
        wait_for_executors(session, 2)
    yield session
    session.stop()
