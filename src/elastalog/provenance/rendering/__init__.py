"""Proofs and absences for people and programs: one module a form."""
