"""Universities after the published profile of LUBM: `python -m benchmarks.rdf.generate 5 lubm-5.nt [--seed N]`.

Numbers of departments, people, courses and publications are drawn within the ranges of the benchmark (Guo, Pan, Heflin,
2005, Section 2.2 and its profile of data); the same seed gives the same file. Its own generator draws other numbers.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
UNIVERSITIES = 1000
"""From which degrees may be."""
FACULTY = {
    "FullProfessor": ((7, 10), (15, 20)),
    "AssociateProfessor": ((10, 14), (10, 18)),
    "AssistantProfessor": ((8, 11), (5, 10)),
    "Lecturer": ((5, 7), (0, 5)),
}
"""How many there are in a department, and how many publications each has."""

Triple = tuple[str, str, str]


def universities(number: int, seed: int = 0) -> Iterator[str]:
    """The lines of some universities."""
    for index in range(number):
        draw = random.Random(f"{seed}.{index}")
        yield from _lines(_university(index, draw))


def _lines(triples: Iterator[Triple]) -> Iterator[str]:
    for s, p, o in triples:
        written = o if o[0] in '"<' else f"<{o}>"
        yield f"<{s}> {TYPE if p == 'type' else f'<{UB}{p}>'} {written} .\n"


def _university(index: int, draw: random.Random) -> Iterator[Triple]:
    university = f"http://www.University{index}.edu"
    yield university, "type", f"<{UB}University>"
    yield university, "name", f'"University{index}"'
    for number in range(draw.randint(15, 25)):
        yield from _Department(index, number, university, draw).triples()


class _Department:
    """One department of a university."""

    def __init__(self, university: int, number: int, above: str, draw: random.Random) -> None:
        self.name = f"Department{number}.University{university}.edu"
        self.iri, self.above, self.draw = f"http://www.{self.name}", above, draw
        self.courses: dict[str, list[str]] = {"Course": [], "GraduateCourse": []}
        self.publications: list[str] = []

    def triples(self) -> Iterator[Triple]:
        yield self.iri, "type", f"<{UB}Department>"
        yield self.iri, "name", f'"{self.name.split(".")[0]}"'
        yield self.iri, "subOrganizationOf", self.above
        faculty: list[str] = []
        for kind, (people, papers) in FACULTY.items():
            for number in range(self.draw.randint(*people)):
                faculty.append(f"{self.iri}/{kind}{number}")
                yield from self._teacher(faculty[-1], kind, self.draw.randint(*papers))
        head = self.draw.choice([one for one in faculty if "/FullProfessor" in one])
        yield head, "headOf", self.iri
        professors = [one for one in faculty if "/Lecturer" not in one]
        for number in range(len(faculty) * self.draw.randint(8, 14)):
            yield from self._undergraduate(f"{self.iri}/UndergraduateStudent{number}", professors)
        graduates = [f"{self.iri}/GraduateStudent{number}" for number in range(len(faculty) * self.draw.randint(3, 4))]
        for student in graduates:
            yield from self._graduate(student, professors)
        assistants = self.draw.sample(graduates, len(graduates) // self.draw.randint(4, 5))
        for student, course in zip(assistants, self.draw.sample(self.courses["Course"], min(
            len(assistants), len(self.courses["Course"])
        )), strict=False):  # fmt: skip
            yield student, "type", f"<{UB}TeachingAssistant>"
            yield student, "teachingAssistantOf", course
        for student in self.draw.sample(graduates, len(graduates) // self.draw.randint(3, 4)):
            yield student, "type", f"<{UB}ResearchAssistant>"
        for number in range(self.draw.randint(10, 20)):
            group = f"{self.iri}/ResearchGroup{number}"
            yield group, "type", f"<{UB}ResearchGroup>"
            yield group, "subOrganizationOf", self.iri

    def _person(self, iri: str, kind: str) -> Iterator[Triple]:
        name = iri.rsplit("/", 1)[1]
        yield iri, "type", f"<{UB}{kind}>"
        yield iri, "name", f'"{name}"'
        yield iri, "emailAddress", f'"{name}@{self.name}"'
        yield iri, "telephone", '"xxx-xxx-xxxx"'

    def _degree(self, iri: str, kind: str) -> Triple:
        return iri, kind, f"http://www.University{self.draw.randrange(UNIVERSITIES)}.edu"

    def _teacher(self, iri: str, kind: str, papers: int) -> Iterator[Triple]:
        yield from self._person(iri, kind)
        yield iri, "worksFor", self.iri
        for degree in ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
            yield self._degree(iri, degree)
        if kind != "Lecturer":
            yield iri, "researchInterest", f'"Research{self.draw.randrange(30)}"'
        for level, listed in self.courses.items():
            for _ in range(self.draw.randint(1, 2)):
                listed.append(f"{self.iri}/{level}{len(listed)}")
                yield listed[-1], "type", f"<{UB}{level}>"
                yield listed[-1], "name", f'"{listed[-1].rsplit("/", 1)[1]}"'
                yield iri, "teacherOf", listed[-1]
        for number in range(papers):
            paper = f"{iri}/Publication{number}"
            self.publications.append(paper)
            yield paper, "type", f"<{UB}Publication>"
            yield paper, "name", f'"Publication{number}"'
            yield paper, "publicationAuthor", iri

    def _undergraduate(self, iri: str, professors: list[str]) -> Iterator[Triple]:
        yield from self._person(iri, "UndergraduateStudent")
        yield iri, "memberOf", self.iri
        for course in self.draw.sample(self.courses["Course"], self.draw.randint(2, 4)):
            yield iri, "takesCourse", course
        if self.draw.random() < 0.2:
            yield iri, "advisor", self.draw.choice(professors)

    def _graduate(self, iri: str, professors: list[str]) -> Iterator[Triple]:
        yield from self._person(iri, "GraduateStudent")
        yield iri, "memberOf", self.iri
        yield self._degree(iri, "undergraduateDegreeFrom")
        yield iri, "advisor", self.draw.choice(professors)
        for course in self.draw.sample(self.courses["GraduateCourse"], self.draw.randint(1, 3)):
            yield iri, "takesCourse", course
        for paper in self.draw.sample(self.publications, self.draw.randint(0, 5)):
            yield paper, "publicationAuthor", iri


def write(number: int, path: Path, seed: int = 0) -> int:
    """Writes the file of some universities; returns how many triples there are."""
    lines = list(universities(number, seed))
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{write(given.number, given.path, given.seed):,} triples")
