"""What a public forge reads: workflows and forms that are YAML and run targets that exist, versions that agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import elastalog

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_what_is_there(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for job in jobs.values():
        assert {"runs-on", "steps"} <= job.keys()
        assert {job.get("needs", name) for name in jobs} <= jobs.keys()
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            for target in re.findall(r"make (\w+)", step.get("run", "")):
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_supported_python_is_tried() -> None:
    supported = {text.rpartition(" ")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)}
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]["check"]["strategy"]
    assert set(matrix["matrix"]["python"]) == supported


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_has_a_name_and_fields(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    assert all(field["type"] in ("textarea", "input") and field["attributes"]["label"] for field in form["body"])


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"] == elastalog.__version__
    assert citation["license"] == PROJECT["license"]
