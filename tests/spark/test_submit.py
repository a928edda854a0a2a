"""A job handed to `spark-submit`: executors get the package as an archive, and nothing else of ours."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import elastalog
from tests.spark.conftest import environment_of_children

pytest.importorskip("pyspark")

JOB = """
import elastalog, elastalog.spark
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
PROGRAM = '''
.decl edge, path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
'''
edges = spark.range(60).selectExpr("id AS x", "id + 1 AS y")
with elastalog.open(PROGRAM, facts={"edge": edges}, engine="spark", spark=spark) as db:
    print(len(db["path"]), [placement.where for placement in db._backend.placements.values()])
    db.apply({"edge": [(60, 61)]}, {"edge": [(0, 1)]})
    print(db["path"].to_spark().count())


def package(_):
    import elastalog

    yield elastalog.__file__


for place in {elastalog.__file__, *spark.sparkContext.parallelize(range(2), 2).mapPartitions(package).collect()}:
    print("elastalog.zip/elastalog/__init__.py" in place)
spark.stop()
"""


def pack(archive: Path) -> None:
    """The package as a wheel holds it."""
    root = Path(elastalog.__file__).parent
    with zipfile.ZipFile(archive, "w") as out:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                out.write(file, file.relative_to(root.parent))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
def test_a_submitted_job_needs_the_archive_only(tmp_path: Path, master: str) -> None:
    pack(tmp_path / "elastalog.zip")
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")
    (tmp_path / "shared").mkdir()
    environment = environment_of_children()
    # The package must not be found where the tests find it.
    del environment["PYTHONPATH"]
    environment["PYSPARK_PYTHON"] = sys.executable
    submit = str(Path(sys.executable).with_name("spark-submit"))
    settings = {
        "spark.elastalog.workplace": str(tmp_path / "shared"), "spark.elastalog.leastRows": "0",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.default.parallelism": "2", "spark.sql.shuffle.partitions": "2",
    }  # fmt: skip
    command = [submit, "--master", master, "--py-files", "elastalog.zip"]
    command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    done = subprocess.run(
        [*command, "job.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # The paths of a chain of 61 nodes, before and after it has moved by one.
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("Picked up")]
    assert lines[:2] == ["1830 ['tasks']", "1830"]
    assert set(lines[2:]) == {"True"}
