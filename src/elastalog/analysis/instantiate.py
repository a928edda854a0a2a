"""From a program with components to a flat one: every `.init` writes out what its component holds, under its name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from elastalog.analysis.component_names import (
    Argument,
    Binding,
    Definition,
    Names,
    Scope,
    look_up,
    of_program,
    renamed,
    with_branch_names,
)
from elastalog.analysis.findings import Findings
from elastalog.analysis.graphs import reached
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.parser import without_collection
from elastalog.syntax.tree import Component, Init, Instance, Item, Override, RelationDeclaration, Tree, TypeDeclaration

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
        self.top = Definition(of_program(program.items), None)
        self.types = _declared(program.items, TypeDeclaration)
        self.active: list[tuple[int, tuple[Argument, ...]]] = []
        self.items: list[Item] = []
        self.layers = 0
        self.is_full = False
        self.reported: set[int] = set()

    def flat(self, is_strict: bool) -> list[Item]:
        items = self.program.items
        self._define(self.top)
        scope = Scope("", _declared(items, RelationDeclaration), self.types, _instances(items, self.findings), None)
        for item in items:
            if type(item) is Init:
                self._init(item, scope, self.top, {}, None)
            elif type(item) is Override:
                self.findings.error("E0224.outside", item.span)
            elif type(item) is not Component:
                self.items.append(item)
        if is_strict and not self.findings.count:
            for definition in self.top.nested.values():
                self._check_declaration(definition)
        return with_branch_names(self.items)

    def _check_declaration(self, definition: Definition) -> None:
        """What a component inherits from must exist and come to an end, and have what is overridden, also without an
        instance."""
        component, outer = definition.component, definition.outer
        assert outer is not None
        if definition in reached(definition.inherited(), Definition.inherited):
            self._once(component, "E0222.bases", component.name_span, component=component.name)
        for base in component.bases:
            if base.name not in definition.parameters and not outer.is_open:
                self._component(base, None, outer, {})
        # What it contains is known if neither it nor what it inherits from has parameters.
        is_known = all(
            not each.parameters and len(each.inherited()) == len(each.component.bases) for each in definition.lineage()
        )
        if is_known and not self.findings.count:
            self._layers(definition, {}, None, frozenset(), ())
        for nested in definition.nested.values():
            self._check_declaration(nested)

    def _define(self, outer: Definition) -> None:
        into = outer.nested
        for item in outer.component.items:
            if type(item) is not Component:
                continue
            if item.name in into:
                first = into[item.name].component.name_span
                self.findings.declared_twice("E0225", f"component {quoted(item.name)}", item.name_span, first)
                continue
            into[item.name] = Definition(item, outer)
            self._define(into[item.name])

    # --- one instance ----------------------------------------------------------------------------------------------

    def _init(
        self, init: Init, scope: Scope, inside: Definition, binding: Binding, outer: tree.Instance | None
    ) -> None:
        found = None if self.is_full else self._component(init.component, scope, inside, binding)
        if found is None:
            return
        definition, arguments = found
        active = (id(definition), tuple(arguments.values()))
        name = scope.prefix + init.name
        if active in self.active or len(self.active) >= DEEPEST:
            if any(active[0] == around for around, _ in self.active):
                component, way = definition.component, ", ".join(_way(outer)) or None
                self._once(init, "E0222.instance", init.span, component.name_span, component=component.name, way=way)
            else:
                self._once(init, "E0222.deep", init.span, what="instances hold others", most=DEEPEST)
            return
        layers = self._layers(definition, arguments, scope, frozenset(), ())
        instance = tree.Instance(name, init.component.name, init.span, outer)
        self.active.append(active)
        self._write_out(layers, instance, scope)
        self.active.pop()

    def _component(
        self, wanted: tree.ComponentType, scope: Scope | None, inside: Definition, binding: Binding
    ) -> tuple[Definition, dict[str, Argument]] | None:
        """The named component, and what its parameters stand for. Without a scope, it is only looked up."""
        definition = look_up(wanted.name, inside, binding)
        if definition is None:
            near = self.findings.nearest(wanted.name, [*self.top.nested, *inside.nested])
            self._once(wanted, "E0211", wanted.name_span, name=wanted.name, near=near)
            return None
        component, parameters = definition.component, definition.component.parameters
        if len(parameters) != len(wanted.arguments):
            self._once(
                wanted, "E0212", wanted.span, component.name_span, name=component.name, expected=len(parameters),
                given=len(wanted.arguments), parameters=", ".join(name for name, _ in parameters) or None,
            )  # fmt: skip
            return None
        if scope is None:
            return definition, {}
        # Inside a component, one that is nested in it knows its parameters.
        arguments = dict(binding) if definition.outer is not self.top else {}
        arguments |= {
            parameter: binding[name]
            if name in binding
            else Argument(scope.type_name(name), look_up(name, inside, binding))
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
        """The components that an instance consists of, inherited ones first."""
        component, place = definition.component, definition.component.name_span
        if id(definition) in below:
            self._once(component, "E0222.bases", place, component=component.name)
            return []
        if len(below) >= DEEPEST:
            self._once(component, "E0222.deep", place, what="components inherit", most=DEEPEST)
            return []
        self.layers += 1
        if self.layers > MOST_LAYERS:
            self._fill(f"{MOST_LAYERS:,} components", place)
        if self.is_full:
            return []
        overridden = frozenset(item.relation for item in component.items if type(item) is Override)
        layers: list[_Layer] = []
        for base in component.bases:
            found = self._component(base, scope, definition.outer or self.top, binding)
            if found is not None:
                layers += self._layers(*found, scope, dropped | overridden, (*below, id(definition)))
        # A base that is a parameter is not checked, as in Soufflé.
        if overridden and not any(base.name in binding for base in component.bases):
            self._check_overrides(component, layers)
        layers.append(_Layer(definition, binding, dropped))
        return layers

    def _check_overrides(self, component: Component, inherited: list[_Layer]) -> None:
        for item in component.items:
            if type(item) is Override:
                items = [each for layer in inherited for each in layer.definition.component.items]
                declared = [d for d in items if type(d) is RelationDeclaration and d.name == item.relation]
                if not any(d.qualifier("overridable") for d in declared):
                    key, places = ("E0224.closed", [declared[0].name_span]) if declared else ("E0224.unknown", [])
                    self._once(item, key, item.relation_span, *places, relation=item.relation)

    def _write_out(self, layers: list[_Layer], instance: tree.Instance, scope: Scope) -> None:
        parts = [layer.definition.component.items for layer in layers]
        own = Scope(
            instance.name + ".",
            frozenset().union(*(_declared(items, RelationDeclaration) for items in parts)),
            frozenset(
                _called(name, layer)
                for layer in layers
                for name in _declared(layer.definition.component.items, TypeDeclaration)
            ),
            frozenset().union(*(_instances(items, self.findings) for items in parts)),
            scope,
        )
        relations = cache(own.relation)
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

        types = cache(type_name)
        for item in layer.definition.component.items:
            name: str | None = None
            match item:
                case tree.Clause():
                    heads = tuple([head for head in item.heads if head.relation not in layer.dropped])
                    if not heads:
                        continue
                    item = item if len(heads) == len(item.heads) else replace(item, heads=heads)
                case tree.Subsumption() if item.dominated.relation in layer.dropped:
                    continue
                case tree.RelationDeclaration() | tree.TypeDeclaration():
                    name = scope.prefix + (
                        item.name if type(item) is RelationDeclaration else _called(item.name, layer)
                    )
                case tree.Init():
                    self._init(item, scope, layer.definition, binding, instance)
                    continue
                case tree.Component() | tree.Override():
                    continue
                case tree.FunctorDeclaration() | tree.Pragma():
                    self.items.append(item)
                    continue
            self.items.append(renamed(item, instance, relations, types, name))

    def _fill(self, most: str, place: Span) -> None:
        """Reports that the program is too large. Nothing more is written out."""
        if not self.is_full:
            self.is_full = True
            self.findings.error("E0222.large", place, most=most)

    def _once(self, node: object, key: str, *places: Span, **values: object) -> None:
        """Reports an error in the text of a component once, not for every instance."""
        if id(node) not in self.reported:
            self.reported.add(id(node))
            self.findings.error(key, *places, **values)


def _called(name: str, layer: _Layer) -> str:
    """The name of a type that a component declares: a parameter may stand for it."""
    return layer.binding[name].type_name if name in layer.binding else name


def _declared(items: tuple[Item, ...], kind: type[RelationDeclaration | TypeDeclaration]) -> frozenset[str]:
    return frozenset([item.name for item in items if isinstance(item, kind)])


def _instances(items: tuple[Item, ...], findings: Findings) -> frozenset[str]:
    first: dict[str, Init] = {}
    for item in items:
        if type(item) is Init and first.setdefault(item.name, item) is not item:
            findings.error("E0225", item.name_span, first[item.name].name_span, name=item.name)
    return frozenset(first)


def _way(instance: Instance | None) -> list[str]:
    """The instances that contain an instance, from the outside in."""
    names: list[str] = []
    while instance is not None and len(names) < 8:
        names.append(f"`.init {instance.name.rpartition('.')[2]} = {instance.component}`")
        instance = instance.outer
    return names[::-1]
