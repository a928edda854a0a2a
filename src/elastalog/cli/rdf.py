"""`elastalog rdf`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elastalog.cli.exits import AT_FAULT, Console
from elastalog.cli.options import option, options_of, report_options, together, verbosity_options
from elastalog.cli.outputs import write_text
from elastalog.cli.session_options import (
    BAD_ROWS,
    MAX_BAD_ROWS,
    Jobs,
    announcing,
    at_option,
    reading,
    show_reports,
    store_argument,
    tell_facts,
    writing,
)
from elastalog.diagnostics.messages import counted
from elastalog.late import dataclass

if TYPE_CHECKING:
    from elastalog.pipeline.files.policy import Mode

_files = together(
    click.argument("ontology", type=click.Path(exists=True)),
    click.argument("data", type=click.Path(exists=True), nargs=-1),
    click.option("--base", metavar="IRI", help="Base of relative IRIs."),
    click.option(
        "--import", "imports", multiple=True, metavar="IRI=FILE",
        help="File of an imported ontology; others are looked up beside it. Nothing is fetched.",
    ),
)  # fmt: skip


@click.group()
def rdf() -> None:
    """Use OWL 2 RL ontologies and RDF triples.

    \b
    Examples:
      elastalog rdf check univ-bench.ttl
      elastalog rdf import univ-bench.ttl data.nt -o university.store
      elastalog rdf query university.store 'SELECT ?x WHERE { ?x a ub:Chair }'
      elastalog rdf explain university.store 'ex:ann a ub:Student'
    """


def _imported(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if any(not path for _, _, path in pairs):
        raise click.UsageError("--import takes IRI=FILE")
    return {name: path for name, _, path in pairs}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options that say what to make of an ontology."""

    store: str | None = option("-o", "--store", type=click.Path(), metavar="STORE", help="The store to make.")
    program: str | None = option(
        "--program", type=click.Path(dir_okay=False), metavar="FILE", help="Write the rules to this file, too."
    )
    equality: bool | None = option(
        "--equality/--no-equality",
        default=None,
        help="Whether terms that are the same replace each other.  [default: if something may be the same]",
    )
    jobs: int = option(
        "-j", "--jobs", default="auto", type=Jobs(1, 1024), metavar="N", help="Number of threads, or auto."
    )
    bad_rows: Mode = BAD_ROWS
    max_bad_rows: int = MAX_BAD_ROWS


@rdf.command("import")
@_files
@options_of(ImportOptions, "wanted")
@report_options
def import_(
    ontology: str,
    data: tuple[str, ...],
    base: str | None,
    imports: tuple[str, ...],
    wanted: ImportOptions,
    console: Console,
) -> None:
    """Make a store of an ontology and its data.

    Every class becomes a unary relation, every property a binary one, the axioms rules. Files are N-Triples, N-Quads,
    Turtle, TriG, RDF/XML or JSON-LD, by their names, or folders of them. Constructs outside the profile are reported.

    \b
    Examples:
      elastalog rdf import univ-bench.ttl data.nt -o university.store
      elastalog rdf import family.owl --program family.dl
    """
    if wanted.store is None and wanted.program is None:
        raise click.UsageError("give the store to make with -o, or a file for the rules with --program")
    with announcing(console):
        from elastalog.pipeline.files.policy import BadRows
        from elastalog.rdf.loading import open_translation, translate
        from elastalog.storage.objects.writing import refuse_existing_at

        if wanted.store is not None:
            refuse_existing_at(wanted.store)
        made = translate(
            ontology, *data, base=base, imports=_imported(imports), equality=wanted.equality,
            bad_rows=BadRows(wanted.bad_rows, wanted.max_bad_rows), jobs=wanted.jobs,
        )  # fmt: skip
        console.show([one.diagnostic() for one in made.outside])
        if wanted.program is not None:
            write_text(wanted.program, made.text.removesuffix("\n"))
        if wanted.store is None:
            return
        with open_translation(made, store=wanted.store, jobs=wanted.jobs) as session:
            show_reports(session.reports, console)
            tell_facts(session, console)
            if wrong := len(session["inconsistent"]):
                console.say(f"inconsistent: {counted(wrong, 'time')}; see the relation `inconsistent`")


