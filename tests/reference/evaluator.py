"""A naive evaluator of the whole dialect: the judge of the engine, with which it shares nothing but the syntax tree.

It evaluates what was written, components apart, which are instances of what was written: a negated group holds if what
it negates has no solution, an inline relation is asked where it is used, an aggregate folds what its body finds,
wildcards, records, witnesses and equivalences are what they are. No rewriting of the engine comes between.

An environment maps names to values and, under spans, what it rests on: an atom to its fact, an aggregate to its members
(each a list of environments). Values carry their types; an integer literal takes the type of what it meets."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from elastalog.diagnostics.source import Source
from elastalog.syntax import tree as syntax
from elastalog.syntax.parser import parse
from tests.reference.values import BASES, RESULTS, Made, aggregate, apply, as_value, compare
from tests.reference.variables import hidden, telling_apart, witnesses
from tests.reference.walking import is_made, name_of, names, walk

Facts = dict[str, set[tuple[Any, ...]]]
Given = Mapping[str, Collection[tuple[Any, ...]]]
Environment = dict[Any, Any]
CLOSURE = "e(x, x) :- e(x, _). e(y, x) :- e(x, y). e(x, z) :- e(x, y), e(y, z)."
AROUND = ...  # the key of the names in the bodies around, which an aggregate shares


class Numbered(dict[str, set[tuple[Any, ...]]]):
    """Facts, and the numbers of derivations: by call of `autoinc` and values of the rule's variables. `seen` remembers
    what was looked up in a round: the members of an aggregate, the facts with a value in some place. `instances` are
    those of every rule, of the last round."""

    numbers: dict[Any, int]
    seen: dict[Any, Any]
    instances: "dict[Rule, list[tuple[tuple[Any, ...], Environment]]]"

    def with_value(self, relation: str, place: int, value: Any) -> Collection[tuple[Any, ...]]:
        if (relation, place) not in self.seen:
            index = self.seen[relation, place] = defaultdict[Any, list[tuple[Any, ...]]](list)
            for fact in self[relation]:
                index[fact[place]].append(fact)
        found: list[tuple[Any, ...]] = self.seen[relation, place].get(value, [])
        return found


def evaluate(
    tree: syntax.Tree, facts: Given, *, with_text_facts: bool = True, numbers: dict[Any, int] | None = None
) -> Numbered:
    """Every fact of every relation. `facts` are explicit facts; those written in the program text are added to them.
    `numbers` are those that derivations have from the epochs before; it is brought up to date."""
    db = Numbered(explicit_facts(tree, facts, with_text_facts))
    db.numbers, db.seen, db.instances = {} if numbers is None else numbers, {}, {}
    program = program_of(tree)
    given = {name: db[name] for name in program.improving}
    db.update({name: set() for name in given})  # what is given is a candidate
    for component in program.components:
        rules = [rule for rule in program.rules if rule.relation in component]
        for rule in rules:
            rule.number(db)
        before: Facts = {}
        while any(before.get(name) != db[name] for name in component):
            before = {name: set(db[name]) for name in component}
            for rule in rules:
                if rule not in db.instances or not rule.reads.isdisjoint(component):
                    db.instances[rule] = list(rule.instances(db))
            new = {(r.relation, fact) for r in rules for fact, _ in db.instances[r] if fact not in db[r.relation]}
            new |= {(name, fact) for name in component & given.keys() for fact in given[name]}
            for relation, fact in program.chosen(new, db):
                db[relation].add(fact)
            db.seen.clear()
            program.prune(component, db)
            for name in component & program.joined.keys():
                db[name] = program.join(name, db[name])
            db.seen.clear()
    for name in program.inlined:
        del db[name]
    return db


def explicit_facts(tree: syntax.Tree, facts: Given, with_text_facts: bool) -> Facts:
    schemas = program_of(tree).schemas
    db: Facts = {name: {tuple(map(as_value, f, bases)) for f in facts.get(name, ())} for name, bases in schemas.items()}
    for rule in program_of(tree).facts if with_text_facts else ():
        db[rule.relation] |= {fact for fact, _ in rule.instances(db)}
    return db


class Program:
    """`schemas`: the types of the columns of every relation. `components`: the strongly connected components of the
    relations, each after those it depends on. A clause without body is one of the `facts`, or a rule if it computes or
    its relation has a choice domain or a subsumption."""

    def __init__(self, tree: syntax.Tree) -> None:
        types = [*walk(tree.items, syntax.TypeDeclaration)]
        parents = {d.name: d.parents[0][0] for d in types if d.parents}
        for _ in range(len(parents)):
            parents = {name: parents.get(parent, parent) for name, parent in parents.items()}
        declared = [*walk(tree.items, syntax.RelationDeclaration)]
        places = {d.name: [a.name for a in d.attributes] for d in declared}
        self.choices = {d.name: [[places[d.name].index(n) for n, _ in key] for key in d.choices] for d in declared}
        limits = [d for d in walk(tree.items, syntax.Directive) if d.kind == "limitsize"]
        self.limited = {d.relation for d in limits}
        self.closed = [d.name for d in declared if any(word == "eqrel" for word, _ in d.qualifiers)]
        closures = [parse(Source("", CLOSURE.replace("e(", f"{name}(")))[0].items for name in self.closed]
        self.schemas = {d.name: [parents.get(a.type_name, a.type_name) for a in d.attributes] for d in declared}
        branches = [(f"${b.name}" if b.name else f"{d.name}[]", b.fields) for d in types for b in d.branches]
        fields = {name: [parents.get(f.type_name, f.type_name) for f in own] for name, own in branches}
        self.inlined: dict[str, list[Rule]] = {d.name: [] for d in declared if d.is_inline}
        lattices = {item.type_name: item for item in walk(tree.items, syntax.Lattice)}
        met = {
            (d.name, i): lattices[a.type_name]
            for d in declared
            for i, a in enumerate(d.attributes)
            if a.improves == "<>"
        }
        rules = [
            Rule(head, with_meets(c.body, met), self.schemas, fields, self.inlined, self.closed)
            for c in walk((tree.items, *closures), syntax.Clause)
            for head in c.heads
        ]
        for rule in rules:
            self.inlined.get(rule.relation, []).append(rule)
        rules = [rule for rule in rules if rule.relation not in self.inlined]
        self.closing = rules[len(rules) - 3 * len(self.closed) :]
        computes = [any(not is_made(c) for c in walk(r.head.arguments, syntax.Call | syntax.Aggregate)) for r in rules]
        pairs = [*walk(tree.items, syntax.Subsumption)]
        self.joined = {
            d.name: [met.get((d.name, i), a.improves) for i, a in enumerate(d.attributes)]
            for d in declared
            if d.improves
        }
        self.improving = {*self.joined, *(p.dominated.relation for p in pairs)}
        judged = self.improving | {name for name, keys in self.choices.items() if keys}
        derives = [
            bool(r.body) or computed or r.relation in judged for r, computed in zip(rules, computes, strict=True)
        ]
        self.rules = [r for r, does in zip(rules, derives, strict=True) if does]
        self.facts = [r for r, does in zip(rules, derives, strict=True) if not does]
        doubled = {
            **self.schemas,
            **{f"{p.dominated.relation}<=": self.schemas[p.dominated.relation] * 2 for p in pairs},
        }
        self.subsumptions = [(p.dominated.relation, Rule(*paired(p), doubled, fields, self.inlined)) for p in pairs]
        below = {name: {name} for name in self.schemas}
        for relation, rule in self.subsumptions:
            below[relation] |= {atom.relation for atom in walk(rule.body, syntax.Atom)}
        for rule in (*self.rules, *(rule for own in self.inlined.values() for rule in own)):
            below[rule.relation] |= rule.reads | {rule.relation}
        while any(not below[b] <= below[a] for a in below for b in below[a]):
            below = {a: set().union(*(below[b] for b in below[a])) for a in below}
        waiting = list(dict.fromkeys(frozenset(b for b in below[a] if a in below[b]) for a in below))
        self.components: list[frozenset[str]] = []
        while waiting:  # of those that may come next the one declared first
            done = set().union(*self.components)
            ready = next(c for c in waiting if all(below[name] <= done | c for name in c))
            self.components.append(ready)
            waiting.remove(ready)

    @property
    def classes(self) -> set[str]:
        """The equivalences that no rule of theirs reads, but for those that close them."""
        alone = {name for component in self.components if len(component) == 1 for name in component}
        closing = {name: sum(name in r.reads for r in self.rules if r.relation == name) for name in self.closed}
        return {name for name, number in closing.items() if name in alone - self.ordered and number == 3}

    @property
    def merged(self) -> set[str]:
        """The other equivalences, but where the order of facts matters in their recursion."""
        plain = [component for component in self.components if component.isdisjoint(self.ordered)]
        return set(self.closed) & set().union(*plain) - self.classes

    @property
    def ordered(self) -> set[str]:
        """The relations in which the order matters in which facts are found."""
        chosen = {name for name, keys in self.choices.items() if keys}
        return chosen | self.improving | self.limited

    def join(self, relation: str, facts: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
        """Of each key the join of all values: the least, or greatest; NaN only where there is nothing else."""
        kinds = self.joined[relation]
        found: dict[Any, Any] = {}
        for fact in facts:
            key = tuple(value for value, kind in zip(fact, kinds, strict=True) if not kind)
            found[key] = [best(kind, *two) for kind, *two in zip(kinds, found.get(key, fact), fact, strict=True)]
        return set(map(tuple, found.values()))

    def prune(self, component: Collection[str], db: Facts) -> None:
        """Takes the facts away that others dominate; of two that dominate each other the lesser stays."""
        for relation, rule in self.subsumptions:
            if relation in component:
                width = len(self.schemas[relation])
                pairs = {(pair[:width], pair[width:]) for pair, _ in rule.instances(db)}
                for one, other in pairs:
                    is_less = (other, one) in pairs and list(map(ordered, one)) < list(map(ordered, other))
                    if one != other and not is_less:
                        db[relation] -= {one}

    def chosen(self, new: set[tuple[str, Any]], db: Facts) -> list[tuple[str, Any]]:
        """Of the facts of a round those that choice domains let in, one after the other, in ascending order."""
        found: list[tuple[str, Any]] = []
        for relation, fact in sorted(new, key=lambda entry: (entry[0], list(map(ordered, entry[1])))):
            present = [*db[relation], *(other for name, other in found if name == relation)]
            keys = self.choices[relation]
            if not any(all(fact[i] == other[i] for i in key) for key in keys for other in present):
                found.append((relation, fact))
        return found


def paired(subsumption: syntax.Subsumption) -> tuple[syntax.Atom, syntax.Body]:
    """The pairs of facts of which the first is dominated, as head and body of a rule."""
    one, other = subsumption.dominated, subsumption.dominating
    head = syntax.Atom(f"{one.relation}<=", (*one.arguments, *other.arguments), one.relation_span, subsumption.span)
    return head, (one, other, *subsumption.body)


def with_meets(body: syntax.Body, lattices: Mapping[tuple[str, int], syntax.Lattice]) -> syntax.Body:
    """A body in which a variable that several columns `D<>` say is what their values have in common, if anything."""
    places = [(atom, i, t) for atom in body if isinstance(atom, syntax.Atom) for i, t in enumerate(atom.arguments)]
    said = [(atom, i, t) for atom, i, t in places if (atom.relation, i) in lattices and isinstance(t, syntax.Variable)]
    found = list(body)
    for name in {t.name for _, _, t in said if sum(other.name == t.name for _, _, other in said) > 1}:
        own = [(atom, i, replace(t, name=f"{name}@{n}")) for n, (atom, i, t) in enumerate(said) if t.name == name]
        for atom, i, term in own:
            at = next(n for n, each in enumerate(found) if isinstance(each, syntax.Atom) and each.span == atom.span)
            arguments = found[at].arguments
            found[at] = replace(found[at], arguments=(*arguments[:i], term, *arguments[i + 1 :]))
        lattice = lattices[own[0][0].relation, own[0][1]]
        glb, bottom = lattice.operator("Glb"), lattice.operator("Bottom")
        meet: Any = own[0][2]
        for _, _, term in own[1:]:
            meet = replace(glb, arguments=(meet, term))
        variable = replace(own[0][2], name=name)
        found.append(syntax.Comparison("=", variable, meet, variable.span, variable.span))
        if bottom is not None:
            found.append(syntax.Comparison("!=", variable, bottom, variable.span, variable.span))
    return tuple(found)


def best(kind: Any, one: Any, other: Any) -> Any:
    """The better one of two values of a column `min T` or `max T`, their join in a lattice; where both are the same,
    as in other columns, that."""
    if isinstance(kind, syntax.Lattice):
        return one if one == other else apply(kind.operator("Lub").functor, (one, other), "number")[0]
    if one != one or other != other:  # NaN
        return other if one != one else one
    return {"min": min, "max": max}[kind](one, other) if kind else one


def ordered(value: Any) -> Any:
    """By what values of one type are ordered: records part by part, `nil` first."""
    return [value[0].replace("nil", ""), *map(ordered, value[1:])] if isinstance(value, tuple) else value


program_of = lru_cache(maxsize=64)(Program)


class Rule:  # head :- body.
    def __init__(
        self,
        head: syntax.Atom,
        body: syntax.Body,
        schemas: dict[str, list[str]],
        fields: Any,
        inlined: "dict[str, list[Rule]]",
        closed: Any = (),
    ) -> None:
        self.relation, self.head, self.schemas, self.fields = head.relation, head, schemas, fields
        self.inlined = inlined
        self.body = tuple(sorted(body, key=lambda literal: isinstance(literal, syntax.Atom)))  # tests come early
        places = [(atom, i) for atom in walk((body, head), syntax.Atom) for i in range(len(atom.arguments))]
        self.types = {name_of(atom.arguments[i]): schemas[atom.relation][i] for atom, i in places}
        self.visible = names((head, body), is_deep=False)
        self.places: dict[Any, Any] = {}
        self.found_ranges: dict[int, Any] = {}
        self.found_names: dict[int, Any] = {}
        self.reads = {atom.relation for atom in walk((head.arguments, body), syntax.Atom)}
        aggregates = [*walk((body, head), syntax.Aggregate)]
        self.scopes = {a.span: (names(a) - hidden(a), names((a.target, a.body), is_deep=False)) for a in aggregates}
        self.witnesses = witnesses(head, body)
        self.calls = [c for c in walk((body, head), syntax.Call) if c.functor == "autoinc"]
        self.numbered, self.key = telling_apart(body, closed) if self.calls else (body, [])

    def number(self, db: "Numbered") -> None:
        """Gives every derivation a number, those that have none the next ones, in the order of their values."""
        for call in self.calls:
            found = {tuple(env[name] for name in self.key) for env in self.solve(self.numbered, {AROUND: set()}, db)}
            first = max(db.numbers.values(), default=-1) + 1
            known = {key for span, key in db.numbers if span == call.span}
            for key in known - found:
                del db.numbers[call.span, key]
            for place, key in enumerate(sorted(found - known, key=lambda values: list(map(ordered, values)))):
                db.numbers[call.span, key] = first + place

    def instances(self, db: Facts) -> Iterator[tuple[tuple[Any, ...], Environment]]:
        """The head of every instantiation, with its environment."""
        for env in self.solve(self.body, {AROUND: self.visible}, db):
            yield from ((fact, env) for fact in product(*self.arguments(self.head, env, db)))

    def solve(self, body: syntax.Body, env: Environment, db: Facts) -> Iterator[Environment]:
        """The environments in which a body holds. A literal that needs an unbound variable waits."""
        for i, literal in enumerate(body):
            try:
                found = list(self.extend(literal, env, db))
            except KeyError:
                continue
            for extended, more in found:
                yield from self.solve(more + body[:i] + body[i + 1 :], extended, db)
            return
        if body:
            raise KeyError("a variable is not bound")
        yield env

    def extend(self, literal: Any, env: Environment, db: Facts) -> Iterator[tuple[Environment, syntax.Body]]:
        """The environments in which a literal holds too, if more literals do."""
        for call in self.ranges(literal):
            if (name := f"_@{call.span.start}") not in env:
                for value in self.values(call, env, db, self.base(call, env)):
                    yield from self.extend(literal, {**env, name: value}, db)
                return
        match literal:
            case syntax.Atom():
                named, others = self.places_of(literal)
                for fact, rests_on in self.candidates(literal, named, env, db):
                    new = dict(env)
                    if all(fact[i] in (new.setdefault(name, fact[i]),) for i, name in named):
                        new.update(rests_on)
                        is_same = all(self.match(term, fact[i], new, db) for i, term, _ in others)
                        if is_same and all(fact[i] in self.values(term, new, db, base) for i, term, base in others):
                            yield new, ()
            case syntax.Negation() | syntax.NegatedGroup():
                body = (literal.atom,) if isinstance(literal, syntax.Negation) else literal.body
                if not self.names_of(literal) <= env.keys():
                    raise KeyError("its variables get their values elsewhere")
                if next(self.solve(body, dict(env), db), None) is None:
                    yield env, ()
            case syntax.Comparison(operator=operator) if operator.startswith("not "):  # see `levels.in_force`
                if not self.names_of(literal) <= env.keys():
                    raise KeyError("its variables get their values elsewhere")
                new = dict(env)  # it rests on what its aggregates range over
                if not list(self.compared(replace(literal, operator=operator.removeprefix("not ")), new, db)):
                    yield new, ()
            case syntax.Comparison() if literal.span in self.witnesses:
                yield from ((extended, ()) for extended in self.attaining(literal, env, db))
            case syntax.Comparison():
                yield from ((extended, ()) for extended in self.compared(literal, env, db))
            case syntax.Disjunction():
                yield from ((dict(env), alternative) for alternative in literal.alternatives)
            case syntax.Truth() if literal.value:
                yield env, ()

    def names_of(self, literal: Any) -> set[str]:
        """The names in a literal, but for those inside of aggregates."""
        if id(literal) not in self.found_names:
            self.found_names[id(literal)] = literal, names(literal, is_deep=False)
        found: set[str] = self.found_names[id(literal)][1]
        return found

    def ranges(self, literal: Any) -> list[Any]:
        """The ranges in an atom or a comparison, but for `x = range(…)`. Each of their values counts, as with `_`."""
        if id(literal) not in self.found_ranges:
            terms = literal.arguments if isinstance(literal, syntax.Atom) else ()
            if isinstance(literal, syntax.Comparison):
                named = [isinstance(side, syntax.Variable) for side in (literal.left, literal.right)]
                terms = () if literal.operator == "=" and any(named) else (literal.left, literal.right)
            calls = walk(tuple(terms), syntax.Call, is_deep=False)
            self.found_ranges[id(literal)] = literal, [call for call in calls if call.functor == "range"]
        return self.found_ranges[id(literal)][1]

    def candidates(
        self, atom: syntax.Atom, named: Any, env: Environment, db: Facts
    ) -> Iterator[tuple[Any, Environment]]:
        """Facts that may fit an atom, each with what it rests on: itself, or what an inline rule finds it by."""
        relation = atom.relation
        if relation not in self.inlined:
            bound = next(((i, env[name]) for i, name in named if name in env), None)
            found = db.with_value(relation, *bound) if bound and isinstance(db, Numbered) else db[relation]
            yield from ((fact, {atom.span: (relation, fact)}) for fact in found)
            return
        known = {}
        for i, (term, base) in enumerate(zip(atom.arguments, self.schemas[relation], strict=True)):
            with suppress(KeyError):
                known[i] = self.values(term, env, db, base)
        for rule in self.inlined[relation]:
            terms = {i: term for i, term in enumerate(rule.head.arguments) if isinstance(term, syntax.Variable)}
            given = {terms[i].name: i for i in known if i in terms}
            for values in product(*known.values()):
                chosen = dict(zip(known, values, strict=True))
                inner = {AROUND: rule.visible, **{name: chosen[i] for name, i in given.items()}}
                for inside in rule.solve(rule.body, inner, db):
                    rests_on = {(atom.span, key): value for key, value in inside.items() if not isinstance(key, str)}
                    for fact in product(*rule.arguments(rule.head, inside, db)):
                        yield fact, rests_on

    def places_of(self, atom: syntax.Atom) -> Any:
        """The arguments of an atom that are variables, by place, and the others with the types wanted there."""
        if id(atom) not in self.places:
            terms = [(i, term, name_of(term)) for i, term in enumerate(atom.arguments)]
            named = [(i, name) for i, _, name in terms if name is not None]
            others = [(i, term, self.schemas[atom.relation][i]) for i, term, name in terms if name is None]
            self.places[id(atom)] = named, others
        return self.places[id(atom)]

    def compared(self, literal: syntax.Comparison, env: Environment, db: Facts) -> Iterator[Environment]:
        """The environments in which a comparison holds, too."""
        for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if literal.operator == "=" and isinstance(side, syntax.Variable) and side.name not in env:
                found = self.values(other, env, db, self.types.get(side.name))
                yield from ({**env, side.name: value} for value in found)
                return
            if literal.operator == "=" and is_made(side) and isinstance(other, syntax.Variable):
                new = dict(env)
                yield from (new for _ in [0] if self.match(side, env[other.name], new, db))
                return
        base = self.base(literal.left, env) or self.base(literal.right, env)
        sides = [self.values(side, env, db, base) for side in (literal.left, literal.right)]
        yield from (env for pair in product(*sides) if compare(literal.operator, *pair))

    def attaining(self, literal: syntax.Comparison, env: Environment, db: Facts) -> Iterator[Environment]:
        """The environments in which witnesses have values that attain a least or greatest value. What attains it is
        among what the rule rests on, like the facts of its atoms."""
        result, least, own = self.witnesses[literal.span]
        outside = {name: value for name, value in env.items() if name not in own} | {AROUND: env[AROUND] - own}
        for extended in self.compared(literal, outside, db):
            for member in (found for members in extended[least.span] for found in members):
                is_same = all(member[name] in [env.get(name, member[name])] for name in own)
                if is_same and self.values(least.target, member, db) == self.values(result, extended, db):
                    rests = {key: value for key, value in member.items() if not isinstance(key, str)}
                    yield {**extended, **rests, **{name: member[name] for name in own}, AROUND: env[AROUND]}

    def match(self, term: Any, value: Any, env: Environment, db: Facts) -> bool:
        """Whether a pattern fits a value; the variables in it get values. Anything else is looked at by others."""
        if is_made(term):
            is_so = isinstance(value, Made) and value[0] == term.functor and len(value) == 1 + len(term.arguments)
            return is_so and all(self.part(*pair, env, db) for pair in zip(term.arguments, value[1:], strict=True))
        return True

    def part(self, term: Any, value: Any, env: Environment, db: Facts) -> bool:
        if (name := name_of(term)) is not None:
            return value in [env.setdefault(name, value)]
        return self.match(term, value, env, db) if is_made(term) else value in self.values(term, env, db)

    def arguments(self, atom: syntax.Atom, env: Environment, db: Facts) -> list[list[Any]]:
        bases = self.schemas[atom.relation]
        return [self.values(term, env, db, base) for term, base in zip(atom.arguments, bases, strict=True)]

    def values(self, term: Any, env: Environment, db: Facts, want: str | None = None) -> list[Any]:
        """The values of a term where the type `want` is wanted: none where it fails, several for `range`."""
        if type(term) is syntax.Variable:
            return [env[term.name]]
        match term:
            case syntax.Wildcard():
                return [env[name_of(term)]]
            case syntax.Call(functor="range") if f"_@{term.span.start}" in env:
                return [env[f"_@{term.span.start}"]]
            case syntax.Call(functor="autoinc"):
                assert isinstance(db, Numbered)
                return [db.numbers[term.span, tuple(env[name] for name in self.key)]]
            case syntax.Call(functor=functor) if is_made(term):
                wants = self.fields.get(functor) or self.fields.get(f"{want}{functor}") or [None] * len(term.arguments)
                parts = [self.values(t, env, db, base) for t, base in zip(term.arguments, wants, strict=True)]
                return [Made((functor, *chosen)) for chosen in product(*parts)]
            case syntax.Call(functor=functor):
                base = self.base(term, env) or want or "number"
                inner = None if functor in RESULTS else base
                chosen = product(*(self.values(argument, env, db, inner) for argument in term.arguments))
                return [value for arguments in chosen for value in apply(functor, arguments, base)]
            case syntax.Cast():  # between types with one base
                return self.values(term.term, env, db, want)
            case syntax.Aggregate(operator=operator):
                members: dict[Any, list[Environment]] = {}  # by assignment: alternatives may find one twice
                inner, own = self.scopes[term.span]
                inside = {name: env[name] for name in inner & env[AROUND]}
                inside[AROUND] = env[AROUND] | own
                seen = db.seen if isinstance(db, Numbered) else {}
                key = term.span, frozenset(item for item in inside.items() if isinstance(item[0], str))
                if key not in seen:
                    seen[key] = list(self.solve(term.body, inside, db))
                for found in seen[key]:
                    members.setdefault(frozenset(i for i in found.items() if isinstance(i[0], str)), []).append(found)
                env[term.span] = list(members.values())
                targets = [self.values(term.target, m[0], db) if term.target else [1] for m in members.values()]
                return aggregate(operator, [value for target in targets for value in target], want)
        return [as_value(term.value, want or "")]

    def base(self, term: Any, env: Environment) -> str | None:
        """The type of a term, if it has one of its own."""
        if isinstance(term, syntax.Call):
            return RESULTS.get(term.functor) or next(filter(None, (self.base(t, env) for t in term.arguments)), None)
        if isinstance(term, syntax.Variable):
            return BASES.get(type(env[term.name]), "number")
        return "unsigned" if getattr(term, "is_unsigned", False) else BASES.get(type(getattr(term, "value", None)))
