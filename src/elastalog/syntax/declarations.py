"""Declarations and directives: everything that starts with a dot."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from itertools import count

from elastalog.diagnostics.nearest import nearest
from elastalog.diagnostics.source import Span
from elastalog.syntax.clauses import ClauseParser
from elastalog.syntax.cursor import MOST_NESTED, new_span
from elastalog.syntax.keywords import DIRECTIVES, IO_QUALIFIERS, QUALIFIERS
from elastalog.syntax.tokens import END, FLOAT, INTEGER, KEYWORD, NAME, STRING
from elastalog.syntax.tree import (
    Attribute,
    BranchDeclaration,
    Component,
    ComponentType,
    Directive,
    FunctorDeclaration,
    Init,
    Item,
    Lattice,
    Override,
    Pragma,
    RelationDeclaration,
    Term,
    TypeDeclaration,
)


class DeclarationParser(ClauseParser):
    """Reads declarations and directives."""

    __slots__ = ("keys_chosen",)

    def directive(self, into: list[Item]) -> None:
        """Reads a directive from its first word."""
        index = self.position
        word = self.texts[index][1:]
        self.position = index + 1
        if word == "decl":
            self.relation_declaration(index, into)
        elif word in ("input", "output", "printsize", "limitsize"):
            self.io_directive(index, word, into)
        elif word in ("type", "number_type", "symbol_type"):
            self.type_declaration(index, word, into)
        elif word == "functor":
            self.functor_declaration(index, into)
        elif word == "pragma":
            name = self.expect_string("the name of a pragma, a string", advice='write `.pragma "name" "value"`')
            value = self.expect_string("a string") if self.kinds[self.position] == STRING else ""
            into.append(Pragma(name, value, self.span_from(index)))
        elif word in ("plan", "strict"):
            self.position = index
            self.plan()
            self.report("E0122", self.span_from(index), word=word)
        elif word == "comp":
            self.component(index, into)
        elif word == "init":
            self.init(index, into)
        elif word == "override":
            self.override(index, into)
        else:
            self.lattice(index, into)

    @abstractmethod
    def item(self, into: list[Item]) -> None:
        """One declaration, directive or clause."""

    def unknown_directive(self) -> None:
        """Reports a `.` in a place where an item should start."""
        index = self.position
        if self.kinds[index + 1] not in (NAME, KEYWORD) or self.ends[index] != self.starts[index + 1]:
            self.position = index + 1
            self.report("E0110.item", self.span_of(index))
            return
        word = self.texts[index + 1]
        self.position = index + 2
        raise self.failure(
            "E0112", self.span_from(index), word=self.describe(index + 1)[1:-1], near=nearest(word, DIRECTIVES),
            directives=", ".join("." + directive for directive in DIRECTIVES),
        )  # fmt: skip

    # --- relations ---

    def relation_declaration(self, first: int, into: list[Item]) -> None:
        names = self.names("the name of a relation")
        opened = self.position
        advice = "attributes are written `(x: number, y: symbol)`"
        if self.texts[opened : opened + 2] == ["=", "debug_delta"]:
            advice = (
                "there is no `debug_delta`: the proof of a fact, `elastalog explain`, says in how many steps it follows"
            )
        self.expect("(", "after the name of a relation", advice=advice)
        attributes = self.attributes(")")
        self.expect_close(")", opened, "or `,` after an attribute")
        qualifiers, directives = self.qualifiers()
        span = self.span_from(first)
        self.skip_if_stray_dot(".decl")
        for name, name_span in names:
            into.append(RelationDeclaration(name, attributes, qualifiers, name_span, span, None, self.keys_chosen))
            for kind, place in directives:
                into.append(Directive(kind, name, (), place, place))

    def names(self, what: str) -> list[tuple[str, Span]]:
        """`a, b, c`"""
        return self.separated(",", lambda: self.qualified_name(what))

    def attributes(self, closing: str) -> tuple[Attribute, ...]:
        """`x: number, y: symbol` up to a bracket."""
        texts, kinds, starts, ends = self.texts, self.kinds, self.starts, self.ends
        attributes: list[Attribute] = []
        while texts[self.position] != closing:
            index = self.position
            follow = texts[index + 3] if texts[index + 1] == ":" else ""
            if kinds[index] == kinds[index + 2] == NAME and (follow == "," or follow == closing):
                # Nearly all are of this form: the general way takes several times as long.
                self.position = index + 3
                span = new_span(Span, (starts[index], ends[index]))
                type_span = new_span(Span, (starts[index + 2], ends[index + 2]))
                attributes.append(Attribute(texts[index], texts[index + 2], span, type_span))
            else:
                attributes.append(self.attribute(is_column=closing == ")"))
            if not self.goes_on(closing):
                break
        return tuple(attributes)

    def attribute(self, *, is_column: bool = False) -> Attribute:
        self.annotations("the name of an attribute")
        name = self.name("the name of an attribute", allow_reserved=True)
        before = self.texts[name]
        form = f"name: {before} number" if before in ("min", "max") else "name: type"
        self.expect(":", "after the name of an attribute", advice=f"an attribute is written `{form}`")
        improves = self.texts[self.position]
        if improves in ("min", "max"):
            self.position += 1
            if self.texts[self.position] in ("<", "("):
                raise self.unexpected("a type", advice=f"write it without brackets: `{improves} number`")
        type_name, type_span = self.type_name()
        if is_column and (late := self.texts[self.position]) in ("min", "max"):
            raise self.unexpected("`)`", where="or `,` after an attribute", advice=f"write `{late} {type_name}`")
        if improves not in ("min", "max"):
            improves = "<>" if self.skip_brackets() else ""
        if improves and not is_column:
            self.report("E0264.column", type_span, type=type_name)
            improves = ""
        return Attribute(self.texts[name], type_name, self.span_of(name), type_span, improves)

    def skip_brackets(self) -> bool:
        """Skips `<>`, and returns whether it was there."""
        texts, index = self.texts, self.position
        size = 1 if texts[index] == "<>" else 2 if texts[index] == "<" and texts[index + 1] == ">" else 0
        self.position += size
        return size > 0

    def qualifiers(self) -> tuple[tuple[tuple[str, Span], ...], list[tuple[str, Span]]]:
        """The qualifiers, and separately those of the old style that stand for directives. The keys of a choice domain
        are left in `keys_chosen`."""
        self.keys_chosen: tuple[tuple[tuple[str, Span], ...], ...] = ()
        qualifiers: list[tuple[str, Span]] = []
        directives: list[tuple[str, Span]] = []
        while self.kinds[self.position] == NAME and self.texts[self.position + 1] != "(":
            index = self.position
            word = self.texts[index]
            if word in QUALIFIERS:
                self.position += 1
                (directives if word in IO_QUALIFIERS else qualifiers).append((word, self.span_of(index)))
            elif word == "choice" and self.texts[index + 1 : index + 3] == ["-", "domain"]:
                self.position = index + 3
                self.keys_chosen = (*self.keys_chosen, *self.separated(",", self.choice_key))
            elif self.is_first_on_line(index):
                break
            elif word.startswith("choice"):
                raise self.failure("E0123.choice", self.span_of(index), word=word)
            else:
                self.position += 1
                self.report(
                    "E0123", self.span_of(index), word=self.describe(index)[1:-1], near=nearest(word, QUALIFIERS),
                    qualifiers=", ".join(sorted(QUALIFIERS)),
                )  # fmt: skip
        return tuple(qualifiers), directives

    def choice_key(self) -> tuple[tuple[str, Span], ...]:
        """A key of `choice-domain x, (x, y)`."""
        opened = self.position
        if not self.skip_if("("):
            return (self.choice_attribute(),)
        key = self.separated(",", self.choice_attribute)
        self.expect_close(")", opened, "or `,` after an attribute")
        return tuple(key)

    def choice_attribute(self) -> tuple[str, Span]:
        index = self.name("an attribute", allow_reserved=True)
        return self.texts[index], self.span_of(index)

    def skip_if_stray_dot(self, directive: str) -> None:
        """Reports a dot after a directive on the same line, unless it begins another directive."""
        index = self.position
        if self.texts[index] == "." and not self.is_first_on_line(index) and not self.is_directive_like(index):
            self.position = index + 1
            self.report("E0110.dot", self.span_of(index), directive=directive)

    def is_directive_like(self, index: int) -> bool:
        """Whether a dot and what follows look like a directive, though there is no such directive."""
        is_word = self.kinds[index + 1] in (NAME, KEYWORD) and self.ends[index] == self.starts[index + 1]
        return is_word and self.ends[index - 1] < self.starts[index] and self.texts[index + 2] != "("

    # --- types ---

    def type_declaration(self, first: int, word: str, into: list[Item]) -> None:
        name, name_span = self.qualified_name("the name of a type")
        kind = "subtype"
        parents: list[tuple[str, Span]] = []
        branches: tuple[BranchDeclaration, ...] = ()
        if word != "type":
            parents.append((word.removesuffix("_type"), self.span_of(first)))
        elif self.skip_if("<:"):
            parents.append(self.type_name())
        elif self.skip_if("="):
            kind = "alias"
            self.annotations("a branch")
            if self.texts[self.position] == "[":
                kind = "record"
                opened = self.position
                branches = (BranchDeclaration("", self.fields("]"), self.span_of(opened)),)
            elif self.texts[self.position + 1] == "{":
                kind = "branches"
                branches = tuple(self.separated("|", self.branch_declaration))
            elif self.texts[self.position] == "{":
                advice = "write a record `[x: number]`, or a branch with its name: `A {x: number}`"
                raise self.unexpected("a type", advice=advice)
            else:
                parents = self.separated("|", self.type_name)
                kind = "union" if len(parents) > 1 else "alias"
        else:
            parents.append(("symbol", name_span))
        span = self.span_from(first)
        self.skip_if_stray_dot("." + word)
        into.append(TypeDeclaration(name, kind, tuple(parents), name_span, span, branches=branches))

    def type_name(self) -> tuple[str, Span]:
        return self.qualified_name("a type")

    def branch_declaration(self) -> BranchDeclaration:
        """`A {x: number}`"""
        self.annotations("a branch")
        index = self.name("the name of a branch")
        if self.texts[self.position] != "{":
            raise self.unexpected("`{`", where="after the name of a branch", advice="write `A {}` without fields")
        return BranchDeclaration(self.texts[index], self.fields("}"), self.span_of(index))

    def fields(self, closing: str) -> tuple[Attribute, ...]:
        """Named fields between brackets or braces."""
        opened = self.position
        self.position += 1
        self.inner_annotations()
        fields = self.attributes(closing)
        self.expect_close(closing, opened, "or `,` after a field")
        return fields

    # --- functors ---

    def functor_declaration(self, first: int, into: list[Item]) -> None:
        name = self.name("the name of a functor")
        opened = self.position
        self.expect("(", "after the name of a functor", advice="write `.functor f(x: number): number`")
        numbers = count(1)
        parameters = self.listed(")", opened, "after a parameter", lambda: self.parameter(next(numbers)))
        self.expect(":", "after the parameters of a functor", advice="write the type of the result: `): number`")
        result = self.type_name()
        is_stateful = self.texts[self.position] == "stateful"
        self.position += is_stateful
        span = self.span_from(first)
        self.skip_if_stray_dot(".functor")
        into.append(FunctorDeclaration(self.texts[name], parameters, result, is_stateful, self.span_of(name), span))

    def parameter(self, number: int) -> Attribute:
        """`x: number`, or the type alone."""
        self.annotations("a parameter")
        if self.texts[self.position + 1] == ":":
            return self.attribute()
        type_name, span = self.type_name()
        return Attribute(f"x{number}", type_name, span, span)

    # --- input and output ---

    def io_directive(self, first: int, kind: str, into: list[Item]) -> None:
        is_first = True
        while is_first or self.skip_if(","):
            is_first = False
            every = self.position
            names = [("*", self.span_of(every))] if self.skip_if("*") else self.names("the name of a relation")
            opened = self.position
            parameters: tuple[tuple[str, str, Span], ...] = ()
            if self.skip_if("("):  # `(IO=file, filename="x.csv")`
                parameters = self.listed(")", opened, "after a parameter", self.io_parameter)
            span = self.span_from(first)
            into.extend(Directive(kind, name, parameters, name_span, span) for name, name_span in names)
        self.skip_if_stray_dot("." + kind)

    def io_parameter(self) -> tuple[str, str, Span]:
        if self.kinds[self.position] not in (NAME, KEYWORD):
            raise self.unexpected("the name of a parameter", advice="parameters are written `(name=value)`")
        key = self.texts[self.name("the name of a parameter", allow_reserved=True)]
        self.expect("=", "after the name of a parameter")
        index = self.position
        kind = self.kinds[index]
        value = ""
        if kind == STRING:
            self.position = index + 1
            return key, self.string_value(index), self.span_of(index)
        if kind in (NAME, KEYWORD, INTEGER, FLOAT):
            self.position = index + 1
            value = self.written(index, index + 1)
        elif self.texts[index] in (",", ")") or kind == END:
            raise self.unexpected("a value", advice="values are strings, words or numbers")
        if self.texts[self.position] not in (",", ")"):
            value = self.unquoted(key, index)
        return key, value, self.span_of(index)

    def unquoted(self, key: str, index: int) -> str:
        """Reports a value that needs quotes, such as the name of a file, and reads it to its end."""
        end = index + 1
        while self.texts[end] not in (",", ")") and self.kinds[end] != END and not self.is_first_on_line(end):
            end += 1
        value = self.written(index, end)
        self.unexpected("`)`", where="or `,` after a parameter", advice=f'write it in quotes: `{key}="{value}"`')
        self.position = end
        return value

    # --- lattices ---

    def lattice(self, first: int, into: list[Item]) -> None:
        """`.lattice D<> { Bottom -> 0, Lub -> @lub(_, _) }`"""
        type_name, type_span = self.type_name()
        form = "write `.lattice D<> { Lub -> @lub(_, _) }`"
        if not self.skip_brackets():
            raise self.unexpected("`<>`", where="after the type of a lattice", advice=form)
        opened = self.position
        self.expect("{", "before the operators of a lattice", advice=form)
        operators = self.listed("}", opened, "after an operator", partial(self.operator, form))
        into.append(Lattice(type_name, operators, type_span, self.span_from(first)))

    def operator(self, form: str) -> tuple[str, Term, Span]:
        """`Lub -> @lub(_, _)`"""
        index = self.name("the name of an operator, as `Lub`")
        self.expect("-", "after the name of an operator", advice=form)
        self.expect(">", "after the name of an operator", advice=form)
        return self.texts[index], self.term(), self.span_of(index)

    # --- components ---

    def init(self, first: int, into: list[Item]) -> None:
        """`.init i = C<T>`"""
        name = self.name("the name of an instance")
        self.expect("=", "after the name of an instance", advice="an instance is written `.init i = C<T>`")
        component = self.component_type()
        into.append(Init(self.texts[name], component, self.span_of(name), self.span_from(first)))
        self.skip_if_stray_dot(".init")

    def override(self, first: int, into: list[Item]) -> None:
        """`.override a, b`"""
        names = self.names("the name of a relation")
        span = self.span_from(first)
        into.extend(Override(name, name_span, span) for name, name_span in names)
        self.skip_if_stray_dot(".override")

    def component(self, first: int, into: list[Item]) -> None:
        """`.comp C<T> : B<T>, D { items }`; a further `:` may stand for a `,`"""
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
        if self.texts[self.position] == "@":
            self.inner_annotations()
            if self.position > opened + 1:
                self.annotated.append(self.span_from(opened + 1))
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
