"""A whole page of HTML around an explanation: it needs nothing else, opens anywhere, and prints unfolded."""

from __future__ import annotations

from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d5dae1; --paper: #fff; --mark: #0b6bcb; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #98a3b3; --line: #3a4351; --paper: #171b21; --mark: #6cb6ff; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; font-weight: 600; overflow-wrap: anywhere; }
code { font: 0.92em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
summary { cursor: pointer; padding: 0.15rem 0; }
summary:hover { background: color-mix(in srgb, var(--mark) 8%, transparent); }
details > div { border-left: 2px solid var(--line); padding-left: 0.8rem; }
details > summary::marker { color: var(--mark); }
small { color: var(--soft); }
small.rule { margin-left: 0.6rem; }
footer { margin-top: 2rem; border-top: 1px solid var(--line); padding-top: 0.5rem;
         color: var(--soft); font-size: 0.85rem; }
@media print {
  body { max-width: none; margin: 0; color: #000; background: #fff; }
  details::details-content { content-visibility: visible; block-size: auto; }
  details > summary { list-style: none; }
  summary, div { break-inside: avoid-page; }
}
""".strip()

# Browsers that cannot style what is folded up unfold it before they print.
_UNFOLD = "addEventListener('beforeprint',()=>document.querySelectorAll('details').forEach(d=>d.open=true))"


def page(title: str, content: str) -> str:
    """A page with a title and a piece of HTML."""
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n<main>\n{content}\n</main>\n"
        f"<footer>Made by Elastalog</footer>\n<script>{_UNFOLD}</script>\n</body>\n</html>"
    )
