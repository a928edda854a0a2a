"""Program text: tokens, parser, syntax tree, printer."""

from elastalog.syntax.parser import parse as parse
from elastalog.syntax.tokens import tokenize as tokenize
from elastalog.syntax.tree import Tree as Tree
