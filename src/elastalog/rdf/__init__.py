"""RDF and OWL 2 RL: ontologies as rules, triples as facts, SPARQL as queries, patches as updates."""

from elastalog.rdf.loading import Translation, export, load, translate
from elastalog.rdf.patches import apply, read_patch
from elastalog.rdf.sparql import Solutions, sparql
from elastalog.rdf.triples import explain, inconsistencies, suggest, why_not

__all__ = [
    "Solutions", "Translation", "apply", "explain", "export", "inconsistencies", "load", "read_patch", "sparql",
    "suggest", "translate", "why_not",
]  # fmt: skip
