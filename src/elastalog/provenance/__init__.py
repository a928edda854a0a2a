"""Why and why not: proofs, absence, and an independent checker of proofs."""

from elastalog.provenance.absence import Absence as Absence
from elastalog.provenance.check import Verdict as Verdict
from elastalog.provenance.check import check_proof as check_proof
from elastalog.provenance.fact import Fact as Fact
from elastalog.provenance.proof import Proof as Proof
