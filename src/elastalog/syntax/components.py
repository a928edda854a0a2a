"""Components: what is written once and instantiated under many names."""

from __future__ import annotations

from abc import abstractmethod

from elastalog.diagnostics.source import Span
from elastalog.syntax.cursor import MOST_NESTED
from elastalog.syntax.declarations import DeclarationParser
from elastalog.syntax.tokens import END
from elastalog.syntax.tree import Component, ComponentType, Init, Item, Override


class ComponentParser(DeclarationParser):
    """Reads `.comp`, `.init` and `.override`."""

    __slots__ = ()

    @abstractmethod
    def item(self, into: list[Item]) -> None:
        """One declaration, directive or clause."""

    def component_directive(self, first: int, word: str, into: list[Item]) -> None:
        if word == "comp":
            self.component(first, into)
        elif word == "init":
            name = self.name("the name of an instance")
            self.expect("=", "after the name of an instance", advice="an instance is written `.init i = C<T>`")
            component = self.component_type()
            into.append(Init(self.texts[name], component, self.span_of(name), self.span_from(first)))
            self.skip_if_stray_dot(".init")
        else:
            names = self.names("the name of a relation")
            span = self.span_from(first)
            into.extend(Override(name, name_span, span) for name, name_span in names)
            self.skip_if_stray_dot(".override")

    def component(self, first: int, into: list[Item]) -> None:
        """`.comp C<T> : B<T>, D { items }`; a further `:` is as good as a `,`"""
        name = self.name("the name of a component")
        parameters: list[tuple[str, Span]] = []
        if self.texts[self.position] == "<":
            parameters = self.in_angles()
        bases: list[ComponentType] = []
        if self.skip_if(":"):
            bases.append(self.component_type())
            while self.skip_if(",") or self.skip_if(":"):
                bases.append(self.component_type())
        opened = self.position
        self.expect("{", "before what a component holds", advice="a component is written `.comp C { … }`")
        if self.components >= MOST_NESTED:
            raise self.too_deep(self.span_of(opened))
        self.components += 1
        items: list[Item] = []
        self.inner_annotations()
        try:
            while self.texts[self.position] != "}" and self.kinds[self.position] != END:
                self.item(items)
        finally:
            self.components -= 1
        try:
            self.expect_close("}", opened, "after what a component holds")
        finally:  # what it holds is known even where its end is missing
            span, name_span = self.span_from(first), self.span_of(name)
            into.append(Component(self.texts[name], tuple(parameters), tuple(bases), tuple(items), name_span, span))

    def component_type(self) -> ComponentType:
        """`C` or `C<number, T>`"""
        first = self.position
        name = self.name("the name of a component")
        arguments = self.in_angles() if self.texts[self.position] == "<" else []
        return ComponentType(self.texts[name], tuple(arguments), self.span_of(name), self.span_from(first))

    def in_angles(self) -> list[tuple[str, Span]]:
        opened = self.position
        self.position += 1
        names = self.names("a type or a component")
        self.expect_close(">", opened, "or `,` after a type")
        return names
