"""Code is cut by its definitions: names as headings, comments with what they speak of, any language."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.chunk import ChunkSize
from concord.text.code import LANGUAGES, MAX_BYTES, definitions, read_code
from concord.types import Extracted, Piece
from test_chunk import SMALL, assert_valid

PYTHON = '''\
"""What the module is for."""

import os


# Adds two numbers.
@cache
def add(a, b):
    """Return the sum."""
    return a + b


class Shop:
    """Sells things."""

    open = True

    # Opens early.
    def start(self):
        def inner():
            return 1
        return inner

    class Shelf:
        async def fill(self): ...


if os.name == "posix":
    def fallback(): ...
'''

SOURCES = {
    "javascript": (
        "import x from 'y';\n/** Says hello. */\nexport function hello() {}\nexport const later = () => {};\n"
        "class Shop {\n  // Opens.\n  start() {}\n}\nmodule.exports.end = function () {};\n",
        [("hello",), ("later",), ("Shop",), ("Shop", "start"), ("module.exports.end",)],
    ),
    "typescript": (
        "@Component({a: 1})\nexport class Shop<T> {\n  start(): void {}\n}\n"
        "export interface Sells { a: string }\nexport type Name = string;\n"
        "namespace Inner { export function f() {} }\n",
        [("Shop",), ("Shop", "start"), ("Sells",), ("Name",), ("Inner",), ("Inner", "f")],
    ),
    "tsx": ("export const App = () => <div>{name}</div>;\n", [("App",)]),
    "go": (
        "package main\n\n// Shop sells.\ntype Shop struct { a int }\n\n// Start opens.\n"
        "func (s *Shop) Start() error { return nil }\nfunc (l List[T]) Len() int { return 0 }\n"
        "func main() {}\n",
        [("Shop",), ("Shop", "Start"), ("List", "Len"), ("main",)],
    ),
    "rust": (
        "/// A shop.\n#[derive(Debug)]\npub struct Shop { x: i32 }\n"
        "impl Shop {\n    pub fn new() -> Self { todo!() }\n}\n"
        "impl Display for Shop { fn fmt(&self) {} }\nmod inner { pub fn f() {} }\n",
        [("Shop",), ("Shop",), ("Shop", "new"), ("Display for Shop",), ("Display for Shop", "fmt")]
        + [("inner",), ("inner", "f")],
    ),
    "java": (
        "package a;\n/** A shop. */\n@Ann\npublic class Shop {\n"
        "  public Shop() {}\n  void start() {}\n  enum E { A }\n}\n",
        [("Shop",), ("Shop", "Shop"), ("Shop", "start"), ("Shop", "E")],
    ),
    "c": (
        "#ifndef A_H\n#define A_H\n#define MAX(a, b) ((a) > (b))\ntypedef struct shop { int a; } shop_t;\n"
        "static int *start(int a) { return 0; }\n#endif\n",
        [("MAX",), ("shop_t",), ("start",)],
    ),
    "cpp": (
        "namespace shop {\ntemplate <typename T>\nclass Till {\npublic:\n"
        "  int open(int a) const { return 1; }\n};\nvoid Till<int>::close() {}\n}\n",
        [("shop",), ("shop", "Till"), ("shop", "Till", "open"), ("shop", "Till<int>::close")],
    ),
    "c_sharp": (
        "namespace Shops {\n  [Attr]\n  public class Shop {\n    public void Start() {}\n  }\n}\n",
        [("Shops",), ("Shops", "Shop"), ("Shops", "Shop", "Start")],
    ),
    "ruby": (
        "# Shops.\nmodule Shops\n  class Shop\n    def start\n      1\n    end\n"
        "    def self.all; end\n  end\nend\n",
        [("Shops",), ("Shops", "Shop"), ("Shops", "Shop", "start"), ("Shops", "Shop", "all")],
    ),
    "php": (
        "<?php\n/** Adds. */\nfunction add($a) { return 1; }\n"
        "class Shop {\n  public function start() {}\n}\n",
        [("add",), ("Shop",), ("Shop", "start")],
    ),
    "bash": ("# Opens.\nfunction start() { echo 1; }\nstop() {\n  echo 2\n}\n", [("start",), ("stop",)]),
}


def code(text: str, language: str | None = "python", size: ChunkSize = SMALL) -> list[Piece]:
    return assert_valid(Extracted(text, "code", language=language), size)


@pytest.mark.parametrize("language", SOURCES)
def test_each_language_gives_its_definitions_under_their_names(language: str):
    text, paths = SOURCES[language]
    assert [span.path for span in definitions(text, language)] == paths


@pytest.mark.promise("000.flow.chunking")
def test_nested_names_are_the_heading_path():
    paths = [section.heading for section in read_code(PYTHON, "python")]
    assert paths == [
        *[(), ("add",), ("Shop",), ("Shop", "start"), ("Shop", "Shelf"), ("Shop", "Shelf", "fill")],
        *[(), ("fallback",)],
    ]


def test_comments_decorators_and_docstrings_go_with_their_definition():
    by_path = {
        section.heading: PYTHON[section.start : section.end] for section in read_code(PYTHON, "python")
    }
    assert by_path["add",].startswith("# Adds two numbers.\n@cache\ndef add")
    assert '"""Return the sum."""' in by_path["add",]
    assert by_path["Shop", "start"].startswith("    # Opens early.\n    def start")
    assert '"""Sells things."""' in by_path["Shop",]


def test_small_neighbours_are_one_chunk_and_large_ones_are_not():
    small = "\n\n".join(f"def f{n}(): return {n}" for n in range(3))
    assert [piece.heading for piece in code(small, size=ChunkSize())] == [()]  # what they share
    large = "\n\n".join(f"def f{n}():\n" + "    call(a, b)\n" * 30 for n in range(3))
    pieces = code(large, size=ChunkSize.for_target(260, overlap=0))
    assert [piece.heading for piece in pieces] == [("f0",), ("f1",), ("f2",)]


def test_a_long_definition_is_cut_between_lines_and_keeps_its_name():
    text = "def long():\n" + "".join(f"    step{n}(a, b)\n" for n in range(60))
    pieces = code(text)
    assert len(pieces) > 2
    assert {piece.heading for piece in pieces} == {("long",)}
    assert all(line in text.split("\n") for piece in pieces for line in piece.text.split("\n"))


def test_offsets_are_characters_however_many_bytes_they_take():
    text = (
        '# größer: 日本語 🙂\nNAME = "ñandú"\n\n\n'
        'def straße(x):\n    """Gibt 🙂 zurück."""\n    return x\n\n\n'
        "class Ü:\n    def é(self): ...\n"
    )
    spans = {span.path: text[span.start : span.end] for span in definitions(text, "python")}
    assert spans["straße",] == 'def straße(x):\n    """Gibt 🙂 zurück."""\n    return x'
    assert spans["Ü", "é"] == "def é(self): ..."
    code(text)


@given(st.text(max_size=300), st.sampled_from([*LANGUAGES, "cobol", None]))
@settings(max_examples=200)
def test_any_text_is_covered_whatever_its_language_is_said_to_be(text: str, language: str | None):
    code(text, language)


@given(
    st.lists(
        st.sampled_from(
            ["def f():", "class C:", "    def m(self):", "  x", "}", "{", "🙂 = 'é'", '"""', "", "@d"]
        )
        | st.sampled_from(
            ["# comment", "function g() {", "impl X {", "if x:", "end", "<?php", "((", "//", "/*"]
        ),
        max_size=40,
    ).map("\n".join),
    st.sampled_from(list(LANGUAGES)),
)
@settings(max_examples=300)
def test_broken_code_is_covered_in_every_language(text: str, language: str):
    code(text, language)


def test_what_is_larger_than_people_write_is_not_parsed():
    text = "def f():\n    return 1\n\n" * (MAX_BYTES // 22)
    assert definitions(text, "python") == []
    assert definitions(text[: MAX_BYTES // 2], "python")
