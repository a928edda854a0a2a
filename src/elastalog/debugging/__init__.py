"""Which part of an update broke something, and the smallest part whose undoing mends it."""
