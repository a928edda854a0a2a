"""Every code a diagnostic can have, with the text that teaches it."""

from elastalog.diagnostics.catalogue.entry import Entry as Entry
from elastalog.diagnostics.catalogue.merge import CATALOGUE as CATALOGUE
