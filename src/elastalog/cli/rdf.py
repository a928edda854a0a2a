"""`elastalog rdf`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from elastalog.cli.exits import AT_FAULT, Verbosity, exit_codes, show_diagnostics
from elastalog.cli.options import report_options, together, verbosity_options
from elastalog.cli.session_options import (
    Jobs,
    announcing,
    at_option,
    bad_rows_option,
    max_bad_rows_option,
    reading,
    show_reports,
    store_argument,
    writing,
)
from elastalog.diagnostics.messages import counted

if TYPE_CHECKING:
    from elastalog.pipeline.files.policy import Mode

_files = together(
    click.argument("ontology", type=click.Path(exists=True)),
    click.argument("data", type=click.Path(exists=True), nargs=-1),
    click.option("--base", metavar="IRI", help="What relative IRIs are relative to."),
    click.option(
        "--import", "imports", multiple=True, metavar="IRI=FILE",
        help="The file of an ontology that is imported; others are looked for beside. Nothing is fetched.",
    ),
)  # fmt: skip


@click.group()
def rdf() -> None:
    """Ontologies in OWL 2 RL and triples of RDF.

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


@rdf.command("import")
@_files
@click.option("-o", "--store", type=click.Path(), metavar="STORE", help="The store to make.")
@click.option("--program", type=click.Path(dir_okay=False), metavar="FILE", help="Where to write the rules as well.")
@click.option("--equality/--no-equality", default=None, help="Whether what is the same may replace each other.")
@click.option("-j", "--jobs", default="auto", type=Jobs(1, 1024), metavar="N", help="Number of threads, or auto.")
@bad_rows_option
@max_bad_rows_option
@report_options
def import_(
    ontology: str,
    data: tuple[str, ...],
    base: str | None,
    imports: tuple[str, ...],
    store: str | None,
    program: str | None,
    equality: bool | None,
    jobs: int,
    bad_rows: Mode,
    max_bad_rows: int,
    form: str,
    verbosity: Verbosity,
) -> None:
    """Make a store of an ontology and data, closed under OWL 2 RL.

    Every class becomes a unary relation, every property a binary one, the axioms rules. Files are N-Triples, N-Quads,
    Turtle, TriG, RDF/XML or JSON-LD, by their names, or folders of them. What is outside of the profile is told.

    \b
    Examples:
      elastalog rdf import univ-bench.ttl data.nt -o university.store
      elastalog rdf import family.owl --program family.dl
    """
    if store is None and program is None:
        raise click.UsageError("give the store to make with -o, or a file for the rules with --program")
    with exit_codes(form, verbosity), announcing(verbosity):
        from elastalog.pipeline.files.policy import BadRows
        from elastalog.rdf.loading import open_translation, translate
        from elastalog.storage.objects.writing import refuse_existing_at

        if store is not None:
            refuse_existing_at(store)
        policy = BadRows(bad_rows, max_bad_rows)
        made = translate(
            ontology, *data, base=base, imports=_imported(imports), equality=equality, bad_rows=policy, jobs=jobs
        )
        show_diagnostics([one.diagnostic() for one in made.outside], form, verbosity)
        if program is not None:
            Path(program).write_text(made.text, encoding="utf-8")
        if store is None:
            return
        with open_translation(made, store=store, jobs=jobs) as session:
            show_reports(session.reports, form, verbosity)
            if verbosity != "quiet":
                facts = sum(len(session[name]) for name in session)
                click.echo(f"epoch {session.epoch}: {facts:,} facts", err=True)
                if wrong := len(session["inconsistent"]):
                    click.echo(f"inconsistent: {counted(wrong, 'time')}; see the relation `inconsistent`", err=True)


