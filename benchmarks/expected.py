"""How many facts each relation holds in the end, from sources other than this project's engine.

The figures of the public data sets are those that their publishers, or independent engines, agree on. Those of the
generated workloads were computed with the prototype behind the kernel, and with DuckDB where it can express them.
"""

from __future__ import annotations

GALEN = {"p": 7_560_179, "q": 16_595_494}

CRDT = {
    "assign": 182_315,
    "hasChild": 178_874,
    "laterChild": 3_441,
    "firstChild": 178_874,
    "sibling": 189_867,
    "laterSibling": 3_776,
    "laterSibling2": 335,
    "nextSibling": 3_441,
    "hasNextSibling": 3_441,
    "nextSiblingAnc": 181_836,
    "nextElem": 182_315,
    "currentValue": 104_852,
    "hasValue": 104_852,
    "nextVisible": 104_851,
    "result": 104_653,
}

DOOP = {
    "Reachable": 2_875,
    "VarPointsTo": 511_397,
    "CallGraphEdge": 13_136,
    "Assign": 31_754,
    "InstanceFieldPointsTo": 354_511,
    "StaticFieldPointsTo": 705,
    "ArrayIndexPointsTo": 5_636,
    "SubtypeOf": 13_435,
    "MethodLookup": 85_690,
    "InitializedClass": 680,
}

LUBM = {
    "Chair": 15,
    "Course": 1_627,
    "Employee": 540,
    "Faculty": 540,
    "Lecturer": 93,
    "Organization": 1_218,
    "Person": 8_330,
    "Professor": 447,
    "Publication": 5_999,
    "ResearchGroup": 224,
    "Student": 7_790,
    "TeachingAssistant": 407,
    "University": 979,
    "Work": 1_627,
    "degreeFrom": 3_494,
    "hasAlumnus": 3_494,
    "member": 8_330,
    "memberOf": 8_330,
    "subOrganizationOf": 463,
    "worksFor": 540,
}

CLOSURE_OL = {"path": 146_120}
CLOSURE_TG = {"path": 481_121}
SAME_GENERATION_OL = {"same_generation": 285_431}

CLOSURE_SPARSE = {"path": 5_870_308}
CLOSURE_GRID = {"path": 1_250_500}
CLOSURE_CHAIN = {"path": 1_999_000}
CLOSURE_DENSE = {"path": 6_250_000}
CLOSURE_20_COMPONENTS = {"path": 1_070_362}
CLOSURE_100_COMPONENTS = {"path": 5_330_728}
CLOSURE_500_COMPONENTS = {"path": 26_272_846}
ONTOLOGY = {"p": 249_541, "q": 314_843}
LARGE_ONTOLOGY = {"p": 1_026_308, "q": 1_667_067}
# By passing sets of lengths along the edges, nodes in order.
PATH_LENGTHS = {"D": 592_080}
POINTS_TO = {"alias": 4_454, "vpt": 1_562_043}
