"""Fact files without Spark: reading, writing, and the diff files of updates."""

from elastalog.pipeline.files.diff import Diff, parse_diff, read_diff, update_files
from elastalog.pipeline.files.paths import find_facts, resolve_under
from elastalog.pipeline.files.policy import BadRow, Policy, Report
from elastalog.pipeline.files.read import FactsRead, read_facts, read_input
from elastalog.pipeline.files.write import print_facts, write_facts, write_output

__all__ = [
    "BadRow",
    "Diff",
    "FactsRead",
    "Policy",
    "Report",
    "find_facts",
    "parse_diff",
    "print_facts",
    "read_diff",
    "read_facts",
    "read_input",
    "resolve_under",
    "update_files",
    "write_facts",
    "write_output",
]
