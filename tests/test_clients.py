"""Writing AI clients' configuration: only our entry changes, twice is once, and nothing is lost."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from concord.cli.main import kb
from concord.clients.entries import CLIENTS, ENTRY, config_path, write
from concord.core.errors import BadValue
from support.web_server import serving

LAUNCHED = {"command": "/opt/kb", "args": ["mcp"]}
ALL = sorted(CLIENTS)

COMMENTED = """\
// My settings, do not touch.
{"mcpServers": {"other": {"command": "npx"}}}
"""
PLAIN = """\
{
    "theme": "dark",
    "mcpServers": {
        "other": {
            "command": "npx"
        }
    }
}
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of our own, with nothing in the environment that moves a client's files elsewhere."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("KB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return home


def run(*args: str) -> Result:
    return CliRunner().invoke(kb, ["install", *args])


def entry_in(path: Path) -> dict[str, object]:
    text = path.read_text(encoding="utf-8")
    said = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    (section,) = (
        said[key] for key in ("mcpServers", "servers", "context_servers", "mcp_servers") if key in said
    )
    return section[ENTRY]  # type: ignore[no-any-return]


@pytest.mark.promise("mcp.install.clients")
@pytest.mark.parametrize("name", ALL)
def test_a_client_finds_our_entry_where_it_looks_for_servers(
    machine: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    client = CLIENTS[name]
    path = config_path(client, "user", Path.cwd(), os.environ)
    assert path.is_relative_to(machine)
    monkeypatch.setenv("KB_HOME", "/tmp/kb")
    assert run(name).exit_code == 0
    entry = entry_in(path)
    assert str(entry["command"]).endswith("kb")
    assert (entry["args"], entry["env"]) == (["mcp"], {"KB_HOME": "/tmp/kb"})
    assert entry.get("type") == ("stdio" if client.typed else None)


@pytest.mark.parametrize(
    ("name", "file", "section"),
    [
        ("claude", ".claude.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", "servers"),
        ("gemini", ".gemini/settings.json", "mcpServers"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
        ("zed", ".config/zed/settings.json", "context_servers"),
        ("codex", ".codex/config.toml", "mcp_servers"),
    ],
)
def test_files_and_keys_are_those_that_the_clients_document(
    machine: Path, name: str, file: str, section: str
):
    assert config_path(CLIENTS[name], "user", Path.cwd(), os.environ) == machine / file
    assert CLIENTS[name].section == section


@pytest.mark.promise("mcp.install.idempotent")
@pytest.mark.parametrize("name", ALL)
def test_installing_twice_changes_nothing_the_second_time(machine: Path, name: str):
    assert run(name).exit_code == 0
    path = config_path(CLIENTS[name], "user", Path.cwd(), os.environ)
    before = path.read_bytes()
    again = run(name)
    assert again.exit_code == 0
    assert again.stdout == ""
    assert "already" in again.stderr
    assert path.read_bytes() == before
    assert list(path.parent.glob("*.bak")) == []


@pytest.mark.promise("mcp.install.keeps")
def test_other_entries_and_their_layout_stay_to_the_letter(machine: Path):
    path = machine / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(PLAIN, encoding="utf-8")
    assert run("cursor").exit_code == 0
    assert entry_in(path)["args"] == ["mcp"]
    (backup,) = path.parent.glob("*.bak")
    assert backup.read_text(encoding="utf-8") == PLAIN
    assert run("cursor", "--uninstall").exit_code == 0
    assert path.read_text(encoding="utf-8") == PLAIN


@pytest.mark.promise("mcp.install.keeps")
@pytest.mark.parametrize("option", [[], ["--uninstall"]])
def test_a_file_with_comments_is_left_alone_and_the_hint_says_what_to_do_by_hand(
    machine: Path, option: list[str]
):
    path = machine / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(COMMENTED, encoding="utf-8")
    result = run("cursor", *option)
    assert isinstance(result.exception, BadValue)
    assert "comments" in result.exception.message
    assert ("by hand" if option else '"concord": {"type": "stdio"') in (result.exception.hint or "")
    assert path.read_text(encoding="utf-8") == COMMENTED


@pytest.mark.parametrize("scope_file", [("claude", ".mcp.json"), ("vscode", ".vscode/mcp.json")])
def test_a_project_has_its_own_file_without_this_machine_in_it(
    machine: Path, scope_file: tuple[str, str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KB_HOME", "/home/me/secret-place")
    name, file = scope_file
    assert run(name, "--scope", "project").exit_code == 0
    assert "secret-place" not in (Path.cwd() / file).read_text(encoding="utf-8")
    assert list(machine.iterdir()) == []


def test_relative_paths_mean_the_same_wherever_the_client_starts_the_server(
    machine: Path, monkeypatch: pytest.MonkeyPatch
):
    here = Path.cwd()
    relative = {
        "KB_HOME": "rel",
        "KB_SERVE_TOKENS": "keys/tokens",
        "KB_MCP_ROOTS": f"a{os.pathsep}~/b{os.pathsep}",
        "KB_EMBED_MODEL": "model",
    }
    (here / "model").mkdir()
    (here / "model" / "tokenizer.json").touch()
    for name, value in relative.items():
        monkeypatch.setenv(name, value)
    assert run("gemini").exit_code == 0
    assert entry_in(machine / ".gemini" / "settings.json")["env"] == {
        "KB_HOME": str(here / "rel"),
        "KB_SERVE_TOKENS": str(here / "keys" / "tokens"),
        "KB_MCP_ROOTS": f"{here / 'a'}{os.pathsep}{machine / 'b'}",
        "KB_EMBED_MODEL": str(here / "model"),
    }


def test_a_project_that_names_roots_says_which_ones_of_this_machine_it_leaves_out(
    machine: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KB_MCP_ROOTS", "/private/notes")
    result = run("claude", "--scope", "project", "--root", "/srv/docs")
    assert entry_in(Path.cwd() / ".mcp.json")["env"] == {"KB_MCP_ROOTS": "/srv/docs"}
    assert "not written: /private/notes" in result.stderr
    assert "not written" not in run("claude", "--scope", "project").stderr


@pytest.mark.parametrize("option", [[], ["--scope", "project"], ["--json"]])
def test_keys_and_passwords_are_named_and_neither_written_nor_shown(
    machine: Path, monkeypatch: pytest.MonkeyPatch, option: list[str]
):
    monkeypatch.setenv("KB_EMBED_KEY", "s3cret")
    monkeypatch.setenv("KB_VECTORS_API_KEY", "s3cret")
    monkeypatch.setenv("KB_STORE_URL", "postgresql://me:s3cret@host/db")
    monkeypatch.setenv("KB_OF_SOMEBODY_ELSE", "s3cret")
    store = "postgresql://me@host/db?password=s3cret"
    result = CliRunner().invoke(kb, ["--store", store, "install", "gemini", *option])
    assert result.exit_code == 0
    assert "s3cret" not in result.output
    assert "the password in --store" in result.stderr
    for name in ("KB_EMBED_KEY", "KB_VECTORS_API_KEY", "the password in KB_STORE_URL"):
        assert (name in result.stderr) == ("project" not in option)
    written = [file for file in (*machine.rglob("*"), *Path.cwd().rglob("*")) if file.is_file()]
    assert written
    for file in written:
        text = file.read_text(encoding="utf-8")
        assert "s3cret" not in text
        assert "me@host/db" in text


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\nconcord = {command = "a"}\n',
        'mcp_servers = {concord = {command = "a"}}\n',
        '[[mcp_servers.concord]]\ncommand = "a"\n',
        "[ mcp_servers . 'concord' ] # mine\ncommand = 'a'\n\n[mcp_servers.concord.env]\nK = 'v'\n",
    ],
)
def test_a_table_is_replaced_and_removed_however_it_is_written(tmp_path: Path, text: str):
    path, client = tmp_path / "config.toml", CLIENTS["codex"]
    path.write_text(f"{text}\n[b]\ny = 2\n", encoding="utf-8")
    write(client, path, LAUNCHED)
    assert entry_in(path) == LAUNCHED
    assert write(client, path, None).state == "changed"
    assert tomllib.loads(path.read_text(encoding="utf-8")) == {"b": {"y": 2}}


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.other.command = "a"\nmodel = "x"\n',  # would be a setting of ours, and go with us
        '[mcp_servers.concord]\ncommand = "a"\n\n# about b\n[b]\ny = 2\n',
    ],
)
def test_a_table_that_cannot_be_changed_alone_is_for_its_owner_to_change(tmp_path: Path, text: str):
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadValue) as fault:
        write(CLIENTS["codex"], path, LAUNCHED)
    assert path.read_text(encoding="utf-8") == text
    pasted = str(fault.value.hint).partition("'mcp_servers': ")[2]
    assert tomllib.loads(pasted) == {"concord": LAUNCHED}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "cursor",
            '{"mcpServers": ',
            "it has comments, or is not JSON: Expecting value: line 1 column 16 (char 15)",
        ),
        ("cursor", '{"mcpServers": null}', "'mcpServers' holds no servers"),
        ("codex", "mcp_servers = 1\n", "'mcp_servers' holds no servers"),
    ],
)
def test_a_file_of_another_shape_gets_the_same_sentence_from_both_works(
    tmp_path: Path, name: str, text: str, told: str
):
    path = tmp_path / "settings"
    path.write_text(text, encoding="utf-8")
    for entry in (None, LAUNCHED):
        with pytest.raises(BadValue) as fault:
            write(CLIENTS[name], path, entry)
        assert fault.value.message == f"cannot read {path}: {told}"
    assert path.read_text(encoding="utf-8") == text


