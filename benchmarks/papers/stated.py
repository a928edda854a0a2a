"""The claims of the papers, one by one, with the rules that decide about them."""

from __future__ import annotations

from benchmarks.papers.claims import Claim, Rule, exactly

_DACAPO = "the facts of DaCapo with that Doop are not public in a form that could be had"
_DDLOG = "DDlog is another engine, and not part of these benchmarks"

ELASTIC = (
    Claim("elastic", "Galen has 976,552 explicit facts and 24,483,561 in all", (
        exactly("elastic.table1:galen EDB", 976_552), exactly("elastic.table1:galen IDB", 24_483_561),
    )),
    Claim("elastic", "CRDT has 259,778 explicit facts", (exactly("elastic.table1:crdt EDB", 259_778),)),
    Claim("elastic", "The impact of updates of one size varies by orders of magnitude on Doop", (
        Rule("elastic.table2:doop spread", 10),
    )),
    Claim("elastic", "On CRDT ten facts have an impact of thousands", (
        Rule("elastic.table2:crdt 10 largest", 1000, printed=35_130),
    )),
    Claim("elastic", "Ten facts are followed far faster than Doop is evaluated", (
        Rule("elastic.table4:doop elastic 10 faster", 20),
    )),
    Claim("elastic", "Larger updates need more time (I)", (
        Rule("elastic.figure5:doop growth", 2), Rule("elastic.figure5:crdt growth", 2),
    )),
    Claim("elastic", "On CRDT even ten facts take longer to follow than an evaluation (I)", (
        Rule("elastic.figure5:crdt smallest / line", 1),
    ), "ten random facts of CRDT, deleted and inserted again, take a fraction of two evaluations"),
    Claim("elastic", "Updates alone run out of time on Doop from 400 facts on (I; over 100 times an evaluation)", (
        Rule("elastic.table4:doop elastic (update) worst", 100),
    ), "every update set of 400 to 1000 facts came to its end, and none took more than a few evaluations"),
    Claim("elastic", "With the switch no update costs much more than an evaluation (II; twice, at most)", (
        Rule("elastic.table4:doop elastic worst", 0, 2), Rule("elastic.table4:crdt elastic worst", 0, 2),
    )),
    Claim("elastic", "Elastic takes less time than evaluation for 13 epochs of Doop (II)", (
        Rule("elastic.figure6:doop recompute / elastic", 1, printed=1.24),
    )),
    Claim("elastic", "Elastic takes more time than evaluation for 13 epochs of CRDT", (
        Rule("elastic.figure6:crdt recompute / elastic", 0, 1, printed=0.61),
    ), "the same workload takes elastic less time than evaluation: small updates are a fraction of one"),
    Claim("elastic", "Elastic takes less time than counting for 13 epochs of Doop (II)", (
        Rule("elastic.figure6:doop counting / elastic", 1, printed=1.16),
    ), "the same workload takes the strategy `dense` less: it follows the large updates too, which elastic gives up"),
    Claim("elastic", "On Galen elastic is competitive with evaluation: 13 epochs take at most a tenth longer", (
        Rule("elastic.figure6:galen recompute / elastic", 0.9, printed=0.96),
    )),
    Claim("elastic", "A bootstrap costs little more than an evaluation (half as much again, at most)", (
        Rule("elastic.table4:doop elastic bootstrap", 0, 1.5), Rule("elastic.table4:crdt elastic bootstrap", 0, 1.5),
    )),
    Claim("elastic", "Elastic needs several times the memory of evaluation", (
        Rule("elastic.table3:doop elastic / recompute", 2, printed=4.25),
        Rule("elastic.table3:crdt elastic / recompute", 2, printed=8.2),
    ), "a level, a count and a few indexes are all that it adds here: under twice as much"),
    Claim("elastic", "Elastic needs less memory than counting on Doop", (
        Rule("elastic.table3:doop counting / elastic", 1, printed=1.26),
    ), "on Doop the strategy `dense` holds less than `elastic` after the same updates"),
    Claim("elastic", "A threshold of 20 % is a good choice (at most twice the best of the sweep)", (
        Rule("elastic.threshold:doop 20 % / best", 1, 2), Rule("elastic.threshold:crdt 20 % / best", 1, 2),
    )),
    Claim("elastic", "Elastic is faster than DDlog on Doop, and DDlog better on small updates of Galen", note=_DDLOG),
)  # fmt: skip

