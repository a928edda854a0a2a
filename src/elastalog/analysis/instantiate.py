"""From a program with components to a flat one: every `.init` writes out what its component holds, under its name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from elastalog.analysis.component_names import (
    Argument,
    Binding,
    Definition,
    Names,
    Renamer,
    Scope,
    inherits_from_itself,
    is_open,
    look_up,
    parameters_around,
    with_branch_names,
)
from elastalog.analysis.findings import Findings, counted, primary, quoted, secondary
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.parser import without_collection
from elastalog.syntax.tree import (
    Component,
    ComponentType,
    Init,
    Instance,
    Item,
    Override,
    RelationDeclaration,
    Tree,
    TypeDeclaration,
)

MOST_ITEMS: Final = 5_000_000
"""How many items a program may have when all is written out."""
MOST_LAYERS: Final = 100_000
"""How many components may be written out, those that instances inherit from included."""
DEEPEST: Final = 100
"""How deep instances may hold others, and components inherit."""


def instantiate(program: Tree, *, is_strict: bool = True) -> tuple[Tree, tuple[Diagnostic, ...]]:
    """The flat program. What is at fault is reported and left out; if strict, also in components of which no instance
    is made."""
    findings = Findings(program.source)
    with without_collection():
        items = _Instantiation(program, findings).flat(is_strict)
    return replace(program, items=tuple(items)), tuple(findings.diagnostics)


@dataclass(frozen=True, slots=True)
class _Layer:
    """What an instance takes over from one component, itself or one that it inherits from."""

    definition: Definition
    binding: Binding
    dropped: frozenset[str]  # relations that a component which inherits from this one overrides


class _Instantiation:
    def __init__(self, program: Tree, findings: Findings) -> None:
        self.program = program
        self.findings = findings
        self.top: dict[str, Definition] = {}
        self.types = _types(program.items)
        self.active: list[tuple[int, tuple[Argument, ...]]] = []
        self.items: list[Item] = []
        self.layers = 0
        self.is_full = False
        self.reported: set[int] = set()

    def flat(self, is_strict: bool) -> list[Item]:
        items = self.program.items
        self._define(items, None, self.top)
        scope = Scope("", _relations(items), self.types, _instances(items, self.findings), None)
        for item in items:
            if type(item) is Init:
                self._init(item, scope, None, {}, None)
            elif type(item) is Override:
                _report_override_outside(item, self.findings)
            elif type(item) is not Component:
                self.items.append(item)
        if is_strict and not self.findings.count:
            for definition in self.top.values():
                self._check_declaration(definition)
        return with_branch_names(self.items)

    def _check_declaration(self, definition: Definition) -> None:
        """What a component inherits from must exist and come to an end, and have what is overridden, also without an
        instance."""
        component = definition.component
        if inherits_from_itself(definition, self.top):
            self._once(component, lambda: _report_inheritance_of_itself(component, self.findings))
        for base in component.bases:
            if base.name not in parameters_around(definition) and not is_open(definition.outer):
                self._component(base, None, definition.outer, {})
        if not self.findings.count and self._is_plain(definition):
            self._layers(definition, {}, None, frozenset(), ())
        for nested in definition.nested.values():
            self._check_declaration(nested)

    def _is_plain(self, definition: Definition) -> bool:
        """Whether it has no parameters, nor what it inherits from: all that it holds is known."""
        bases = [look_up(base.name, definition.outer, {}, self.top) for base in definition.component.bases]
        return not parameters_around(definition) and all(base and self._is_plain(base) for base in bases)

    def _define(self, items: tuple[Item, ...], outer: Definition | None, into: dict[str, Definition]) -> None:
        for item in items:
            if type(item) is not Component:
                continue
            if item.name in into:
                _report_declared_twice(item, into[item.name].component, self.findings)
                continue
            definition = into[item.name] = Definition(item, outer)
            self._define(item.items, definition, definition.nested)

    # --- one instance ----------------------------------------------------------------------------------------------

    def _init(
        self, init: Init, scope: Scope, inside: Definition | None, binding: Binding, outer: tree.Instance | None
    ) -> None:
        found = None if self.is_full else self._component(init.component, scope, inside, binding)
        if found is None:
            return
        definition, arguments = found
        active = (id(definition), tuple(arguments.values()))
        name = scope.prefix + init.name
        if active in self.active or len(self.active) >= DEEPEST:
            if any(active[0] == around for around, _ in self.active):
                self._once(init, lambda: _report_instance_of_itself(init, definition.component, outer, self.findings))
            else:
                self._once(init, lambda: _report_too_deep("instances hold others", DEEPEST, init.span, self.findings))
            return
        layers = self._layers(definition, arguments, scope, frozenset(), ())
        instance = tree.Instance(name, init.component.name, init.span, outer)
        self.active.append(active)
        self._write_out(layers, instance, scope)
        self.active.pop()

    def _component(
        self, wanted: tree.ComponentType, scope: Scope | None, inside: Definition | None, binding: Binding
    ) -> tuple[Definition, dict[str, Argument]] | None:
        """The component that is named, and what its parameters stand for; without a scope, it is only looked for."""
        definition = look_up(wanted.name, inside, binding, self.top)
        if definition is None:
            known = [*self.top, *(inside.nested if inside else ())]
            self._once(wanted, lambda: _report_unknown(wanted, known, self.findings))
            return None
        parameters = definition.component.parameters
        if len(parameters) != len(wanted.arguments):
            self._once(wanted, lambda: _report_wrong_count(wanted, definition.component, self.findings))
            return None
        if scope is None:
            return definition, {}
        # Inside a component, one that is nested in it knows its parameters.
        arguments = dict(binding) if definition.outer is not None else {}
        arguments |= {
            parameter: binding[name]
            if name in binding
            else Argument(scope.type_name(name), look_up(name, inside, binding, self.top))
            for (parameter, _), (name, _) in zip(parameters, wanted.arguments, strict=True)
        }
        return definition, arguments

    def _layers(
        self,
        definition: Definition,
        binding: Binding,
        scope: Scope | None,
        dropped: frozenset[str],
        below: tuple[int, ...],
    ) -> list[_Layer]:
        """The components that an instance consists of, what is inherited first."""
        component, place = definition.component, definition.component.name_span
        if id(definition) in below:
            self._once(component, lambda: _report_inheritance_of_itself(component, self.findings))
            return []
        if len(below) >= DEEPEST:
            self._once(component, lambda: _report_too_deep("components inherit", DEEPEST, place, self.findings))
            return []
        self.layers += 1
        if self.layers > MOST_LAYERS:
            self._fill(f"{MOST_LAYERS:,} components", place)
        if self.is_full:
            return []
        overridden = frozenset(item.relation for item in component.items if type(item) is Override)
        layers: list[_Layer] = []
        for base in component.bases:
            found = self._component(base, scope, definition.outer, binding)
            if found is not None:
                layers += self._layers(*found, scope, dropped | overridden, (*below, id(definition)))
        # What a parameter stands for decides for itself, as in Soufflé, where nobody looks.
        if overridden and not any(base.name in binding for base in component.bases):
            self._check_overrides(component, layers)
        layers.append(_Layer(definition, binding, dropped))
        return layers

    def _check_overrides(self, component: Component, inherited: list[_Layer]) -> None:
        for item in component.items:
            if type(item) is Override:
                declared = [d for layer in inherited for d in _declarations(layer, item.relation)]
                is_overridable = any(text == "overridable" for d in declared for text, _ in d.qualifiers)
                if not is_overridable:
                    first = declared[0] if declared else None
                    self._once(item, partial(_report_override, item, first, self.findings))

    def _write_out(self, layers: list[_Layer], instance: tree.Instance, scope: Scope) -> None:
        parts = [layer.definition.component.items for layer in layers]
        own = Scope(
            instance.name + ".",
            frozenset().union(*map(_relations, parts)),
            frozenset(_called(name, layer) for layer, own in zip(layers, parts, strict=True) for name in _types(own)),
            frozenset().union(*(_instances(items, self.findings) for items in parts)),
            scope,
        )
        relations = Names(own.relation)
        for layer in layers:
            self._write_layer(layer, own, relations, instance)
        if len(self.items) > MOST_ITEMS:
            self._fill(f"{MOST_ITEMS:,} items", instance.span)

    def _write_layer(self, layer: _Layer, scope: Scope, relations: Names, instance: tree.Instance) -> None:
        binding = layer.binding

        def type_name(name: str) -> str:
            if name not in binding:
                return scope.type_name(name)
            given = binding[name].type_name
            # Where the instance is made there may be no such type, but one that the component itself declares.
            return given if "." in given or given in self.types else scope.type_name(given)

        renamer = Renamer(relations, Names(type_name), instance)
        for item in layer.definition.component.items:
            match item:
                case tree.Clause():
                    heads = tuple([head for head in item.heads if head.relation not in layer.dropped])
                    if heads:
                        self.items.append(renamer.clause(item, heads))
                case tree.Subsumption():
                    if item.dominated.relation not in layer.dropped:
                        self.items.append(renamer.subsumption(item))
                case tree.Lattice():
                    self.items.append(renamer.lattice(item))
                case tree.RelationDeclaration():
                    self.items.append(renamer.declaration(item, scope.prefix + item.name))
                case tree.TypeDeclaration():
                    self.items.append(renamer.type_declaration(item, scope.prefix + _called(item.name, layer)))
                case tree.Directive():
                    self.items.append(renamer.directive(item))
                case tree.Init():
                    self._init(item, scope, layer.definition, binding, instance)
                case tree.Component() | tree.Override():
                    pass
                case _:
                    self.items.append(item)

    def _fill(self, most: str, place: Span) -> None:
        """Nothing is written out from now on."""
        if not self.is_full:
            self.is_full = True
            _report_too_large(most, place, self.findings)

    def _once(self, what: object, report: Callable[[], None]) -> None:
        """What is wrong with the text of a component is reported once, not for every instance."""
        if id(what) not in self.reported:
            self.reported.add(id(what))
            report()


def _called(name: str, layer: _Layer) -> str:
    """The name of a type that a component declares: a parameter may stand for it."""
    return layer.binding[name].type_name if name in layer.binding else name


def _relations(items: tuple[Item, ...]) -> frozenset[str]:
    return frozenset([item.name for item in items if type(item) is RelationDeclaration])


def _types(items: tuple[Item, ...]) -> frozenset[str]:
    return frozenset([item.name for item in items if type(item) is TypeDeclaration])


def _instances(items: tuple[Item, ...], findings: Findings) -> frozenset[str]:
    first: dict[str, Init] = {}
    for item in items:
        if type(item) is Init and first.setdefault(item.name, item) is not item:
            _report_instance_twice(item, first[item.name], findings)
    return frozenset(first)


def _declarations(layer: _Layer, relation: str) -> Iterator[RelationDeclaration]:
    for item in layer.definition.component.items:
        if type(item) is RelationDeclaration and item.name == relation:
            yield item


# --- reports ---------------------------------------------------------------------------------------------------------


def _report_unknown(wanted: ComponentType, known: Collection[str], findings: Findings) -> None:
    """E0211."""
    findings.error(
        "E0211",
        f"unknown component {quoted(wanted.name)}",
        primary(wanted.name_span, "not declared"),
        advice=findings.did_you_mean(wanted.name, known) or f"declare it: `.comp {wanted.name[:60]} {{ … }}`",
    )


def _report_wrong_count(wanted: ComponentType, component: Component, findings: Findings) -> None:
    """E0212."""
    expected, given = len(component.parameters), len(wanted.arguments)
    names = ", ".join(name for name, _ in component.parameters)
    findings.error(
        "E0212",
        f"component {quoted(component.name)} takes {counted(expected, 'parameter')}, not {given}",
        primary(wanted.span, f"{given} here"),
        secondary(component.name_span, "declared here"),
        advice=f"write `{component.name[:60]}<{names}>`" if names else f"write `{component.name[:60]}`",
    )


def _report_declared_twice(again: Component, first: Component, findings: Findings) -> None:
    """E0225."""
    findings.declared_twice("E0225", f"component {quoted(again.name)}", again.name_span, first.name_span)


def _report_instance_twice(again: Init, first: Init, findings: Findings) -> None:
    """E0225."""
    findings.error(
        "E0225",
        f"instance {quoted(again.name)} is made twice",
        primary(again.name_span, "again here"),
        secondary(first.name_span, "first here"),
        advice="give one of them another name",
    )


def _report_instance_of_itself(init: Init, component: Component, outer: Instance | None, findings: Findings) -> None:
    """E0222."""
    way = [] if outer is None else _way(outer)
    findings.error(
        "E0222",
        f"component {quoted(component.name)} would hold an instance of itself",
        primary(init.span, "without end"),
        secondary(component.name_span, "the component"),
        note=f"reached through {', '.join(way)}" if way else None,
        advice="move what is shared into a component of its own, and make instances of that",
    )


def _report_inheritance_of_itself(component: Component, findings: Findings) -> None:
    """E0222."""
    findings.error(
        "E0222",
        f"component {quoted(component.name)} inherits from itself",
        primary(component.name_span, "through what follows its `:`"),
        advice="break the circle",
    )


def _report_too_deep(what: str, most: int, place: Span, findings: Findings) -> None:
    """E0222."""
    findings.error(
        "E0222", f"{what} more than {most} deep", primary(place, "too deep"), advice="make the chain shorter"
    )


def _report_too_large(most: str, place: Span, findings: Findings) -> None:
    """E0222."""
    findings.error(
        "E0222",
        f"instances make the program larger than {most}",
        primary(place, "reached here"),
        advice="make fewer instances",
    )


def _report_override_outside(item: Override, findings: Findings) -> None:
    """E0224."""
    findings.error(
        "E0224",
        "`.override` stands outside of a component",
        primary(item.span, "overrides nothing"),
        advice="write it into the component that inherits the relation",
    )


def _report_override(item: Override, declared: RelationDeclaration | None, findings: Findings) -> None:
    """E0224."""
    if declared is None:
        findings.error(
            "E0224",
            f"there is no inherited relation {quoted(item.relation)} to override",
            primary(item.relation_span, "not inherited"),
            advice="name a relation that a component behind the `:` declares",
        )
        return
    findings.error(
        "E0224",
        f"relation {quoted(item.relation)} cannot be overridden",
        primary(item.relation_span, "overridden here"),
        secondary(declared.name_span, "declared without `overridable`"),
        advice=f"write `overridable` behind the declaration of {quoted(item.relation)}",
    )


def _way(instance: Instance) -> list[str]:
    names: list[str] = []
    current: Instance | None = instance
    while current is not None and len(names) < 8:
        names.append(f"`.init {current.name.rpartition('.')[2]} = {current.component}`")
        current = current.outer
    return names[::-1]
