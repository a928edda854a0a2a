"""The locked versions keep everybody's bounds, and the bill of materials names them all."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from scripts import dependencies

LOCKED = dependencies.CONSTRAINTS.read_text(encoding="utf-8")


def test_the_locked_versions_keep_all_bounds() -> None:
    assert dependencies.faults(dependencies.locked(LOCKED)) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"numba": "0.99.0"}, r"pyproject.toml requires numba.*, and 0.99.0 is locked"),
        ({"numpy": "1.20"}, r"numba requires numpy.*, and 1.20 is locked"),
        ({"click": None}, r"pyproject.toml requires click.*, which is not locked"),
        ({"pip": "1.0"}, "pip is locked, and nothing requires it"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, str | None], told: str) -> None:
    versions = {**dependencies.locked(LOCKED), **change}
    found = dependencies.faults({name: version for name, version in versions.items() if version is not None})
    assert any(re.fullmatch(told, fault) for fault in found), found


def test_it_says_nothing_of_where_packages_come_from() -> None:
    lines = [line for line in LOCKED.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[A-Za-z0-9.+!]+", line) for line in lines)
    names = [line.split("==")[0] for line in lines]
    assert names == sorted(names)


def test_what_we_use_the_inside_of_has_an_upper_bound() -> None:
    project = tomllib.loads((dependencies.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "<" in project["optional-dependencies"]["build"][0]
    assert "<" in project["optional-dependencies"]["spark"][0]


def test_the_bill_names_what_the_project_requires_and_what_that_requires() -> None:
    bill = dependencies.bill("0.1.0")
    components = {part["name"]: part for part in bill["components"]}
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert components["numba"]["scope"] == components["llvmlite"]["scope"] == "optional"
    assert components["pyarrow"]["scope"] == "required"
    assert components["fastapi"]["scope"] == "optional"
    assert components["numpy"]["version"] == dependencies.locked(LOCKED)["numpy"]
    assert all(part["licenses"][0]["license"]["name"] for part in components.values())
    edges = {edge["ref"]: edge["dependsOn"] for edge in bill["dependencies"]}
    assert edges.keys() == {part["bom-ref"] for part in components.values()} | {"pkg:pypi/elastalog@0.1.0"}
    assert components["llvmlite"]["bom-ref"] in edges[components["numba"]["bom-ref"]]
    assert bill == dependencies.bill("0.1.0")


def test_the_bill_is_put_into_the_wheel_once(tmp_path: Path) -> None:
    wheel = tmp_path / "elastalog-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("elastalog/__init__.py", "")
        made.writestr(
            "elastalog-0.1.0.dist-info/RECORD", "elastalog/__init__.py,,\nelastalog-0.1.0.dist-info/RECORD,,\n"
        )
    for _ in range(2):
        beside = dependencies.put_into(wheel)
    assert beside == tmp_path / "elastalog-0.1.0.cdx.json"
    assert sorted(path.name for path in tmp_path.iterdir()) == [wheel.name, beside.name]
    inside = "elastalog-0.1.0.dist-info/sboms/elastalog.cdx.json"
    with zipfile.ZipFile(wheel) as found:
        assert sorted(found.namelist()) == sorted(["elastalog/__init__.py", inside, "elastalog-0.1.0.dist-info/RECORD"])
        data = found.read(inside)
        record = list(csv.reader(io.StringIO(found.read("elastalog-0.1.0.dist-info/RECORD").decode())))
    assert data == beside.read_bytes()
    assert json.loads(data)["metadata"]["component"]["version"] == "0.1.0"
    digest = urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")
    assert [line for line in record if line[0] == inside] == [[inside, f"sha256={digest}", str(len(data))]]
    assert len(record) == 3