def test_a_link_to_the_file_stays_a_link_and_permissions_stay(tmp_path: Path):
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}", encoding="utf-8")
    real.chmod(0o640)
    link = tmp_path / ".claude.json"
    link.symlink_to(real)
    write(CLIENTS["claude"], link, LAUNCHED)
    assert link.is_symlink()
    assert entry_in(real)["command"] == "/opt/kb"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.promise("I.install.url")
@pytest.mark.parametrize("name", ALL)
def test_a_server_is_named_by_its_address_and_its_token_stays_in_a_variable(machine: Path, name: str):
    result = run(name, "--url", "http://kb.example.com:8420", "--token-variable", "KB_TOKEN")
    if name in ("claude-desktop", "zed"):
        assert isinstance(result.exception, BadValue)
        return
    entry = entry_in(config_path(CLIENTS[name], "user", Path.cwd(), os.environ))
    assert entry[CLIENTS[name].url_key or ""] == "http://kb.example.com:8420/mcp"
    assert "command" not in entry
    told = json.dumps(entry)
    assert "KB_TOKEN" in told
    assert ('"Bearer $' in told) != CLIENTS[name].toml


def test_an_address_that_is_none_is_refused(machine: Path):
    for url in ("kb.example.com", "ftp://x/mcp", "http://me:secret@host/mcp"):
        assert isinstance(run("claude", "--url", url).exception, BadValue)
    assert run("claude", "--url", "http://x", "--root", "/tmp").exit_code == 2
    assert run().exit_code == 2
    assert list(machine.iterdir()) == []


