"""Strata in the order of values: nodes with a rank each, links between them, and how an update follows links."""
