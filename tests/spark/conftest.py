"""One Spark session for all tests of this folder. Without pyspark or Java they are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elastalog.diagnostics.diagnostic import ElastalogError

HERE = Path(__file__).parent
IN_PROCESS = {"test_programs", "test_skew", "test_update_programs", "test_updates"}
"""Modules that also run the tasks of the backend without Spark."""

NO_DERBY_LOG = "-Dderby.stream.error.file=/dev/null"


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
        # Tests run small jobs: the first compiler of Java is enough for them, and no stratum is too small for tasks.
        settings={
            "spark.driver.extraJavaOptions": f"{java_options()} -XX:TieredStopAtLevel=1 {NO_DERBY_LOG}",
            "spark.elastalog.leastRows": "0",
        },
    )
    yield session
    session.stop()
