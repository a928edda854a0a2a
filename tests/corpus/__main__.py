"""`python -m tests.corpus CLONES --souffle BINARY`: every program of a folder of checkouts that no other file
includes is checked and run by Soufflé and here, on its facts or on random ones, and here under every strategy with
random updates.

CLONES has a folder OWNER+NAME for each repository. Without a judge, `--souffle`, only ours runs, and updates alone are
judged. The table, a file of JSON, keeps names, commits and verdicts, and nothing else of what is read. A program that
is in it for the same commits of both sides is not run again. `--reduce NAME` makes a program that differs
small, in a folder. `--expected` counts how many of Soufflé's own tests come out as their files say."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.corpus.expected import print_expected
from tests.corpus.finding import Found, programs
from tests.corpus.judging import HERE, Judge
from tests.corpus.reducing import reduce

RESULTS = HERE / "benchmarks" / "results" / "corpus.json"


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 1 when a program differs and no decision explains it, or an update went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("clones", type=Path, metavar="CLONES", help="the folder of checkouts")
    parser.add_argument("--souffle", help="the judge: Soufflé's command; without it only ours runs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the table")
    parser.add_argument("--only", default="", help="programs whose repository and name contain this")
    parser.add_argument("--most", type=int, default=40, help="most programs of a repository that somebody accepts")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for a run of either side")
    parser.add_argument("--again", action="store_true", help="also what is in the table already")
    parser.add_argument("--reduce", metavar="NAME", help="make this program (REPOSITORY/NAME) small instead")
    parser.add_argument("--scratch", type=Path, default=Path("build/corpus"), help="where a reduced program goes")
    parser.add_argument("--expected", action="store_true", help="instead, Soufflé's own tests by their expected files")
    given = parser.parse_args(arguments)
    judge = Judge(None if given.souffle is None else os.path.abspath(given.souffle), given.limit)
    if given.expected:
        return print_expected(judge, given.clones / "souffle-lang+souffle", given.only)
    if given.reduce is not None:
        return reduce(judge, _named(given.clones, given.reduce), given.scratch)
    table = json.loads(given.results.read_text()) if given.results.exists() else {}
    ours = _own_commit()
    for work in (examine, update):  # the comparison first: updates take longer
        for repository in programs(given.clones):
            accepted = 0
            for found in repository:
                if given.only not in found.title or accepted >= given.most:
                    continue
                entry = table.get(found.title)
                if (
                    (given.again and work is examine)
                    or entry is None
                    or (entry["commit"], entry["ours"]) != (found.commit, ours)
                ):
                    entry = table[found.title] = {"commit": found.commit, "ours": ours}
                if work(judge, found, entry, table):
                    print(f"{found.title}: {_said(entry)}", flush=True)
                    _write(given.results, table)
                accepted += "accepted" in (entry["elastalog"], entry.get("souffle"))
    print(summary(table))
    return 1 if any(is_wrong(entry) for entry in table.values()) else 0


Table = dict[str, dict[str, Any]]


def examine(judge: Judge, found: Found, entry: dict[str, Any], table: Table) -> bool:
    """Checks and runs a program, unless that has been done; false if so. Updates that were judged without Soufflé need
    not be made again."""
    if "elastalog" in entry and (judge.souffle is None or "souffle" in entry):
        return False
    told, program = judge.check(found)
    entry |= told
    before = {run["rows"]: run["strategies"] for run in entry.pop("runs", ()) if "strategies" in run}
    if program is not None and entry.get("souffle", "accepted") == "accepted":
        twins = [name for name, each in table.items() if each.get("digest") == entry["digest"] and "runs" in each]
        entry |= {"same": twins[0]} if twins else {"runs": judge.run(found, program)}
        for run in entry.get("runs", ()):
            run |= {"strategies": before[run["rows"]]} if run.get("rows") in before else {}
    return True


def update(judge: Judge, found: Found, entry: dict[str, Any], table: Table) -> bool:
    """Updates what has been run, unless that has been done."""
    runs = [run for run in entry.get("runs", ()) if judge.is_worth_updating(run)]
    for run in runs:
        judge.update(found, judge.read(found), run)
    return bool(runs)


def is_wrong(entry: dict[str, Any]) -> bool:
    """Whether something is left to explain."""
    return any(
        run.get("reason") == "unexplained"
        or (run["verdict"] == "failed" and run.get("theirs") == "exit code 0" and ":" not in run["reason"])
        or any(isinstance(told, dict) and "refused" not in told for told in run.get("strategies", {}).values())
        for run in entry.get("runs", ())
    )


def summary(table: dict[str, Any]) -> str:
    """The table in a few lines."""
    entries = list(table.values())
    runs = [run for entry in entries for run in entry.get("runs", ())]
    with_output = [e for e in entries if any(r.get("facts") and r["verdict"] != "not run" for r in e.get("runs", ()))]
    compared = [e for e in with_output if any(r["verdict"] in ("equal", "different") for r in e["runs"])]
    epochs = Counter(s for run in runs for s, told in run.get("strategies", {}).items() for _ in range(_epochs(told)))
    lines = [
        f"programs: {len(entries)}, the same as another: {sum('same' in e for e in entries)}",
        f"accepted: {dict(Counter((e.get('souffle', '-'), e['elastalog']) for e in entries))}",
        f"run with some output: {len(with_output)}, compared with Soufflé: {len(compared)}",
        f"runs: {dict(Counter(run['verdict'] for run in runs))}",
        f"equal epochs by strategy: {dict(epochs)}",
    ]
    return "\n".join([*lines, *(f"LOOK AT {name}: {_said(entry)}" for name, entry in table.items() if is_wrong(entry))])


def _epochs(told: Any) -> int:
    return told if isinstance(told, int) else 0


def _named(clones: Path, name: str) -> Found:
    return next(found for repository in programs(clones) for found in repository if found.title == name)


def _own_commit() -> str:
    """That of the sources: a change of the tests changes no verdict."""
    command = ["git", "-C", str(HERE), "rev-parse", "--short=10", "HEAD:src"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def _said(entry: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in entry.items() if key not in ("digest", "commit", "ours")})


def _write(path: Path, table: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(table, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    os.replace(temporary, path)


if __name__ == "__main__":
    sys.exit(main())
