"""Where a name is given its value, in code and in files of settings; and that this comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.text.assignments import assigned_at, set_at
from support.recorders import write
from support.small_library import opened


@pytest.mark.parametrize(
    "line",
    [
        "MAX_TRIES = 3",
        "MAX_TRIES: int = 3",
        "MAX_TRIES: Final[dict[str, int]] = {",
        "    MAX_TRIES = 3",
        "  MAX_TRIES = 3,",
        "LEAST, MAX_TRIES = 1, 3",
        "(LEAST, MAX_TRIES) = range(2)",
        "TRIES = MAX_TRIES = 3",
        "#define MAX_TRIES 3",
        "  # define MAX_TRIES",
        "const MAX_TRIES = 3;",
        "export const MAX_TRIES: number = 3;",
        "export MAX_TRIES=3",
        "declare -x MAX_TRIES=3",
        "    public static final int MAX_TRIES = 3;",
        "static const char *MAX_TRIES = 0;",
        "pub(crate) const MAX_TRIES: usize = 3;",
        "MAX_TRIES ?= 3",
        "MAX_TRIES := 3",
        "ENV MAX_TRIES 3",
        "exports.MAX_TRIES = 3",
    ],
)
def test_a_constant_is_given_its_value(line: str):
    assert assigned_at("MAX_TRIES", f"import os\n{line}\n") == len("import os\n")


@pytest.mark.parametrize(
    "line",
    [
        "if tries == MAX_TRIES:",
        "MAX_TRIES == 3",
        "MAX_TRIES => 3",
        "run(MAX_TRIES=3)",
        "    MAX_TRIES=3,",
        "tries = MAX_TRIES",
        "MAX_TRIES.value = 3",
        "MAX_TRIES_ALL = 3",
        "self.MAX_TRIES = 3",
        "x = tries < MAX_TRIES",
        "return MAX_TRIES",
    ],
)
def test_what_uses_a_constant_gives_it_no_value(line: str):
    assert assigned_at("MAX_TRIES", f"import os\n{line}\n") is None


def test_a_name_in_small_letters_is_local_where_it_is_indented_unless_its_type_stands_there():
    assert assigned_at("tries", "tries = 3\n") == 0
    assert assigned_at("tries", "def f():\n    tries = 3\n") is None
    assert assigned_at("tries", "class A:\n    tries: int = 3\n") == len("class A:\n")
    assert assigned_at("tries", "def f(\n    tries: int=3,\n):\n") is None


@pytest.mark.parametrize(
    "line",
    [
        "bantime = 10m",
        "bantime=10m",
        "  bantime: 10m",
        "bantime:",
        '  "bantime": 10,',
        "- bantime: 10",
        "ban.bantime = 10m",
        "[bantime]",
        "[tool.bantime]",
        "[[bantime]]",
        "export bantime=3",
        "#bantime = 10m",
        "; bantime = 10m",
    ],
)
def test_a_key_or_section_of_settings_is_set(line: str):
    assert set_at("bantime", f"# How long?\n{line}\nx = 1\n") == len("# How long?\n")


@pytest.mark.parametrize(
    "line",
    [
        "x = bantime",
        "bantime.increment = true",
        "# bantime is how long",
        "# bantime: how long",
        "command = ban --bantime=3",
        "bantime == 3",
        "url: http://bantime:80",
        "bantimes = 3",
    ],
)
def test_what_mentions_a_key_does_not_set_it(line: str):
    assert set_at("bantime", f"# How long?\n{line}\nx = 1\n") is None


NGINX = "user www-data;\nhttp {\n    {}\n    server {\n        listen 443 ssl backlog=9; # all\n    }\n}\n"
SSHD = "# How long?\n{}\nX11Forwarding yes\nCiphers aes,chacha\nSubsystem sftp /usr/lib/sftp-server -f AUTH\n"


@pytest.mark.parametrize("line", ["bantime 10m;", "bantime 10m if a=b;", "bantime {", "bantime /x {"])
def test_a_directive_that_ends_in_a_mark_is_set(line: str):
    text = NGINX.replace("{}", line, 1)
    assert set_at("bantime", text) == text.index(f"    {line}")


@pytest.mark.parametrize(
    "line", ["bantime 10m", "  bantime\t10m", "bantime a b c", "#bantime 10m", "# bantime <seconds>"]
)
def test_a_directive_without_a_sign_is_set_where_most_lines_are_such(line: str):
    text = SSHD.replace("{}", line)
    assert set_at("bantime", text) == text.index(line)


def test_a_directive_comes_before_its_example_in_a_comment():
    text = SSHD.replace("{}", "#bantime 1h\nbantime 10m")
    assert set_at("bantime", text) == text.index("bantime 10m")


@pytest.mark.parametrize(
    "text",
    [
        "# How long?\n# bantime says how long\nPort 22\n",
        "x = 1\ndescription = |\nbantime is how long\ny = 2\nz = 3\n",
        "jobs:\n  run: |\n    bantime 10m\n  name: x\n  on: push\n",
        "name,age\nbantime smith,3\nann miller,4\n",
        "<p>\nbantime is how long\n</p>\n<b>x</b>\n",
        '{"a": 1,\n "b": "x\nbantime is"}\n',
    ],
)
def test_a_word_before_others_is_no_directive_elsewhere(text: str):
    assert set_at("bantime", text) is None


def test_a_key_comes_before_its_example_in_a_comment():
    text = "# bantime = 1h\nbantime = 10m\n"
    assert set_at("bantime", text) == text.index("bantime = 10m")


@pytest.mark.parametrize(
    "text",
    ["const " + "*" * 20_000, "a." * 20_000, "a, " * 20_000, "a = " * 20_000, " " * 20_000, "a" * 20_000],
)
def test_a_long_line_is_read_in_one_pass(text: str):
    assert assigned_at("X", text + "X") is None
    assert set_at("X", text + "X") is None


COMMENT = "# More about the value of bantime and what is configured by default where: bantime.\n" * 12
JAIL = f"{COMMENT}\n[DEFAULT]\n" + "ignored = 1\n" * 30 + "bantime  = 10m\n"


@pytest.mark.parametrize(
    "query",
    ["bantime", "where is bantime configured", "default bantime", "value of bantime", "bantime default"],
)
def test_the_line_that_sets_a_key_comes_first_and_is_shown(tmp_path: Path, query: str):
    write(tmp_path / "etc" / "jail.conf", JAIL)
    write(
        tmp_path / "etc" / "ban.conf", "run = ban <bantime> by default where configured, value of bantime\n"
    )
    write(
        tmp_path / "etc" / "README.md",
        "The bantime by default: where bantime is configured, value of bantime.",
    )
    with opened(tmp_path, ingest__chunk_tokens=80) as kb:
        kb.add(tmp_path / "etc")
        first = kb.search(query).hits[0]
    assert first.document.path == "etc/jail.conf"
    assert "bantime = 10m" in first.snippet


def test_a_file_whose_name_begins_with_a_dot_is_called_like_no_name(tmp_path: Path):
    others = "".join(f"  OTHER_{n}: {n}\n" for n in range(20))
    write(tmp_path / "code" / ".ci.yml", f"stages:\n  - build\nvariables:\n  MAX_TRIES: 5\n{others}")
    write(tmp_path / "code" / "conf.py", "MAX_TRIES = 3\n")
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "code")
        found = [hit.document.path for hit in kb.search("MAX_TRIES", mode="fts5").hits]
    assert found == ["code/conf.py", "code/.ci.yml"]


@pytest.mark.parametrize(
    ("file", "line"), [("sshd_config", "MaxSessions 10"), ("nginx.conf", "MaxSessions 10;")]
)
def test_a_directive_comes_before_what_only_speaks_of_it(tmp_path: Path, file: str, line: str):
    write(tmp_path / "etc" / file, "".join(f"Other{n} on{line[14:]}\n" for n in range(60)) + f"{line}\n")
    write(tmp_path / "etc" / "README.md", "MaxSessions, the default of MaxSessions: MaxSessions.\n" * 3)
    with opened(tmp_path, ingest__chunk_tokens=80) as kb:
        kb.add(tmp_path / "etc")
        for query in ("where is MaxSessions set", "default of MaxSessions"):
            first = kb.search(query).hits[0]
            assert (first.document.path, line in first.snippet) == (f"etc/{file}", True)


@pytest.mark.parametrize(
    "query", ["maxmemory-policy", "where is maxmemory-policy set", "maxmemory-policy default"]
)
def test_a_setting_with_a_hyphen_is_a_name(tmp_path: Path, query: str):
    other = "# See maxmemory-policy: the default of maxmemory-policy is set where maxmemory-policy is.\n"
    write(tmp_path / "etc" / "a.conf", f"{other}port 6379\n" * 3)
    write(tmp_path / "etc" / "redis.conf", "port 6379\n" * 30 + "# Evicts.\nmaxmemory-policy noeviction\n")
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "etc")
        first = kb.search(query).hits[0]
    assert "maxmemory-policy noeviction" in first.snippet


@pytest.mark.parametrize(
    ("query", "prose"),
    [
        ("default gateway", "Packets for elsewhere go to the default gateway, which is a router."),
        (
            "what is the default gateway?",
            "Packets for elsewhere go to the default gateway, which is a router.",
        ),
        ("market value", "The market value of a firm is what buyers would pay for all of it on a market."),
        ("loan default", "In a loan default the debtor has missed the payments that were due."),
    ],
)
def test_what_prose_calls_something_is_no_question_for_a_value(tmp_path: Path, query: str, prose: str):
    keys = "".join(f"host{n}:\n  gateway: 10.0.{n}.1\n  market: XETR\n  loan: none\n" for n in range(9))
    write(tmp_path / "docs" / "hosts.yaml", f"# The value of each, by default.\n{keys}")
    write(tmp_path / "docs" / "terms.md", f"# Terms\n\n{prose}\n")
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "docs")
        assert kb.search(query).hits[0].document.path == "docs/terms.md"
        assert kb.search("value of gateway").hits[0].document.path == "docs/hosts.yaml"


def test_a_value_before_a_word_is_no_question_for_its_value(tmp_path: Path):
    write(tmp_path / "docs" / "deck.yaml", "proposition: cheap\nvalue: 3\n")
    write(tmp_path / "docs" / "plan.md", "# Plan\n\nOur proposition has a value for buyers: time.")
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "docs")
        hits = kb.search("value proposition", explain=True).hits
    assert all(hit.explanation["lifted"] is None for hit in hits)


def test_a_section_comes_first_that_is_asked_for_in_its_brackets(tmp_path: Path):
    write(tmp_path / "etc" / "jail.conf", "[sshd]\nport = ssh\n\n" + "[nginx-http-auth]\nport = http\n" * 2)
    write(tmp_path / "etc" / "sshd.conf", "# sshd, sshd and sshd: the sshd jail of sshd\n" * 3)
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "etc")
        for query in ("[sshd]", "[sshd] jail"):
            assert kb.search(query).hits[0].document.path == "etc/jail.conf"


def test_words_of_prose_are_looked_for_as_before_where_nothing_sets_them(tmp_path: Path):
    write(tmp_path / "docs" / "a.md", "# Gateway\n\nThe default gateway is the router.")
    write(tmp_path / "docs" / "b.md", "# Other\n\nGateway of the default kind, gateway.")
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "docs")
        hits = kb.search("default gateway", explain=True).hits
    assert hits
    assert all(hit.explanation["lifted"] is None for hit in hits)
