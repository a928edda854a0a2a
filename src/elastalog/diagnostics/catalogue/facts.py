"""Errors of facts: rows that do not fit their relation, files that cannot be read or written, and diff files."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

FACTS: tuple[Entry, ...] = (
    Entry(
        code="E0501",
        title="a row has the wrong number of values",
        explanation=(
            "Every fact of a relation has exactly one value per column. In a fact file the values of a line "
            "are separated by the delimiter, a tab unless the directive says otherwise; a file with another "
            "delimiter has one long value a line. A nullary relation has the single row `()`. "
            '`.pragma "extra-fields" "ignore"` (`-P extra-fields=ignore`) lets text files have more columns, as '
            "Soufflé does, and `columns` names those of one file."
        ),
        example=".decl edge(x: number, y: number)\n.input edge\n\nedge.facts:\n1,2",
        fix='.decl edge(x: number, y: number)\n.input edge(delimiter=",")\n\nedge.facts:\n1,2',
    ),
    Entry(
        code="E0502",
        title="a value has the wrong type",
        explanation=(
            "Values are never changed silently: text is no number, and a float is not cut to an integer. A column of a "
            "table whose values say the same in the declared type (whole floats, dates as text) is taken. "
            "Numbers in text are decimal, hexadecimal (0x1f) or binary (0b101), "
            "with an optional sign."
        ),
        example=".decl age(person: symbol, years: number)\n.input age\n\nage.facts:\nann\t3.5",
        fix=".decl age(person: symbol, years: float)\n.input age\n\nage.facts:\nann\t3.5",
    ),
    Entry(
        code="E0503",
        title="a value is out of range",
        explanation=(
            "A `number` has 64 bits with sign, an `unsigned` 64 bits without, a `float` is finite unless "
            "written as inf, and an integer given for a float must be one that a float holds exactly."
        ),
        example=".decl id(x: number)\n.input id\n\nid.facts:\n9223372036854775808",
        fix=".decl id(x: unsigned)\n.input id\n\nid.facts:\n9223372036854775808",
    ),
    Entry(
        code="E0504",
        title="a value is null",
        explanation=(
            "A relation is a set of tuples and has no missing values. Drop such rows, fill them, or keep the "
            "optional attribute in a relation of its own, which has a row only where there is a value."
        ),
        example='db.update().insert("age", [("ann", None)])',
        fix='db.update().insert("person", [("ann",)])',
    ),
    Entry(
        code="E0505",
        title="text is not UTF-8",
        explanation=(
            "Symbols are Unicode text, and fact files hold it as UTF-8. Other encodings have to be converted first."
        ),
        example="name.facts, written as Latin-1",
        fix="iconv -f LATIN1 -t UTF-8 name.facts",
    ),
    Entry(
        code="E0506",
        title="a quoted field is not well formed",
        explanation=(
            "Under rfc4180 a field that begins with a quote ends with one, directly before the delimiter or "
            "the end of the line, and a quote inside it is doubled."
        ),
        example='said.csv:\nann,"he said "no""',
        fix='said.csv:\nann,"he said ""no"""',
    ),
    Entry(
        code="E0507",
        title="a line is not a JSON row",
        explanation=(
            "A file of JSON lines holds one object (by attribute name) or one array (by position) on every line."
        ),
        example='edge.jsonl:\n{"x": 1, "y": 2',
        fix='edge.jsonl:\n{"x": 1, "y": 2}\n[2, 3]',
    ),
    Entry(
        code="E0508",
        title="too many distinct wide numbers and floats",
        explanation=(
            "Numbers from -2^30 to 2^30 - 1 are stored as they are. Larger ones and all floats are stored "
            "once in a table of at most 2^30 distinct values."
        ),
        example="two thousand million distinct 64-bit hashes as identifiers",
        fix="number the identifiers from 0, or split the database",
    ),
    Entry(
        code="E0509",
        title="too many distinct symbols",
        explanation="Every symbol is stored once, under a number of 31 bits that it keeps for the life of a database.",
        example="a column of three thousand million distinct texts",
        fix="split the database, or use numbers, which need no table below 2^30",
    ),
    Entry(
        code="E0510",
        title="an input relation has no fact file",
        explanation=(
            "A relation with `.input` and no `filename` is read from the facts folder (-F): R.facts, or one "
            "of R.csv, R.tsv, R.jsonl, packed with gzip or not, and R.parquet, a file or a folder of such. A missing "
            "file is an error, since an empty relation is seldom what was meant; an empty file says that it is."
        ),
        example=".decl edge(x: number, y: number)\n.input edge\n\n(the folder holds edges.facts)",
        fix='.decl edge(x: number, y: number)\n.input edge(filename="edges.facts")',
    ),
    Entry(
        code="E0519",
        title="an input that no output needs has no file",
        explanation=(
            "`elastalog run` goes on without the file of a relation that no `.output` and no `.printsize` needs, as "
            "Soufflé does, which does not read such relations. A session refuses (E0510): there the relation can be "
            "asked for, and would be empty without anybody having said so."
        ),
        example=".decl edge(x: number, y: number)\n.input edge\n.decl p()\np().\n.output p\n\n(no edge.facts)",
        fix=".decl p()\np().\n.output p",
    ),
    Entry(
        code="E0511",
        title="several files could hold the facts of a relation",
        explanation=(
            "R.facts is taken whatever else is there, as Soufflé does. Without it there must be only one file "
            "for the relation, so that no facts are overlooked."
        ),
        example=".input edge\n\n(the folder holds edge.csv and edge.parquet)",
        fix='.input edge(filename="edge.parquet")',
    ),
    Entry(
        code="E0512",
        title="a path leads out of its folder",
        explanation=(
            "A program may name files only below the facts folder (-F) and the output folder (-D): no "
            "absolute paths, no `..`, and no symbolic links that lead elsewhere. A program from someone else "
            "can then read and write nothing but what it was given."
        ),
        example='.input edge(filename="../secrets/edge.facts")',
        fix='.input edge(filename="edge.facts")',
    ),
    Entry(
        code="E0513",
        title="more bad rows than may be skipped",
        explanation=(
            "With --bad-rows skip, bad rows are dropped up to a bound, so that a wrong delimiter does not "
            "empty a relation unnoticed. Beyond the bound nothing is loaded."
        ),
        example="elastalog run program.dl -F facts --bad-rows skip --max-bad-rows 10",
        fix="elastalog run program.dl -F facts -D out --bad-rows quarantine",
    ),
    Entry(
        code="E0514",
        title="a parameter of a directive has an impossible value",
        explanation=(
            "IO is `file`, `stdin` (.input) or `stdout` (.output); headers, rfc4180 and compress are `true` "
            "or `false`; a delimiter is some text without quotes and line ends."
        ),
        example='.input edge(headers=yes, delimiter="")',
        fix='.input edge(headers=true, delimiter=",")',
    ),
    Entry(
        code="E0515",
        title="a fact file cannot be read",
        explanation="The file is there but cannot be opened, or it is not what its suffix says (gzip, Parquet).",
        example="edge.facts.gz, a text file that was never packed",
        fix="edge.facts",
    ),
    Entry(
        code="E0516",
        title="a symbol cannot be written as plain text",
        explanation=(
            "A symbol with a tab (or the delimiter that was chosen) or a line end in it would be read back as "
            "something else, and so would a text with a comma, a bracket or blanks around it inside of a record, and "
            "a text at the beginning of a file that starts with a byte order mark. Quoted output can hold any text."
        ),
        example=".output message",
        fix=".output message(rfc4180=true)",
    ),
    Entry(
        code="E0517",
        title="an output file cannot be written",
        explanation=(
            "Output is written beside its place and then moved there, so what was there before is still "
            "whole. Check that the folder may be written to and has space."
        ),
        example="elastalog run program.dl -D /read-only",
        fix="elastalog run program.dl -D out",
    ),
    Entry(
        code="E0518",
        title="columns that are named only in part",
        explanation=(
            "Columns of tables, data frames and files with a header go by name as soon as one of them has the name of "
            "a declared attribute (capital letters do not matter); then every attribute needs its column. If none has "
            "such a name, they go by position. So columns are never swapped because one of them is called otherwise."
        ),
        example='# .decl edge(from: number, to: number)\npandas.DataFrame({"to": [2], "src": [1]})',
        fix='# .decl edge(from: number, to: number)\npandas.DataFrame({"to": [2], "from": [1]})',
    ),
    Entry(
        code="E0520",
        title="a line of a diff file is not a change",
        explanation=(
            "A diff file has one change a line: `+` or `-`, a relation, and constants in parentheses, written "
            "as in a program. Empty lines and `//` comments do not count."
        ),
        example="edge(1, 2).\n+edge(1, x).",
        fix="+edge(1, 2).\n-edge(1, 3).  // a comment",
    ),
    Entry(
        code="E0521",
        title="a diff file changes an unknown relation",
        explanation=(
            "A change names a relation that the program declares. The relation of a CSV or Parquet file of "
            "changes is the name of the file."
        ),
        example=".decl edge(x: number, y: number)\n\n+edges(1, 2).",
        fix=".decl edge(x: number, y: number)\n\n+edge(1, 2).",
    ),
    Entry(
        code="E0522",
        title="a tabular diff file has no proper `op` column",
        explanation=(
            "CSV and Parquet files of changes have a column `op` that holds `+` for an insertion and `-` for "
            "a deletion."
        ),
        example="edge.csv:\nx,y\n1,2",
        fix="edge.csv:\nop,x,y\n+,1,2",
    ),
    Entry(
        code="E0523",
        title="there is no such folder of updates",
        explanation=(
            "A series of updates is a folder of diff files, applied in the order of the numbers in their names."
        ),
        example='update_files("update")  # the folder is called updates',
        fix='update_files("updates")  # updates/1.diff, updates/2.diff, updates/10.diff',
    ),
    Entry(
        code="E0524",
        title="a file that expands too much",
        explanation="Packed, or written as the same value many times over, a small file can stand for more than fits"
        " into memory. One that holds more than 64 MiB and many times its own size is refused before all of it has been"
        " read. Files that others made are the reason; the limit can be raised for those that are to be trusted.",
        example="elastalog run reach.dl -F facts  # edge.facts.gz: 5 MB, and 5 GB unpacked",
        fix="elastalog run reach.dl -F facts --max-expansion 2000",
    ),
    Entry(
        code="E0525",
        title="values of a table were given in another type",
        explanation=(
            "A note, no error. A column of a table need not have the declared type if its values say the same in it: "
            "whole floats, decimals without fraction and truth values for `number`, decimals for `float`, dates, "
            "times, decimals and truth values for `symbol`. How many values that were is counted, since it may be a "
            "column that was meant for something else."
        ),
        example=".decl age(person: symbol, years: number)\n.input age\n\nage.parquet: years is a column of float64",
        fix="store the column as int64",
    ),
    Entry(
        code="E0527",
        title="names of columns in the place of a fact",
        explanation=(
            "A warning. The first line of the file holds the names of the relation's attributes, as many tools write "
            "them, and all columns are symbols, so that it is a fact like any other. `headers=true` says that the "
            "first line of a file is none."
        ),
        example=".decl calls(caller: symbol, callee: symbol)\n.input calls\n\ncalls.facts begins with caller⇥callee",
        fix=".decl calls(caller: symbol, callee: symbol)\n.input calls(headers=true)",
    ),
    Entry(
        code="E0528",
        title="a file that can be read in more than one way",
        explanation=(
            "A file that is given by its path is looked at: its delimiter, quotes and header. Here two ways of reading "
            "make facts of all its lines, and not the same ones. Which is meant can be said in the program, by the "
            "parameters of `.input`; or read the file first, with `pyarrow.csv.read_csv`, and give the table."
        ),
        example='elastalog.open("calls.dl", {"edge": "edge.csv"})\n\nedge.csv begins with x,y, names of its columns',
        fix='.decl edge(x: symbol, y: symbol)\n.input edge(filename="edge.csv", rfc4180=true, headers=true)',
    ),
    Entry(
        code="E0529",
        title="a file of RDF that cannot be read, or a statement in it",
        explanation=(
            "Files of `IO=rdf` are N-Triples, N-Quads, Turtle, TriG, RDF/XML or JSON-LD, as the name or `format` says."
            " The parser tells the line and the term that it cannot read; `--bad-rows` says what happens to such "
            "statements. Relative IRIs need a `base`, and triples in named graphs a relation with a fourth attribute."
        ),
        example="data.nt:\n<http://example.org/ann> knows <http://example.org/bob> .",
        fix="data.nt:\n<http://example.org/ann> <http://example.org/knows> <http://example.org/bob> .",
    ),
    Entry(
        code="E0530",
        title="facts that are no triples",
        explanation=(
            "A relation that is read or written with `IO=rdf` has three attributes of type symbol, subject, predicate "
            "and object, and a fourth one for graphs if there are some. Its values are terms in the form of N-Triples; "
            "only objects are literals, and only N-Quads, TriG and JSON-LD have graphs."
        ),
        example='.decl triple(s: symbol, o: symbol)\n.output triple(IO=rdf, filename="out.ttl")',
        fix='.decl triple(s: symbol, p: symbol, o: symbol)\n.output triple(IO=rdf, filename="out.ttl")',
    ),
    Entry(
        code="E0531",
        title="a term or a session that says nothing about an ontology",
        explanation=(
            "Triples are asked for, changed and explained in sessions that `elastalog.rdf.load` has made, by terms that"
            " the ontology or the data have: `ex:ann a ex:Person`, with prefixes that the files declare. Axioms do not "
            "change by patches, since rules are made of them: make the program anew and go over to it."
        ),
        example="elastalog rdf explain family.store 'unknown:ann a ex:Person'",
        fix="elastalog rdf explain family.store 'ex:ann a ex:Person'",
    ),
    Entry(
        code="E0532",
        title="an axiom outside of OWL 2 RL",
        explanation=(
            "A warning. OWL 2 RL allows constructs only where rules can do what they say: someValuesFrom right of"
            " a subclass axiom would need individuals that nobody has named. What the rules of the profile can do with "
            "the axiom is done, and nothing else. An import that is not here is told so, too: nothing is fetched."
        ),
        example="ex:Parent rdfs:subClassOf [ owl:onProperty ex:child ; owl:someValuesFrom ex:Person ] .",
        fix="[ owl:onProperty ex:child ; owl:someValuesFrom ex:Person ] rdfs:subClassOf ex:Parent .",
    ),
    Entry(
        code="E0533",
        title="a line of a patch that is no change",
        explanation=(
            "A patch of RDF has one change a line: a triple behind `+` or `-`, or `A` or `D` as RDF Patch has it,"
            " where `PA` declares a prefix and `TX`, `TC` and `H` say nothing here."
        ),
        example="<http://example.org/ann> <http://example.org/knows> <http://example.org/bob> .",
        fix="+ <http://example.org/ann> <http://example.org/knows> <http://example.org/bob> .",
    ),
    Entry(
        code="E0534",
        title="a query in SPARQL that cannot be answered",
        explanation=(
            "Covered are SELECT and ASK with basic graph patterns, FILTER, OPTIONAL, UNION, MINUS, BIND, VALUES, "
            "subqueries, DISTINCT, ORDER BY, LIMIT and OFFSET, and of paths sequences and inverses. Aggregates,"
            " GRAPH, EXISTS, SERVICE, CONSTRUCT and DESCRIBE are not: count solutions in Python, or use `db.query`."
        ),
        example='db.sparql("SELECT (COUNT(?x) AS ?n) WHERE { ?x a ex:Person }")',
        fix='len(db.sparql("SELECT ?x WHERE { ?x a ex:Person }"))',
    ),
    Entry(
        "E0671",
        "chosen columns that do not fit",
        "`columns` says which columns of a text file are those of the relation, in its order, counted from 0. It must"
        " name as many as the relation has attributes.",
        '.decl edge(x: number, y: number)\n.input edge(columns="0:1:2")',
        '.decl edge(x: number, y: number)\n.input edge(columns="0:2")',
    ),
)
