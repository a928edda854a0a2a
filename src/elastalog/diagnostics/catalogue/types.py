"""Errors of types and variables (E03xx), and of strata (E04xx)."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

TYPES: tuple[Entry, ...] = (
    Entry(
        "E0301",
        "variable of two types",
        "Within a rule, a variable stands for one value, so it has one type. Here two arguments of different "
        "base types share a variable. Convert the value, or use two variables.",
        ".decl age(name: symbol, years: number)\n.input age\n.decl label(text: symbol)\nlabel(years) :- age(_, years).",
        ".decl age(name: symbol, years: number)\n"
        ".input age\n"
        ".decl label(text: symbol)\n"
        "label(to_string(years)) :- age(_, years).",
    ),
    Entry(
        "E0302",
        "argument of the wrong type",
        "A constant or an expression stands where the declaration asks for another base type. Nothing is "
        "converted silently. A whole number without suffix fits `number`, `unsigned` and `float`.",
        '.decl age(name: symbol, years: number)\nage("ann", "31").',
        '.decl age(name: symbol, years: number)\nage("ann", 31).',
    ),
    Entry(
        "E0303",
        "comparison of different types",
        "Both sides of a comparison have the same base type, and so have a variable and the aggregate that it"
        " equals: `count` gives a number, `mean` a float, and `sum`, `min` and `max` what they are taken of. "
        "`match` and `contains` compare symbols.",
        ".decl age(name: symbol, years: number)\n"
        ".input age\n"
        ".decl adult(name: symbol)\n"
        'adult(name) :- age(name, years), years >= "18".',
        ".decl age(name: symbol, years: number)\n"
        ".input age\n"
        ".decl adult(name: symbol)\n"
        "adult(name) :- age(name, years), years >= 18.",
    ),
    Entry(
        "E0304",
        "literal outside its type",
        "`number` holds whole numbers from -9223372036854775808 to 9223372036854775807, `unsigned` from 0 to "
        "18446744073709551615. Which of them a literal is read as follows from its place.",
        ".decl port(p: unsigned)\nport(-1).",
        ".decl port(p: unsigned)\nport(65535).",
    ),
    Entry(
        "E0305",
        "functor applied to the wrong type",
        "Arithmetic takes arguments of one numeric type, functors on strings take symbols. Symbols are joined"
        " with `cat` or `+`, and `to_number`, `to_unsigned`, `to_float` and `to_string` convert.",
        '.decl word(s: symbol)\n.input word\n.decl plural(s: symbol)\nplural(s * "s") :- word(s).',
        '.decl word(s: symbol)\n.input word\n.decl plural(s: symbol)\nplural(cat(s, "s")) :- word(s).',
    ),
    Entry(
        "E0307",
        "value of a type that the column does not take",
        "A rule fills a column with a variable whose type is not the declared one, nor below it. Not every value of a "
        "type is one of its subtypes, and siblings have nothing to do with each other. Different subtypes of one base "
        "type may meet in a comparison. Constants and results of functors have every type of their base.",
        ".type City <: symbol\n.type Person <: symbol\n.decl lives(p: Person, c: City)\n.input lives\n"
        ".decl city(c: City)\ncity(p) :- lives(p, _).",
        ".type City <: symbol\n.type Person <: symbol\n.decl lives(p: Person, c: City)\n.input lives\n"
        ".decl city(c: City)\ncity(c) :- lives(_, c).",
    ),
    Entry(
        "E0308",
        "aggregate over the wrong type",
        "`sum`, `min`, `max` and `mean` are taken of numbers, unsigned numbers or floats.",
        ".decl age(name: symbol, years: number)\n"
        ".input age\n"
        ".decl last(n: symbol)\n"
        "last(n) :- n = max m : { age(m, _) }.",
        ".decl age(name: symbol, years: number)\n"
        ".input age\n"
        ".decl last(n: symbol)\n"
        "last(n) :- age(n, y), y = max z : { age(_, z) }.",
    ),
    Entry(
        "E0310",
        "not a regular expression",
        "The first argument of `match` is a regular expression that the whole text must match. Characters "
        "with a meaning of their own are taken as they are after a backslash, which is written twice in a "
        "string. The syntax is that of ECMAScript, without what cannot be matched in time linear in the text: back "
        "references (`\\\\1`) and looking ahead or behind (`(?=…)`, `(?<!…)`); a repetition counts up to 1000.",
        '.decl word(s: symbol)\n.input word\n.decl call(s: symbol)\ncall(s) :- word(s), match(".*(", s).',
        '.decl word(s: symbol)\n.input word\n.decl call(s: symbol)\ncall(s) :- word(s), match(".*\\\\(", s).',
    ),
    Entry(
        "E0311",
        "cast between types that do not fit",
        "`as(x, T)` takes a value for one of another type without changing it. That is possible between types with the "
        "same base type, between `number` and `unsigned` (where the value fits), and from a symbol to a number, which "
        "gives its `ord`. Other conversions change the value and are written as such: `to_number`, `to_string`.",
        ".decl s(x: number)\ns(1).\n.decl p(x: symbol)\np(as(x, symbol)) :- s(x).",
        ".decl s(x: number)\ns(1).\n.decl p(x: symbol)\np(to_string(x)) :- s(x).",
    ),
    Entry(
        "E0312",
        "a variable of two types",
        "The same variable in columns of two declared types stands for values that both hold. Where no declared "
        "type is below both, they hold none in common: one of the columns is probably not the one meant. "
        "`as(x, T)` takes a value for one of type `T`.",
        ".type City <: symbol\n.type Person <: symbol\n.decl city(c: City)\n.decl person(p: Person)\n"
        ".input city, person\n.decl both(x: symbol)\nboth(x) :- city(x), person(x).",
        ".type City <: symbol\n.type Person <: symbol\n.decl city(c: City)\n.decl person(p: Person)\n"
        ".input city, person\n.decl both(x: symbol)\nboth(x) :- city(x), person(as(x, Person)).",
    ),
    Entry(
        "E0320",
        "variable not grounded",
        "Every variable of a rule must get its values from somewhere: from a positive atom in which it is an "
        "argument by itself, from `v = expression` where the variables of the expression have values, from `v"
        " = range(…)`, or from `v = aggregate`. Negated atoms and other comparisons only test values. Without"
        " this, a rule would have infinitely many answers.\n"
        "\n"
        "A variable inside an aggregate that also stands outside it is shared with the rule: the aggregate is"
        " taken for each of its values, which must come from outside.",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl path(x: number, y: number)\n"
        ".output path\n"
        "path(x, z) :- edge(x, _).",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl path(x: number, y: number)\n"
        ".output path\n"
        "path(x, z) :- edge(x, z).",
    ),
    Entry(
        "E0321",
        "wildcard without a value",
        "`_` stands for any value in an argument of an atom. In the head of a rule, in a comparison, in an "
        "argument of a functor, as the target of an aggregate, and in a record or branch that is built (in a head, or "
        "in a negation, which looks for that very value) a certain value is needed.",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl path(x: number, y: number)\n"
        ".output path\n"
        "path(x, _) :- edge(x, _).",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl path(x: number, y: number)\n"
        ".output path\n"
        "path(x, y) :- edge(x, y).",
    ),
    Entry(
        "E0323",
        "target of an aggregate not grounded inside",
        "An aggregate is taken over the values that its own body gives the target. A variable that has its "
        "value only from outside would be the same every time; in an expression, such as `sum y - x`, it may stand.",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl out(s: number)\n"
        "out(s) :- edge(x, _), s = sum x : { edge(_, _) }.",
        ".decl edge(x: number, y: number)\n.input edge\n.decl out(s: number)\nout(s) :- s = sum x : { edge(x, _) }.",
    ),
    Entry(
        "E0324",
        "variable that occurs once",
        "A variable that occurs only once joins nothing. It may be a slip in its name. When its value does "
        "not matter, `_` says so; a name that starts with `_` does too. This is a warning.",
        ".decl edge(x: number, y: number)\n.input edge\n.decl node(x: number)\nnode(x) :- edge(x, other).",
        ".decl edge(x: number, y: number)\n.input edge\n.decl node(x: number)\nnode(x) :- edge(x, _).",
    ),
    Entry(
        "E0325",
        "division by zero",
        "A warning. Division and remainder by zero have no value: a rule derives nothing from the facts for which it "
        "would divide by zero, and a fact that is written with one does not hold.",
        ".decl n(x: number)\nn(10 / 0).",
        ".decl n(x: number)\nn(10 / 2).",
    ),
    Entry(
        "E0340",
        "type of a record that cannot be told",
        "What `[a, b]` means depends on its type, and that comes from where it stands: an argument of a relation that "
        "is declared with a record type, a field of another record, or a variable that is used so and that it equals.",
        ".type P = [x: number, y: number]\n.decl n(x: number)\nn(1).\n"
        ".decl m(x: number)\nm(x) :- n(x), [x, 1] != [1, x].",
        ".type P = [x: number, y: number]\n.decl n(x: number)\nn(1).\n.decl m(p: P)\nm(p) :- n(x), p = [x, 1].",
    ),
    Entry(
        "E0341",
        "value of another type",
        "`nil` and `[…]` belong to record types, and a branch `$A` to the type that declares it. Here a value of "
        "another type is expected.",
        ".type P = [x: number]\n.type T = Leaf {}\n.decl t(t: T)\nt(nil).",
        ".type P = [x: number]\n.type T = Leaf {}\n.decl t(t: T)\nt($Leaf).",
    ),
    Entry(
        "E0342",
        "values without an order",
        "Records, and branches with fields, can be compared by `=` and `!=` only. A type whose branches have no fields "
        "is ordered by the names of the branches.",
        ".type P = [x: number]\n.decl p(p: P)\np([1]).\n.decl q(p: P)\nq(a) :- p(a), p(b), a < b.",
        ".type P = [x: number]\n.decl p(p: P)\np([1]).\n.decl q(p: P)\nq([a]) :- p([a]), p([b]), a < b.",
    ),
    Entry(
        "E0412",
        "negation in a cycle",
        "A rule that negates a relation reads what is not in it, so the relation must be complete first. When"
        " the relation depends, directly or through others, on the rule that negates it, neither can come "
        "first. The labels show every step of the cycle.\n"
        "\n"
        "Often a relation that is too large is negated: negate one that does not depend on the rule.",
        ".decl node(x: number)\n"
        ".input node\n"
        ".decl on(x: number)\n"
        ".decl off(x: number)\n"
        "on(x) :- node(x), !off(x).\n"
        "off(x) :- node(x), !on(x).",
        ".decl node(x: number)\n"
        ".input node\n"
        ".decl broken(x: number)\n"
        ".input broken\n"
        ".decl on(x: number)\n"
        ".decl off(x: number)\n"
        "on(x) :- node(x), !off(x).\n"
        "off(x) :- node(x), broken(x).",
    ),
    Entry(
        "E0413",
        "aggregate in a cycle",
        "An aggregate reads all facts of the relations in its body, so they must be complete first. When one "
        "of them depends, directly or through others, on the rule with the aggregate, neither can come first.",
        ".decl part(whole: symbol, part: symbol)\n"
        ".input part\n"
        ".decl weight(p: symbol, w: number)\n"
        ".input weight\n"
        "weight(p, w) :- part(p, _), w = sum v : { part(p, q), weight(q, v) }.",
        ".decl part(whole: symbol, part: symbol)\n"
        ".input part\n"
        ".decl weight(p: symbol, w: number)\n"
        ".input weight\n"
        ".decl total(p: symbol, w: number)\n"
        "total(p, w) :- part(p, _), w = sum v : { part(p, q), weight(q, v) }.",
    ),
    Entry(
        "E0414",
        "rule that may grow without end",
        "A recursive rule computes a value from one of its own recursion, by arithmetic, `cat`, a record or a functor "
        "of yours, and neither compares it by `<` or the like nor finds it in a relation outside the recursion. Over "
        "facts with a cycle such a rule makes new values for ever; the limits of time and memory end it.",
        ".decl edge(x: number, y: number)\n.input edge\n.decl far(x: number, n: number)\nfar(1, 0).\n"
        "far(y, n + 1) :- far(x, n), edge(x, y).",
        ".decl edge(x: number, y: number)\n.input edge\n.decl far(x: number, n: number)\nfar(1, 0).\n"
        "far(y, n + 1) :- far(x, n), edge(x, y).\nfar(x, a) <= far(x, b) :- b < a.",
    ),
    Entry(
        "E0263",
        "lattice at fault",
        "`.lattice D<> { … }` says how values of a type improve: `Lub` joins two of them and must be there; `Glb` is "
        "what two have in common, `Leq` whether one lies below another, `Bottom` and `Top` are values. A column "
        "`v: D<>` needs such a declaration. The least or greatest value needs none: `v: min number`.",
        ".lattice Sign<> { Glb -> @glb(_, _) }",
        ".lattice Sign<> { Lub -> @lub(_, _), Glb -> @glb(_, _) }",
    ),
    Entry(
        "E0264",
        "column that cannot improve",
        "A column `min T`, `max T` or `D<>` keeps one value for all others of a fact. The relation must not say by an "
        "`eqrel`, a choice domain or a subsumption which facts are kept, `T` must have an order, and parameters and "
        "parts of records keep nothing.",
        ".decl far(x: number, n: min number)\nfar(0, 0).\nfar(x, a) <= far(x, b) :- b < a.",
        ".decl far(x: number, n: min number)\nfar(0, 0).",
    ),
)
