"""Fact files without Spark: reading, writing, and the diff files of updates."""
