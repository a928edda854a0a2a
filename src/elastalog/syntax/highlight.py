"""A Pygments lexer for the dialect."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from elastalog.syntax.keywords import AGGREGATES, CONSTRAINTS, DIRECTIVES, FUNCTORS, QUALIFIERS

_NAME = r"[A-Za-z_?][A-Za-z0-9_?]*"
_END = r"(?![A-Za-z0-9_?])"


class DatalogLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """A lexer for the dialect of Elastalog, a subset of Soufflé's."""

    name = "Elastalog"
    aliases: ClassVar[list[str]] = ["elastalog", "datalog-souffle"]
    filenames: ClassVar[list[str]] = ["*.dl"]
    mimetypes: ClassVar[list[str]] = ["text/x-elastalog"]
    url = "https://souffle-lang.github.io/program"

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"/\*", Comment.Multiline, "comment"),
            (
                r'(#[ \t]*include)([ \t]*)("[^"\n]*"|<[^>\n]*>)',
                bygroups(Comment.Preproc, Whitespace, Comment.PreprocFile),
            ),
            (r"#(?:[^\n\\]|\\\r?\n|\\)*", Comment.Preproc),
            (r"\.(?:include|once)" + _END, Comment.Preproc),
            (
                rf"(\.(?:comp|init))(\s+)({_NAME})",
                bygroups(Keyword.Declaration, Whitespace, Name.Class),
            ),
            (
                rf"(\.(?:type|number_type|symbol_type|lattice))(\s+)({_NAME})",
                bygroups(Keyword.Declaration, Whitespace, Name.Class),
            ),
            (rf"(\.functor)(\s+)({_NAME})", bygroups(Keyword.Declaration, Whitespace, Name.Function.Magic)),
            (words(sorted(DIRECTIVES), prefix=r"\.", suffix=_END), Keyword.Declaration),
            (words(("number", "unsigned", "float", "symbol"), suffix=_END), Keyword.Type),
            (words(("true", "false", "nil"), suffix=_END), Keyword.Constant),
            (words(("as", "autoinc"), suffix=_END + r"(?=\s*\()"), Keyword),
            (words(sorted(FUNCTORS | AGGREGATES | CONSTRAINTS), suffix=_END), Name.Builtin),
            (r"choice-domain" + _END, Keyword.Pseudo),
            (words((*sorted(QUALIFIERS), "stateful"), suffix=_END + r"(?!\s*\()(?![.,:)])"), Keyword.Pseudo),
            (rf"(\$)({_NAME})", bygroups(Punctuation, Name.Constant)),
            (rf"(@)({_NAME})", bygroups(Punctuation, Name.Function.Magic)),
            (rf"({_NAME})(\.)(?={_NAME})", bygroups(Name.Namespace, Punctuation)),
            (rf"{_NAME}(?=\()", Name.Function),
            (rf"{_NAME}(?=\s*\{{)", Name.Constant),
            (_NAME, Name.Variable),
            (r"0x[0-9a-fA-F]+u?", Number.Hex),
            (r"0b[01]+u?", Number.Bin),
            (r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+", Number),
            (r"[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)", Number.Float),
            (r"[0-9]+u?", Number.Integer),
            (r'"', String.Double, "string"),
            (r":-|<=|>=|!=|<:|[=<>!+\-*/%^|]", Operator),
            (r"[.,;:(){}\[\]$@]", Punctuation),
            (r".", Error),
        ],
        "comment": [(r"[^*]+", Comment.Multiline), (r"\*/", Comment.Multiline, "#pop"), (r"\*", Comment.Multiline)],
        "string": [
            (r'[^"\\\n]+', String.Double),
            (r"\\(?:x[0-9a-fA-F]{2}|[^\n])", String.Escape),
            (r'"', String.Double, "#pop"),
            (r"\n", Error, "#pop"),
            (r"\\", Error),
        ],
    }
