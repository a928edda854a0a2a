"""One Spark session for all tests of this folder. Without pyspark or Java they are skipped, and say so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError

HERE = Path(__file__).parent
IN_PROCESS = {
    "test_links",
    "test_native_source",
    "test_operation",
    "test_outcome",
    "test_programs",
    "test_skew",
    "test_stages",
    "test_update_programs",
    "test_updates",
    "test_workplace",
}
"""Modules that also run the tasks of the backend without Spark."""

NO_DERBY_LOG = "-Dderby.stream.error.file=/dev/null"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Most of what a small session costs is Java loading classes and compiling: its first compiler is enough for it, and
the classes of Spark are taken as they are."""


def environment_of_children() -> dict[str, str]:
    """For processes of their own that start Spark: this package, and a Java that starts quickly."""
    return {
        **os.environ, "JAVA_TOOL_OPTIONS": QUICK_START, "PYTHONPATH": str(Path(elastalog.__file__).parents[1])
    }  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            # With several test processes, one of them has the session; tasks in the test's own process need none.
            fixtures = set(getattr(item, "fixturenames", ()))
            if item.path.stem not in IN_PROCESS or "spark" in fixtures:
                item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from elastalog.pipeline.spark.java import provide_java
    from elastalog.pipeline.spark.session import java_options, spark_session

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
        },
    )
    yield session
    session.stop()
