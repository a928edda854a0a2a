"""The page Engine: strata as a graph, costs of rules, sizes of relations."""

from __future__ import annotations

from collections.abc import Iterable

from elastalog.analysis.program import Aggregation, Atom, CheckedProgram, Literal, Negation
from elastalog.diagnostics.messages import counted
from elastalog.session.questions import Statistics
from elastalog.web.pages.graphs import MOST_NODES, Drawn, draw
from elastalog.web.pages.markup import (
    Address,
    bar_cell,
    bytes_html,
    cell,
    empty,
    html,
    line_of,
    link,
    seconds_html,
    table,
    tag,
)
from elastalog.web.pages.window import Window, box, card, heading, raw

MOST_RULES = 100


async def show(window: Window, address: Address) -> None:
    """Builds the page."""
    heading(
        "Engine", "How the program is evaluated: strata in the order of their evaluation, and where time and memory go."
    )
    body = box("wb-stack")

    async def build() -> None:
        program = await window.look(lambda session: session.program)
        statistics = await window.ask(window.reading.statistics, window.epoch)
        body.clear()
        with body:
            _build(window, program.checked, statistics)

    await build()
    window.follow(build)


def _build(window: Window, program: CheckedProgram, statistics: Statistics) -> None:
    with card(
        "Strata",
        "each is evaluated once everything above it is complete; dashed: it reads a negation or an aggregate",
        is_padded=False,
    ):
        raw(_strata(window, program, statistics), "wb-graph")
    with card("Placement", "where the strata with rules are evaluated, and why", is_padded=False):
        raw(_placement(window, statistics))
    with box("wb-stack"):
        with card("Rules", "time and derivations of the last full evaluation", is_padded=False):
            raw(_rules(program, statistics))
        with card(
            "Relations",
            f"{bytes_html(statistics.bytes)} of memory, {bytes_html(statistics.hidden_bytes)} of it hidden",
            is_padded=False,
        ):
            raw(_relations(window, statistics))


def _strata(window: Window, program: CheckedProgram, statistics: Statistics) -> str:
    strata = program.strata
    if len(strata) > MOST_NODES:
        return empty("Too many to draw", f"The program has {len(strata):,} strata; up to {MOST_NODES} are drawn.")
    of = {name: number for number, stratum in enumerate(strata) for name in stratum.relations}
    facts = {relation.name: relation.facts for relation in statistics.relations}
    places = {name: placed for placed in statistics.places for name in placed.relations}
    edges: dict[tuple[int, int], bool] = {}
    for rule in program.rules:
        for name, is_strict in _read(rule.body):
            edge = of[name], of[rule.head.relation]
            if edge[0] != edge[1]:
                edges[edge] = edges.get(edge, False) or is_strict
    nodes = []
    for stratum in strata:
        number = sum(facts.get(name, 0) for name in stratum.relations)
        kind = "recursive" if stratum.is_recursive else "" if stratum.rules else "explicit"
        placed = places.get(stratum.relations[0])
        note = counted(number, "fact") + (", recursive" if stratum.is_recursive else "")
        note += f" · {placed.where}" if placed is not None else ""
        link = str(window.to("/facts", relation=stratum.relations[0]))
        nodes.append(Drawn(", ".join(stratum.relations), note, kind, link))
    return draw(nodes, list(edges), title="strata", weak=[i for i, is_strict in enumerate(edges.values()) if is_strict])


def _read(body: Iterable[Literal]) -> Iterable[tuple[str, bool]]:
    """The relations that a body reads, and whether they must be complete first."""
    for literal in body:
        match literal:
            case Atom():
                yield literal.relation, False
            case Negation():
                yield literal.atom.relation, True
            case Aggregation():
                yield from ((name, True) for inner in literal.bodies for name, _ in _read(inner))
            case _:
                pass


def _placement(window: Window, statistics: Statistics) -> str:
    if not statistics.places:
        return empty("No rules", "Facts that are given are held by the kernel.")
    declared = {relation.name for relation in statistics.relations}
    elsewhere = {one.stratum: one for one in statistics.elsewhere}
    together: dict[tuple[str, str, str], list[str]] = {}  # what is placed alike, for the same reason, is told once
    for placed in statistics.places:
        there = elsewhere.get(placed.stratum)
        cost = "" if there is None else f" {seconds_html(there.seconds)}, {bytes_html(there.peak)}"
        names = [name for name in placed.relations if name in declared]
        together.setdefault((placed.where, cost, placed.why), []).extend(names)
    rows = []
    for (where, cost, why), names in together.items():
        links = ", ".join(link(window.to("/facts", relation=name), html(name)) for name in names)
        look = "accent" if where == "kernel" else "amber"
        cells = cell(links or "made to serve others", "mono inline"), cell(tag(where, look) + cost)
        rows.append(f"<tr>{''.join(cells)}{cell(html(why), 'wb-note inline')}</tr>")
    return table("<th>strata</th><th>where</th><th>why</th>", rows)


def _rules(program: CheckedProgram, statistics: Statistics) -> str:
    rules = sorted(statistics.rules, key=lambda rule: -rule.seconds)
    if not rules:
        return empty("No rules", "The program has only facts.")
    slowest = max(rule.seconds for rule in rules) or 1.0
    lines = {rule.number: line_of(rule) for rule in program.rules}
    rows = []
    for rule in rules[:MOST_RULES]:
        line = lines.get(rule.number, 0) if rule.number is not None else 0
        where = (
            link(f"/program?line={line}", f"line {line}")
            if line
            else '<span class="wb-note">made to serve others</span>'
        )
        text = cell(f"<code>{html(rule.text, 300)}</code> {where}", "inline")
        rows.append(_row(text, f"{rule.derivations:,}", seconds_html(rule.seconds), rule.seconds / slowest))
    head = '<th>rule</th><th class="number">derivations</th><th class="number">time</th><th class="wb-hide-phone"></th>'
    return table(head, rows)


def _relations(window: Window, statistics: Statistics) -> str:
    relations = sorted(statistics.relations, key=lambda relation: -relation.bytes)
    largest = max((relation.bytes for relation in relations), default=1) or 1
    rows = (
        _row(
            cell(link(window.to("/facts", relation=one.name), html(one.name), more="data-row"), "mono"),
            f"{one.facts:,}", bytes_html(one.bytes), one.bytes / largest,
        )
        for one in relations
    )  # fmt: skip
    head = '<th>relation</th><th class="number">facts</th><th class="number">memory</th><th class="wb-hide-phone"></th>'
    return table(head, rows)


def _row(first: str, number: str, amount: str, share: float) -> str:
    return f"<tr>{first}{cell(number, 'number')}{cell(amount, 'number')}{bar_cell(share)}</tr>"
