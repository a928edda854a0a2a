"""The tables as the papers print them, by the names of the items that measure them. `None`: out of time there.

Figures without numbers in print have none here either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.papers.tables import Cell, Table
from benchmarks.streams import PAPER

_ELASTIC_STATISTICS = Table(
    "",
    ("benchmark", "rules", "EDB", "IDB"),
    (("Doop", 90, 11_014_960, 41_665_029), ("CRDT", 31, 259_778, 2_668_247), ("Galen", 6, 976_552, 24_483_561)),
)

_ELASTIC_IMPACT = Table(
    "least and largest impact",
    ("benchmark", "size", "least", "largest"),
    (
        ("Doop", 10, 7, 25), ("Doop", 100, 88, 53_816), ("Doop", 400, 26_701, 5_257_937),
        ("Doop", 700, 49_175, 3_589_404), ("Doop", 1000, 87_424, 6_559_713),
        ("CRDT", 10, 3_444, 35_130), ("CRDT", 40, 41_217, 61_039), ("CRDT", 70, 63_946, 80_939),
        ("CRDT", 100, 85_726, 91_384),
        ("Galen", 10, 810, 3_708), ("Galen", 10_000, 4_318_658, 7_038_703), ("Galen", 40_000, 21_068_962, 31_589_252),
        ("Galen", 70_000, 35_234_152, 42_663_368), ("Galen", 100_000, 43_069_725, 53_765_683),
    ),
)  # fmt: skip

_ELASTIC_MEMORY = Table(
    "MB, mean over all update sets; ratio to Soufflé",
    ("benchmark", "Soufflé", "elastic", "ratio", "counting", "ratio", "DDlog", "ratio"),
    (
        ("Doop", 1762, 7492, 7492 / 1762, 9449, 9449 / 1762, 23_352, 23_352 / 1762),
        ("CRDT", 42, 346, 346 / 42, 337, 337 / 42, 829, 829 / 42),
        ("Galen", 931, 5672, 5672 / 931, 17_974, 17_974 / 931, 20_862, 20_862 / 931),
    ),
)

_OUT_OF_TIME = "out of time"
_ELASTIC_TIMES = Table(
    "seconds, least and most over five update sets; MB",
    ("benchmark", "engine", "updates", "epoch 0", "− least", "− most", "+ least", "+ most", "MB"),
    (
        ("Doop", "elastic (update)", 10, 64.53, 0.20, 5.62, 0.20, 0.42, 7486.5),
        ("Doop", "elastic (update)", 100, 66.22, 4.63, 13_624.27, 0.38, 2.98, 7497.4),
        ("Doop", "elastic (update)", "400, 700, 1000", _OUT_OF_TIME, None, None, None, None, None),
        ("Doop", "counting", 10, 113.64, 0.50, 1.00, 0.50, 1.11, 9116.2),
        ("Doop", "counting", 100, 116.00, 0.78, 9.05, 0.77, 9.49, 9131.4),
        ("Doop", "counting", 400, 114.00, 10.20, 632.30, 10.90, 695.00, 9540.6),
        ("Doop", "counting", 700, 113.81, 21.26, 129.37, 22.60, 147.66, 9539.8),
        ("Doop", "counting", 1000, 116.92, 14.40, 428.29, 16.70, 500.99, 9917.3),
        ("Doop", "DDlog", 10, 164.53, 0.07, 1.85, 0.02, 1.67, 17_495.4),
        ("Doop", "DDlog", 100, 167.83, 2.57, 102.51, 2.30, 110.29, 20_682.4),
        ("Doop", "DDlog", 400, 169.45, 90.65, 145.37, 101.38, 146.70, 25_002.1),
        ("Doop", "DDlog", 700, 164.86, 115.14, 205.84, 129.22, 185.37, 26_350.2),
        ("Doop", "DDlog", 1000, 167.35, 149.71, 232.32, 148.30, 205.08, 27_230.5),
        ("CRDT", "elastic (update)", 10, 1.99, 1.64, 1.74, 1.45, 1.51, 338.7),
        ("CRDT", "elastic (update)", 40, 1.96, 1.93, 2.10, 1.67, 1.78, 345.7),
        ("CRDT", "elastic (update)", 70, 1.96, 2.32, 2.68, 2.01, 2.58, 349.3),
        ("CRDT", "elastic (update)", 100, 2.00, 2.51, 2.90, 2.05, 2.65, 351.8),
        ("CRDT", "counting", 10, 2.98, 1.58, 1.69, 1.62, 1.74, 331.4),
        ("CRDT", "counting", 40, 3.02, 1.83, 1.99, 1.80, 2.00, 336.6),
        ("CRDT", "counting", 70, 3.10, 2.15, 2.32, 2.11, 2.34, 338.6),
        ("CRDT", "counting", 100, 2.92, 2.21, 2.47, 2.19, 2.49, 341.6),
        ("CRDT", "DDlog", 10, 8.52, 0.71, 5.97, 0.69, 5.74, 804.5),
        ("CRDT", "DDlog", 40, 8.61, 4.69, 6.56, 4.47, 6.72, 825.4),
        ("CRDT", "DDlog", 70, 8.59, 7.02, 7.36, 6.78, 7.33, 833.1),
        ("CRDT", "DDlog", 100, 8.50, 7.29, 7.62, 7.08, 7.28, 851.8),
        ("Galen", "elastic (update)", 10, 60.69, 2.48, 20.29, 0.17, 0.24, 5666.9),
        ("Galen", "elastic (update)", 10_000, 59.64, 37.16, 94.22, 0.29, 0.62, 5676.2),
        ("Galen", "elastic (update)", "40000, 70000, 100000", _OUT_OF_TIME, None, None, None, None, None),
        ("Galen", "counting", 10, 415.63, 0.40, 1.44, 0.53, 1.64, 14_595.4),
        ("Galen", "counting", 10_000, 415.05, 147.14, 203.44, 146.88, 239.68, 15_799.4),
        ("Galen", "counting", 40_000, 422.35, 568.20, 902.38, 612.21, 977.07, 18_776.6),
        ("Galen", "counting", 70_000, 411.63, 996.40, 1130.46, 1025.11, 1216.50, 20_027.0),
        ("Galen", "counting", 100_000, 414.45, 1131.57, 1602.21, 21.03, 1377.78, 20_671.6),
        ("Galen", "DDlog", 10, 152.09, 0.09, 0.20, 0.06, 0.09, 15_602.4),
        ("Galen", "DDlog", 10_000, 154.10, 19.69, 28.02, 20.78, 27.14, 16_771.1),
        ("Galen", "DDlog", 40_000, 152.70, 74.72, 96.72, 77.23, 99.10, 22_027.8),
        ("Galen", "DDlog", 70_000, 154.10, 107.76, 130.03, 110.19, 132.05, 24_195.4),
        ("Galen", "DDlog", 100_000, 157.96, 135.58, 160.32, 137.96, 168.43, 25_712.8),
    ),
)

_ELASTIC_EPOCHS = Table(
    "seconds for all 13 epochs, from the text; ratio of Soufflé to elastic",
    ("benchmark", "Soufflé", "elastic", "ratio", "counting", "DDlog"),
    (
        ("Doop", 304, 245, 304 / 245, 284, 467),
        ("CRDT", 19, 31, 19 / 31, 25, 56),
        ("Galen", 370, 384, 370 / 384, _OUT_OF_TIME, 445),
    ),
)

_SMALL_DELETIONS = Table(
    "seconds for 1000 facts",
    ("data", "facts", "DRed^c", "DRed", "B/F^c", "B/F", "DRed / DRed^c", "B/F / B/F^c"),
    (
        ("UOBM-U", "254.8 M", 179.24, 1185.87, 1.18, 31.96, 6.6, 27.1),
        ("UOBM-R", "254.8 M", 0.29, 0.56, 0.26, 0.24, 1.9, 0.9),
        ("Reactome-U", "12.5 M", 0.06, 1.03, 0.05, 1.00, 17.2, 20.0),
        ("Reactome-R", "12.5 M", 26.57, 62.46, 0.89, 0.90, 2.4, 1.0),
        ("Uniprot-R", "123.1 M", 4.31, 8.71, 4.13, 4.36, 2.0, 1.1),
        ("ChemBL-R", "289.2 M", 7.91, 12.22, 1.27, 1.26, 1.5, 1.0),
        ("Claros-LE, best", "18.8 M", 0.33, 5788.75, 0.43, 8.03, 17_542, 18.7),
        ("Claros-LE, worst", "18.8 M", 5720.57, 5759.92, 2802.86, 3227.05, 1.0, 1.2),
        ("Claros-LE, mean", "18.8 M", 1143.55, 1741.66, 560.61, 653.04, 1.5, 1.2),
        ("SSPE", "3.0 M", 10.53, 1684.97, 247.00, 252.97, 160.0, 1.02),
    ),
)

_LARGE_DELETIONS = Table(
    "seconds",
    ("data", "deleted", "DRed^c", "DRed", "B/F^c", "B/F", "Remat", "Remat-1C", "Remat-2C"),
    (
        ("UOBM-U", "50 %", 1540, 3660, 1640, 3110, 1560, 1600, 1610),
        ("UOBM-R", "36 %", 3280, 5750, 2760, 2870, 4140, 4160, 4190),
        ("Reactome-U", "68 %", 30.70, 6320, 39.16, 6330, 30.90, 31.23, 31.32),
        ("Reactome-R", "31 %", 1070, 1780, 920, 930, 910, 910, 920),
        ("Uniprot-R", "47 %", 1570, 3470, 1920, 2860, 1980, 1990, 2000),
        ("ChemBL-R", "69 %", 4740, 7220, 3250, 4180, 2560, 2570, 2590),
        ("Claros-LE", "8 %", 5010, 17_810, 3490, 16_740, 3360, 3490, 3600),
        ("SSPE", "2 %", 74.36, 7240, 7900, 7750, 68.28, 70.18, 71.81),
    ),
)

_EXAMPLE_3 = Table(
    "facts over-deleted",
    ("algorithm", "over-deleted"),
    (("DRed", "4: A(a), A(c), A(d), A(e)"), ("DRed^c", "2: A(a), A(c)")),
)

_MARK_HEAD = (
    "less time, %", "deletions", "with marks", "backward", "with marks", "forward", "with marks", "insertions",
    "marks ex.", "marks im.",
)  # fmt: skip


def _marks(stream: str, case: str) -> tuple[Table, ...]:
    rows: list[Sequence[Cell]] = [(name.rpartition("/")[2], *figures) for name, figures in PAPER[stream].items()]
    return (Table("rule applications by phase, without and with marks", (case, *_MARK_HEAD), rows),)


_DACAPO = (
    ("antlr", 1.26, 1.51, 1.16, 1.40), ("bloat", 1.28, 1.51, 1.40, 1.48), ("chart", 1.23, 1.45, 1.29, 1.44),
    ("eclipse", 1.22, 1.51, 1.33, 1.48), ("fop", 1.25, 1.46, 1.33, 1.44), ("hsqldb", 1.21, 1.46, 1.28, 1.45),
    ("jython", 1.24, 1.49, 1.31, 1.46), ("luindex", 1.25, 1.52, 1.35, 1.49), ("lusearch", 1.25, 1.52, 1.33, 1.49),
    ("pmd", 1.21, 1.46, 1.31, 1.45), ("xalan", 1.25, 1.46, 1.30, 1.45), ("geometric mean", 1.24, 1.44, 1.31, 1.46),
)  # fmt: skip
_ANNOTATIONS = Table(
    "Doop on DaCapo: times as much with annotations as without",
    ("benchmark", "insensitive, time", "memory", "1-obj 1-heap, time", "memory"),
    _DACAPO,
)

_DDISASM_SIZES = Table(
    "",
    ("benchmark", "EDB", "IDB"),
    (
        ("cactusADM", 845_762, 12_758_417), ("calculix", 1_934_084, 39_101_856), ("gamess", 9_892_299, 204_764_756),
        ("gcc", 3_968_589, 133_994_711), ("GemsFDTD", 445_185, 16_483_816), ("gobmk", 4_211_765, 34_935_275),
        ("gromacs", 1_122_734, 16_238_070), ("h264ref", 638_837, 12_991_980), ("omnetpp", 720_581, 18_261_432),
        ("perlbench", 1_330_330, 65_875_051), ("povray", 1_160_773, 55_857_237), ("tonto", 4_767_218, 285_090_829),
        ("wrf", 4_690_140, 97_986_011),
    ),
)  # fmt: skip

_DDISASM = Table(
    "times as much with annotations as without",
    ("benchmark", "time", "memory"),
    (
        ("cactusADM", 1.37, 2.82), ("calculix", 1.34, 2.69), ("gamess", 1.21, 2.71), ("gcc", 1.06, 2.35),
        ("GemsFDTD", 1.25, 2.48), ("gobmk", 1.83, 2.38), ("gromacs", 1.42, 2.86), ("h264ref", 1.42, 2.61),
        ("omnetpp", 1.27, 2.56), ("perlbench", 1.34, 2.22), ("povray", 1.36, 2.19), ("tonto", 2.20, 3.37),
        ("wrf", 1.27, 2.76), ("geometric mean", 1.39, 2.60),
    ),
)  # fmt: skip

_TOP_K = Table(
    "times as much as top-k",
    ("benchmark", "time", "memory"),
    (
        ("antlr", 0.99, 1.00), ("bloat", 1.02, 1.00), ("chart", 1.02, 1.00), ("eclipse", 1.00, 1.00),
        ("fop", 1.01, 1.00), ("hsqldb", 1.00, 1.00), ("jython", 1.01, 1.00), ("luindex", 1.00, 1.00),
        ("lusearch", 1.00, 1.00), ("pmd", 1.00, 1.00), ("xalan", 1.00, 1.00), ("geometric mean", 1.01, 1.00),
    ),
)  # fmt: skip

# Benchmark: for each of four fault sets the size and seconds of the thesis's, and those of delta debugging.
_DEBUGGING: Mapping[str, tuple[tuple[int, float, int, float], ...]] = {
    "antlr": ((2, 73.6, 3, 3057.8), (1, 79.4, 1, 596.5), (1, 0.95, 1, 530.8), (2, 77.8, 3, 3017.6)),
    "bloat": ((2, 3309.5, 2, 2858.6), (1, 356.3, 1, 513.6), (1, 0.33, 1, 557.7), (3, 3870.6, 2, 2808.3)),
    "chart": ((1, 192.6, 1, 685.0), (1, 3.01, 1, 675.3), (1, 78.8, 1, 667.6), (2, 79.9, 3, 3001.1)),
    "eclipse": ((2, 177.3, 3, 2591.2), (1, 79.2, 1, 416.1), (1, 0.12, 1, 506.3), (3, 91.9, 3, 2424.4)),
    "fop": ((2, 83.8, 2, 3446.6), (1, 76.9, 1, 670.7), (1, 0.66, 1, 721.8), (6, 74.8, 0, math.inf)),
    "hsqldb": ((2, 83.3, 2, 2979.2), (1, 79.4, 1, 433.8), (1, 74.0, 1, 663.1), (3, 75.5, 5, 6134.8)),
    "jython": ((1, 83.3, 1, 609.4), (1, 78.2, 1, 590.4), (1, 76.6, 1, 596.2), (1, 75.8, 1, 587.6)),
    "luindex": ((2, 81.3, 3, 2392.1), (1, 79.8, 1, 511.0), (1, 0.10, 1, 464.8), (4, 77.9, 5, 4570.4)),
    "lusearch": ((2, 110.2, 3, 2558.8), (1, 1062.1, 1, 370.4), (1, 0.12, 1, 369.6), (2, 294.2, 3, 2420.9)),
    "pmd": ((2, 78.1, 3, 3069.8), (1, 77.0, 1, 600.2), (1, 0.08, 1, 717.8), (3, 74.3, 3, 2828.3)),
    "xalan": ((1, 84.9, 1, 745.3), (1, 82.2, 1, 728.9), (1, 100.1, 1, 1243.7), (1, 521.6, 1, 712.5)),
}


def _debugging() -> Table:
    rows: list[Sequence[Cell]] = []
    for name, sets in _DEBUGGING.items():
        for number, (size, seconds, delta_size, delta_seconds) in enumerate(sets, 1):
            is_in_time = delta_seconds < math.inf
            delta: Sequence[Cell] = (delta_size, delta_seconds) if is_in_time else (None, "over 7200")
            ratio: Cell = delta_seconds / seconds if is_in_time else "over 96.3"
            rows.append((name, number, size, seconds, *delta, ratio))
    head = ("benchmark", "faults", "size", "seconds", "delta debugging: size", "seconds", "ratio")
    return Table("suggestions", head, rows)


TABLES: Mapping[str, tuple[Table, ...]] = {
    "elastic.table1": (_ELASTIC_STATISTICS,),
    "elastic.table2": (_ELASTIC_IMPACT,),
    "elastic.table3": (_ELASTIC_MEMORY,),
    "elastic.table4": (_ELASTIC_TIMES,),
    "elastic.figure6": (_ELASTIC_EPOCHS,),
    "dredc.table1": (_SMALL_DELETIONS,),
    "dredc.table2": (_LARGE_DELETIONS,),
    "dredc.example3": (_EXAMPLE_3,),
    "marking.table1": _marks("trans", "size"),
    "marking.table2": _marks("seq", "size"),
    "marking.table3": _marks("ways", "track"),
    "provenance.table4_2": (_ANNOTATIONS,),
    "provenance.table4_3": (_DDISASM_SIZES,),
    "provenance.table4_4": (_DDISASM,),
    "provenance.table4_5": (_TOP_K,),
    "debugging.table6_1": (_debugging(),),
}
