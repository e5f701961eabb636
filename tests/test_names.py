"""What a chunk is called, and which names a query asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.text.name_lines import definitions_in, symbol_at
from concord.text.names import LONGEST, MOST_NAMES, MOST_OWNERS, asked_names, line_of, names_of
from concord.types import DOCUMENT_TYPES, DocumentType

OPTIONS = """insert
------

Options:
  -d, --delimiter TEXT    Delimiter
  --flatten / --no-flatten
  --tsv\tTabs
- `--pk`: the key
| `--strict` | no |
**--quiet**
  Say nothing.

    $ sqlite-utils insert a.db --nl
    docker run \\
      --rm
--alter is of use where columns are missing. See --help  here.
"""
PROSE: list[tuple[str, set[str]]] = [
    (OPTIONS, {"-d", "--delimiter", "--flatten", "--no-flatten", "--tsv", "--pk", "--strict", "--quiet"}),
    ("- `max_age` - seconds\n- `Retry()`: again\n- `this` is no term", {"max_age", "retry", "=Retry"}),
    ("| Key | Is |\n|--|--|\n| `a_b` | c |\n| [`deep.key`](#k) | d |", {"a_b", "key"}),
    (".. py:method:: URL.copy_with(**kwargs)\n.. image:: pear.png", {"copy_with"}),
    ("Terms\n\nPort\n  Where to listen.\n\nPlain words\n  and more", {"port", "=Port"}),
    ("An ordinary text about 8.0.0 and BUG-89 with `code` in it.", set()),
]
HEADINGS: list[tuple[str, set[str]]] = [
    ("8.0.0 (2024-01-02)", {"8.0.0"}),
    ("v1.2.0rc1", {"1.2.0rc1"}),
    ("Changes with nginx 1.15.5", {"1.15.5"}),
    ("[0.10.1] - 2019-12-31", {"0.10.1"}),
    ("Upgrading to 2.0 takes a day", set()),
    ("BUG-0089 and CVE-2024-1234", {"bug-89", "cve-2024-1234"}),
    ("ADR 12: names", {"adr-12"}),
    ("Released in May", set()),
]
CODE: list[tuple[str, set[str]]] = [
    ("class URL:\n    def copy_with(self):\n        x = 1\n", {"url", "=URL", "copy_with"}),
    ("LIMIT = 3\nsizes: list[int] = []\nif a == b:\n    c = d\n", {"limit", "=LIMIT", "sizes"}),
    ("#define MAX 3\nstatic int add(int a) {\n", {"max", "=MAX", "add"}),
    ("export const getName = (x) => x\nrun(limit=3)\n", {"getname", "=getName"}),
]
SETTINGS: list[tuple[str, set[str]]] = [
    ("[server]\nport = 80\n# host = x\n", {"server", "port", "host"}),
    ("server:\n  port: 80\n  at: http://x\n", {"server", "port", "at"}),
    ('{"a_b": 1, "c": {"deep": "x: y"}}', {"a_b", "deep"}),
    ("name,colour\npear,green\n", set()),
]


def plain(type: DocumentType, text: str, heading: tuple[str, ...] = ()) -> set[str]:
    """Return the names of a chunk, without what they belong to and headings of one word."""
    return {name for name in names_of(type, "docs/a.x", "", heading, text) if name[0] not in "@#"}


@pytest.mark.parametrize(("text", "names"), PROSE)
def test_prose_names_what_it_explains(text: str, names: set[str]):
    assert plain("markdown", text) == names


@pytest.mark.parametrize(("heading", "names"), HEADINGS)
def test_a_heading_names_a_release_or_what_has_a_code(heading: str, names: set[str]):
    assert plain("markdown", "text", ("Changes", heading, "Fixed")) == names
    assert plain("markdown", f"# {heading}\n\ntext\n\n# Other\n\ntext") == names


@pytest.mark.parametrize(("text", "names"), CODE)
def test_code_names_what_it_defines(text: str, names: set[str]):
    assert plain("code", text) == names


@pytest.mark.parametrize(("text", "names"), SETTINGS)
def test_settings_name_their_keys(text: str, names: set[str]):
    assert plain("data", text) == names


def test_names_belong_to_class_section_heading_file_and_folder():
    code = names_of("code", "httpx/_urls.py", "", ("URL",), "    def copy_with(self):\n        pass")
    assert {"@.url", "@url", "@urls", "@httpx", "@def"} == {name for name in code if name[0] == "@"}
    page = names_of("markdown", "a/docs/git-commit.md", "", ("Git", "All options"), "--amend\n  Anew.")
    assert {"@options", "@git-commit", "@git", "@commit", "@docs"} == {n for n in page if n[0] == "@"}
    settings = names_of("data", "app.toml", "", (), "[server]\nport = 80")
    assert {"@.server", "@server", "@app"} == {name for name in settings if name[0] == "@"}
    assert names_of("markdown", "docs/a.md", "A title", ("Two words",), "Plain text.") == []


ASKED: list[tuple[str, set[str]]] = [
    ("git commit --amend=x", {"--amend", "git --amend", "commit --amend"}),
    ("what is new in httpx v0.10.1?", {"0.10.1", "new 0.10.1", "httpx 0.10.1"}),
    ("who fixed bug-089", {"bug-89", "fixed bug-89"}),
    ("copy_with", {"copy_with", "#copy_with"}),
    ("URL.copy_with()", {"copy_with", "#copy_with", "url copy_with", ".url copy_with"}),
    ("how does getUserName fail", {"fail getusername"}),
    ("storage class", set()),
    ("where is Connect defined", {"connect", "=Connect", "def connect"}),
    ("def connect", {"connect", "def connect"}),
    ("install", {"install", "#install"}),
    ("how to install", set()),
    ("install on windows", set()),
    ("GitHub actions", set()),
    ("read config.yaml", set()),
    ("why does parse_args of the old command line fail on Windows", set()),
    ("why does --amend of it all fail", {"--amend", "fail --amend"}),
    ("", set()),
    ("?", set()),
]


@pytest.mark.parametrize(("query", "tokens"), ASKED)
def test_a_query_asks_for_names(query: str, tokens: set[str]):
    assert set(asked_names(query).tokens) == tokens


def test_the_line_that_gives_a_name_is_known():
    assert line_of("--tsv", "markdown", OPTIONS) == OPTIONS.index("  --tsv")
    assert line_of("copy_with", "code", "class URL:\n    def copy_with(self):") == len("class URL:\n")
    assert line_of("8.0.0", "markdown", "# Changes\n\n## 8.0.0\n") == len("# Changes\n\n")
    assert line_of("install", "markdown", "Text.\n\n# Install\n") == len("Text.\n\n")
    assert line_of("8.0.0", "markdown", "Text under a release.") is None


def test_many_long_or_hostile_names_are_cut_off():
    many = names_of("data", "a.ini", "", (), "\n".join(f"key{n} = 1" for n in range(999)))
    assert len(many) <= MOST_NAMES + MOST_OWNERS
    assert plain("code", f"def {'x' * 999}(): pass") == set()
    assert asked_names("--amend " * 999).tokens == ()


@given(st.sampled_from(DOCUMENT_TYPES), st.text(), st.text(), st.lists(st.text(), max_size=3), st.text())
def test_every_token_is_short_printable_and_without_spaces(
    type: DocumentType, path: str, title: str, heading: list[str], text: str
):
    tokens = names_of(type, path, title, heading, text)
    assert len(set(tokens)) == len(tokens)
    assert all(len(token) <= LONGEST + 2 and token.isprintable() and " " not in token for token in tokens)
    asked = asked_names(text)
    assert {*asked.sure} <= {*asked.names}


PYTHON = '''\
    def host(self, host):
        return host

    @property
    def middleware(
        self,
        cls,
    ) -> None:
        def inner():
            call(cls)
        raise RuntimeError("Cannot add middleware")

LIMIT = 3

class Foo(Bar):
    """Does much."""
'''


@pytest.mark.parametrize(
    ("words", "symbol"),
    [
        ("return host", ("App", "host")),
        (") -> None", ("App", "middleware")),
        ("raise", ("App", "middleware")),
        ("Does much", ("App", "Foo")),
    ],
)
def test_a_place_stands_under_the_definitions_that_it_is_indented_below(words: str, symbol: tuple[str, ...]):
    assert symbol_at(PYTHON, PYTHON.index(words), ("App",)) == symbol


DEFINED = """
async def fetch(url):                                      fetch
func (s *Server) Serve(l net.Listener) error {             Serve
func Map[T any](items []T) {                               Map
type Server struct {                                       Server
pub(crate) async fn open(path: &Path) -> Result<Self> {    open
export default async function load() {                     load
export const useStore = (selector) => {                    useStore
  constructor(name) {                                      constructor
  public List<String> names(int limit) throws IOException {  names
static int foo_bar(int a, char *b) {                       foo_bar
std::string Foo::bar(int x) const {                        bar
  def self.build(attributes)                               build
  def valid?                                               valid?
interface Shape {                                          Shape
"""
NOT_DEFINED = """
if (ready) {
} else if (is(ready)) {
  for (int i = 0; i < 3; i++) {
  return render(a) {
class_name = 3
static struct point origin = {
  it('does much', () => {
call(a, b);
# def of a term
"""


@pytest.mark.parametrize("row", DEFINED.strip("\n").split("\n"))
def test_definitions_of_many_languages_are_seen(row: str):
    line, _, name = row.rpartition("  ")
    assert [place.name for place in definitions_in(f"x = 1\n{line.rstrip()}\n")] == [name]


def test_other_lines_define_nothing():
    assert list(definitions_in(NOT_DEFINED)) == []
