"""Programs of others: checkouts of public repositories, run here and by Soufflé, and a table of what came out. Nothing
of their text is kept; see `__main__`."""
