"""Under which name a place in code stands, read from the lines of one chunk."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.text.symbols import defined_at, definitions_in, symbol_at
from support.recorders import write
from support.small_library import opened

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
        ("cls,", ("App", "middleware")),
        (") -> None", ("App", "middleware")),
        ("call(cls)", ("App", "middleware", "inner")),
        ("raise", ("App", "middleware")),
        ("LIMIT", ("App",)),
        ("Does much", ("App", "Foo")),
    ],
)
def test_a_place_stands_under_the_definitions_that_it_is_indented_below(words: str, symbol: tuple[str, ...]):
    assert symbol_at(PYTHON, PYTHON.index(words), ("App",)) == symbol


def test_names_that_the_chunk_carries_and_defines_are_not_said_twice():
    assert symbol_at(PYTHON, PYTHON.index("raise"), ("App", "host")) == ("App", "middleware")
    assert symbol_at("class App:\n    def run(self):\n        go()\n", 40, ("App",)) == ("App", "run")
    assert symbol_at("    go()\n    stop()\n", 5, ("App", "run")) == ("App", "run")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("async def fetch(url):", "fetch"),
        ("func (s *Server) Serve(l net.Listener) error {", "Serve"),
        ("func Map[T any](items []T) {", "Map"),
        ("type Server struct {", "Server"),
        ("pub(crate) async fn open(path: &Path) -> Result<Self> {", "open"),
        ("export default async function load() {", "load"),
        ("function* gen() {", "gen"),
        ("export const useStore = (selector) => {", "useStore"),
        ("  constructor(name) {", "constructor"),
        ("  async render(a, b) {", "render"),
        ("  public List<String> names(int limit) throws IOException {", "names"),
        ("static int foo_bar(int a, char *b) {", "foo_bar"),
        ("std::string Foo::bar(int x) const {", "bar"),
        ("struct point {", "point"),
        ("  def valid?", "valid?"),
        ("  def self.build(attributes)", "build"),
        ("interface Shape {", "Shape"),
    ],
)
def test_definitions_of_many_languages_are_seen(line: str, name: str):
    assert [one.name for one in definitions_in(f"x = 1\n{line}\n")] == [name]
    assert defined_at(name, f"x = 1\n{line}\n") == 6


@pytest.mark.parametrize(
    "line",
    [
        "if (ready) {",
        "} else if (is(ready)) {",
        "  for (int i = 0; i < 3; i++) {",
        "  return render(a) {",
        "while (next(x)) {",
        "defer close()",
        "class_name = 3",
        "type = None",
        "static struct point origin = {",
        "  it('does much', () => {",
        "call(a, b);",
        "# def of a term",
    ],
)
def test_other_lines_define_nothing(line: str):
    assert list(definitions_in(line)) == []


def test_a_name_that_is_only_called_is_not_defined():
    assert defined_at("getconn", "def putconn(self):\n    self.getconn()\n") is None


POOL = '''\
"""A pool of connections."""

class Pool:
    """Lends connections."""

    def getconn(self, timeout=None):
        """Take a connection out of the pool, or wait for one."""
        return self._take(timeout)

    def putconn(self, conn):
        """Give one back that getconn has lent; getconn will lend it again."""
        self._give(conn)

class Waiter:
    """Waits for getconn of a Pool, as putconn lets it; getconn is called by the pool, and putconn is not."""

    def wait(self, pool):
        pool.getconn()
'''


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("getconn", ("Pool", "getconn")),
        ("def putconn", ("Pool", "putconn")),
        ("where is getconn defined", ("Pool", "getconn")),
        ("Waiter", ("Waiter",)),
    ],
)
def test_the_definition_of_a_name_comes_first_under_that_name(
    tmp_path: Path, query: str, name: tuple[str, ...]
):
    write(tmp_path / "code" / "pool.py", POOL)
    write(tmp_path / "code" / "use.py", "pool.getconn()\nWaiter().wait(pool)\npool.putconn(getconn)\n" * 3)
    with opened(tmp_path, ingest__chunk_tokens=50, ingest__chunk_overlap=0) as kb:
        kb.add(tmp_path / "code")
        first = kb.search(query).hits[0]
    assert (first.document.path, first.chunk.heading) == ("code/pool.py", name)