@rdf.command()
@_files
@report_options
def check(ontology: str, data: tuple[str, ...], base: str | None, imports: tuple[str, ...], console: Console) -> None:
    """Check an ontology and its data.

    Lists constructs outside OWL 2 RL, and inconsistencies.

    Axioms that are ignored, in full or in part, are warnings with their place. Every inconsistency is printed with its
    proof. The exit code is 1 if there is one.

    \b
    Examples:
      elastalog rdf check family.owl
      elastalog rdf check family.owl people.ttl
    """
    with announcing(console):
        from elastalog.provenance.rendering.text import render_tree
        from elastalog.rdf.loading import open_translation, translate

        made = translate(ontology, *data, base=base, imports=_imported(imports))
        console.show([one.diagnostic() for one in made.outside])
        with open_translation(made) as session:
            wrong = sorted(session["inconsistent"])
            for values in wrong:
                click.echo(made.names.shortened(render_tree(session.explain(("inconsistent", values)))))
            if not console.is_quiet:
                classes = sum(kind == "class" for kind, _ in made.names.relations)
                properties = len(made.names.relations) - classes
                told = f"classes: {classes:,}, properties: {properties:,}, inconsistencies: {len(wrong):,}"
                click.echo(told, err=True)
        if wrong:
            raise SystemExit(AT_FAULT)


@rdf.command()
@store_argument
@click.argument("path", type=click.Path(dir_okay=False), metavar="FILE")
@click.option("--explicit", is_flag=True, help="Only the given triples.")
@at_option
@verbosity_options
def export(store: str, path: str, explicit: bool, at: int | str | None, console: Console) -> None:
    """Write the triples of a store to a file.

    The name of the file determines the format.

    \b
    Examples:
      elastalog rdf export university.store closure.nt
      elastalog rdf export university.store given.ttl --explicit
    """
    with announcing(console), reading(store, at) as session:
        from elastalog.rdf.loading import export as export_triples

        number = export_triples(session, path, explicit=explicit)
        console.say(f"{path}: {number:,} triples")


@rdf.command()
@store_argument
@click.argument("patches", type=click.Path(exists=True), nargs=-1, required=True, metavar="PATCH...")
@verbosity_options
def apply(store: str, patches: tuple[str, ...], console: Console) -> None:
    """Apply patches to a store, each an epoch.

    A PATCH has lines of N-Triples behind `+` or `-`, or is an RDF Patch, with `A` and `D`.

    \b
    Example:
      elastalog rdf apply university.store monday.rdfp
    """
    with announcing(console), writing(store, console) as session:
        from elastalog.rdf.patches import apply as apply_patch

        for patch in patches:
            changes = apply_patch(session, patch)
            console.say(f"epoch {session.epoch}: {patch}: {counted(changes.impact, 'change')}")


@rdf.command()
@store_argument
@click.argument("text", metavar="SPARQL")
@at_option
@verbosity_options
def query(store: str, text: str, at: int | str | None, console: Console) -> None:
    """Query a store in SPARQL.

    Prints one solution per line, values separated by tabs.

    \b
    Example:
      elastalog rdf query university.store 'SELECT ?x WHERE { ?x a ub:Chair } LIMIT 3'
    """
    with announcing(console), reading(store, at) as session:
        found = session.sparql(text)
        if isinstance(found, bool):
            click.echo("true" if found else "false")
            return
        click.echo("\t".join(f"?{name}" for name in found.variables))
        for row in found:
            click.echo("\t".join(value or "" for value in row))


@rdf.command()
@store_argument
@click.argument("triple")
@at_option
@verbosity_options
def explain(store: str, triple: str, at: int | str | None, console: Console) -> None:
    """Show why a triple holds, or what it lacks.

    \b
    Example:
      elastalog rdf explain university.store 'ex:ann a ub:Student'
    """
    with announcing(console), reading(store, at) as session:
        from elastalog.rdf import loading
        from elastalog.rdf.vocabulary import Names

        names = Names.in_program(session)
        relation, values = names.fact(loading.triple_of(triple, names))
        holds = values in session[relation]
        click.echo(loading.explain(session, triple) if holds else loading.why_not(session, triple))
