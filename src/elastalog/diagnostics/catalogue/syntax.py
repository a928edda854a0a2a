"""Errors of the text: characters, tokens, grammar, and features that come later."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

SYNTAX: tuple[Entry, ...] = (
    Entry(
        "E0101",
        "unexpected character",
        "The text holds a character that no token of the language can start with. Names consist of ASCII "
        "letters, digits, `_` and `?`. Any other character belongs into a string, and strings are written with "
        "double quotes. A lone surrogate, half a character, is not even part of a string.",
        "city('Zürich').",
        'city("Zürich").',
    ),
    Entry(
        "E0102",
        "string not closed",
        "A string must end on the line it starts on. A line break inside a string is written `\\n`, a double "
        'quote `\\"`.',
        'name("Ada).',
        'name("Ada").',
    ),
    Entry(
        "E0103",
        "comment not closed",
        "A comment that starts with `/*` runs to the next `*/`; there is none. Such comments do not nest.",
        "/* all edges\nedge(1, 2).",
        "/* all edges */\nedge(1, 2).",
    ),
    Entry(
        "E0104",
        "malformed number",
        "A token that starts with a digit must be an integer (`42`, `0x2a`, `0b101010`), an unsigned integer "
        "(`42u`), a float (`1.5`, `1e9`, `1.5e-3`) or an IPv4 address of four parts below 256 (`192.168.0.1`). "
        "Names can not start with a digit.",
        "size(12kb).",
        "size(12288).",
    ),
    Entry(
        "E0105",
        "number out of range",
        "Numbers have 64 bits: `number` goes from -9223372036854775808 to 9223372036854775807, `unsigned` from "
        "0 to 18446744073709551615, and the largest float is about 1.8e308.",
        "big(99999999999999999999).",
        "big(9223372036854775807).",
    ),
    Entry(
        "E0106",
        "unknown escape",
        "In strings a backslash starts one of `\\n \\t \\r \\0 \\\\ \\\" \\'` or `\\x` with two hexadecimal "
        "digits. A backslash that should stay a backslash is written twice.",
        'path("C:\\data").',
        'path("C:\\\\data").',
    ),
    Entry(
        "E0107",
        "invisible mark that reorders text",
        "Marks for text from right to left can make a program look different from what it means. Outside "
        "strings they are errors. Inside strings they may be meant, and give a warning only.",
        "ok(x) :- user(x). // \u202e admin only",
        "ok(x) :- user(x). // admin only",
    ),
    Entry(
        "E0110",
        "unexpected token",
        "The grammar asks for something else at this place. The label says what could stand here. Often the "
        "cause is a little before the place: a bracket not closed, a comma forgotten or one too many.",
        "path(x, y :- edge(x, y).",
        "path(x, y) :- edge(x, y).",
    ),
    Entry(
        "E0111",
        "missing dot",
        "Every fact and every rule ends in `.`. Declarations and directives, which start with a dot, do not "
        "end in one.",
        "edge(1, 2)\nedge(2, 3).",
        "edge(1, 2).\nedge(2, 3).",
    ),
    Entry(
        "E0112",
        "unknown directive",
        "A dot followed by a word at the start of an item is a directive. The directives are `.decl`, `.type`, "
        "`.input`, `.output`, `.printsize`, `.limitsize`, `.plan` and `.pragma`, in lower case.",
        ".declare edge(x: number, y: number)",
        ".decl edge(x: number, y: number)",
    ),
    Entry(
        "E0113",
        "reserved word",
        "The names of functors and aggregates, and `true`, `false`, `match`, `contains`, `nil`, `as` and "
        "`autoinc`, have a meaning of their own and can not name relations or variables.",
        ".decl count(x: number)",
        ".decl total(x: number)",
    ),
    Entry(
        "E0114",
        "atom without parentheses",
        "An atom of a relation without attributes is written with empty parentheses. A name alone is a variable.",
        ".decl ready()\nready :- true.",
        ".decl ready()\nready() :- true.",
    ),
    Entry(
        "E0115",
        "the way another language writes it",
        "This sign or word means something in Prolog, SQL or a programming language, but not here. Bodies "
        "start with `:-`, literals are separated by `,`, alternatives by `;`, negation is `!`, equality is "
        "`=`, comments start with `//`.",
        "alone(x) :- node(x) && not edge(x, _).",
        "alone(x) :- node(x), !edge(x, _).",
    ),
    Entry(
        "E0116",
        "nested too deep",
        "Expressions and bodies can nest 100 deep. Chains count too: `a + b + c` is `(a + b) + c`. Programs "
        "that people write stay far below; generated ones should give inner parts a variable or a relation of "
        "their own.",
        "p(x) :- q(y), x = ((((y)))). // with more than 100 brackets",
        "p(x) :- q(y), x = y.",
    ),
    Entry(
        "E0117",
        "too many findings",
        "Only the first 50 findings of a text are shown. Mend those and check again. When there are very many, "
        "the file is perhaps no program at all.",
        "// a file of another kind",
        "edge(1, 2).",
    ),
    Entry(
        "E0119",
        "bracket that closes nothing",
        "There is a closing bracket more than opening ones.",
        "path(x, y) :- edge(x, y)).",
        "path(x, y) :- edge(x, y).",
    ),
    Entry(
        "E0121",
        "aggregate without a body",
        "An aggregate ranges over the body that follows its `:`, in braces unless it is a single atom: `count "
        ": { body }`, `sum x : { body }`, and in the same way `min`, `max` and `mean`.",
        "n(x) :- x = count { edge(_, _) }.",
        "n(x) :- x = count : { edge(_, _) }.",
    ),
    Entry(
        "E0122",
        "plan without a rule",
        "`.plan` gives the order of the atoms of the rule right before it.",
        ".decl p(x: number)\n.plan 0:(2,1)",
        ".decl p(x: number)\np(x) :- q(x), r(x).\n.plan 0:(2,1)",
    ),
    Entry(
        "E0123",
        "unknown qualifier",
        "After the attributes of a relation only qualifiers may stand: `btree`, `btree_delete`, `brie`, "
        "`magic`, `no_magic`, `inline`, `no_inline`, `overridable`, and of the old style `input`, `output`, "
        "`printsize`.",
        ".decl p(x: number) inlined",
        ".decl p(x: number) inline",
    ),
    Entry(
        "E0124",
        "wrong number of arguments of a constraint",
        "`match(pattern, text)` and `contains(part, text)` take two arguments.",
        'p(x) :- q(x), match("a.*").',
        'p(x) :- q(x), match("a.*", x).',
    ),
    Entry(
        "E0125",
        "included file that cannot be read",
        '`#include "f"` and `.include "f"` look for the file beside the one that names it, then in the folders given '
        "with `-I DIR`; `#include <f>` only in the latter. It is not there, or cannot be read.",
        '#include "edges_of_nowhere.dl"',
        "// elastalog check -I ../rules program.dl",
    ),
    Entry(
        "E0126",
        "preprocessor line at fault",
        "A line that begins with `#` is not what the preprocessor expects: `#include`, `#define`, `#undef`, `#if`, "
        "`#ifdef`, `#ifndef`, `#elif`, `#else`, `#endif`, `#line`, `#pragma` and `#error` exist, every `#if` is closed "
        "by `#endif`, and `#error` is there to stop.",
        "#ifdef DEBUG\n.decl log(x: number)",
        "#ifdef DEBUG\n.decl log(x: number)\n#endif",
    ),
    Entry(
        "E0127",
        "files that include each other",
        "A file includes itself, directly or through others, without end. `.once` or `#pragma once` in a file makes "
        "every further inclusion of it count for nothing.",
        '// a.dl: #include "b.dl"\n// b.dl: #include "a.dl"',
        '// a.dl: .once #include "b.dl"\n// b.dl: .once #include "a.dl"',
    ),
    Entry(
        "E0128",
        "macro that cannot be expanded",
        "A macro with parameters takes as many arguments as it was defined with.",
        "#define SUM(x, y) x + y\n.decl p(x: number)\np(SUM(1)).",
        "#define SUM(x, y) x + y\n.decl p(x: number)\np(SUM(1, 2)).",
    ),
    Entry(
        "E0129",
        "comma at the end of a list",
        "Commas stand between the elements of a list, not behind the last one.",
        ".type Pair = [x: number, y: number,]",
        ".type Pair = [x: number, y: number]",
    ),
    Entry(
        "E0197",
        "preprocessor line that is not read",
        "`#` starts a line for the preprocessor, such as `#include` or `#define`. It is obeyed only at the beginning "
        "of a line, and not at all with `--no-preprocessor` (`preprocess=False` in Python), nor in rules that are "
        "added to a program that runs.",
        "edge(1, 2). #define SIZE 3",
        "edge(1, 2).\n#define SIZE 3",
    ),
)
