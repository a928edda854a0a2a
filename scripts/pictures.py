"""Draws the pictures of the explanations into docs/pictures: `python scripts/pictures.py`.

Levels, counts and derivations in them are asked of the engine, so that no picture says what the program does not do.
Layers are those that import-linter checks, with the words of CONTRIBUTING.md; the life of an update goes by the steps
of its walk, which a test takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

import elastalog

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "docs" / "pictures"
PROGRAM: Final = """
.decl edge(from: number, to: number)
.input edge
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""
EDGES: Final = [(1, 2), (2, 3), (3, 4), (1, 3), (1, 5)]
DELETED: Final = [(1, 3), (1, 5)]

INK, GREY, PAPER = "#263238", "#90a4ae", "#ffffff"
PLAIN, LOST, FOUND, GONE = "#e0f2f1", "#ffcdd2", "#fff59d", "#eceff1"
Values = tuple[int, ...]
Known = tuple[str, Values]

WIDTH, HEIGHT, COLUMN, ROW = 92, 30, 150, 46
ROWS: Final[dict[Values, int]] = {(3, 4): 0, (2, 4): 0, (2, 3): 1, (1, 4): 1, (1, 3): 2, (1, 2): 3, (1, 5): 4}
"""The row of each fact, so that no line crosses another fact."""


@dataclass(slots=True)
class Drawing:
    """Shapes on a sheet, as SVG."""

    width: int
    height: int
    shapes: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, *, size: int = 13, colour: str = INK, anchor: str = "start") -> None:
        style = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
        self.shapes.append(f'<text x="{x:g}" y="{y:g}" {style}>{escape(text)}</text>')

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{colour}" stroke="{INK}"/>'
        )

    def box(self, x: float, y: float, text: str, note: str, colour: str) -> None:
        """A fact, with a note at its upper right corner."""
        self.rectangle(x, y, WIDTH, HEIGHT, colour)
        self.text(x + WIDTH / 2, y + 20, text, anchor="middle")
        self.text(x + WIDTH + 3, y + 7, note, size=10)

    def line(
        self, points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False, width: float = 1.2
    ) -> None:
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dash}/>')

    def save(self, name: str, title: str) -> None:
        FOLDER.mkdir(exist_ok=True)
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img"'
        inner = "\n".join(self.shapes)
        (FOLDER / name).write_text(
            f'{opening} font-family="sans-serif">\n<title>{escape(title)}</title>\n'
            f'<rect width="100%" height="100%" fill="{PAPER}"/>\n{inner}\n</svg>\n',
            encoding="utf-8",
        )


@dataclass(frozen=True, slots=True)
class World:
    """The facts of an epoch: level and count of each, and its derivations."""

    facts: dict[Known, tuple[int, int]]
    derivations: dict[Known, list[tuple[Known, ...]]]


def world(db: elastalog.Session) -> World:
    facts: dict[Known, tuple[int, int]] = {}
    derivations: dict[Known, list[tuple[Known, ...]]] = {}
    for name in ("edge", "path"):
        for row in db[name].to_arrow(annotations=True).to_pylist():
            known = (name, (row["from"], row["to"]))
            facts[known] = (row["@level"], row["@count"])
            if name == "path":
                steps = db.derivations((name, known[1]))
                bodies = [
                    tuple((c.fact.relation, c.fact.values) for c in step.children if isinstance(c, elastalog.Proof))
                    for step in steps
                ]
                derivations[known] = sorted(bodies)  # type: ignore[arg-type]  # all values here are numbers
    return World(facts, derivations)


def label(known: Known) -> str:
    return f"{known[0]}({', '.join(map(str, known[1]))})"


def places(drawn: World, top: float) -> dict[Known, tuple[float, float]]:
    """Where facts stand: a column for each level, explicit facts left."""
    return {known: (20 + COLUMN * level, top + ROW * ROWS[known[1]]) for known, (level, _) in drawn.facts.items()}


