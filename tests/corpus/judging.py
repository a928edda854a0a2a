"""One program, run by both: what there is to say about it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from elastalog.analysis.program import CheckedProgram, Relation
from elastalog.cli.main import cli
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.planning.lower import lower
from elastalog.program import Program
from tests.corpus import functors
from tests.corpus.facts import FEWEST, Input, Unreadable, given_folder, inputs, provide
from tests.corpus.finding import LENGTHS, Found
from tests.corpus.functors import headers_of, own_functors
from tests.corpus.running import Ended, apart, count, differing, execute
from tests.corpus.updating import Tell, judge_folder
from tests.torture.comparing import TooLong, patience

HERE = Path(__file__).parents[2]
SUFFIX = ".all"
ROWS = (14, 300)
"""Fewer where the first lead to no end, and for programs with very many inputs."""
MANY_INPUTS = 100


@dataclass(frozen=True, slots=True)
class Judge:
    """`souffle`: the command of Soufflé, None: only ours runs. `limit`: seconds for a run, `rounds`: random updates."""

    souffle: str | None
    limit: float = 20.0
    rounds: int = 3

    def read(self, found: Found) -> Program:
        """The program. Raises ElastalogError."""
        program = Program.parse(found.text(), "program.dl", include=found.include)
        lower(program.checked)
        return program

    def check(self, found: Found) -> tuple[dict[str, Any], Program | None]:
        """Who accepts it: `accepted`, or why not; and the program, if we do."""
        told: dict[str, Any] = {}
        program: Program | None = None
        try:
            with patience(60.0):
                program = self.read(found)
            told["elastalog"] = "accepted"
            told["digest"] = sha256(program.tree.source.text.encode()).hexdigest()[:16]
        except ElastalogError as error:
            errors = [each for each in error.diagnostics if each.severity == "error"]
            told["elastalog"] = " ".join(sorted({each.code for each in errors}))
            program = None
        except (TooLong, RecursionError, AssertionError, KeyError) as error:
            told["elastalog"], program = f"failed: {type(error).__name__}", None
        if self.souffle is not None:
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                (folder / "program.dl").write_text(found.text())
                ended = execute([*self._souffle(found), "--show=transformed-datalog", "program.dl"], folder, 60.0)
            told["souffle"] = "accepted" if ended.code == 0 else "refused" if ended.code == 1 else "failed"
        return told, program

    def run(self, found: Found, program: Program) -> list[dict[str, Any]]:
        """The verdicts of all runs: on the facts that are there, or few and many at random."""
        checked = program.checked
        if self.souffle is not None and own_functors(checked) and headers_of(self.souffle) is None:
            return [{"verdict": "not run", "reason": "functors of its own, and no headers of Soufflé"}]
        if any(attribute.improves == "<>" for r in checked.relations.values() for attribute in r.attributes):
            return [{"verdict": "not run", "reason": "a lattice: what stands in for its functors gives no bounds"}]
        try:
            wanted = inputs(checked)
        except Unreadable as why:
            return [{"verdict": "not run", "reason": str(why)}]
        given = given_folder(found.files[0].parent, wanted)
        runs: list[dict[str, Any]] = []
        for rows in row_counts(wanted, given):
            runs.append(self._run(found, checked, rows))
            if runs[-1]["verdict"] not in ("equal", "ran", "different") or runs[-1].get("reason") == "unexplained":
                break
        if given is None and runs[-1]["verdict"] in ("no end", "slow") and runs[-1]["rows"] == ROWS[0]:
            runs.append(self._run(found, checked, FEWEST))
        return runs

    def _run(self, found: Found, checked: CheckedProgram, rows: int) -> dict[str, Any]:
        with self.laid_out(found, checked, rows) as folder:
            told = {"rows": rows, **self.verdict(found, checked, folder, rows == ROWS[-1])}
        if "errors generated" in told.get("theirs", ""):
            # Soufflé refuses a hint on some rules once their relations are given out: only those that the program
            # gives out itself, then.
            with self.laid_out(found, checked, rows, is_all=False) as folder:
                told = {"rows": rows, **self.verdict(found, checked, folder, rows == ROWS[-1])}
        if _DECISIONS["functor='ord'"] in told.get("reason", "") and LENGTHS not in found.macros:
            # Whether that is the reason: with lengths, the same on both sides, in the place of such numbers.
            with suppress(ElastalogError):
                plain = replace(found, macros=(*found.macros, LENGTHS))
                told["with lengths for ord"] = self._run(plain, self.read(plain).checked, rows)["verdict"]
        return told

    def update(self, found: Found, program: Program, run: dict[str, Any]) -> None:
        """Adds what strategies make of random updates to a run."""
        with self.laid_out(found, program.checked, run["rows"]) as folder:
            run["strategies"] = self.strategies(found, folder, seed_of(found, run["rows"]))

    def is_worth_updating(self, run: dict[str, Any]) -> bool:
        """Whether updates of a run are to be judged still."""
        is_through = run["verdict"] in ("equal", "ran", "different", "Soufflé stopped")
        return is_through and "strategies" not in run and bool(run.get("seconds", [0])[0] < self.limit / 2)

    @contextmanager
    def laid_out(self, found: Found, checked: CheckedProgram, rows: int, is_all: bool = True) -> Iterator[Path]:
        """A folder with a program that gives out everything, unless only what it gives out itself, and its facts."""
        wanted = inputs(checked)
        given = given_folder(found.files[0].parent, wanted)
        with tempfile.TemporaryDirectory() as scratch:
            self.lay_out(found, checked, wanted, Path(scratch), is_all)
            text = checked.source.text
            provide(wanted, given, Path(scratch) / "facts", rows, Random(seed_of(found, rows)), text)
            if own := own_functors(checked):
                functors.write(own, Path(scratch), headers_of(self.souffle))
            yield Path(scratch)

    def lay_out(
        self, found: Found, checked: CheckedProgram, wanted: list[Input], folder: Path, is_all: bool = True
    ) -> None:
        """Writes the program, which gives out everything."""
        for name in ("facts", "ours", "theirs", "work"):
            (folder / name).mkdir()
        more = [f'.input {one.relation.name}(filename="{one.name}")' for one in wanted if one.directive is None]
        shown = [name for name, r in checked.relations.items() if is_all or {"output", "printsize"} & _kinds(r)]
        more += [f'.output {name}(IO="file", filename="{name}{SUFFIX}")' for name in shown]
        (folder / "program.dl").write_text(found.text("\n".join(more)))

    def verdict(self, found: Found, checked: CheckedProgram, folder: Path, is_measured: bool = False) -> dict[str, Any]:
        """What both make of a folder that has been laid out, with time and memory if these are asked for."""
        told: dict[str, Any] = {}
        ours = self.run_ours(found, folder, is_measured)
        theirs = None
        if self.souffle is not None:
            command = [*self._souffle(found), "-F", str(folder / "facts"), "-D", str(folder / "theirs")]
            if (folder / functors.PYTHON).exists():
                command += ["-L", str(folder), "-l", functors.NAME]
            theirs = execute([*command, str(folder / "program.dl")], folder / "work", self.limit)
        if is_measured:
            both = [ours] if theirs is None else [ours, theirs]
            told |= {"seconds": [each.seconds for each in both], "megabytes": [each.megabytes for each in both]}
        relations = {name: r for name, r in checked.relations.items() if not name.startswith("@")}
        told["relations"], told["facts"] = count(folder / "ours", relations, SUFFIX)
        code = re.search(r"E0\d\d\d", ours.said)
        if "too large" in ours.said or (theirs is not None and theirs.code == -signal.SIGXFSZ):
            return {**told, "verdict": "too much output"}
        if theirs is not None and theirs.code is None and ours.code is None:
            return {**told, "verdict": "no end"}
        if ours.code is None:
            is_slow = theirs is not None and theirs.code == 0
            return {**told, "verdict": "slow" if is_slow else "no end", "theirs": _ending(theirs)}
        if ours.code != 0:
            reason = code[0] if code else f"exit code {ours.code}"
            return {**told, "verdict": "failed", "reason": _REFUSALS.get(reason, reason), "theirs": _ending(theirs)}
        if theirs is not None and theirs.code != 0:
            return {**told, "verdict": "Soufflé stopped", "theirs": _ending(theirs)}
        told["verdict"] = "ran"
        if theirs is not None:
            wrong = differing(folder / "theirs", folder / "ours", relations, SUFFIX)
            told["verdict"] = "different" if wrong else "equal"
            if wrong:
                told["different"] = {name: list(pair) for name, pair in sorted(wrong.items())[:8]}
                told["reason"] = reason_of(checked, set(wrong), folder / "ours")
                if "wrong pattern" in theirs.said and "'match'" in repr(checked.rules).replace("!", ""):
                    told["reason"] = "match: a pattern that only Soufflé's library refuses"
        return told

    def strategies(self, found: Found, folder: Path, seed: int) -> dict[str, Any]:
        """What updates of a folder that has been laid out came to: the epochs of each strategy that were right. One
        that is not named was not reached in time."""
        work = partial(judge_folder, folder / "program.dl", folder / "facts", seed, self.rounds, found.include)
        code, lines = apart(work, 2 * self.limit)
        told: dict[str, Any] = {}
        for one in map(json.loads, lines):
            name = one.pop("strategy")
            told[name] = one["epochs"] if one.keys() == {"epochs"} else one
        return told if code in (0, None) else {**told, "failed": {"exit code": code}}

    def run_ours(self, found: Found, folder: Path, is_measured: bool = False, output: str = "") -> Ended:
        """`elastalog run`: as a command, or without starting one, which takes longer than most programs do."""
        command = ["run", "-w", "--arithmetic", "wrap", "--engine", "local"]
        command += [part for each in found.include for part in ("-I", str(each))]
        command += ["-F", str(folder / "facts"), "-D", output or str(folder / "ours"), str(folder / "program.dl")]
        if (folder / functors.PYTHON).exists():
            command += ["--functors", str(folder / functors.PYTHON)]
        if is_measured:
            return execute([sys.executable, "-m", "elastalog", *command], folder / "work", self.limit, _PATHS)

        def work(_: Tell) -> None:
            os.chdir(folder / "work")
            with open("err", "wb") as err, open("out", "wb") as out:
                os.dup2(err.fileno(), 2), os.dup2(out.fileno(), 1)
            cli.main(command, prog_name="elastalog")

        code, _ = apart(work, self.limit)
        return Ended(code, 0.0, 0, (folder / "work" / "err").read_text(errors="replace")[-4000:])

    def _souffle(self, found: Found) -> list[str]:
        assert self.souffle is not None
        return [self.souffle, "-w", *(f"-I{each}" for each in found.include)]


def _kinds(relation: Relation) -> set[str]:
    return {directive.kind for directive in relation.directives}


_PATHS = {"PYTHONPATH": f"{HERE / 'src'}:{HERE}"}


def _ending(ended: Ended | None) -> str:
    if ended is None:
        return "not asked"
    said = [line for line in ended.said.splitlines() if "rror" in line or "xception" in line]
    return "time" if ended.code is None else said[-1][:80] if said and ended.code else f"exit code {ended.code}"


def row_counts(wanted: list[Input], given: Path | None) -> tuple[int, ...]:
    """How many facts a relation gets: few, then many, unless all are there."""
    if len(wanted) > MANY_INPUTS:
        return (FEWEST,)
    return ROWS if wanted and given is None else ROWS[:1]


def seed_of(found: Found, rows: int) -> int:
    return int(sha256(f"{found.title} {rows}".encode()).hexdigest()[:8], 16)


# --- differences that are decisions ----------------------------------------------------------------------------------

_DECISIONS: Mapping[str, str] = {
    "functor='autoinc'": "autoinc(): numbers belong to derivations",
    "functor='^'": "an integer to a negative power has no value",
    "functor='ord'": "ord: another number than Soufflé's",
    "functor='to_string'": "to_string of a float: the shortest text",
}


_REFUSALS: Mapping[str, str] = {
    "E0501": "E0501: a row that has not as many values as the relation has columns is an error",
    "E0642": "E0642: a stateful functor is a Python function",
}


def reason_of(checked: CheckedProgram, wrong: set[str], ours: Path) -> str:
    """The decision that explains every relation that differs, `unexplained` if there is one that none explains. `ours`:
    the folder of what we make of it."""
    below = _dependencies(checked)
    reasons = set()
    for name in wrong:
        rules = [rule for rule in checked.rules if rule.head.relation in below[name]]
        text = repr(rules)
        found = {reason for sign, reason in _DECISIONS.items() if sign in text}
        if any(checked.relations[each].choices for each in below[name]):
            found.add("choice-domain: chosen by value")
        if re.search(r"functor='/'[^/]*?base=<Base.FLOAT", text):
            found.add("division by zero has no value")
        if "Base.FLOAT" in text and "Base.FLOAT" in repr(checked.relations[name].attributes):
            found.add("floats of 64 bits")
        if any(_is_beyond_32_bits(ours / f"{each}{SUFFIX}") for each in below[name]):
            found.add("integers of 64 bits")
        if not found:
            return "unexplained"
        reasons |= found
    return "; ".join(sorted(reasons))


def _is_beyond_32_bits(path: Path) -> bool:
    data = path.read_bytes() if path.exists() else b""
    return any(not -(2**31) <= int(number) < 2**31 for number in re.findall(rb"(?<![\w.])-?\d{10,}(?![\w.])", data))


def _dependencies(checked: CheckedProgram) -> dict[str, set[str]]:
    below = {name: {name} for name in checked.relations}
    direct: dict[str, set[str]] = {name: set() for name in below}
    for rule in (*checked.rules, *checked.subsumptions):
        direct.setdefault(rule.head.relation.removesuffix("<="), set()).update(
            re.findall(r"relation='([^']+)'", repr(rule.body))
        )
    for name in below:
        todo = [name]
        while todo:
            for other in direct.get(todo.pop(), ()):
                if other not in below[name]:
                    below[name].add(other)
                    todo.append(other)
    return below
