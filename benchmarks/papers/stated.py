"""The claims of the papers, one by one, with the rules that decide about them."""

from __future__ import annotations

from benchmarks.papers.claims import Claim

CLAIMS: tuple[Claim, ...] = ()
