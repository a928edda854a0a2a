"""Errors of names and declarations (E02xx)."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

NAMES: tuple[Entry, ...] = (
    Entry(
        "E0201",
        "relation declared twice",
        "Every relation has one `.decl`, which says how many attributes it has and of which types. Two "
        "declarations of one name would leave open which of them holds, even when they agree.",
        ".decl edge(x: number, y: number)\n.input edge\n.decl edge(from: symbol, to: symbol)",
        ".decl edge(x: number, y: number)\n.input edge\n.decl road(from: symbol, to: symbol)\n.input road",
    ),
    Entry(
        "E0202",
        "type declared twice",
        "Every type name has one `.type`, and the names `number`, `unsigned`, `float` and `symbol` are taken.",
        ".type Name <: symbol\n.type Name <: number",
        ".type Name <: symbol\n.type Id <: number",
    ),
    Entry(
        "E0203",
        "unknown type",
        "An attribute or a `.type` names a type that is neither one of `number`, `unsigned`, `float` and "
        "`symbol` nor declared with `.type`. The order of declarations does not matter.",
        ".decl person(name: string)\n.input person",
        ".decl person(name: symbol)\n.input person",
    ),
    Entry(
        "E0204",
        "unknown relation",
        "A fact, a rule or a directive names a relation that has no `.decl`. Names are case-sensitive. The "
        "order of declarations and rules does not matter.",
        ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\npath(x, y) :- egde(x, y).",
        ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\npath(x, y) :- edge(x, y).",
    ),
    Entry(
        "E0205",
        "wrong number of arguments of a relation",
        "An atom has as many arguments as its relation has attributes. An argument that does not matter is "
        "written `_`.",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl path(x: number, y: number)\n"
        ".output path\n"
        "path(x, x) :- edge(x).",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl path(x: number, y: number)\n"
        ".output path\n"
        "path(x, x) :- edge(x, _).",
    ),
    Entry(
        "E0206",
        "unknown functor",
        "Inside an expression, a name with arguments is a functor: `strlen(s)`, `cat(a, b)`. Relations are no"
        " functors: they stand as atoms in the body and bind variables there. The reference of the language has a"
        " table of all functions: docs/reference/language.md#functions.",
        ".decl word(s: symbol)\n.input word\n.decl size(s: symbol, n: number)\nsize(s, length(s)) :- word(s).",
        ".decl word(s: symbol)\n.input word\n.decl size(s: symbol, n: number)\nsize(s, strlen(s)) :- word(s).",
    ),
    Entry(
        "E0207",
        "wrong number of arguments of a functor",
        "Every functor takes a fixed number of arguments, except `min` and `max`, which take two or more, `cat`, "
        "which takes one or more, `range`, which takes two or three, and `format`, which takes a text in quotes and "
        "a value for every place `{}` in it.",
        ".decl word(s: symbol)\n.input word\n.decl start(s: symbol)\nstart(substr(s, 1)) :- word(s).",
        ".decl word(s: symbol)\n.input word\n.decl start(s: symbol)\nstart(substr(s, 0, 1)) :- word(s).",
    ),
    Entry(
        "E0208",
        "type defined by itself",
        "Following the definitions of a type must end at `number`, `unsigned`, `float` or `symbol`. Here it "
        "comes back to where it started.",
        ".type A = B\n.type B = A",
        ".type A = B\n.type B <: symbol",
    ),
    Entry(
        "E0209",
        "union of different base types",
        "A union is of use where several subtypes meet in one attribute. All of them must have the same base "
        "type, because a column holds values of one base type.",
        ".type Name <: symbol\n.type Id <: number\n.type Key = Name | Id",
        ".type Name <: symbol\n.type Id <: symbol\n.type Key = Name | Id",
    ),
    Entry(
        "E0210",
        "attribute named twice",
        "The attributes of a relation have different names: they become the columns of its tables.",
        ".decl edge(x: number, x: number)\n.input edge",
        ".decl edge(x: number, y: number)\n.input edge",
    ),
    Entry(
        "E0211",
        "unknown component",
        "`.init` and the bases behind the `:` of a component name a component that is declared with `.comp`: in the "
        "same component, in one that it inherits from, or around it.",
        ".comp Graph { .decl edge(x: number) edge(1). }\n.init g = Grph",
        ".comp Graph { .decl edge(x: number) edge(1). }\n.init g = Graph",
    ),
    Entry(
        "E0212",
        "wrong number of parameters of a component",
        "A component takes as many types or components between `<` and `>` as its declaration names.",
        ".comp Graph<T> { .decl edge(x: T) edge(1). }\n.init g = Graph",
        ".comp Graph<T> { .decl edge(x: T) edge(1). }\n.init g = Graph<number>",
    ),
    Entry(
        "E0213",
        "directive given twice",
        "A relation has at most one `.input`, one `.printsize` and one `.limitsize`, and one `.output` "
        "without parameters; the same one given again counts once, with a warning. "
        "The old qualifiers `input`, `output` and `printsize` of `.decl` count as "
        "directives.",
        ".decl edge(x: number, y: number)\n.input edge\n.input edge(headers=true)",
        ".decl edge(x: number, y: number)\n.input edge(headers=true)",
    ),
    Entry(
        "E0214",
        "unknown parameter of a directive",
        "`.input` and `.output` take `IO`, `filename`, `delimiter`, `headers`, `rfc4180` and `compress`; "
        "`.printsize` takes `IO`; `.limitsize` takes `n`. Anything else is ignored, with this warning.",
        '.decl edge(x: number, y: number)\n.input edge(filenam="e.csv")',
        '.decl edge(x: number, y: number)\n.input edge(filename="e.csv")',
    ),
    Entry(
        "E0215",
        "bad value of a parameter",
        "`IO` is `file` or `stdin` for `.input`, `file` or `stdout` for `.output`, `stdout` for `.printsize`."
        " `headers`, `rfc4180` and `compress` are `true` or `false`. `n` of `.limitsize` is a whole number "
        "above 0. A delimiter is not empty.",
        ".decl edge(x: number, y: number)\n.input edge(headers=yes)",
        ".decl edge(x: number, y: number)\n.input edge(headers=true)",
    ),
    Entry(
        "E0216",
        "not a file name",
        "Files are named by paths, relative to the folder given with `-F` for facts and `-D` for outputs. A program of "
        "your own may name files elsewhere, too; one that comes with a store may not (E0512), and over the network no "
        "file is named at all (E0927).",
        '.decl edge(x: number, y: number)\n.input edge(filename="")',
        '.decl edge(x: number, y: number)\n.input edge(filename="edges.csv")',
    ),
    Entry(
        "E0217",
        "limit without a number",
        "`.limitsize` ends the evaluation of a relation once it holds `n` facts, so it must say `n`.",
        ".decl edge(x: number, y: number)\n.input edge\n.limitsize edge",
        ".decl edge(x: number, y: number)\n.input edge\n.limitsize edge(n=1000)",
    ),
    Entry(
        "E0218",
        "plan that does not fit its rule",
        "`.plan` orders the positive atoms of the rule before it, counted from 1, for each version of the "
        "rule. The versions are those in which one recursive atom after the other reads only new facts; they "
        "count from 0. Every order names every atom exactly once.",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl path(x: number, y: number)\n"
        ".output path\n"
        "path(x, z) :- path(x, y), edge(y, z).\n"
        ".plan 0:(1, 3)\n"
        "path(x, y) :- edge(x, y).",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl path(x: number, y: number)\n"
        ".output path\n"
        "path(x, z) :- path(x, y), edge(y, z).\n"
        ".plan 0:(2, 1)\n"
        "path(x, y) :- edge(x, y).",
    ),
    Entry(
        "E0219",
        "pragma without effect",
        "Pragmas are read, so that programs written for Soufflé can be used as they are, but none of them has"
        " an effect. Options are given on the command line.",
        '.pragma "legacy"\n.decl edge(x: number, y: number)\n.input edge',
        ".decl edge(x: number, y: number)\n.input edge",
    ),
    Entry(
        "E0220",
        "hint without effect",
        "The qualifiers `btree`, `brie`, `magic`, `inline` and their kin tell other engines how to store or "
        "rewrite a relation. They do not change what a program means and are ignored here.",
        ".decl edge(x: number, y: number) btree\n.input edge",
        ".decl edge(x: number, y: number)\n.input edge",
    ),
    Entry(
        "E0221",
        "too many alternatives",
        "A rule with `;` stands for one rule for each way to choose among the alternatives, and several "
        "groups multiply: ten groups of two are 1024 rules. Up to 1000 are accepted. A relation of its own "
        "for each group keeps them apart.",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl out(x: number)\n"
        "out(x) :- edge(x, _), (edge(x, 0); edge(0, x)), (edge(x, 1); edge(1, x)), (edge(x, 2); edge(2, x)), "
        "(edge(x, 3); edge(3, x)), (edge(x, 4); edge(4, x)), (edge(x, 5); edge(5, x)), (edge(x, 6); edge(6, "
        "x)), (edge(x, 7); edge(7, x)), (edge(x, 8); edge(8, x)), (edge(x, 9); edge(9, x)).",
        ".decl edge(x: number, y: number)\n"
        ".input edge\n"
        ".decl out(x: number)\n"
        ".decl near(x: number, i: number)\n"
        "near(x, i) :- edge(x, i) ; edge(i, x).\n"
        "out(x) :- edge(x, _), near(x, 0), near(x, 1), near(x, 2), near(x, 3), near(x, 4), near(x, 5), "
        "near(x, 6), near(x, 7), near(x, 8), near(x, 9).",
    ),
    Entry(
        "E0222",
        "component without end",
        "A component holds an instance of itself, or inherits from itself, directly or through others. Writing it out "
        "would never end. Instances and inheritance may also go no more than 100 deep, and no more than 100,000 "
        "components are written out.",
        ".comp List { .decl item(x: number) item(1). .init rest = List }\n.init list = List",
        ".comp List { .decl item(x: number) item(1). }\n.init list = List\n.init rest = List",
    ),
    Entry(
        "E0223",
        "relation that never holds a fact",
        "The relation has no `.input`, no fact and no rule, so it stays empty and every rule that needs it "
        "does nothing. Mostly an `.input` was forgotten or a rule has a slip in the name of its head. When it"
        " is filled from Python, `.input` says so.",
        ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\npath(x, y) :- edge(x, y).",
        ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\npath(x, y) :- edge(x, y).",
    ),
    Entry(
        "E0224",
        "relation that cannot be overridden",
        "`.override R` in a component drops the rules that it inherits for `R`. `R` must be declared in a component "
        "behind the `:`, with the qualifier `overridable`.",
        ".comp A { .decl p(x: number) p(1). }\n.comp B : A { .override p p(2). }\n.init b = B",
        ".comp A { .decl p(x: number) overridable p(1). }\n.comp B : A { .override p p(2). }\n.init b = B",
    ),
    Entry(
        "E0225",
        "component or instance declared twice",
        "Two components in one place, or two instances in one component, have the same name.",
        ".comp A { .decl p(x: number) p(1). }\n.init a = A\n.init a = A",
        ".comp A { .decl p(x: number) p(1). }\n.init a = A\n.init b = A",
    ),
    Entry(
        "E0226",
        "relation that cannot be inlined",
        "The rules of an `inline` relation take the place of the atoms that use it, and the relation itself has no "
        "facts. So it cannot be read or written, use itself, or be aggregated where variables of its rules would "
        "count.",
        ".decl e(x: number, y: number)\ne(1, 2).\n.decl p(x: number, y: number) inline\np(x, y) :- e(x, y).\n.output p",
        ".decl e(x: number, y: number)\ne(1, 2).\n.decl p(x: number, y: number)\np(x, y) :- e(x, y).\n.output p",
    ),
    Entry(
        "E0227",
        "rule too long",
        "Every literal of a rule is a place where an update can begin, so that planning takes time that grows with the"
        " square of their number. A body, of a rule or of an aggregate, may have 256 literals.",
        ".decl e(x: number, y: number)\n.input e\n.decl p(x: number, y: number)\np(x0, x300) :- "
        + ", ".join(f"e(x{i}, x{i + 1})" for i in range(300))
        + ".",
        ".decl e(x: number, y: number)\n.input e\n.decl twice, p(x: number, y: number)\n"
        "twice(x, z) :- e(x, y), e(y, z).\np(x0, x300) :- "
        + ", ".join(f"twice(x{i}, x{i + 2})" for i in range(0, 300, 2))
        + ".",
    ),
    Entry(
        "E0249",
        "a type and a relation of one name",
        "Types and relations share their names, so that no reader has to guess which of the two is meant.",
        ".type Person <: symbol\n.decl Person(name: symbol)\n.input Person",
        ".type Person <: symbol\n.decl person(name: Person)\n.input person",
    ),
    Entry(
        "E0250",
        "qualifiers that contradict each other",
        "A relation has one representation (`btree`, `btree_delete`, `brie` or `eqrel`), is inlined or not, and "
        "restricted by demand or not. Every qualifier is given once.",
        ".decl edge(x: number, y: number) magic no_magic\n.input edge",
        ".decl edge(x: number, y: number) no_magic\n.input edge",
    ),
    Entry(
        "E0260",
        "numbering in recursion",
        "`autoinc()` gives every derivation of its rule a number. In a recursive rule every number would make further"
        " derivations, without end.",
        ".decl p(x: number, n: number)\np(1, 0).\np(x, autoinc()) :- p(x, _).",
        ".decl p(x: number)\np(1).\n.decl numbered(x: number, n: number)\nnumbered(x, autoinc()) :- p(x).",
    ),
    Entry(
        "E0261",
        "numbering inside an aggregate",
        "`autoinc()` gives every derivation of a rule a number. What an aggregate ranges over is no derivation.",
        ".decl p(x: number)\np(1).\n.decl q(n: number)\nq(n) :- n = sum k : { p(_), k = autoinc() }.",
        ".decl p(x: number)\np(1).\n.decl numbered(x: number, n: number)\nnumbered(x, autoinc()) :- p(x).\n"
        ".decl q(n: number)\nq(n) :- n = sum k : { numbered(_, k) }.",
    ),
    Entry(
        "E0262",
        "aggregate by a functor that cannot fold",
        "`@@f x : start, { … }` begins with `start` and applies `@f` to what it has so far and one value after the "
        "other. So the functor has two parameters, and gives what its first one takes.",
        '.functor longer(s: symbol): symbol\n.decl p(s: symbol)\np("a").\n.decl q(s: symbol)\n'
        'q(l) :- l = @@longer s : "", { p(s) }.',
        '.functor longer(s: symbol, t: symbol): symbol\n.decl p(s: symbol)\np("a").\n.decl q(s: symbol)\n'
        'q(l) :- l = @@longer s : "", { p(s) }.',
    ),
    Entry(
        "E0230",
        "program cannot be read",
        "The file does not exist, is a folder, may not be read, or is larger than a program can be. Large "
        "sets of facts belong into fact files, named with `.input`.",
        "elastalog check no-such-file.dl",
        "elastalog check reach.dl",
    ),
    Entry(
        "E0231",
        "program is not UTF-8",
        "Program files are text in UTF-8. The label shows the first byte that is none. Text in an old "
        "encoding can be converted with `iconv`.",
        "iconv -f utf-8 -t latin1 reach.dl > old.dl\nelastalog check old.dl",
        "iconv -f latin1 -t utf-8 old.dl > reach.dl\nelastalog check reach.dl",
    ),
    Entry(
        "E0240",
        "two branches of one name",
        "A value such as `$Leaf(1)` says by the name of its branch which type it has, so a program has only one branch "
        "of a name, whatever the types.",
        ".type A = Leaf {x: number}\n.type B = Leaf {y: symbol}\n.decl a(a: A)\na($Leaf(1)).",
        ".type A = LeafA {x: number}\n.type B = LeafB {y: symbol}\n.decl a(a: A)\na($LeafA(1)).",
    ),
    Entry(
        "E0241",
        "unknown branch",
        "No declared type has a branch of this name. A type with branches is declared as "
        "`.type T = Leaf {x: number} | Node {left: T, right: T}`.",
        ".type T = Leaf {x: number}\n.decl t(t: T)\nt($Laef(1)).",
        ".type T = Leaf {x: number}\n.decl t(t: T)\nt($Leaf(1)).",
    ),
    Entry(
        "E0242",
        "wrong number of fields",
        "A record or branch is written with as many fields as its type declares; `_` stands for one that does not "
        "matter in a body.",
        ".type P = [x: number, y: number]\n.decl p(p: P)\np([1]).",
        ".type P = [x: number, y: number]\n.decl p(p: P)\np([1, 2]).",
    ),
    Entry(
        "E0243",
        "functor declared twice",
        "A functor that a user implements is declared once, with its parameters and the type of its result.",
        ".functor f(x: number): number\n.functor f(x: symbol): number\n.decl p(x: number)\np(@f(1)).",
        ".functor f(x: number): number\n.decl p(x: number)\np(@f(1)).",
    ),
    Entry(
        "E0244",
        "functor of values that are made of values",
        "The functors that a user implements are functions of numbers and texts; only those that are declared "
        "`stateful` take and give records, too. A rule can take a record apart and give the functor its parts.",
        ".type P = [x: number]\n.functor f(p: P): number\n.decl p(x: number)\np(1).",
        ".type P = [x: number]\n.functor f(p: P): number stateful\n.decl p(x: number)\np(1).",
    ),
    Entry(
        "E0245",
        "key of a choice domain that is no attribute",
        "`choice-domain` lists keys: attributes of the relation, or several of them in parentheses.",
        ".decl edge(x: number, y: number)\n.input edge\n.decl parent(x: number, y: number) choice-domain z\n"
        "parent(x, y) :- edge(y, x).",
        ".decl edge(x: number, y: number)\n.input edge\n.decl parent(x: number, y: number) choice-domain x\n"
        "parent(x, y) :- edge(y, x).",
    ),
    Entry(
        "E0246",
        "equivalence of other than two values of one type",
        "A relation with the qualifier `eqrel` is closed: with (a, b) it holds (b, a), (a, a) and (b, b), and with "
        "(b, c) also (a, c). So it has two attributes of one type.",
        ".decl same(x: number, y: number, z: number) eqrel\n.input same",
        ".decl same(x: number, y: number) eqrel\n.input same",
    ),
    Entry(
        "E0247",
        "subsumption between two relations",
        "`R(x, a) <= R(x, b) :- b < a.` takes facts away that another fact of the same relation dominates.",
        ".decl near(x: number, n: number)\n.input near\n.decl far(x: number, n: number)\n.input far\n"
        "far(x, a) <= near(x, b) :- b < a.",
        ".decl near(x: number, n: number)\n.input near\n.decl far(x: number, n: number)\n.input far\n"
        "far(x, a) <= far(x, b) :- b < a.",
    ),
    Entry(
        "E0248",
        "subsumption that reads what depends on it",
        "Facts are taken away after every round of an evaluation, so the body of a subsumption reads only its two "
        "facts, relations that are complete before, and those of its recursion that lose no facts and choose none. "
        "Nothing of its recursion is negated there.",
        ".decl edge(x: number, y: number)\n.input edge\n.decl far(x: number, n: number)\nfar(x, 0) :- edge(x, _).\n"
        "far(y, n + 1) :- far(x, n), edge(x, y).\nfar(x, a) <= far(x, b) :- b < a, far(b, _).",
        ".decl edge(x: number, y: number)\n.input edge\n.decl far(x: number, n: number)\nfar(x, 0) :- edge(x, _).\n"
        "far(y, n + 1) :- far(x, n), edge(x, y).\nfar(x, a) <= far(x, b) :- b < a.",
    ),
)