def checked(*args: str) -> Result:
    return CliRunner().invoke(kb, ["install", "--check", *args], standalone_mode=False)


@pytest.mark.slow
@pytest.mark.promise("I.install.check")
def test_check_says_which_clients_see_a_server_that_answers(machine: Path, tmp_path: Path):
    assert checked().return_value == 1
    kb_here = str(Path(sys.executable).parent / "kb")
    here = {"command": kb_here, "args": ["mcp"], "env": {"KB_HOME": str(tmp_path / "kb")}}
    for name in ("claude", "codex"):
        client = CLIENTS[name]
        write(client, config_path(client, "user", Path.cwd(), os.environ), here)
    write(CLIENTS["cursor"], Path(".cursor/mcp.json"), {"command": "/nowhere/kb"})
    with serving(tmp_path / "home") as url:
        assert run("gemini", "--url", url).exit_code == 0
        found = checked("--json")
    assert found.return_value == 1
    assert {row["client"]: row["state"] for row in json.loads(found.stdout)["clients"]} == {
        **dict.fromkeys(ALL, "absent"),
        **dict.fromkeys(("claude", "codex", "gemini"), "answers"),
        "cursor": "fails",
    }
    assert "does not answer" in checked("gemini").stdout
    assert checked("claude").return_value == 0