def draw_world(
    sheet: Drawing,
    drawn: World,
    at: dict[Known, tuple[float, float]],
    colours: dict[Known, str],
    told: dict[Known, str],
) -> None:
    """Facts in their columns, with a line for each derivation, from the last fact of its body to its head: solid where
    it is counted."""
    for head, bodies in drawn.derivations.items():
        for body in bodies:
            counts = 1 + max(drawn.facts[part][0] for part in body) == drawn.facts[head][0]
            (x, y), (u, v) = at[body[-1]], at[head]
            start = (x + WIDTH, y + HEIGHT / 2) if u > x else (x + WIDTH / 2, y + HEIGHT)
            end = (u, v + HEIGHT / 2) if u > x else (u + WIDTH / 2, v)
            sheet.line([start, end], INK if counts else GREY, dashed=not counts)
    for known, (x, y) in at.items():
        sheet.box(x, y, label(known), told.get(known, ""), colours.get(known, PLAIN))


def levels_picture(before: World) -> None:
    sheet = Drawing(520, 330)
    at = places(before, 50)
    for level in sorted({level for level, _ in before.facts.values()}):
        sheet.text(20 + COLUMN * level + WIDTH / 2, 30, f"level {level}", colour=GREY, anchor="middle")
    told = {known: f"×{count}" for known, (_, count) in before.facts.items() if known[0] == "path"}
    draw_world(sheet, before, at, {}, told)
    sheet.text(20, 300, "solid: derivations that are counted (×); dashed: higher ones, which are not.", size=12)
    sheet.text(20, 316, "The edge that continues a path is not drawn.", size=12)
    sheet.save("levels.svg", "facts by level: edges at 0, paths above")


