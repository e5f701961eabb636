"""A dash before a word is an option's where passages write it so, and excludes the word elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.answering.dashes import MAX_BUNDLE, is_option
from concord.answering.remarks import ONLY_EXCLUDES
from concord.ranking.named.options import AskedOption, asked_option, writes
from concord.text.option_lines import description
from concord.text.query_language import Dashed, parse
from concord.types import Filter, Query
from support.recorders import write
from support.small_library import library, opened, titles

PAGES = {
    "find": """FIND(1)

       -amin n
              File's status was last accessed n minutes ago.

       -mtime n
              File's data was last modified less than n*24 hours ago.  See the comments for -atime.

       -ignore_readdir_race
              When find fails to stat a file, it is silent.

       The argument of -newer is dereferenced.  Use find … -print0 | xargs -0 (see also [-depth]).
""",
    "tar": "tar -x extracts, -z reads gzip, and -f names the file; `tar -cf a.tar b`.",
    "java": 'The heap is set by "-Xmx512m" or (-Xms64m).',
    "Cakes": "An apple pie needs apples. Cherry pie - pie of all pies - needs cherries.",
    "Menu": "Today:\n- cake\n-cider\n-quince\n\nSweet-\ncrust comes tomorrow; apple-tart, too.",
    "Formular": "Bitte Vor- und -nachname angeben, sowie Straßen- oder -ortsname.",
}


@pytest.fixture(scope="module")
def shelves():
    return library(PAGES)


@pytest.mark.parametrize(
    ("before", "word"),
    [
        ("find", "mtime"),
        ("xargs", "mtime"),
        ("", "mtime"),
        ("find", "MTIME"),
        ("find", "newer"),
        ("xargs", "print0"),
        ("find", "depth"),
        ("find", "ignore_readdir_race"),
        ("java", "Xmx512m"),
        ("java", "Xms64m"),
        ("tar", "xzf"),
        ("tar", "cf"),
    ],
)
def test_what_a_passage_writes_with_a_dash_is_an_option(shelves, before: str, word: str):
    assert is_option(Dashed(before, word), shelves.store)


@pytest.mark.parametrize(
    ("before", "word"),
    [
        ("apple", "pie"),
        ("apple", "cake"),
        ("apple", "cider"),
        ("apple", "quince"),
        ("apple", "crust"),
        ("apple", "tart"),
        ("Name", "nachname"),
        ("Name", "ortsname"),
        ("find", "hours"),
        ("find", "minutes"),
        ("tar", "xyz"),
        ("tar", "zebra"),
        ("apple", "xzf"),
        ("", "pie"),
    ],
)
def test_what_prose_does_with_dashes_is_none(shelves, before: str, word: str):
    assert not is_option(Dashed(before, word), shelves.store)


@pytest.mark.parametrize(
    "query", ["find -mtime", "find -mtime -newer", "xargs -print0", "find -depth -hours"]
)
def test_the_passage_that_documents_an_option_is_found(query: str):
    page = {"find": PAGES["find"].replace("hours", "days"), "Cakes": PAGES["Cakes"]}
    assert titles(library(page).search(query, mode="fts5"))[:1] == ["find"]


def test_ordinary_words_are_excluded_beside_options(shelves):
    answer = shelves.search("apple -pie", mode="fts5")
    assert titles(answer) == ["Menu"]
    assert titles(shelves.search("file -hours", mode="fts5")) == ["tar"]


def test_exclusions_alone_are_looked_for_with_a_note(shelves):
    for query in ("-pie", "NOT pie"):
        answer = shelves.search(query, mode="fts5")
        assert (titles(answer), answer.note) == (["Cakes"], ONLY_EXCLUDES)


def test_an_option_alone_is_looked_for_without_a_note(shelves):
    for query in ("-mtime", "-Xmx512m", "-x"):
        answer = shelves.search(query, mode="fts5")
        assert answer.hits
        assert answer.note is None


COMMIT = {
    "fixup": "--fixup=amend:<commit> amends. It makes an amend! commit; amend it, amend again and amend.",
    "usage": "usage: git commit [-a] [--amend] [-C <commit>] [-m <msg>], to commit and to commit again",
    "amend": "Options:\n\n    -A, --amend\n        Replace the last.\n    -c <commit>\n        Edit it.",
    "reuse": "Options:\n\n    -m <msg>\n        The text.\n    -C <commit>\n        Take it like c c c.",
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("--amend", ["amend", "usage", "fixup"]),
        ("--amend=now", ["amend", "usage", "fixup"]),
        ("-m", ["reuse", "usage"]),
        ("-C", ["reuse", "usage", "amend"]),
        ("-c", ["amend"]),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "fts5"])
def test_an_option_is_found_with_its_dashes_and_first_where_it_is_described(
    query: str, found: list[str], mode: str
):
    assert titles(library(COMMIT).search(query, mode=mode))[: len(found)] == found


DUMPS = {
    "pg_dump": "Options:\n\n    -j njobs\n        Run in parallel.\n    -Fc\n        Custom.",
    "pg_restore": "Options:\n\n    -j number\n        As pg_dump has it, by pg_dump, of pg_dump.",
    "Examples of pg_dump": "pg_dump -j 5 is what pg_dump does; pg_dump -j, and what does pg_dump -j do: -j.",
    "See also": "pg_dump, pg_restore, pg_dump -j",
}


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("pg_dump -j", "pg_dump"),
        ("what does -j do in pg_dump?", "pg_dump"),
        ("the flag `-j` of pg_dump", "pg_dump"),
        ("pg_restore -j", "pg_restore"),
        ("what does the -j option of pg_restore mean", "pg_restore"),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "fts5"])
def test_an_option_beside_its_command_is_found_where_that_describes_it(query: str, first: str, mode: str):
    assert titles(library(DUMPS).search(query, mode=mode))[:1] == [first]


MIRROR = {
    "mirror": "Options:\n\n--retry\n    Tries again.\n--count\n    Counts.\n--dry-run\n    Copies none.",
    "settings": "max_size is the setting for it: files that are larger are left out by mirror.",
}


@pytest.mark.parametrize(
    "query", ["mirror --retry-count", "--retry-count", "what does mirror --retry-count do"]
)
def test_an_option_that_is_put_together_from_others_is_told_to_be_nowhere(query: str):
    assert library(MIRROR).search(query).note == "nothing holds --retry-count"


@pytest.mark.parametrize("query", ["mirror --retry", "--dry-run", "mirror --max-size", "mirror --retry=5"])
def test_an_option_that_a_text_has_with_or_without_its_dashes_is_not(query: str):
    assert "nothing holds" not in (library(MIRROR).search(query).note or "")


def test_where_no_text_writes_options_none_is_missed():
    shelf = {"one": "The retry happens after a count of three.", "two": "A mirror of the count."}
    assert "nothing holds" not in (library(shelf).search("mirror --retry-count").note or "")


def asked(text: str, *options: str) -> AskedOption | None:
    terms = parse(text, options).terms
    return asked_option(Query(text, terms, (), (), None, None, 10, 30, Filter(), options=options))


def test_the_one_option_of_a_short_query_is_asked_for():
    assert asked("--amend=now") == AskedOption("--amend")
    assert asked("git commit --amend") == AskedOption("--amend", ("git", "commit"))
    assert asked("what does -R do in pg_basebackup?") == AskedOption("-R", ("pg_basebackup",))
    assert asked("find -mtime", "mtime") == AskedOption("-mtime", ("find",))


@pytest.mark.parametrize(
    "query",
    [
        "apple -pie",  # excluded
        "-pie",
        "tar -x -z",  # two
        "a well-known e-mail - and more",
        "exit code -1",
        "git log --oneline shows nothing after rebase",  # it tells what happened
        "why does it take so long when I run pg_dump with -j",
    ],
)
def test_other_queries_ask_for_no_option(query: str):
    assert asked(query) is None


@pytest.mark.parametrize(
    "text",
    [
        "--count",
        ".. option:: --count",
        ".. option:: -c <n>, --count <n>",
        "   -c, --count\n      Print it.",
        "-c NUM, --count=NUM",
        "* `--count`: how many",
        "| `--count` | how many |",
        "### --count",
    ],
)
def test_a_line_that_begins_with_an_option_describes_it(text: str):
    found = description("--count", f"Options\n{text}\nmore")
    assert found is not None
    assert found.start == len("Options\n")


@pytest.mark.parametrize(
    "text", ["use --count here", "--max-count", "--count-only", "---count", "count", "--Count", "a, --count"]
)
def test_a_line_that_mentions_an_option_or_begins_with_another_describes_it_not(text: str):
    assert description("--count", text) is None


def test_a_text_writes_an_option_only_with_its_dashes_and_whole():
    assert all(writes("-c", text) for text in ("-c", "grep -c", "[-c]", "`-c`", "-c,"))
    assert not any(writes("-c", text) for text in ("c", "-C", "--c", "-cv", "x-c", "-c-"))


def test_a_line_of_dashes_is_read_in_one_pass():
    assert description("--x", "-" * 20_000 + "x --x") is None


RSYNC = """\
       --dirs, -d
              Directories are  transferred,  as they are by the --files-from option or the
              --list-only  option  (including an implied --list-only usage) if
              --recursive wasn't specified; --list-only it is.

