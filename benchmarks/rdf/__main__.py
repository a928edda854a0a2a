"""LUBM from N-Triples to closure, beside `reasonable` and `owlrl`: `python -m benchmarks.rdf [1 5] [--owlrl]`.

Every reasoner runs in a process of its own, one after the other, from the files of the schema and of the universities
to all triples that follow; time and peak memory are those of the process, imports not counted. What they derive about
individuals is compared. Then 1 % of the triples is deleted and put back in the session. The file of universities is
made by `benchmarks.rdf.generate`, and `--data FILE` takes another one. Prints lines for benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.rdf.generate import write

SCHEMA = Path(__file__).parent / "univ-bench.ttl"
W3C = ("<http://www.w3.org/", '"')
TYPE, SAME = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://www.w3.org/2002/07/owl#sameAs>"


def digest(triples: Any) -> tuple[int, str]:
    """How many triples there are about individuals with names, and what they are."""
    kept = sorted(
        " ".join(t)
        for t in set(triples)
        if t[0][0] == "<" == t[1][0] and t[2][:2] != "_:" and not t[0].startswith(W3C) and not t[2].startswith(W3C[:1])
        and (t[1] == TYPE or not t[1].startswith(W3C)) and "univ-bench.owl" not in t[0]
    )  # fmt: skip
    return len(kept), sha256("\n".join(kept).encode()).hexdigest()[:12]


def by_elastalog(data: Path, jobs: int) -> dict[str, Any]:
    import elastalog.rdf as rdf
    from elastalog.rdf.loading import all_triples, open_translation
    from elastalog.rdf.vocabulary import Names

    rdf.load(SCHEMA).close()  # operators are loaded, as they are in the other reasoners
    start, clock = time.perf_counter(), time.process_time()
    made = rdf.translate(SCHEMA, data, jobs=jobs)
    read = time.perf_counter() - start
    with open_translation(made, jobs=jobs) as db:
        seconds, processor = time.perf_counter() - start, time.process_time() - clock
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        triples = list(all_triples(db, Names.in_program(db)))
        given = [line for line in data.read_text().splitlines() if line]
        chosen = random.Random(1).sample(given, len(given) // 100)
        changes = {}
        for name, sign in (("delete 1 %", "-"), ("put back", "+")):
            patch = rdf.read_patch("".join(f"{sign} {line}\n" for line in chosen))
            start = time.perf_counter()
            changes[name] = (rdf.apply(db, patch).impact, time.perf_counter() - start)
        assert digest(all_triples(db, Names.in_program(db))) == digest(triples)
    return {
        "seconds": seconds,
        "processor": processor,
        "reading": read,
        "peak": peak,
        "found": digest(triples),
        "changes": changes,
    }


def by_reasonable(data: Path, jobs: int) -> dict[str, Any]:
    import reasonable

    copy = data.with_suffix(".ttl")  # N-Triples is Turtle, and it reads no file of another name
    copy.write_bytes(data.read_bytes())
    start, clock = time.perf_counter(), time.process_time()
    reasoner = reasonable.PyReasoner()
    reasoner.load_file(str(SCHEMA))
    reasoner.load_file(str(copy))
    found = reasoner.reason()
    return _measured(start, clock, found)


def by_owlrl(data: Path, jobs: int) -> dict[str, Any]:
    import owlrl
    import rdflib

    start, clock = time.perf_counter(), time.process_time()
    graph = rdflib.Graph()
    graph.parse(SCHEMA)
    graph.parse(data, format="nt")
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics, axiomatic_triples=False, datatype_axioms=False).expand(graph)
    return _measured(start, clock, graph)


def _measured(start: float, clock: float, found: Any) -> dict[str, Any]:
    seconds, processor = time.perf_counter() - start, time.process_time() - clock
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    from elastalog.rdf.sparql import _text

    triples = [tuple(map(_text, triple)) for triple in found]
    return {"seconds": seconds, "processor": processor, "peak": peak, "found": digest(triples)}


REASONERS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "elastalog": by_elastalog, "reasonable": by_reasonable, "owlrl": by_owlrl,
}  # fmt: skip


def compare(data: Path, names: list[str], jobs: int) -> None:
    triples = sum(1 for line in data.open() if line.strip())
    print(f"{data.name}: {triples:,} triples")
    for name in names:
        command = [sys.executable, "-m", "benchmarks.rdf", "--one", name, "--data", str(data), "--jobs", str(jobs)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        told = json.loads(done.stdout.splitlines()[-1])
        times = f"{told['seconds']:8.2f} s ({told['processor']:.2f} s of processor)"
        line = f"  {name:10} {times}, {told['peak'] / 1e6:,.0f} MB"
        number, what = told["found"]
        print(f"{line}; {number:,} triples about individuals ({what})")
        if "reading" in told:
            print(f"    reading {triples / told['reading'] / 1e6:.2f} M triples a second")
            for change, (impact, seconds) in told["changes"].items():
                print(f"    {change}: {seconds:.3f} s, {impact:,} facts")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("universities", type=int, nargs="*", default=[1, 5])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--one", choices=sorted(REASONERS))
    parser.add_argument("--owlrl", action="store_true", help="owlrl as well, on the smallest: minutes")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(REASONERS[given.one](given.data, given.jobs)))
    elif given.data:
        compare(given.data, ["elastalog", "reasonable", *(["owlrl"] if given.owlrl else [])], given.jobs)
    else:
        with tempfile.TemporaryDirectory() as folder:
            for number in given.universities:
                path = Path(folder) / f"lubm-{number}.nt"
                write(number, path)
                has_owlrl = given.owlrl and number == min(given.universities)
                compare(path, ["elastalog", "reasonable", *(["owlrl"] if has_owlrl else [])], given.jobs)