DREDC = (
    Claim("dredc", "Example 3: DRed over-deletes four facts, DRed^c two", (
        exactly("dredc.example3:DRed over-deleted", 4), exactly("dredc.example3:DRed^c over-deleted", 2),
    )),
    Claim("dredc", "Example 1: the backward search of DRed is quadratic", (
        Rule("dredc.example1:DRed, unbounded order", 1.8, 2.2),
    )),
    Claim("dredc", "Example 2: the backward searches of DRed and B/F are quadratic", (
        Rule("dredc.example2:DRed, unbounded order", 1.8, 2.2), Rule("dredc.example2:B/F, unbounded order", 1.8, 2.2),
    )),
    Claim("dredc", "DRed^c never makes more inferences than DRed", (
        Rule("dredc.table1:sspe derivations, DRed^c over DRed", high=0),
        Rule("dredc.table1:lubm derivations, DRed^c over DRed", high=0),
        Rule("dredc.ontology:lubm-owl derivations, DRed^c over DRed", high=0),
    )),
    Claim("dredc", "DRed^c is faster than DRed on small deletions of SSPE", (
        Rule("dredc.table1:sspe DRed / DRed^c", 1, printed=160),
    )),
    Claim("dredc", "DRed^c is faster than DRed on large deletions of SSPE", (
        Rule("dredc.table2:sspe DRed / DRed^c", 1, printed=97),
    )),
    Claim("dredc", "Backward search is what makes DRed slow on SSPE (unbounded, 2 % deleted, three times at least)", (
        Rule("dredc.unbounded:-2 % ratio", 3, printed=97),
    )),
    Claim("dredc", "B/F^c and B/F take about the same on SSPE, whose rules are recursive", (
        Rule("dredc.table1:sspe B/F / B/F^c", 0.6, 1.7, printed=1.02),
    )),
    Claim("dredc", "DRed^c is faster than B/F^c on SSPE", (
        Rule("dredc.table1:sspe DRed^c / B/F^c", 0, 1, printed=0.043),
    )),
    Claim("dredc", "Counters cost the first evaluation little (half as much again, at most)", (
        Rule("dredc.table2:sspe 2C / none", 0, 1.5, printed=1.05),
    )),
    Claim("dredc", "DRed^c deletes 2 % of SSPE in the order of an evaluation (five times, at most)", (
        Rule("dredc.table2:sspe DRed^c / remat", 0, 5, printed=1.09),
    )),
    Claim(
        "dredc", "On UOBM, Reactome, Uniprot, ChEMBL and Claros the new algorithms are faster, often by far",
        note="facts and programs (translated ontologies) are not public in a form that could be had",
    ),
)  # fmt: skip

_TRACKS = (("0", 4638, 910), ("1", 2653, 1208), ("2", 1704, 1017))
MARKING = (
    Claim("marking", "P_seq, size 10: 1,960 applications for deletions, 1,480 with marks, 2,360 for insertions", (
        exactly("marking.table2:10 deletions", 1960), exactly("marking.table2:10 deletions, marks", 1480),
        exactly("marking.table2:10 insertions", 2360),
    )),
    Claim("marking", "P_seq, size 10: 480 explicit and 480 implicit marks", (
        exactly("marking.table2:10 marks ex.", 480), exactly("marking.table2:10 marks im.", 480),
    )),
    Claim("marking", "P_seq, size 30: 5,880 applications for deletions, 4,440 with marks", (
        exactly("marking.table2:30 deletions", 5880), exactly("marking.table2:30 deletions, marks", 4440),
    )),
    Claim("marking", "P_seq: nothing is applied backward and forward", (
        exactly("marking.table2:80 backward", 0), exactly("marking.table2:80 forward", 0),
    )),
    Claim("marking", "The mark rule as printed gives Table 2 (1,480 applications at size 10)", (
        exactly("marking.table2:10 deletions, eager", 1480),
    ), "with the rule as printed only what the current update derives anew is marked; linked marks give the table"),
    Claim("marking", "Map data: insertions on the three tracks", tuple(
        exactly(f"marking.table3:{track} insertions", number) for track, number, _ in _TRACKS
    )),
    Claim("marking", "Map data: explicit marks on the three tracks", tuple(
        exactly(f"marking.table3:{track} marks ex.", number) for track, _, number in _TRACKS
    )),
    Claim("marking", "Map data: marks save applications for deletions on every track", tuple(
        Rule(f"marking.table3:{track} deletions saved", 0.01, printed=saved)
        for track, saved in (("0", 0.12), ("1", 0.2), ("2", 0.28))
    )),
    Claim("marking", "P_trans: marks save most of the applications for deletions", (
        Rule("marking.table1:10 deletions saved", 0.5, printed=0.72),
        Rule("marking.table1:80 deletions saved", 0.5, printed=0.95),
    )),
    Claim("marking", "P_trans: with marks more is applied backward, because facts are checked in another order", (
        Rule("marking.table1:10 backward, more with marks", 1, printed=3194),
    ), "sets of facts are checked at once, so that their order does not matter: as many with marks as without"),
    Claim("marking", "P_trans: over all sizes marks cost about what they gain (within a quarter)", (
        Rule("marking.table1:time with linked marks", 0.75, 1.25, printed=1.01),
    )),
    Claim("marking", "Map data take less time with marks (6 %, all tracks together; a twentieth, at least)", (
        Rule("marking.table3:time with linked marks", 0, 0.95, printed=0.94),
    ), "they take as long with marks as without"),
    Claim("marking", "P_seq takes less time with marks (15 to 21 %)", (
        Rule("marking.table2:time with linked marks", 0, 1, printed=0.81),
    ), "all sizes together take longer with marks: the fixed cost of an update outweighs what they save"),
)  # fmt: skip