def update_picture(before: World, after: World) -> None:
    """Four panels: before, losses, recovery, after."""
    gone = [known for known in before.facts if known not in after.facts]
    risen = [known for known, (level, _) in after.facts.items() if before.facts[known][0] != level]
    lost = [known for known in (*gone, *risen) if known[0] == "path"]
    deleted = [known for known in gone if known[0] == "edge"]
    panels: list[tuple[str, World, dict[Known, str], dict[Known, str]]] = [
        ("1  before", before, {}, {}),
        (
            "2  losses: counts fall to 0",
            before,
            {**dict.fromkeys(lost, LOST), **dict.fromkeys(deleted, GONE)},
            {**dict.fromkeys(lost, "×0"), **dict.fromkeys(deleted, "deleted")},
        ),
        (
            "3  recovery, backwards: other derivations",
            before,
            {**dict.fromkeys(gone, GONE), **dict.fromkeys(risen, FOUND)},
            {**dict.fromkeys(gone, "gone"), **{known: f"level {after.facts[known][0]}" for known in risen}},
        ),
        ("4  after: two facts have risen, three are gone", after, dict.fromkeys(risen, FOUND), {}),
    ]
    sheet = Drawing(1180, 660)
    for number, (title, drawn, colours, told) in enumerate(panels):
        part = Drawing(0, 0)
        draw_world(part, drawn, places(drawn, 50), colours, told)
        part.text(20, 28, title, size=15)
        x, y = 20 + 590 * (number % 2), 320 * (number // 2)
        sheet.shapes.append(f'<g transform="translate({x} {y})">\n' + "\n".join(part.shapes) + "\n</g>")
    sheet.save("update.svg", "an update step by step: edge(1, 3) and edge(1, 5) are deleted")


def switch_picture() -> None:
    """Work against the size of a change: following it, evaluating anew, and what the elastic strategy does."""
    sheet = Drawing(560, 330)
    left, bottom, anew, budget = 60, 280, 90, 240
    sheet.line([(left, 30), (left, bottom), (530, bottom)], INK)
    sheet.text(left - 10, 22, "work", anchor="middle")
    sheet.text(530, 300, "size of the change", anchor="end")
    follow = [(left + step, bottom - step**2 / 640) for step in range(0, 391, 10)]
    sheet.line(follow, GREY, dashed=True)
    sheet.line([(left, anew), (530, anew)], GREY, dashed=True)
    sheet.line([(left, budget), (530, budget)], GREY, dashed=True)
    kept = [point for point in follow if point[1] >= budget]
    last = kept[-1]
    sheet.line([*kept, (last[0], anew - (bottom - budget)), (530, anew - (bottom - budget))], "#00796b", width=2.5)
    sheet.text(524, anew + 16, "evaluating anew", colour=GREY, anchor="end")
    sheet.text(524, budget + 16, "budget: 20 % of a bootstrap", colour=GREY, anchor="end")
    sheet.text(375, 205, "following the change", colour=GREY, size=12)
    sheet.text(400, 42, "elastic: never more than anew + budget", colour="#00796b", anchor="end")
    sheet.text(last[0] + 6, 160, "the switch", colour="#00796b", size=12)
    sheet.save("switch.svg", "the switch: work against the size of a change")


def layers_picture() -> None:
    """A row for each layer, from above, with its packages and what they are for."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = text.partition("## Layers")[2].partition("```\n")[2].partition("```")[0].splitlines()
    sheet = Drawing(1160, 30 + 30 * len(block))
    for row, line in enumerate(block):
        packages, told = re.split(r" {3,}", line, maxsplit=1)
        y = 10 + 30 * row
        for place, name in enumerate(packages.split()):
            sheet.rectangle(20 + 98 * place, y, 92, 24, PLAIN)
            sheet.text(66 + 98 * place, y + 17, name, anchor="middle")
        sheet.text(330, y + 17, told, size=12)
    sheet.line([(8, 20), (8, sheet.height - 30), (4, sheet.height - 38)], GREY)
    sheet.line([(8, sheet.height - 30), (12, sheet.height - 38)], GREY)
    sheet.text(8, sheet.height - 8, "imports go down, never up", size=12, colour=GREY)
    sheet.save("layers.svg", "the layers of the package, from the commands down to the diagnostics")


def life_picture() -> None:
    """The steps of an update from left to right, each in the row of the package that takes it."""
    page = (ROOT / "docs" / "explanation" / "a-fact-and-an-update.md").read_text(encoding="utf-8")
    section = page.partition("## From `db.update()`")[2].partition("\n## ")[0]
    steps = re.findall(r"^(\d+)\. `([\w/]+)/\w+\.py` · `([\w.]+)`", section, re.MULTILINE)
    rows = ["session", "evaluation", "evaluation/strategies", "backends/kernel"]
    rows += sorted({folder for _, folder, _ in steps} - set(rows))
    sheet = Drawing(170 + 66 * len(steps), 40 + 70 * len(rows))
    for row, folder in enumerate(rows):
        sheet.rectangle(4, 10 + 70 * row, sheet.width - 8, 62, PLAIN if row % 2 else PAPER)
        sheet.text(12, 46 + 70 * row, folder.replace("/", "."), size=12)
    at = [(190 + 66 * place, 40 + 70 * rows.index(folder)) for place, (_, folder, _) in enumerate(steps)]
    sheet.line(at, GREY)
    for (x, y), (number, _, name) in zip(at, steps, strict=True):
        sheet.shapes.append(f'<circle cx="{x:g}" cy="{y:g}" r="11" fill="{FOUND}" stroke="{INK}"/>')
        sheet.text(x, y + 4, number, size=11, anchor="middle")
        sheet.text(x, y + 26 if int(number) % 2 else y - 16, name.rpartition(".")[2], size=11, anchor="middle")
    sheet.text(12, sheet.height - 10, "numbers: the steps of the walk", size=12, colour=GREY)
    sheet.save("life.svg", "the life of an update, from db.update() to its changes")


def main() -> None:
    layers_picture()
    life_picture()
    with elastalog.open(PROGRAM, facts={"edge": EDGES}) as db:
        before = world(db)
        db.apply(deleted={"edge": DELETED})
        after = world(db)
    levels_picture(before)
    update_picture(before, after)
    switch_picture()


if __name__ == "__main__":
    main()
