"""How fast programs are parsed and checked, in lines a second, at growing sizes: it should be linear.

`python -m benchmarks.parse_speed --components [--files N] [--lines N ...]` measures programs in components that
inherit from each other, of which every tenth has an instance, and writes nothing. With `--files` they lie in so many
files, which are included, and every component uses a macro.

`python -m benchmarks.parse_speed [--lines N ...]` prints a table, writes benchmarks/results/parse_speed.json and draws
benchmarks/plots/parse_speed.png.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.plot import draw_lines
from benchmarks.workloads import HERE

SIZES = (2_000, 10_000, 50_000, 200_000)
LINES_A_GROUP = 20


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of processor time, the least of the repeats: others may share the machine."""

    lines: int
    characters: int
    parse_seconds: float
    check_seconds: float

    @property
    def lines_a_second(self) -> float:
        return self.lines / (self.parse_seconds + self.check_seconds)


def program_text(lines: int) -> str:
    """A program of about so many lines: groups of relations that build on the group before, with recursion, negation,
    comparisons, arithmetic, strings, disjunction and an aggregate in each."""
    groups = max(1, lines // LINES_A_GROUP)
    return "".join(line + "\n" for group in range(groups) for line in _group(group))


def _group(number: int) -> Iterator[str]:
    before = f"reach{number - 1}" if number else "edge0"
    yield f"// group {number}"
    yield f".decl edge{number}(from: number, to: number)"
    yield f".input edge{number}"
    yield f".decl label{number}(node: number, name: symbol)"
    yield f'label{number}({number}, "node {number}").'
    yield f".decl reach{number}(from: number, to: number)"
    yield f"reach{number}(x, y) :- edge{number}(x, y)."
    yield f"reach{number}(x, z) :- reach{number}(x, y), edge{number}(y, z), x != z."
    yield f"reach{number}(x, y) :- {before}(x, y), label{number}(x, _)."
    yield f".decl apart{number}(a: number, b: number)"
    yield f"apart{number}(a, b) :-"
    yield f"    label{number}(a, _), label{number}(b, _),"
    yield f"    !reach{number}(a, b)."
    yield f".decl near{number}(node: number, distance: number)"
    yield f"near{number}(x, d + 1) :- near{number}(y, d), edge{number}(y, x), d < 10."
    yield f'near{number}(x, 0) :- label{number}(x, "start") ; edge{number}(x, x).'
    yield f".decl degree{number}(node: number, edges: number)"
    yield f"degree{number}(x, n) :- label{number}(x, _), n = count : {{ edge{number}(x, _) }}."
    yield f".output reach{number}"
    yield ""


def component_text(lines: int) -> str:
    """A program of about so many lines in components: chains of ten, each of which inherits from the one before; the
    last of a chain has an instance, which holds all of them."""
    return "".join(line + "\n" for number in range(max(10, lines // 14)) for line in _component(number))


def _component(number: int) -> Iterator[str]:
    yield f".comp G{number} : G{number - 1} {{" if number % 10 else f".comp G{number} {{"
    yield f"    .decl edge{number}(from: number, to: number)"
    yield f"    edge{number}({number}, 1)."
    yield f"    .decl reach{number}(from: number, to: number)"
    yield f"    reach{number}(x, y) :- edge{number}(x, y)."
    yield f"    reach{number}(x, z) :- reach{number}(x, y), edge{number}(y, z), x != z."
    yield f"    .decl apart{number}(a: number)"
    yield f"    apart{number}(a) :- edge{number}(a, _), !reach{number}(a, a)."
    yield f"    .decl near{number}(node: number, distance: number)"
    yield f"    near{number}(x, 0) :- edge{number}(x, x)."
    yield f"    near{number}(x, d + 1) :- near{number}(y, d), edge{number}(y, x), d < 10."
    yield f"    .decl degree{number}(node: number, edges: number)"
    yield f"    degree{number}(x, n) :- edge{number}(x, _), n = count : {{ edge{number}(x, _) }}."
    yield "}"
    if number % 10 == 9:
        yield f".init i{number} = G{number}"


def component_files(lines: int, files: int, folder: Path) -> Path:
    """The same in files of a folder, each of which includes the one before it; returns the last one."""
    parts = component_text(lines).replace("d < 10", "d < FAR").split(".comp ")[1:]
    size = -(-len(parts) // files)
    head = "#define FAR 10\n"
    for number in range(files):
        path = folder / f"part{number}.dl"
        part = "".join(f".comp {one}" for one in parts[number * size : (number + 1) * size])
        path.write_text(head + part, encoding="utf-8")
        head = f'#include "{path.name}"\n'
    return path


def component_speed(lines: int, files: int, repeats: int) -> None:
    """Prints the least processor time of the repeats, and the time that passed meanwhile."""
    from elastalog.program import Program

    text = component_text(lines)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        program: str | Path = component_files(lines, files, Path(folder)) if files else text
        for _ in range(repeats):
            gc.collect()
            processor, clock = time.process_time(), time.perf_counter()
            Program.load(program) if isinstance(program, Path) else Program.parse(program)
            found.append((time.process_time() - processor, time.perf_counter() - clock))
    seconds, passed = min(found)
    count = text.count("\n") + 2 * files
    print(f"{count:>8}  {seconds:>8.3f}  {passed:>8.3f}  {count / seconds:>8.0f}", flush=True)


def speed(lines: int, repeats: int) -> Speed:
    from elastalog.analysis.check import check
    from elastalog.diagnostics.source import Source
    from elastalog.syntax.parser import parse

    text = program_text(lines)
    parse_seconds = check_seconds = float("inf")
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        tree, wrong = parse(Source("generated.dl", text))
        parsed = time.process_time()
        program, findings = check(tree)
        checked = time.process_time()
        problems = [found for found in (*wrong, *findings) if found.severity == "error"]
        if problems or program is None:
            raise SystemExit(f"the generated program is wrong: {problems[:3]}")
        parse_seconds = min(parse_seconds, parsed - start)
        check_seconds = min(check_seconds, checked - parsed)
        del tree, program, wrong, findings
    return Speed(text.count("\n"), len(text), parse_seconds, check_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="speed of parsing and checking")
    parser.add_argument("--lines", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--components", action="store_true", help="programs in components")
    parser.add_argument("--files", type=int, default=0, help="with --components: in so many files, with macros")
    given = parser.parse_args()
    if given.components:
        print(f"{'lines':>8}  {'cpu s':>8}  {'wall s':>8}  {'lines/s':>8}")
        for lines in given.lines:
            component_speed(lines, given.files, given.repeats)
        return
    print(f"{'lines':>8}  {'parse s':>8}  {'check s':>8}  {'lines/s':>8}")
    speeds = []
    for lines in given.lines:
        found = speed(lines, given.repeats)
        speeds.append(found)
        times = f"{found.parse_seconds:>8.3f}  {found.check_seconds:>8.3f}"
        print(f"{found.lines:>8}  {times}  {found.lines_a_second:>8.0f}", flush=True)
    results = HERE / "results" / "parse_speed.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps([asdict(found) for found in speeds], indent=1) + "\n", encoding="utf-8")
    series = {
        "parse": [(float(found.lines), found.parse_seconds) for found in speeds],
        "check": [(float(found.lines), found.check_seconds) for found in speeds],
    }
    draw_lines(HERE / "plots" / "parse_speed.png", "parsing and checking", "lines", "seconds", series)


if __name__ == "__main__":
    main()
