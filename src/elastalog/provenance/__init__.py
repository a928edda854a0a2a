"""Why and why not: proofs, absence, and an independent checker of proofs."""