PROVENANCE = (
    Claim("provenance", "Annotations cost little time (I; half as much again, at most)", (
        Rule("provenance.table4_2:time", 0, 1.5, printed=1.24),
    )),
    Claim("provenance", "Annotations cost little memory (I; half as much again, at most)", (
        Rule("provenance.table4_2:memory", 0, 1.5, printed=1.44),
    )),
    Claim("provenance", "The time of a proof fragment is about linear in its nodes (II)", (
        Rule("provenance.figure4_16:correlation", 0.7),
    )),
    Claim("provenance", "A node takes less than a millisecond (II)", (Rule("provenance.figure4_16:ms a node", 0, 1),)),
    Claim("provenance", "Lowest proofs are high: hundreds of levels (III)", (
        Rule("provenance.figure4_16:highest", 100, printed=300),
    )),
    Claim("provenance", "Fragments to depth 20 have thousands of nodes (III)", (
        Rule("provenance.figure4_16:most nodes", 1000, printed=15_000),
    )),
    Claim("provenance", "Other metrics than height have their own best proofs", (
        Rule("provenance.metrics:lower under size", high=0), Rule("provenance.metrics:smaller under height", high=0),
    )),
    Claim("provenance", "Annotations cost DDISASM 1.39 times the time and 2.6 times the memory", note=(
        "facts of the SPEC CPU 2006 binaries are not public"
    )),
    Claim("provenance", "Annotations cost no more than top-k", note=_DACAPO),
    Claim("provenance", "The branching factor of proofs is about 1.466", note=_DACAPO),
    Claim("provenance", "The overhead stays the same with 1 to 16 threads (Figure 4.15)", note=_DACAPO),
)  # fmt: skip

DEBUGGING = (
    Claim("debugging", "Suggestions are faster than delta debugging (RQ1)", (
        Rule("debugging.table6_1:suggest speed-up", 2, printed=26.9),
    )),
    Claim("debugging", "Suggestions are smaller than delta debugging's for 27 % of faults (RQ2)", (
        Rule("debugging.table6_1:suggest smaller", 0.01, printed=0.27),
    ), "delta debugging found answers of the same size for all faults of these updates"),
    Claim("debugging", "Suggestions are seldom larger than delta debugging's (RQ2)", (
        Rule("debugging.table6_1:suggest larger", 0, 0.05, printed=0.02),
    )),
    Claim("debugging", "Faults are debugged within ten minutes (RQ3; 93 % of them)", (
        Rule("debugging.table6_1:suggest slowest", 0, 600),
    )),
    Claim("debugging", "What Algorithm 11 suggests removes the faults", (
        exactly("debugging.algorithm11:printed", 0),
    ), "`u :- a. u :- b. f :- b. t :- u, c.`, a, c replaced by b, f unwanted, t missing: +b, −c undone, t is missing"),
    Claim("debugging", "The same, each answer tried before it is given, as Elastalog does", (
        exactly("debugging.algorithm11:ours", 0),
    )),
)  # fmt: skip

COUNTING = (
    Claim(
        "counting",
        "Counts for every iteration maintain recursive programs without over-deletion",
        (
            exactly("dredc.example3:counting over-deleted by rules", 0),
            exactly("dredc.example3:counting left", 4),
        ),
    ),
    Claim(
        "counting",
        "They cost some memory (on Doop, twice that of an evaluation at most)",
        (Rule("elastic.table3:doop counting / recompute", 1, 2),),
    ),
    Claim(
        "counting",
        "DRed^c and B/F over-approximate still, and can do badly in the worst case",
        (Rule("dredc.example2:B/F, unbounded order", 1.8, 2.2),),
    ),
    Claim("counting", "First experiments are encouraging", note="the note prints no figures"),
)

CLAIMS: tuple[Claim, ...] = (*ELASTIC, *DREDC, *MARKING, *PROVENANCE, *DEBUGGING, *COUNTING)
