"""Commands that explain (`explain`, `whynot`) and those that find what broke something (`localise`, `suggest`)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elastalog.analysis.listing import show_literal, show_rule
from elastalog.analysis.pattern import parse_pattern, parse_selection, require_fact
from elastalog.cli.questions import FORMS, after_a_moment, rendered, value_from
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.nearest import did_you_mean

if TYPE_CHECKING:
    from elastalog.analysis.program import Rule, Value
    from elastalog.debugging.answers import Answer
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.proof import Proof

from elastalog.cli.shell_commands.state import CANDIDATE, Command, Piece, ShellState, require_some, signed, split


def _explain(state: ShellState, arguments: Piece) -> None:
    require_some("explain", arguments, "a fact", "write it as `explain path(1, 4)`")
    with arguments.placing():
        proof = state.session.explain(arguments.text, state.explanations.depth)
    _show_proof(state, proof)


def _show_proof(state: ShellState, proof: Proof) -> None:
    from elastalog.provenance.proof import Proof, nodes_of

    _show(state, proof)
    ends = [node.fact for node in nodes_of(proof) if isinstance(node, Proof) and not node.is_expanded]
    state.explanations.ends = tuple(dict.fromkeys(ends))
    if state.explanations.form in ("auto", "text", "tree") and state.explanations.output is None:
        for number, fact in enumerate(state.explanations.ends, 1):
            state.say(f"subproof {number}: {fact}")


def _subproof(state: ShellState, arguments: Piece) -> None:
    ends = state.explanations.ends
    text = arguments.text
    if not text.isdecimal() or not 1 <= int(text) <= len(ends):
        advice = (
            f"give a number from 1 to {len(ends)}" if ends else "explain a fact first; its proof must be cut somewhere"
        )
        raise arguments.error("E0652", "`subproof` needs the number of a cut proof", advice=advice)
    _show_proof(state, state.session.explain(ends[int(text) - 1], state.explanations.depth))


def _whynot(state: ShellState, arguments: Piece) -> None:
    require_some("whynot", arguments, "a fact", "write it as `whynot path(1, 4)`")
    with arguments.placing():
        shown = state.explanations
        absence = state.session.why_not(arguments.text, shown.limit, depth=shown.depth_of_absence)
    _show(state, absence)


def _explainnegation(state: ShellState, arguments: Piece) -> None:
    """Asks for a rule and for values of its variables, as the thesis does."""
    from elastalog.analysis.program import Comparison
    from elastalog.provenance.explain import variables_of_rule
    from elastalog.provenance.fact import Fact
    from elastalog.provenance.joins import match_atom
    from elastalog.provenance.why_not import define

    fact = Fact(*_fact(state, "explainnegation", arguments))
    with arguments.placing():
        state.session.why_not(fact, 1)  # an error if it holds
    rules = [rule for rule in state.session.program.checked.rules if rule.head.relation == fact.relation]
    if not rules:
        _show(state, state.session.why_not(fact))
        return
    for rule in rules:
        for line in _rule_lines(rule):
            state.say(line)
        state.say("")
    chosen = _ask(state, "Pick a rule number: ")
    picked = [rule for rule in rules if str(rule.number_in_relation) == chosen.strip()]
    if not picked:
        raise arguments.error("E0652", f"there is no rule `{chosen[:20]}`", advice=f"pick 1 to {len(rules)}")
    rule = picked[0]
    known: dict[str, Value] = {}
    given: dict[str, Value] = {}
    if match_atom(rule.head, fact.values, known, []):
        comparisons = [literal for literal in rule.body if isinstance(literal, Comparison)]
        for name, base in variables_of_rule(rule).items():
            known = define(comparisons, known)
            if name not in known:
                given[name] = known[name] = value_from(_ask(state, f"Pick a value for {name}: "), base, name)
    state.say("")
    absence = state.session.why_not(fact, 1, rule=rule.number_in_relation, bindings=given)
    _show(state, replace(absence, further=""), is_asked_for=True)


def _rule_lines(rule: Rule) -> list[str]:
    body = [f"    {show_literal(literal)}" for literal in rule.body] or ["    true"]
    return [
        f"{rule.number_in_relation}: {show_literal(rule.head)} :-",
        *(f"{line}," for line in body[:-1]),
        f"{body[-1]}.",
    ]


def _ask(state: ShellState, question: str) -> str:
    """The answer to a question: typed, or the next line of a script."""
    if state.is_interactive:
        return input(question)
    answer = sys.stdin.readline()
    state.say(question + answer.rstrip("\r\n"))
    return answer.strip()


def _rule(state: ShellState, arguments: Piece) -> None:
    """`rule N` counts through the program, `rule R N` among the rules of a relation."""
    words = arguments.text.split()
    rules = state.session.program.checked.rules
    if len(words) == 1:
        found = [rule for rule in rules if str(rule.number) == words[0]]
    else:
        found = [r for r in rules if len(words) == 2 and [r.head.relation, str(r.number_in_relation)] == words]
    if not found:
        advice = f"write `rule N` with a number from 1 to {len(rules)}, or `rule R N` for a rule of a relation"
        raise arguments.error("E0652", "there is no such rule", advice=advice)
    state.say(show_rule(found[0]))


def _setdepth(state: ShellState, arguments: Piece) -> None:
    if not arguments.text.isdecimal() or int(arguments.text) < 1:
        raise arguments.error("E0652", "`setdepth` needs a number of levels", advice="write it as `setdepth 4`")
    state.explanations.depth = state.explanations.depth_of_absence = int(arguments.text)


def _setlimit(state: ShellState, arguments: Piece) -> None:
    if not arguments.text.isdecimal() or int(arguments.text) < 1:
        raise arguments.error("E0652", "`setlimit` needs a number of derivations", advice="write it as `setlimit 20`")
    state.explanations.limit = int(arguments.text)


def _format(state: ShellState, arguments: Piece) -> None:
    form = arguments.text.lower()
    if form not in FORMS:
        advice = did_you_mean(form, FORMS) or "one of " + ", ".join(FORMS)
        raise arguments.error("E0652", f"there is no form `{form[:40]}`", advice=advice)
    state.explanations.form = form


def _output(state: ShellState, arguments: Piece) -> None:
    if not arguments.text:
        state.explanations.output = None
        return
    path = Path(arguments.text.strip('"'))
    try:
        path.write_text("", encoding="utf-8")
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "it is not a path"
        raise arguments.error(
            "E0652", f"it cannot be written to: {reason}".lower(), advice="give another file"
        ) from None
    state.explanations.output = path


def _show(state: ShellState, shown: Proof | Absence, is_asked_for: bool = False) -> None:
    text = rendered(shown, state.explanations.form)
    if is_asked_for and state.explanations.form in ("auto", "text"):
        text = text.partition("\n\n")[2] or text  # the headline says what was just asked
    path = state.explanations.output
    if path is None:
        state.say_all(text.split("\n"))
        return
    with path.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def _fact(state: ShellState, command: str, arguments: Piece) -> tuple[str, tuple[Value, ...]]:
    require_some(command, arguments, "a fact", f"write it as `{command} path(1, 4)`")
    with arguments.placing():
        return state.session.engine.fact(arguments.text)


EXPLAINING: Final = (
    Command("explain R(1, 2)", "show why a fact holds", _explain, aliases=("why",)),
    Command("subproof N", "go on where the last proof was cut", _subproof),
    Command("whynot R(1, 2)", "show why a fact does not hold, or, for R(1, X), why no other fact fits", _whynot),
    Command("explainnegation R(1, 2)", "the same, for a rule and values that you choose", _explainnegation),
    Command("rule [R] N", "show a rule", _rule),
    Command("setdepth N", "show proofs, and why facts do not hold, to this depth", _setdepth),
    Command("setlimit N", "show so many derivations of a fact that does not hold", _setlimit),
    Command("format FORM", f"how explanations are shown: {', '.join(FORMS)}", _format),
    Command("output [FILE]", "write explanations to a file, or to the terminal", _output, arguments="files"),
)


def _take_faults(state: ShellState, command: str, arguments: Piece) -> None:
    """Takes the faults of a command as the question."""
    require_some(command, arguments, "faults", f"write it as `{command} +path(1, 4) -path(2, 3)`")
    sides: dict[str, list[str]] = {"+": [], "-": [], CANDIDATE: []}
    for sign, piece in signed(arguments):
        if sign == CANDIDATE and command != "suggest":
            raise piece.error("E0652", f"`{command}` takes no candidates", advice="give them to `suggest`")
        with piece.placing():
            if sign == CANDIDATE:
                parse_selection(piece.text.lstrip("+-"), state.session.program.checked)
            elif sign == "-":
                require_fact(piece.text, state.session.program.checked)
            else:
                parse_pattern(piece.text, state.session.program.checked)
        sides[sign].append(piece.text)
    asked = state.debugging
    asked.unwanted, asked.missing, asked.candidates = sides["+"], sides["-"], sides[CANDIDATE]
    asked.rejected, asked.suggestion = [], None
    # So a user who takes `+` for what should be there sees the mistake.
    wanted = [f"{fact} absent" for fact in asked.unwanted] + [f"{fact} present" for fact in asked.missing]
    state.say(f"wanted: {', '.join(wanted)}")


def _news(state: ShellState) -> Callable[[str], None] | None:
    return after_a_moment(state.say) if state.is_interactive else None


def _localise(state: ShellState, arguments: Piece) -> None:
    _take_faults(state, "localise", arguments)
    asked = state.debugging
    try:
        with arguments.placing():
            _show_answer(state, state.session.localise(asked.unwanted, asked.missing, on_progress=_news(state)))
    except ElastalogError as error:  # its help speaks of options that the shell has not
        where = f"`suggest {arguments.text}` looks among all given facts, whenever they came"
        advice = f"{where}; `blame` tells in which epoch"
        found = (replace(one, help=advice) if one.code == "E1002" else one for one in error.diagnostics)
        raise type(error)(tuple(found)) from None


def _suggest(state: ShellState, arguments: Piece) -> None:
    word, rest = arguments.after_word()
    over = "facts" if word == "facts" else None
    _take_faults(state, "suggest", rest if over else arguments)
    state.debugging.over = over
    _suggest_again(state, arguments)


def _suggest_again(state: ShellState, arguments: Piece) -> None:
    asked = state.debugging
    asked.suggestion = None
    with arguments.placing():
        asked.suggestion = state.session.suggest(
            asked.unwanted, asked.missing, asked.rejected, on_progress=_news(state), over=asked.over,
            candidates=asked.candidates or None,
        )  # fmt: skip
    _show_answer(state, asked.suggestion)
    if asked.suggestion.elements:
        state.say(f"`apply` does it; `reject {asked.suggestion.elements[0].fact}` looks for another repair")


def _reject(state: ShellState, arguments: Piece) -> None:
    asked = state.debugging
    if not asked.unwanted and not asked.missing:
        raise arguments.error("E0652", "nothing was suggested", advice="ask with `suggest +path(1, 4)` first")
    require_some("reject", arguments, "what is to stay", "write it as `reject edge(3, 4)`, or with a pattern or a rule")
    text = arguments.text
    if ":-" in text or text[0] in "+-":
        pieces = [f"{sign}{piece.text}" for sign, piece in signed(arguments)] if text[0] in "+-" else [text]
    else:
        pieces = [piece.trimmed().text for piece in split(arguments, ",")]
    asked.rejected += pieces
    _suggest_again(state, arguments)


def _show_answer(state: ShellState, answer: Answer) -> None:
    from elastalog.debugging.answers import TO_SEE_ALL

    state.debugging.proofs = answer.proofs
    facts = ", ".join(f"{one.undoing} {one.fact}" for one in answer.elements if not one.is_rule)
    rules = (f"{one.undoing.replace(' ', '')} {one.fact}" for one in answer.elements if one.is_rule)
    typed = ", ".join(f"`{one}`" for one in (facts, *rules) if one)
    hint = f"{TO_SEE_ALL}{typed}, then `preview all`; `commit` or `rollback` ends it"
    state.say_all(hint if line.startswith(TO_SEE_ALL) else line for line in str(answer).split("\n"))


def _proofs(state: ShellState, arguments: Piece) -> None:
    for proof in state.debugging.proofs:
        state.say_all(rendered(proof, state.explanations.form).split("\n"))
        state.say("")


def _blame(state: ShellState, arguments: Piece) -> None:
    require_some("blame", arguments, "a fact", "write it as `blame path(1, 4)`")
    with arguments.placing():
        state.say_all(str(state.session.blame(arguments.text)).split("\n"))


DEBUGGING: Final = (
    Command(
        "localise +R(1) -S(2)", "show which part of the last update made +facts appear and -facts disappear", _localise
    ),
    Command(
        "suggest [facts] +R(1) -S(2)",
        "show the smallest part of the last update to undo, or, with `facts`, the fewest facts to change, so that "
        "+facts disappear and -facts appear; `unwanted` and `missing` may stand for the signs. After the faults, "
        "`--candidate E(1)` names a fact that may be inserted, `--candidate -E(1)` one that may be deleted, patterns "
        "such as `E(_)` several; repeatable",
        _suggest,
        aliases=("debug",),
    ),
    Command("reject E(1)", "suggest again, without changing these facts or rules; patterns stand for many", _reject),
    Command("proofs", "show the proofs that connect the last answer with its faults", _proofs),
    Command("blame R(1, 2)", "show the epoch a fact last came or went in, and why", _blame),
)
