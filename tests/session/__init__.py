"""Tests of sessions as such."""
