"""What hatchling asks when it makes a wheel.

A wheel that brings object code is tagged for the processors that the code is for, and needs no compiler. One without it
compiles operators when it first runs, and depends on numba.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLATFORMS = {"aarch64": "manylinux_2_17_aarch64", "x86-64-v3": "manylinux_2_17_x86_64"}
"""What wheels call the machines of a family of processors."""


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]  # hatchling need not be installed
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        built = root / "src" / "elastalog" / "jit" / "built"
        families = sorted(path.name for path in built.iterdir() if path.name in PLATFORMS) if built.is_dir() else []
        if families and version != "editable":
            build_data["tag"] = f"py3-none-{'.'.join(PLATFORMS[family] for family in families)}"
        else:
            project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            build_data["dependencies"] += project["optional-dependencies"]["build"]
            self.app.display_info("operators are compiled by the first run, once per machine, in a minute or two")
