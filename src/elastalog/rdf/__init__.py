"""RDF and OWL 2 RL: ontologies as rules, triples as facts, SPARQL as queries, patches as updates."""

from elastalog.rdf.loading import Translation, explain, export, inconsistencies, load, suggest, translate, why_not
from elastalog.rdf.patches import apply, read_patch
from elastalog.rdf.sparql import Solutions, sparql

__all__ = [
    "Solutions", "Translation", "apply", "explain", "export", "inconsistencies", "load", "read_patch", "sparql",
    "suggest", "translate", "why_not",
]  # fmt: skip
