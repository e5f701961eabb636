"""The definitions of source code, by tree-sitter: where each begins and ends, and the names it stands under.

A comment or decorator above a definition belongs to it. A language without a grammar here, or a text that is
not of its language at all, is cut at its blank lines instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from concord.text.cuts import line_start
from concord.text.plain import read_unknown_code
from concord.text.word_lists import listed, word_list
from concord.types import Block, Heading, Section

if TYPE_CHECKING:
    from tree_sitter import Language, Node

# Language by tree-sitter's name → the grammar's module and the function in it. Grammars were left out whose
# parser takes minutes over text that is not of their language (swift, lua) or trips over its own (kotlin).
LANGUAGES = {
    **{
        name: (f"tree_sitter_{name}", "language")
        for name in ("bash", "c", "c_sharp", "cpp", "go", "java", "javascript", "python", "ruby", "rust")
    },
    "php": ("tree_sitter_php", "language_php"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}

# Text that is not code costs its square, in some grammars also of memory: whoever reads files of others does
# it in a process with limits. Files that are larger than people write are not parsed.
MAX_BYTES = 512 * 1024

_MAX_DEPTH = 8  # of definitions within definitions
_MAX_NAME = 80  # characters

_FUNCTION_VALUES = listed("arrow_function function_expression generator_function class")
_LEADING = listed("comment line_comment block_comment attribute_item decorator")

_RECEIVER = re.compile(r"(\w+)(?:\[.*\])?\s*\)$")  # Server in (s *Server), List in (l List[T])
_CLOSING = re.compile(r"(?:\bend\b|\W)*+")  # brackets and blank lines: the end of what came before
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class Span(NamedTuple):
    """A definition with its comments, in characters, and the names it stands under, its own the last."""

    start: int
    end: int
    path: Heading


def definitions(text: str, language: str | None) -> list[Span]:
    """Return the definitions of a text in order, outer before inner; none of a text without a grammar."""
    grammar = _grammar(language) if language else None
    data = text.encode(errors="surrogatepass")
    if grammar is None or len(data) > MAX_BYTES:
        return []
    from tree_sitter import Parser

    spans = list(_walk(Parser(grammar).parse(data).root_node, (), data, _MAX_DEPTH))
    spans.sort(key=lambda span: (span.start, -span.end))
    return spans if text.isascii() else _in_characters(spans, data)


def read_code(text: str, language: str | None) -> list[Section]:
    """Return code as one section a definition, and one for each stretch between definitions."""
    spans = definitions(text, language)
    if not spans:
        return read_unknown_code(text)
    sections: list[Section] = []
    for start, end, path in _leaves(spans, text):
        if sections and _CLOSING.fullmatch(text, start, end):
            sections[-1].blocks[-1] = sections[-1].blocks[-1]._replace(end=end)
        else:
            sections.append(Section(path, [Block(start, end, "solid")]))
    return sections


def _leaves(spans: Sequence[Span], text: str) -> Iterator[Span]:
    """Cut a text at the borders of its definitions; each stretch stands under the innermost around it."""
    position = 0
    around = [Span(0, len(text), ())]
    for span in (*spans, Span(len(text), len(text), ())):
        start = max(position, line_start(text, span.start))
        while around and around[-1].end <= start:
            inner = around.pop()
            end = min(start, max(position, text.find("\n", inner.end) + 1 or len(text)))
            if position < end:
                yield Span(position, end, inner.path)
            position = max(position, end)
        if around and position < start:
            yield Span(position, start, around[-1].path)
        position = start
        around.append(span)


@cache
def _grammar(language: str) -> Language | None:
    if language not in LANGUAGES:
        return None
    from tree_sitter import Language

    module, function = LANGUAGES[language]
    try:
        return Language(getattr(import_module(module), function)())
    except ModuleNotFoundError:  # an installation without this grammar still indexes the language
        return None


def _walk(parent: Node, path: Heading, data: bytes, depth: int) -> Iterator[Span]:
    """Yield the definitions below a node, in bytes.

    The grammars name their nodes alike: a name that several of them have means the same in all.
    """
    siblings = parent.children
    for index, node in enumerate(siblings):
        if node.type in word_list("code_transparent") and depth:
            yield from _walk(node, path, data, depth - 1)
        elif definition := _unwrapped(node):
            own = (*path, *_name(definition, data))
            if own != path:
                first = index
                while first and siblings[first - 1].type in _LEADING and _leads(siblings, first - 1, data):
                    first -= 1
                yield Span(siblings[first].start_byte, node.end_byte, own)
            is_container = definition.type in word_list("code_container")
            if depth and is_container and (body := definition.child_by_field_name("body")):
                yield from _walk(body, own, data, depth - 1)


def _unwrapped(node: Node) -> Node | None:
    """Return the definition that a node is, or holds behind `export`, decorators, `const f =` …"""
    # A loop, because a crafted file has thousands inside each other.
    while node.type in word_list("code_wrapper") and node.named_children:
        node = node.named_children[-1]
        if node.type in ("variable_declarator", "assignment_expression"):
            value = node.child_by_field_name("value") or node.child_by_field_name("right")
            return node if value and value.type in _FUNCTION_VALUES else None
    return node if node.type in word_list("code_container") | word_list("code_leaf") else None


def _leads(siblings: Sequence[Node], index: int, data: bytes) -> bool:
    """Whether a comment speaks of what is below it, not of what stands before it on its line.

    Lines are counted here and not asked of the nodes: their points are freed too early in tree-sitter 0.26.0.
    """
    comment, below = siblings[index], siblings[index + 1]
    if data.count(b"\n", comment.end_byte, below.start_byte) > 1:
        return False
    return index == 0 or b"\n" in data[siblings[index - 1].end_byte - 1 : comment.start_byte]


def _name(node: Node, data: bytes) -> Heading:
    """Return the name of a definition; a method of Go stands under its receiver's type."""
    field = node.child_by_field_name
    if node.type == "impl_item":
        names = [_words(part, data) for part in (field("trait"), field("type")) if part]
        return (" for ".join(names),)
    if node.type == "type_declaration" and node.named_children:
        field = node.named_children[0].child_by_field_name
    name = field("name") or field("left") or field("declarator")
    while name and (inner := name.child_by_field_name("declarator")):
        name = inner
    if name is None:
        return ()
    receiver = _RECEIVER.search(_words(part, data)) if (part := field("receiver")) else None
    return (receiver[1], _words(name, data)) if receiver else (_words(name, data),)


def _words(node: Node, data: bytes) -> str:
    return " ".join(data[node.start_byte : node.end_byte].decode(errors="replace").split())[:_MAX_NAME]


def _in_characters(spans: Sequence[Span], data: bytes) -> list[Span]:
    """Turn byte offsets into string indices, in one pass over the bytes."""
    index, position, characters = {}, 0, 0
    for offset in sorted({offset for span in spans for offset in span[:2]}):
        characters += len(data[position:offset].translate(None, _CONTINUATION_BYTES))
        index[offset], position = characters, offset
    return [Span(index[span.start], index[span.end], span.path) for span in spans]
