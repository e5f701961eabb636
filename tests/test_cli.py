"""The command line as its users meet it: what is printed where, and with which exit status."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from pathlib import Path

import jsonschema
import pytest

from concord.cli import main
from concord.cli.main import COMMANDS
from concord.cli.output import LINE_EVERY_S, Meter
from support.kb_command import Kb, Run

SCHEMA = json.loads(
    (Path(__file__).parent.parent / "docs" / "answer.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "ops").mkdir(parents=True)
    write(folder / "git.md", "---\ntags: [tools]\n---\n# Git\n\nThe installation of git takes a minute.\n")
    write(folder / "ops" / "deploy.md", "---\ntags: [ops, production]\n---\n# Deploy\n\nDeploy on Mondays.\n")
    write(folder / "ops" / "staging.md", "---\ntags: [ops]\n---\n# Staging\n\nDeploy to staging at will.\n")
    write(folder / "deploy.py", 'def deploy() -> None:\n    """Deploy the service."""\n')
    return folder


@pytest.fixture
def indexed(kb: Kb, docs: Path) -> Kb:
    assert kb("add", "docs").status == 0
    return kb


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def paths(run: Run) -> set[str]:
    return {result["path"] for result in run.json["results"]}


def test_help_lists_every_command_and_nothing_else(kb: Kb):
    run = kb("--help")
    listed = re.findall(r"^  (\w+)  +\S", run.out.partition("Commands:")[2], re.MULTILINE)
    assert (run.status, listed) == (0, list(COMMANDS))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(kb: Kb, name: str):
    run = kb(name, "--help")
    assert run.status == 0
    assert run.out.startswith(f"Usage: kb {name}")
    assert f"Examples:\n  {'kb' if name != 'stats' else 'kb stats'}" in run.out


def test_an_unknown_command_is_answered_with_the_nearest(kb: Kb):
    run = kb("serch", "x")
    assert run.status == 2
    assert run.err.splitlines()[0] == "error: there is no command 'serch'; did you mean `kb search`?"


SHOWN = "`kb search --help` shows how; put -- before text that begins with a dash"


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--bogus", f"{SHOWN}: `kb search -- --bogus`"),
        ("--treshold", "did you mean --threshold?"),
        ("--tag", "did you mean --tags?"),
        ("--fts", f"{SHOWN}: `kb search -- --fts`"),
        ("--store", "it goes before the command: `kb --store … search …`"),
        ("--org", "it goes before the command: `kb --org … search …`"),
    ],
)
def test_an_unknown_option_is_answered_with_one_that_is_like_it_or_none(kb: Kb, option: str, hint: str):
    run = kb("search", option, "x")
    assert (run.status, run.err) == (2, f"error: there is no option {option!r}\nhint: {hint}\n")


def test_an_option_without_its_value_is_answered_with_how_its_command_is_used(kb: Kb):
    run = kb("get", "a.md", "--level")
    assert (run.status, run.err.splitlines()[1]) == (2, "hint: `kb get --help` shows how")


def test_a_snippet_is_shown_in_its_lines_and_a_long_list_of_words_in_one(kb: Kb, tmp_path: Path):
    (tmp_path / "few.md").write_text("# B\n\nred whales\n", encoding="utf-8")
    (tmp_path / "many.txt").write_text("\n".join("abcdefgh") + "\nwhales\n", encoding="utf-8")
    kb("add", "few.md", "many.txt")
    found = kb("search", "whales", "--fts-only").out
    assert "    # B\n    red whales\n" in found
    assert "    a b c d e f g h whales\n" in found


def test_kb_alone_shows_its_help_and_asks_for_a_command(kb: Kb):
    run = kb()
    assert (run.status, run.out) == (2, "")
    assert "Commands:" in run.err


@pytest.mark.parametrize(
    "args",
    [
        ("search",),
        ("search", "x", "--mode", "telepathy"),
        ("search", "x", "--deadline-ms", "0"),
        ("search", "x", "--in", "nowhere"),
        ("get", "nothing.md", "--context", "-1"),
        ("sync", "nowhere"),
        ("note", "x", "--details", "[1]"),
        ("--store", "floppy://a", "stats"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_mistake_is_a_sentence_with_a_hint_and_status_2(kb: Kb, args: tuple[str, ...], as_json: bool):
    run = kb(*args, *["--json"] * as_json)
    assert run.status == 2
    error, hint = run.err.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    if as_json:
        assert set(run.json["error"]) == {"type", "message", "hint"}
        assert run.json["error"]["message"] == error.removeprefix("error: ")
    else:
        assert run.out == ""


def test_adding_a_folder_says_what_was_done(kb: Kb, docs: Path):
    (docs / "empty.md").touch()
    run = kb("add", "docs", "--name", "manual", "--tags", "a, b", "--tags", "c")
    assert run.status == 0
    assert re.match(r"manual: 4 added · \d+ chunks written in \d+\.\d s\n", run.out)
    assert "skipped 1: 1 empty" in run.out
    assert re.search(r"embedded \d+ chunks", run.out)
    assert kb("list", "--json").json["sources"][0]["tags"] == ["a", "b", "c"]


def test_several_paths_are_added_at_once_each_as_a_source(kb: Kb, docs: Path, tmp_path: Path):
    (tmp_path / "plan.md").write_text("# Plan\n\nPaint the shed.\n", encoding="utf-8")
    run = kb("add", docs, tmp_path / "plan.md")
    assert [line.partition(":")[0] for line in run.out.splitlines() if "written in" in line] == [
        docs.name,
        "plan.md",
    ]
    told = kb("add", docs, tmp_path / "plan.md", "--json").json
    assert [source["source"] for source in told["sources"]] == [docs.name, "plan.md"]
    assert kb("add", docs, tmp_path / "plan.md", "--name", "all").status == 2
    one_is_not_there = kb("add", tmp_path / "plan.md", tmp_path / "nowhere")
    assert (one_is_not_there.status, "nowhere" in one_is_not_there.err) == (2, True)
    assert one_is_not_there.out.startswith("plan.md: 1 unchanged")


def test_a_file_that_fails_is_named_with_its_reason_and_the_status_is_3(kb: Kb, docs: Path):
    (docs / "broken.pdf").write_bytes(b"%PDF-1.7\n" + b"\x00garbage" * 50)
    for run in (kb("add", "docs"), kb("sync")):
        assert run.status == 3
        assert re.search(r"  failed 1:\n    docs/broken.pdf: \S+", run.out)
    run = kb("sync", "--json")
    assert run.status == 3
    assert [failure["path"] for failure in run.json["failed"]] == ["docs/broken.pdf"]


def test_a_pattern_that_no_file_is_like_is_refused_and_removes_nothing(indexed: Kb):
    run = indexed("add", "docs", "--pattern", "*.rst")
    assert run.status == 2
    assert re.match(r"error: no file in .*docs is like \*\.rst, and 4 are there\nhint: .*'\*\*'", run.err)
    assert indexed("sync").out.startswith("docs: nothing has changed (4 documents)")


def test_a_pattern_of_an_earlier_add_is_named_wherever_it_leaves_something_out(kb: Kb, docs: Path):
    kb("add", "docs", "--pattern", "*.py")
    again = kb("add", "docs")
    assert "only files like *.py, as said before: --pattern '**' takes all" in again.err
    assert re.search(r"docs  +\*\.py$", kb("list").out, re.MULTILINE)
    (docs / "deploy.py").unlink()
    kb("sync")
    assert "of docs only files like *.py are taken" in kb("search", "deploy", "--in", "docs").err
    kb("note", "something else is indexed now")
    assert "of docs only files like *.py are taken" in kb("search", "deploy", "--source", "docs").err


def test_a_search_in_a_folder_that_its_source_leaves_out_says_what_may_have_left_it_out(kb: Kb, docs: Path):
    (docs / "drafts").mkdir()
    (docs / "drafts" / "idea.md").write_text("An idea about deploying.\n", encoding="utf-8")
    (docs / ".kbignore").write_text("drafts/\n", encoding="utf-8")
    kb("add", "docs")
    run = kb("search", "idea", "--in", "docs/drafts")
    assert run.status == 1
    assert ".gitignore or .kbignore may leave out what is there" in run.err


def test_search_prints_cited_hits_on_stdout_and_the_rest_on_stderr(indexed: Kb):
    run = indexed("search", "install", "git")
    assert run.status == 0
    first, found_by, *snippet = run.out.partition("\n\n")[0].splitlines()
    assert re.fullmatch(r" 1\. docs/git\.md:\d+-\d+  .*Git.*", first)
    assert "words" in found_by
    assert "fts_" in found_by
    assert re.search(r"score \d\.\d{4}$", found_by)
    assert "installation of git" in " ".join(snippet)
    assert re.match(r"\d+ results? (of \d+ candidates )?in \d+ ms · mode auto", run.err)
    assert "\x1b" not in run.out + run.err


@pytest.mark.promise("001.fts.fts-only")
def test_fts_only_asks_words_alone(indexed: Kb):
    run = indexed("search", "install git", "--fts-only", "--json")
    assert run.json["mode"] == "fts5"
    assert "semantic" not in run.json["timings_ms"]
    assert {name for result in run.json["results"] for name in result["found_by"]} <= {
        "fts_exact",
        "fts_relaxed",
    }


@pytest.mark.promise("001.vec.vec-only")
def test_vec_only_asks_meaning_alone(indexed: Kb):
    run = indexed("search", "how to set up version control", "--vec-only", "--json")
    assert run.json["mode"] == "semantic"
    assert set(run.json["timings_ms"]).isdisjoint({"fts_exact", "fts_relaxed"})
    assert all(result["found_by"] == ["semantic"] for result in run.json["results"])


@pytest.mark.promise("001.threshold")
def test_results_under_the_threshold_are_left_out(indexed: Kb):
    run = indexed("search", "deploy", "--threshold", "0.02", "--json")
    assert all(result["scores"]["rrf"] >= 0.02 for result in run.json["results"])
    high = indexed("search", "deploy", "--threshold", "1")
    assert (high.status, high.out) == (1, "")
    assert "below the threshold" in high.err


@pytest.mark.promise("001.top.flag", "001.top.fewer", "001.top.default")
def test_top_bounds_the_results_and_fewer_are_no_error(indexed: Kb, monkeypatch: pytest.MonkeyPatch):
    assert indexed("search", "deploy", "--top", "2", "--json").json["returned"] == 2
    few = indexed("search", "deploy", "--fts-only", "--top", "50", "--json")
    assert (few.status, few.json["returned"]) == (0, 3)
    monkeypatch.setenv("KB_SEARCH_DEFAULT_TOP", "1")
    assert indexed("search", "deploy", "--json").json["returned"] == 1


def test_since_and_until_leave_what_was_changed_then(kb: Kb, docs: Path):
    old = datetime(2020, 5, 17, 12).timestamp()
    os.utime(docs / "ops" / "deploy.md", (old, old))
    kb("add", "docs")
    every = {"docs/ops/deploy.md", "docs/ops/staging.md", "docs/deploy.py"}
    for flags, found in (
        (("--since", "7d"), every - {"docs/ops/deploy.md"}),
        (("--until", "7d"), {"docs/ops/deploy.md"}),
        (("--since", "2020-05-17", "--until", "2020-05-17"), {"docs/ops/deploy.md"}),
        (("--since", "2020-05-18", "--until", "2020-06-01"), set()),
        (("--since", "2020-05-17T12:00", "--until", "2020-05-17T12:00"), {"docs/ops/deploy.md"}),
    ):
        assert paths(kb("search", "deploy", "--fts-only", *flags, "--json")) == found
    told = kb("explain", "deploy", "docs/ops/deploy.md", "--since", "7d")
    assert "older than asked for" in told.out


@pytest.mark.parametrize(
    "flags",
    [(), ("--mode", "hybrid", "--explain"), ("--max-tokens", "400")],
)
@pytest.mark.parametrize("query", ["deploy", "zebra crossing", "\udc80"])
def test_json_follows_the_schema(indexed: Kb, flags: tuple[str, ...], query: str):
    run = indexed("search", *flags, "--json", "--", query)
    VALIDATOR.validate(run.json)
    assert run.status == (0 if run.json["results"] else 1)


def test_nothing_found_is_status_1(indexed: Kb):
    run = indexed("search", "zebra", "--fts-only")
    assert (run.status, run.out) == (1, "")
    assert run.err.startswith("nothing found in ")


def test_get_reads_what_search_cites(indexed: Kb, docs: Path):
    result = indexed("search", "install git", "--top", "1", "--json").json["results"][0]
    for reference in (result["citation"], result["chunk_id"], result["document_id"], str(docs / "git.md")):
        run = indexed("get", reference)
        assert run.status == 0
        assert "The installation of git takes a minute." in run.out
        assert run.err.startswith("docs/git.md:")
    passage = indexed("get", result["citation"], "--json").json
    assert (passage["citation"], passage["freshness"]) == (result["citation"], "fresh")
    assert passage["file"] == str(docs / "git.md")


@pytest.mark.promise("I.get.several")
def test_get_reads_several_or_what_a_glob_matches_and_says_what_it_cannot(indexed: Kb, docs: Path):
    run = indexed("get", "docs/git.md", "docs/none.md", "docs/*.md")
    assert run.status == 3
    assert run.out.count("The installation of git takes a minute.") == 1
    assert "not read: docs/none.md (nothing indexed is called" in run.err
    found = indexed("get", "docs/**", "--json").json
    known = [document["path"] for document in indexed("list", "docs", "--json").json["documents"]]
    assert [part["path"] for part in (found, *found["further"])] == known
    assert found["unread"] == []
    assert indexed("get", "docs/none*", "docs/none.md").status == 2


def test_get_says_when_the_file_has_changed(indexed: Kb, docs: Path):
    write(docs / "git.md", "something else entirely, and longer than before: " * 5)
    run = indexed("get", "docs/git.md", "--whole")
    assert "takes a minute" in run.out
    assert "the file was changed since it was indexed" in run.err
    (docs / "git.md").unlink()
    assert "deleted" in indexed("get", "docs/git.md").err


def test_a_note_can_be_found_read_and_superseded(kb: Kb):
    first = kb("note", "the", "vault", "opens", "at", "nine", "--title", "Vault", "--tags", "bank")
    assert first.status == 0
    (old,) = first.out.split()
    assert kb("get", old).out == "the vault opens at nine\n"
    run = kb("note", "the vault opens at ten", "--supersedes", old, "--details", '{"who": "Ann"}', "--json")
    assert (run.json["details"], run.json["type"]) == ({"who": "Ann"}, "note")
    found = kb("search", "vault", "--json")
    VALIDATOR.validate(found.json)
    assert [result["document_id"] for result in found.json["results"]] == [run.json["document_id"]]
    assert found.json["results"][0]["file"] is None
    assert kb("search", "vault", "--include-superseded", "--json").json["returned"] == 2
    assert f"superseded by {run.json['document_id']}" in kb("get", old).err


def test_list_shows_sources_and_documents(indexed: Kb):
    indexed("note", "hello")
    run = indexed("list")
    heads, *rows = run.out.splitlines()
    assert heads.split() == ["source", "documents", "chunks", "vectors", "last", "sync", "path"]
    assert [row.split()[:2] for row in rows] == [["docs", "4"], ["notes", "1"]]
    indexed("add", "docs", "--no-embed", "--about", "How to deploy")
    assert indexed("list").out.splitlines()[1].endswith("/docs  How to deploy")
    run = indexed("list", "docs")
    assert [row.split()[:2] for row in run.out.splitlines()[1:]] == [
        ["code", "docs/deploy.py"],
        ["markdown", "docs/git.md"],
        ["markdown", "docs/ops/deploy.md"],
        ["markdown", "docs/ops/staging.md"],
    ]
    documents = indexed("list", "docs", "--json").json["documents"]
    assert documents[2]["tags"] == ["ops", "production"]
    assert {document["source"] for document in documents} == {"docs"}


@pytest.mark.promise("000.remove.counts", "000.remove.line", "000.remove.no-vectors")
def test_removing_a_source_counts_what_went(indexed: Kb, docs: Path):
    stats = indexed("stats", "--json").json
    run = indexed("remove", "docs")
    assert run.out == f"✓ Removed source: docs (4 documents, {stats['vectors']} vectors)\n"
    assert indexed("search", "deploy").status == 1
    assert docs.exists()
    indexed("add", "docs", "--no-embed")
    assert indexed("remove", "docs", "--json").json == {
        "source": "docs",
        "documents_deleted": 4,
        "vectors_deleted": 0,
    }


def test_notes_are_not_removed_without_force(kb: Kb):
    kb("note", "nowhere else")
    run = kb("remove", "notes")
    assert (run.status, run.out) == (2, "")
    assert "gone for good" in run.err
    assert "kb note --export" in run.err
    assert kb("stats", "--json").json["documents"] == 1
    assert kb("remove", "notes", "--force").out == "✓ Removed source: notes (1 documents, 1 vectors)\n"


def test_organisations_and_stores_are_apart(indexed: Kb, tmp_path: Path):
    assert indexed("--org", "other", "note", "Other things.").status == 0
    assert indexed("--org", "other", "search", "deploy", "--fts-only").status == 1
    elsewhere = ("--store", f"sqlite:///{tmp_path}/elsewhere")
    assert indexed(*elsewhere, "note", "Other things.").status == 0
    assert indexed(*elsewhere, "stats", "--json").json["documents"] == 1
    assert indexed("--org", "default", "search", "deploy").status == 0


READING = [
    ("search", "deploy"), ("list",), ("stats",), ("get", "docs/a.md"), ("get", "docs/a.md", "--history"),
    ("explain", "deploy", "docs/a.md"), ("sync",), ("remove", "docs"), ("feedback", "docs/a.md", "good"),
    ("backup", "copy.db"), ("migrate", "--to", "sqlite:///{}/copy"), ("note", "--export", "notes.jsonl"),
    ("models", "list"), ("backfill",),
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["sqlite", "json"])
@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_mistyped_organisation_is_an_error_and_makes_nothing(
    kb: Kb, tmp_path: Path, command: tuple[str, ...], scheme: str
):
    store = ("--store", f"{scheme}:///{tmp_path}/there")
    assert kb(*store, "note", "A note.").status == 0
    before = sorted(tmp_path.rglob("*"))
    run = kb(*store, "--org", "defualt", *(part.format(tmp_path) for part in command))
    assert (run.status, run.out) == (2, "")
    assert "'defualt' has nothing in" in run.err
    assert sorted(tmp_path.rglob("*")) == before


def test_whoever_begins_is_told_what_to_do_and_nothing_is_made_by_looking(kb: Kb, tmp_path: Path):
    for command, status, said in [
        (("search", "deploy", "--fts-only"), 1, "the knowledge base is empty"),
        (("list",), 0, "`kb add PATH`"),
        (("stats",), 0, ""),
        (("doctor",), 0, "all is well"),
        (("sync",), 0, "`kb add PATH`"),
        (("backup", "copy.db"), 2, "nothing to copy"),
        (("migrate", "--to", f"sqlite:///{tmp_path}/copy"), 2, "nothing to migrate"),
    ]:
        run = kb(*command)
        assert run.status == status, run.err
        assert said in run.out + run.err
    assert list(tmp_path.rglob("*.db")) == []
    assert kb("--org", "team", "note", "A note.").status == 0
    assert kb("--org", "team", "search", "note", "--fts-only").status == 0


def test_config_set_writes_the_file_and_keeps_what_is_in_it(kb: Kb, tmp_path: Path):
    (tmp_path / "home").mkdir()
    write(tmp_path / "home" / "config.toml", "# mine\n[search]\nrrf_k = 30 # slow\n")
    assert "search.default_top = 5  [file]" in kb("config", "set", "search.default_top", "5").out
    kept = (tmp_path / "home" / "config.toml").read_text(encoding="utf-8")
    assert kept == "# mine\n[search]\nrrf_k = 30 # slow\ndefault_top = 5\n"
    assert kb("config", "set", "org", "team", "--json").json["value"] == "team"
    assert "cannot be 0" in kb("config", "set", "search.default_top", "0").err
    assert "did you mean search.default_top" in kb("config", "set", "search.default_to", "5").err
    assert kb("config", "set", "search.default_top").status == 2


def test_the_beginning_of_an_id_stands_for_it(kb: Kb):
    document_id = kb("note", "The boiler is serviced in May.").out.strip()
    assert kb("get", document_id[:6]).out == "The boiler is serviced in May.\n"
    assert kb("note", "In June.", "--edit", document_id[:6]).status == 0
    assert kb("get", document_id).out == "In June.\n"
    assert kb("note", "--remove", document_id[:6]).status == 0
    assert kb("get", document_id[:6]).status == 2


def test_config_shows_value_origin_and_reason(kb: Kb, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "home").mkdir()
    write(tmp_path / "home" / "config.toml", "[search]\nrrf_k = 30\n")
    monkeypatch.setenv("KB_SEARCH_DEFAULT_TOP", "5")
    run = kb("--org", "team", "config")
    assert "search.rrf_k = 30  [file]" in run.out
    assert "search.default_top = 5  [KB_SEARCH_DEFAULT_TOP]" in run.out
    assert "org = team  [flag]" in run.out
    assert "    default 10: as AI tools expect of kb_search" in run.out
    row = kb("config", "search.rrf_k", "--json").json
    assert (row["value"], row["default"], row["origin"]) == (30, 60, "file")
    assert {row["key"] for row in kb("config", "--json").json["settings"]} >= {"org", "store.url"}
    table = {row["key"] for row in kb("config", "search", "--json").json["settings"]}
    assert table >= {"search.rrf_k", "search.default_top"}
    assert all(key.startswith("search.") for key in table)


def test_a_variable_that_is_no_setting_is_a_warning(kb: Kb, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KB_SEARCH_DEFAULT_TOPP", "5")
    run = kb("stats")
    assert run.status == 0
    assert run.err.startswith("warning: the environment variable KB_SEARCH_DEFAULT_TOPP is no setting")


def test_passwords_in_urls_are_not_printed(kb: Kb):
    run = kb("--store", "postgresql://me:secret@localhost/x", "config", "store.url")
    assert "me:***@localhost" in run.out
    assert "secret" not in run.out


def test_what_documents_hold_cannot_steer_the_terminal(kb: Kb, tmp_path: Path):
    nasty = "red \x1b[31malert\x07 \x9b2J and \u202egnp.exe\u202c zebra"
    (tmp_path / "d").mkdir()
    write(tmp_path / "d" / "a\x1b[2J.md", f"# T\x1b]0;owned\x07itle\n\n{nasty}\n")
    for args in (("add", "d"), ("search", "zebra"), ("list", "d"), ("search", "zebra", "--json")):
        run = kb(*args)
        assert run.status == 0
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", run.out + run.err)


def test_an_unexpected_fault_asks_to_be_reported(capsys: pytest.CaptureFixture[str]):
    def broken() -> None:
        raise ZeroDivisionError("nobody divides here")

    assert main.guarded(broken, ["--json"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(
        "error: unexpected ZeroDivisionError: nobody divides here\nhint: this is our mistake"
    )
    assert json.loads(out)["error"]["type"] == "ZeroDivisionError"
    with pytest.raises(ZeroDivisionError):
        main.guarded(broken, ["--debug"])


def test_long_work_says_a_line_now_and_then_until_it_is_done(capsys: pytest.CaptureFixture[str]):
    now = [0.0]
    meter = Meter(draws=False, clock=lambda: now[0])
    for done in range(101):
        now[0] += LINE_EVERY_S / 20
        meter("index" if done < 50 else "embed", done, None if done < 50 else 100)
    meter.close()
    assert capsys.readouterr().err.splitlines() == [
        "reading files: 19",
        "reading files: 39",
        "embedding chunks: 59 of 100",
        "embedding chunks: 79 of 100",
        "embedding chunks: 99 of 100",
    ]