@rdf.command()
@_files
@report_options
def check(
    ontology: str, data: tuple[str, ...], base: str | None, imports: tuple[str, ...], form: str, verbosity: Verbosity
) -> None:
    """Say what of an ontology is outside of OWL 2 RL, and what of the data is inconsistent.

    Axioms that do not count, or not in full, are warnings with their place. Every inconsistency is printed with its
    proof. The exit code is 1 if there is one.

    \b
    Examples:
      elastalog rdf check family.owl
      elastalog rdf check family.owl people.ttl
    """
    with exit_codes(form, verbosity), announcing(verbosity):
        from elastalog.provenance.rendering.text import render_tree
        from elastalog.rdf.loading import open_translation, translate

        made = translate(ontology, *data, base=base, imports=_imported(imports))
        show_diagnostics([one.diagnostic() for one in made.outside], form, verbosity)
        with open_translation(made) as session:
            wrong = sorted(session["inconsistent"])
            for values in wrong:
                click.echo(made.names.shortened(render_tree(session.explain(("inconsistent", values)))))
            if verbosity != "quiet":
                classes = sum(kind == "class" for kind, _ in made.names.relations)
                properties = len(made.names.relations) - classes
                told = f"classes: {classes:,}, properties: {properties:,}, inconsistencies: {len(wrong):,}"
                click.echo(told, err=True)
        if wrong:
            raise SystemExit(AT_FAULT)


@rdf.command()
@store_argument
@click.argument("path", type=click.Path(dir_okay=False), metavar="FILE")
@click.option("--explicit", is_flag=True, help="Only the triples that were given.")
@at_option
@verbosity_options
def export(store: str, path: str, explicit: bool, at: int | None, verbosity: Verbosity) -> None:
    """Write the triples of a store to a file, in the format that its name says.

    \b
    Examples:
      elastalog rdf export university.store closure.nt
      elastalog rdf export university.store given.ttl --explicit
    """
    with exit_codes("text", verbosity), announcing(verbosity), reading(store, at) as session:
        from elastalog.rdf.loading import export as export_triples

        number = export_triples(session, path, explicit=explicit)
        if verbosity != "quiet":
            click.echo(f"{path}: {number:,} triples", err=True)


@rdf.command()
@store_argument
@click.argument("patches", type=click.Path(exists=True), nargs=-1, required=True, metavar="PATCH...")
@verbosity_options
def apply(store: str, patches: tuple[str, ...], verbosity: Verbosity) -> None:
    """Apply patches to a store, each an epoch.

    A PATCH has lines of N-Triples behind `+` or `-`, or is an RDF Patch, with `A` and `D`.

    \b
    Example:
      elastalog rdf apply university.store monday.rdfp
    """
    with exit_codes("text", verbosity), announcing(verbosity), writing(store, "text", verbosity) as session:
        from elastalog.rdf.patches import apply as apply_patch

        for patch in patches:
            changes = apply_patch(session, patch)
            if verbosity != "quiet":
                click.echo(f"epoch {session.epoch}: {patch}: {counted(changes.impact, 'change')}", err=True)


@rdf.command()
@store_argument
@click.argument("text", metavar="SPARQL")
@at_option
@verbosity_options
def query(store: str, text: str, at: int | None, verbosity: Verbosity) -> None:
    """Ask a store in SPARQL; answers go to standard output, tab-separated, a solution a line.

    \b
    Example:
      elastalog rdf query university.store 'SELECT ?x WHERE { ?x a ub:Chair } LIMIT 3'
    """
    with exit_codes("text", verbosity), announcing(verbosity), reading(store, at) as session:
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
def explain(store: str, triple: str, at: int | None, verbosity: Verbosity) -> None:
    """Say why a triple holds, or what is missing where it does not.

    \b
    Example:
      elastalog rdf explain university.store 'ex:ann a ub:Student'
    """
    with exit_codes("text", verbosity), announcing(verbosity), reading(store, at) as session:
        from elastalog.rdf import loading
        from elastalog.rdf.vocabulary import Names

        names = Names.in_program(session)
        relation, values = names.fact(loading.triple_of(triple, names))
        holds = values in session[relation]
        click.echo(loading.explain(session, triple) if holds else loading.why_not(session, triple))
