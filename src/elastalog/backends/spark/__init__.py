"""Strata evaluated by the kernel inside Spark tasks."""
