"""The archive of classes with which Java starts faster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import elastalog

pytest.importorskip("pyspark")

from elastalog.pipeline.spark.session import archive_of, archive_options


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "java"
    made.write_text("", encoding="utf-8")
    return made


def test_without_an_archive_java_gets_no_option(java: Path) -> None:
    assert archive_options(java) == ""


def test_an_archive_belongs_to_one_java_and_one_pyspark(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of(java)
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in archive_options(java)
    os.utime(java, (1, 1))
    assert archive_options(java) == ""
    os.utime(java, None)
    monkeypatch.setattr("pyspark.__version__", "9.9.9")
    assert archive_options(java) == ""


@pytest.mark.slow
@pytest.mark.long
def test_a_session_starts_with_the_archive_that_was_made(tmp_path: Path) -> None:
    environment = {
        **os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(Path(elastalog.__file__).parents[1])
    }  # fmt: skip

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    run("-m", "elastalog.pipeline.spark.warm")
    script = """
import elastalog.spark
spark = elastalog.spark.session(1)
options = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
print(spark.range(3).count(), any("SharedArchiveFile" in option for option in options))
spark.stop()
"""
    # Java says nothing on standard output.
    assert run("-c", script) == "3 True\n"
