"""Proofs: finite trees that say why a fact holds.

Below a fact are the premises of the rule that derives it, in the order of its body; leaves are explicit facts and
conditions. Equal sub-proofs are one object, so that a proof with very many nodes may still be small. Nothing here or in
`rendering` recurses over it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, assert_never

from elastalog.analysis.program import Rule, Value
from elastalog.diagnostics.arguments import is_whole, stays_here, wrong_kind
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.diagnostics.display import cut, show_lines
from elastalog.diagnostics.messages import counted
from elastalog.late import dataclass
from elastalog.provenance.fact import Fact

MOST_NODES = (1 << 63) - 1
"""Where the size of a proof stops counting."""

CUT = "…"
"""Stands where the depth ends."""

T = TypeVar("T")


class ProofSource(Protocol):
    """Where further levels of a proof come from."""

    def prove(self, fact: Fact, depth: int | None) -> Proof:
        """A proof to a depth. Raises ElastalogError when the facts have changed since the source was made."""


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A negation or a constraint that holds, instantiated: `!edge(1, _)`, `1 < 2`. Like an explicit fact, a leaf."""

    children: ClassVar[tuple[()]] = ()
    shape: ClassVar[str] = "leaf"
    how: ClassVar[str] = ""

    kind: str
    text: str

    @property
    def label(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One assignment that an aggregate ranges over: which alternative of its body (from 0), and what holds in it."""

    shape: ClassVar[str] = "member"
    label: ClassVar[str] = "member"
    how: ClassVar[str] = ""

    body: int
    children: tuple[Premise, ...]

    def __repr__(self) -> str:
        return f"<Member with {len(self.children)} premises>"


@dataclass(frozen=True, slots=True, eq=False)
class AggregatePremise:
    """An aggregate with its result. Of `number` members the first are listed; none where the depth ends."""

    shape: ClassVar[str] = "aggregate"

    text: str
    result: Value
    number: int
    children: tuple[Member, ...]

    @property
    def members(self) -> tuple[Member, ...]:
        return self.children

    @property
    def is_complete(self) -> bool:
        """Whether all members are listed."""
        return len(self.children) == self.number

    @property
    def label(self) -> str:
        return self.text if self.is_complete else f"{self.text} {CUT}"

    @property
    def how(self) -> str:
        return counted(self.number, "member") if self.children else ""

    def __repr__(self) -> str:
        return f"<AggregatePremise {self.text}>"


class Rendered(ABC):
    """What is shown to people, or handed on, in several forms."""

    __slots__ = ()

    @property
    @abstractmethod
    def title(self) -> str:
        """What stands above it."""

    def __repr__(self) -> str:
        return cut(str(self))

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_text(self) -> str:
        """The proof as in the papers: premises over a line with the rule's number in its relation."""
        return self._made("text", "render")

    def to_tree(self) -> str:
        """An indented tree, for narrow terminals."""
        return self._made("text", "render_tree")

    def to_json(self) -> str:
        """A JSON object. A proof is a table of nodes that refer to each other, so that shared ones are written once."""
        return self._made("markup", "render_json")

    def to_dot(self) -> str:
        """A graph for Graphviz."""
        return self._made("markup", "render_dot")

    def to_mermaid(self) -> str:
        """A Mermaid flowchart."""
        return self._made("markup", "render_mermaid")

    def to_html(self, page: bool = False) -> str:
        """Collapsible HTML: a piece to put into a page, or a whole page."""
        piece = self._made("markup", "render_html")
        if not page:
            return piece
        from elastalog.provenance.rendering.markup import page as page_of

        return page_of(self.title, piece)

    def _made(self, module: str, name: str) -> str:
        """What a function of `rendering` makes of it; few programs show any."""
        text = getattr(import_module(f"elastalog.provenance.rendering.{module}"), name)(self)
        return text if name == "render_json" else show_lines(text)


LEAST_BY_STRATUM = "each recursive part as low as possible"
BY_RANKS = f"{LEAST_BY_STRATUM}, apart from those of `min` and `max` columns"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Proof(Rendered):
    """Why `fact` holds: by `rule` from `children`. Without a rule it is an explicit fact, or, if not `is_expanded`, the
    depth ends here. `height` is 0 for explicit facts, otherwise 1 + the highest of the children; None while it is not
    known. `claim` says in which sense the proof is the best one. `superseded_by`: the fact that dominates this one, so
    that it has left its relation. `chosen_among`: the number of facts that rules give for the same key of a choice
    domain. `is_given`: it is explicit although its relation has rules."""

    fact: Fact
    rule: Rule | None
    children: tuple[Premise, ...]
    is_expanded: bool
    height: int | None
    claim: str = ""
    source: ProofSource | None = None
    superseded_by: Fact | None = None
    chosen_among: int | None = None
    is_given: bool = False

    __reduce__ = stays_here("a proof", "hand on its text, or what `to_json` makes")

    @property
    def is_explicit(self) -> bool:
        """Whether the fact is an explicit one, which needs no proof."""
        return self.is_expanded and self.rule is None

    @property
    def is_complete(self) -> bool:
        """Whether every fact in it is proved down to explicit facts."""
        return not any(isinstance(node, Proof) and not node.is_expanded for node in nodes_of(self))

    @property
    def size(self) -> int:
        """The number of facts, aggregates and their members in the tree, shared ones counted wherever they stand."""

        def count(node: Node, below: Sequence[int]) -> int:
            return 0 if isinstance(node, Condition) else min(1 + sum(below), MOST_NODES)

        return fold_tree(self, count)

    @property
    def explicit_facts(self) -> tuple[Fact, ...]:
        """The explicit facts it rests on, each once."""
        return tuple(dict.fromkeys(n.fact for n in nodes_of(self) if isinstance(n, Proof) and n.is_explicit))

    @property
    def shape(self) -> str:
        """How it is drawn."""
        return "explicit" if self.is_explicit else "derived" if self.is_expanded else "cut"

    @property
    def label(self) -> str:
        """What it says in one line."""
        by = "" if self.superseded_by is None else f" [superseded by {self.superseded_by}]"
        among = "" if self.chosen_among is None else f" [chosen among {self.chosen_among}]"
        return f"{self.fact}{' [given]' * self.is_given}{by}{among}" if self.is_expanded else f"{self.fact}{by} {CUT}"

    @property
    def how(self) -> str:
        """How it follows from what is below: `R2`."""
        return "" if self.rule is None else f"R{self.rule.number_in_relation}"

    def at(self, path: Sequence[int]) -> Node:
        """The node that is reached by taking the given child of each node, counted from 0."""
        return self._trail(path)[-1]

    def expand(self, path: Sequence[int] = (), depth: int | None = None) -> Proof:
        """A proof in which the fact at a path is proved to a further depth, all the way by default. This one stays as
        it is."""
        trail = self._trail(path)
        target = trail.pop()
        if not isinstance(target, Proof) or self.source is None:
            raise _no_such_node(path)
        grown: Node = self.source.prove(target.fact, depth)
        for parent, position in zip(reversed(trail), reversed(path), strict=True):
            grown = _with_children(parent, (*parent.children[:position], grown, *parent.children[position + 1 :]))
        assert isinstance(grown, Proof)
        return grown

    def _trail(self, path: Sequence[int]) -> list[Node]:
        """The nodes from this one to that at a path."""
        given: object = path
        if not isinstance(given, Sequence) or not all(map(is_whole, given)):
            advice = "give the position of a child, from 0, for every level, as `(0, 1)`"
            raise wrong_kind("a path in a proof is a row of numbers", given, advice)
        trail: list[Node] = [self]
        for position in path:
            below = trail[-1].children
            if not 0 <= position < len(below):
                raise _no_such_node(path)
            trail.append(below[position])
        return trail

    def __str__(self) -> str:
        from elastalog.provenance.rendering.text import render_fitting

        return show_lines(render_fitting(self))

    @property
    def title(self) -> str:
        return f"Why {self.fact} holds"


Premise: TypeAlias = Proof | Condition | AggregatePremise
Node: TypeAlias = Premise | Member


def height_over(children: Sequence[Premise]) -> int | None:
    """The height of a fact derived from premises; None if that of one is not known."""
    highest = 0
    for child in children:
        match child:
            case Proof():
                if child.height is None:
                    return None
                highest = max(highest, child.height)
            case AggregatePremise():
                if not child.is_complete:
                    return None
                for member in child.children:
                    inside = height_over(member.children)
                    if inside is None:
                        return None
                    highest = max(highest, 1 + inside)
            case Condition():
                pass
            case _:
                assert_never(child)
    return 1 + highest


def nodes_of(root: Node) -> Iterator[Node]:
    """Every node, each object once, parents first."""
    seen = {id(root)}
    pending: list[Node] = [root]
    while pending:
        node = pending.pop()
        yield node
        for child in reversed(node.children):
            if id(child) not in seen:
                seen.add(id(child))
                pending.append(child)


def fold_tree(root: Node, combine: Callable[[Node, Sequence[T]], T]) -> T:
    """Combines, bottom up, every node with the results of its children; shared nodes are combined once."""
    done: dict[int, T] = {}
    pending: list[tuple[Node, bool]] = [(root, False)]
    while pending:
        node, is_ready = pending.pop()
        if is_ready:
            done[id(node)] = combine(node, [done[id(child)] for child in node.children])
        elif id(node) not in done:
            pending.append((node, True))
            pending.extend((child, False) for child in node.children if id(child) not in done)
    return done[id(root)]


def clipped(root: Proof, most: int, deepest: int = 200) -> Proof:
    """The proof cut down to a depth and to about `most` nodes as a tree, nearest to the root first; facts at the cut
    are not expanded."""
    kept: set[tuple[int, ...]] = set()
    level: list[tuple[tuple[int, ...], Node]] = [((), root)]
    left = most
    while level and left > 0 and deepest > 0:
        deepest -= 1
        following: list[tuple[tuple[int, ...], Node]] = []
        for path, node in level:
            below = node.children
            if below and left > 0:
                left -= len(below)
                kept.add(path)
                following.extend(((*path, i), child) for i, child in enumerate(below))
        level = following
    if not level:
        return root
    result: dict[tuple[int, ...], Node] = {}
    for path in sorted(kept, key=len, reverse=True):
        node = root.at(path)
        children = [result.get((*path, i)) or _cut(child) for i, child in enumerate(node.children)]
        result[path] = _with_children(node, children)
    found = result[()]
    assert isinstance(found, Proof)
    return found


def _cut(node: Node) -> Node:
    if not isinstance(node, Proof):
        return _with_children(node, ())
    return replace(node, rule=None, children=(), is_expanded=False) if node.children else node


def _with_children(node: Any, children: Sequence[Any]) -> Node:
    if isinstance(node, Condition):
        return node
    grown: Node = replace(node, children=tuple(children))
    return replace(grown, height=height_over(children)) if isinstance(grown, Proof) and grown.height is None else grown


def _no_such_node(path: Sequence[int]) -> ElastalogError:
    return error("E0703", place=", ".join(map(str, path)))
