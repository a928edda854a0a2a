"""Pass: every relation and functor that a clause mentions exists and has the right number of arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final, TypeAlias

from elastalog.analysis.declare_types import report_unknown_type
from elastalog.analysis.draft import Draft, is_constructor
from elastalog.analysis.findings import NO_NULL, Findings
from elastalog.analysis.functors import FUNCTORS, MEANT, functor_of, is_rewritten
from elastalog.analysis.negation import has_partial_part, is_partial, negate
from elastalog.analysis.program import StructuredType
from elastalog.analysis.scopes import pieces
from elastalog.diagnostics.messages import counted, quoted
from elastalog.syntax import tree
from elastalog.syntax.keywords import TEXT_TESTS
from elastalog.syntax.tree import nodes_of

if TYPE_CHECKING:
    from elastalog.analysis.type_reports import Proposals

_Pending: TypeAlias = list[tree.Term | tree.Literal]
_NESTING: Final = frozenset((tree.Call, tree.Cast, tree.Aggregate))
"""The terms that hold others."""

LISTED: Final = "the page “The language” of the documentation lists all functions"
_CLOCKS: Final = frozenset(("today", "now", "current_date", "current_timestamp", "curdate", "getdate", "sysdate"))
_NAMED_FUNCTORS = [name for name in FUNCTORS if name.isidentifier()]


def resolve_names(draft: Draft, findings: Findings) -> Draft:
    """Keeps the clauses whose names are all known; reports the others, and variables that occur only once."""
    resolve = _ClauseResolver(draft, findings).resolve
    clauses = []
    for item in draft.tree.items:
        if type(item) is tree.Clause:
            findings.instance = item.instance
            is_nested = resolve(item)
            if is_nested is not None:
                clauses.append((item, is_nested))
    return replace(draft, clauses=tuple(clauses))


def constructors_of(draft: Draft) -> dict[str, StructuredType]:
    """The type of every branch."""
    structures = [meaning.structure for meaning in draft.types.values() if meaning.structure is not None]
    return {functor: structure for structure in structures for functor in structure.branches if functor != "[]"}


def _proposals(draft: Draft) -> Proposals:
    from elastalog.analysis.type_reports import Proposals  # most programs declare what they use

    return Proposals(draft)


class _ClauseResolver:
    """Resolves the names of one clause after the other."""

    def __init__(self, draft: Draft, findings: Findings) -> None:
        self.declarations = declarations = draft.declarations
        self.types = draft.types
        self.constructors = constructors_of(draft)
        self.users = draft.functors
        self.findings = findings
        self.arities = {name: len(declaration.attributes) for name, declaration in declarations.items()}
        self.undeclared: set[str] = set()
        self.proposals = cache(partial(_proposals, draft))
        # The variables of the clause; the value is the only occurrence if that is in a positive atom of the body, or a
        # side of `=`. And, for those of the latter, the variable on the other side, if it is one.
        self.variables: dict[str, tree.Variable | None] = {}
        self.equated: dict[str, str | None] = {}

    def resolve(self, clause: tree.Clause) -> bool | None:
        """Whether the clause has aggregates or ranges; None if it has errors, which have been reported."""
        errors = self.findings.count
        self.variables, self.equated = {}, {}
        pending: _Pending = []
        for head in clause.heads:
            self.use_atom(head, pending)
            for term in head.arguments:
                if type(term) is tree.Wildcard:
                    self.report_wildcard(term, "the head of a rule", "bind a variable in the body and use it here")
        pending.extend(clause.body[::-1])
        is_nested = self.walk(pending)
        is_sound = self.findings.count == errors
        for name, variable in self.variables.items():
            if variable is not None and name[0] != "_":
                self.report_once(variable, clause.body)
        return is_nested if is_sound else None

    def use_atom(self, atom: tree.Atom, pending: _Pending, gives: bool = False) -> None:
        """Visits an atom. A head or a negated atom `gives` no variable a value."""
        if self.arities.get(atom.relation) != len(atom.arguments):
            self.report_atom(atom)
        variables = self.variables
        for term in atom.arguments:
            if type(term) is tree.Variable:
                variables[term.name] = term if gives and term.name not in variables else None
            elif type(term) in _NESTING:
                pending.append(term)

    def walk(self, pending: _Pending) -> bool:
        """Visits the nodes and everything below them. Returns whether there are aggregates or ranges."""
        is_nested = False
        while pending:
            node = pending.pop()
            match node:
                case tree.Atom():
                    self.use_atom(node, pending, gives=True)
                case tree.Negation():
                    self.use_atom(node.atom, pending)
                case tree.Variable():
                    self.variables[node.name] = None
                case tree.Call():
                    is_nested = is_nested or is_rewritten(node.functor) or has_partial_part(node)
                    self.check_call(node)
                    if is_constructor(node.functor):
                        pending.extend(node.arguments)
                        continue
                    self.push_operands(node.arguments, f"an argument of {quoted(node.functor)}", pending)
                case tree.Cast():
                    if node.type_name not in self.types:
                        report_unknown_type(node.type_name, node.type_span, list(self.types), self.findings)
                    self.push_operands((node.term,), "a cast", pending)
                case tree.Aggregate():
                    is_nested = True
                    pending.extend(node.body)
                    if node.operator[0] == "@":
                        self.check_user_aggregate(node)
                    if node.target is not None:
                        self.push_operands((node.target,), f"the target of {quoted(node.operator)}", pending)
                case tree.NegatedGroup():
                    is_nested = True
                    pending.extend(negate(node.body, node.span))
                case tree.Comparison("=", tree.Variable() as left, tree.Variable() as right):
                    self.equated |= {left.name: right.name, right.name: left.name}
                    self.see(left)
                    self.see(right)
                case tree.Comparison("=", tree.Variable() as side, other) | tree.Comparison(
                    "=", other, tree.Variable() as side
                ) if not is_partial(other):  # otherwise it says that there is a value
                    self.equated.setdefault(side.name)
                    self.see(side)
                    self.push_operands((other,), "a comparison", pending)
                case tree.Comparison():
                    self.push_operands((node.left, node.right), "a comparison", pending)
                case tree.Disjunction():
                    pending.extend([literal for body in node.alternatives for literal in body])
                case _:  # constants, and `_` where it may stand
                    pass
        return is_nested

    def see(self, variable: tree.Variable) -> None:
        self.variables[variable.name] = None if variable.name in self.variables else variable

    def push_operands(self, terms: tuple[tree.Term, ...], where: str, pending: _Pending) -> None:
        for term in terms:
            if type(term) is tree.Wildcard:
                self.report_wildcard(term, where, "name a variable here and bind it in a positive atom")
            else:
                pending.append(term)

    def check_user_aggregate(self, aggregate: tree.Aggregate) -> None:
        """`@@f` folds by a functor of the form `f(so_far: T, x: U): T`."""
        assert isinstance(aggregate.target, tree.Call)
        span, user = aggregate.target.functor_span, self.users.get(aggregate.operator[1:])
        if user is None:
            self.check_call(tree.Call(aggregate.operator, (), span, span))
            return
        kinds = [self.types[name].kind for name in (*user.parameter_types[:1], user.result_type) if name in self.types]
        if len(user.parameters) != 2 or kinds[:1] != kinds[1:]:
            self.findings.error("E0262", span, user.span, functor=aggregate.operator, name=user.name)

    def check_call(self, call: tree.Call) -> None:
        if is_constructor(call.functor):
            self.check_branch(call)
            return
        functor = functor_of(call.functor, self.users)
        given = len(call.arguments)
        if functor is None:
            self.report_functor(call)
        elif given < functor.minimum or (functor.maximum is not None and given > functor.maximum):
            self.findings.error(
                "E0207", call.span, functor=call.functor, arity=functor.arity_text, given=given,
                form=functor.signatures[0],
            )  # fmt: skip
        elif call.functor == "format":
            self.check_format(call)

    def report_functor(self, call: tree.Call) -> None:
        key, name, small = "E0206", call.functor, call.functor.lower()
        meant, values = MEANT.get(small, name), dict[str, str | None]()
        if name[0] == "@":
            near = self.findings.nearest(name[1:], self.users)
            values = {"new": name[1:60]} if near is None else {"near": f"@{near}"}
        elif name in self.declarations:
            values = {"relation": name}
        elif name in self.users:
            values = {"near": f"@{name}"}
        elif f"${name}" in self.constructors:
            values = {"near": f"${name}"}
        elif small in _CLOCKS:
            key = "E0206.clock"
        elif meant in TEXT_TESTS:
            values = {"test": meant}
        elif meant != name:
            values = {"form" if " " in meant else "near": meant}
        else:
            values = {"near": self.findings.nearest(name, _NAMED_FUNCTORS)}
        self.findings.error(key, call.functor_span, functor=name, note=LISTED if values.get("near") else None, **values)

    def check_format(self, call: tree.Call) -> None:
        """Checks that the template is known, and has a place for every value."""
        template, given = call.arguments[0], len(call.arguments) - 1
        places = len(pieces(template.value)) - 1 if isinstance(template, tree.String) else None
        if places != given:
            told = "is no text in quotes" if places is None else f"has {counted(places, 'place')} `{{}}`, not {given}"
            self.findings.error("E0207.template", template.span, told=told)

    def check_branch(self, call: tree.Call) -> None:
        """Checks that a branch exists and has as many fields. The type of a record is not known before inference."""
        if call.functor[0] != "$":
            return
        structure = self.constructors.get(call.functor)
        if structure is None:
            self.findings.error(
                "E0241", call.functor_span, functor=call.functor, name=call.functor[1:],
                near=self.findings.nearest(call.functor, self.constructors),
            )  # fmt: skip
            return
        fields = structure.branches[call.functor]
        if len(fields) != len(call.arguments):
            listed = ", ".join(field.name for field in fields)
            self.findings.error(
                "E0242", call.span, functor=call.functor, expected=len(fields), given=len(call.arguments),
                form=f"`{call.functor}({listed})`" if fields else quoted(call.functor),
            )  # fmt: skip

    def report_atom(self, atom: tree.Atom) -> None:
        declaration = self.declarations.get(atom.relation)
        if declaration is None:
            if atom.relation in self.undeclared:
                self.findings.count += 1  # the clause is at fault, and there is nothing new to say
                return
            self.undeclared.add(atom.relation)
            instance, _, own = atom.relation.rpartition(".")
            meant = MEANT.get(atom.relation.lower())
            self.findings.error(
                "E0204", atom.relation_span, name=atom.relation,
                near=self.findings.nearest(atom.relation, self.declarations),
                meant=meant if meant in TEXT_TESTS else None,
                declared=", ".join([*self.declarations][:12]) if self.findings.source.name == "<query>" else None,
                instance=instance or None, own=own, proposal=self.proposals().declaration(atom),
            )  # fmt: skip
            return
        expected, given = len(declaration.attributes), len(atom.arguments)
        names = ", ".join(attribute.name[:30] for attribute in declaration.attributes[:8])
        self.findings.error(
            "E0205", atom.span, declaration.name_span, relation=atom.relation, expected=expected, given=given,
            form=f"{atom.relation[:60]}({names}{', …' if expected > 8 else ''})",
            wildcards="; use `_` for arguments that do not matter" * (given < expected),
        )  # fmt: skip

    def report_wildcard(self, term: tree.Wildcard, where: str, advice: str) -> None:
        self.findings.error("E0321", term.span, where=where, advice=advice)

    def report_once(self, variable: tree.Variable, body: Iterable[tree.Literal]) -> None:
        name = variable.name
        is_text = name[0].islower() and (
            any(other[0].isupper() for other in self.variables) or self.is_symbol(variable, body)
        )
        alike = next((other for other in self.variables if other != name and other.lower() == name.lower()), None)
        other = self.equated.get(name)
        self.findings.warning(
            "E0324", variable.span, name=name, text=name if is_text else None, other=other, alike=alike,
            null=NO_NULL if name.lower() == "null" else None,
            computed=name if name in self.equated and other is None else None,
        )  # fmt: skip

    def is_symbol(self, variable: tree.Variable, body: Iterable[tree.Literal]) -> bool:
        """Whether a variable, or one equal to it, is an argument in a column of symbols."""
        names = (variable.name, self.equated.get(variable.name))
        return any(
            type(term) is tree.Variable and term.name in names and attribute.type_name == "symbol"
            for atom in nodes_of(tree.Atom, tuple(body))
            if atom.relation in self.declarations
            for term, attribute in zip(atom.arguments, self.declarations[atom.relation].attributes, strict=False)
        )