"""
ENTRY = """\
       --list-only
              The source files are listed.
"""
SUMMARY = "       --list-only              list the files, list-only\n       --dirs   no\n"


@pytest.mark.parametrize(
    ("surer", "other"),
    [
        (ENTRY, SUMMARY),
        (ENTRY, RSYNC),
        (SUMMARY, RSYNC),
        ("--list-only\n\nLists them.", SUMMARY),
        ("`--list-only`\n:   Lists them.", RSYNC),
        ("### --list-only\n\nLists them.", SUMMARY),
        (ENTRY, "An example:\n\n    --list-only=now\n\nMind the word."),
    ],
)
def test_an_entry_describes_an_option_more_surely_than_a_summary_and_that_than_a_sentence(
    surer: str, other: str
):
    entry, mention = description("--list-only", surer), description("--list-only", other)
    both = description("--list-only", f"{other}\n\n{surer}")
    assert entry is not None
    assert mention is not None
    assert both is not None
    assert entry.sureness > mention.sureness
    assert both.start == len(other) + 2


@pytest.mark.parametrize("query", ["--list-only", "rsync --list-only", "what does rsync --list-only do"])
@pytest.mark.parametrize("mode", ["auto", "fts5"])
def test_the_entry_of_an_option_comes_first_and_is_shown(query: str, mode: str):
    filler = "              More is said of all this, and of what it does to files and directories.\n" * 9
    pages = {"rsync dirs": RSYNC * 3, "rsync": filler + "\n" + ENTRY + filler, "rsync summary": SUMMARY}
    first = library(pages).search(query, mode=mode).hits[0]
    assert first.document.title == "rsync"
    assert "--list-only The source files are listed." in first.snippet


def test_a_long_word_is_no_bundle_of_letters(shelves):
    assert is_option(Dashed("tar", "xzfx"[:MAX_BUNDLE]), shelves.store)
    assert not is_option(Dashed("tar", "xzfxz"), shelves.store)


@pytest.mark.parametrize(
    "line",
    [
        "--format={" + "|".join("abcdefgh" * 8) + "}  The format of the output.",
        "--format" + "[[" * 3000,
        "--," * 20_000 + " --format",
    ],
)
def test_the_values_of_an_option_are_read_in_one_pass(line: str):
    assert description("--other", line + " --other") is None
    description("--format", line)


PAGE = """.TH {name} 1
.SH NAME
{name} \\- OpenSSH {summary}
.SH OPTIONS
.TP
\\-i file
{passed}
.TP
\\-J destination
Connect to the target host by first making a connection to the jump host.
"""
SUMMARIES = {"ssh": "remote login client", "sftp": "file transfer", "scp": "file copy"}


@pytest.mark.parametrize("command", SUMMARIES)
def test_of_pages_that_share_an_option_that_of_the_command_comes_first(tmp_path: Path, command: str):
    for name, summary in SUMMARIES.items():
        passed = (
            "A file with a key. " * 20 if name == command else f"This is directly passed to {command}(1)."
        )
        write(tmp_path / "man" / f"{name}.1", PAGE.format(name=name, summary=summary, passed=passed))
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "man")
        assert kb.search(f"{command} -J", mode="fts5").hits[0].document.path == f"man/{command}.1"
