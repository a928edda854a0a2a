"""`elastalog workbench`, as far as it goes without a browser."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import elastalog
from elastalog.cli.service import serve, workbench
from elastalog.web.auth import Guard
from elastalog.web.pages.demo import open_demo, updates
from elastalog.web.settings import Role, Settings
from elastalog.web.writing import edits


def test_a_program_or_the_demonstration_not_both():
    result = CliRunner().invoke(workbench, ["reach.dl", "--demo"])
    assert result.exit_code == 2
    assert "give a PROGRAM, a STORE, or --demo, not two of them" in result.output


def test_the_browser_is_opened_if_that_is_wanted(monkeypatch, tmp_path):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("elastalog.web.app.serve", lambda app, service, listening, started: started())
    monkeypatch.setattr("elastalog.web.pages.frame.mount_pages", lambda app, service, *, title, is_demo: None)
    for arguments in (["--open"], []):
        result = CliRunner().invoke(workbench, ["--port", "0", *arguments])
        assert result.exit_code == 0, result.output
    assert len(opened) == 1
    assert opened[0].startswith("http://127.0.0.1:")
    assert "/?token=" in opened[0]


def test_bad_rows_are_handled_as_the_options_say_in_a_store_too(monkeypatch, tmp_path):
    def write(app, service, listening, started):
        started()
        with pytest.raises(elastalog.ElastalogError, match="it is a service: ask and update it at http://"):
            elastalog.open(store="kept.store")
        service.writing.commit(edits({"edge": [(1, 2), ("x", 2)]}))

    monkeypatch.setattr("elastalog.web.app.serve", write)
    monkeypatch.chdir(tmp_path)
    elastalog.open(".decl edge(a: number, b: number)\n.input edge", {}, store="kept.store").close()
    result = CliRunner().invoke(serve, ["kept.store", "--port", "0", "--bad-rows", "quarantine"])
    assert result.exit_code == 0, result.output
    assert len((tmp_path / "edge.bad.jsonl").read_text().splitlines()) == 1


def test_a_service_of_a_store_does_not_advise_what_it_locks_out(monkeypatch, tmp_path):
    monkeypatch.setattr("elastalog.web.app.serve", lambda app, service, listening, started: started())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.dl").write_text(".decl edge(a: number)\n.input edge\n")
    (tmp_path / "edge.facts").write_text("1\n")
    given = ["--port", "0", "-F", "."]
    assert "own facts" not in CliRunner().invoke(serve, ["p.dl", "--store", "S", *given]).output
    for place in (["p.dl", "--store", "S"], ["S"]):
        told = CliRunner().invoke(serve, [*place, *given]).output
        assert "S has its own facts, so -F was not read; `POST /updates` adds and removes facts" in told


def test_another_address_needs_a_token_or_a_word():
    result = CliRunner().invoke(workbench, ["--demo", "--host", "0.0.0.0"])
    assert result.exit_code == 1
    assert "E0935" in result.output


def test_what_everyone_may_reach_is_told_of(monkeypatch):
    monkeypatch.setattr("elastalog.web.app.serve", lambda app, service, listening, started: None)
    monkeypatch.setattr("elastalog.web.pages.frame.mount_pages", lambda app, service, *, title, is_demo: None)
    for host, told in (("0.0.0.0", 1), ("127.0.0.1", 0)):
        result = CliRunner().invoke(workbench, ["--port", "0", "--no-token", "--host", host])
        assert result.output.count(f"E0935]: whoever can reach {host} may read and write") == told


@pytest.mark.parametrize("option", ["--token", "--read-token"])
@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_token_starts_nothing(tmp_path, option, blank):
    elastalog.open(".decl edge(a: number, b: number)\n.input edge", {}, store=tmp_path / "kept.store").close()
    for command in ([serve, str(tmp_path / "kept.store")], [workbench, "--demo"]):
        result = CliRunner().invoke(command[0], [*command[1:], "--host", "0.0.0.0", "--token", "T", option, blank])
        assert result.exit_code == 1
        assert "E0935]: a token is blank" in result.output


def test_an_empty_variable_of_the_environment_gives_no_token():
    told = CliRunner().invoke(workbench, ["--demo", "--host", "0.0.0.0"], env={"ELASTALOG_TOKEN": ""})
    assert "E0935]: other machines can reach 0.0.0.0, and no token is given" in told.output


def test_an_application_has_no_blank_token():
    for blank in ({"token": ""}, {"token": "T", "read_token": "\t"}):
        with pytest.raises(elastalog.ElastalogError, match=r"E0935\]: a token is blank"):
            Settings(**blank)


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        (("a b", None), "has a blank or a line break in it"),
        (("T", "R\n"), "has a blank or a line break in it"),
        (("T", "T"), "the token that grants reading is the one that grants writing"),
    ],
)
def test_tokens_that_keep_nobody_out_or_nobody_can_give_are_refused(tmp_path, tokens, told):
    with pytest.raises(elastalog.ElastalogError, match=rf"E0935\]: .*{told}"):
        Settings(*tokens)
    (tmp_path / "p.dl").write_text(".decl a(x: number)\n")
    given = [word for name, token in zip(("--token", "--read-token"), tokens, strict=True) if token is not None
             for word in (name, token)]  # fmt: skip
    assert told in CliRunner().invoke(serve, [str(tmp_path / "p.dl"), *given]).output
    assert Settings("T", "R").read_token == Settings(None, "R").read_token


def test_a_request_with_an_empty_token_is_nobody(monkeypatch):
    settings = Settings("T")
    object.__setattr__(settings, "read_token", "")
    assert Guard(None, settings)._role("") is None
    assert Guard(None, settings)._role("T") is Role.WRITE


def test_the_demonstration_ends_with_two_secrets_exposed_by_two_of_twelve_changes(tmp_path):
    with open_demo(tmp_path / "store") as session:
        assert len(session["calls"]) == 92
        assert not session["exposed"]
        for source, diff in updates(session):
            session.apply(diff.inserted, diff.deleted, source=source)
        assert sorted(session["exposed"]) == [("help.front", "diary"), ("help.front", "vault")]
        found = session.suggest(unwanted=["exposed(_, _)"])
        assert [str(element) for element in found.elements] == ['+calls("mail.archive", "vault")', '-guarded("keeper")']
        assert found.update_size == 12
