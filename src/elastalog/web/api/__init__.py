"""The calls of the interface over HTTP, a file for each group."""
