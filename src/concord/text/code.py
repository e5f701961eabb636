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
from concord.text.word_lists import listed
from concord.types import Block, Heading, Section

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query, Tree

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
# it in a process with limits. Files that are larger than people write are not parsed, and the others are
# first tried in three places: 8 kB of source code, cut out anywhere, hold up to 72 errors (97 % of 770 such
# cuts), 8 kB of prose, tables or base64 hold over 180.
MAX_BYTES = 512 * 1024
_PROBE_BYTES = 8 * 1024
_MAX_PROBE_ERRORS = 100

_MAX_DEPTH = 8  # of definitions within definitions
_MAX_NAME = 80  # characters

# The grammars name their nodes alike: a name that several of them have means the same in all.
_CONTAINERS = listed(
    "class_definition class_declaration abstract_class_declaration class module singleton_class "
    "interface_declaration enum_declaration record_declaration struct_declaration trait_declaration "
    "namespace_declaration namespace_definition internal_module trait_item impl_item mod_item "
    "class_specifier struct_specifier"
)
_LEAVES = listed(
    "function_definition function_declaration generator_function_declaration function_signature "
    "function_item method_definition method_declaration constructor_declaration "
    "compact_constructor_declaration destructor_declaration operator_declaration method "
    "singleton_method local_function_statement delegate_declaration type_declaration "
    "type_alias_declaration type_definition type_item alias_declaration struct_item enum_item "
    "union_item macro_definition enum_specifier union_specifier preproc_function_def"
)
_TRANSPARENT = listed(
    "ERROR preproc_ifdef preproc_if preproc_else preproc_elif linkage_specification declaration_list "
    "if_statement elif_clause else_clause try_statement except_clause finally_clause block"
)
_WRAPPERS = listed(
    "decorated_definition export_statement template_declaration ambient_declaration "
    "expression_statement lexical_declaration variable_declaration"
)
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
    """Return the definitions of a text in order, outer before inner; none if it does not look like code."""
    grammar = _grammar(language) if language else None
    data = text.encode(errors="surrogatepass")
    if grammar is None or len(data) > MAX_BYTES:
        return []
    if not _looks_like_code(data, grammar):
        return []
    spans = list(_walk(_parsed(data, grammar).root_node, (), data, _MAX_DEPTH))
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
            end = min(start, max(position, _line_end(text, inner.end)))
            if position < end:
                yield Span(position, end, inner.path)
            position = max(position, end)
        if around and position < start:
            yield Span(position, start, around[-1].path)
        position = start
        around.append(span)


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


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


def _looks_like_code(data: bytes, grammar: Language) -> bool:
    if len(data) <= _PROBE_BYTES:
        return True
    bad = 0
    for at, probe in enumerate(_probes(data)):
        if at - bad == 2:  # of the three, most look like code
            break
        bad += _has_too_many_errors(_parsed(probe, grammar), grammar)
    return bad <= 1


def _parsed(data: bytes, grammar: Language) -> Tree:
    from tree_sitter import Parser

    return Parser(grammar).parse(data)


def _probes(data: bytes) -> Iterator[bytes]:
    for share in (0, 1, 2):
        begin = data.rfind(b"\n", 0, share * (len(data) - _PROBE_BYTES) // 2) + 1
        yield data[begin : begin + _PROBE_BYTES]


def _has_too_many_errors(tree: Tree, grammar: Language) -> bool:
    if not tree.root_node.has_error:
        return False
    from tree_sitter import QueryCursor

    errors = QueryCursor(_errors(grammar)).captures(tree.root_node).get("error", [])
    return len(errors) > _MAX_PROBE_ERRORS


@cache  # making it takes longer than asking it
def _errors(grammar: Language) -> Query:
    from tree_sitter import Query

    return Query(grammar, "(ERROR) @error")


def _walk(parent: Node, path: Heading, data: bytes, depth: int) -> Iterator[Span]:
    """Yield the definitions below a node, in bytes."""
    siblings = parent.children
    for index, node in enumerate(siblings):
        if node.type in _TRANSPARENT and depth:
            yield from _walk(node, path, data, depth - 1)
        elif definition := _unwrapped(node):
            name = _name(definition, data)
            own = (*path, *name)
            if name:
                yield Span(_with_comments(siblings, index, data).start_byte, node.end_byte, own)
            body = definition.child_by_field_name("body") if definition.type in _CONTAINERS else None
            if body and depth:
                yield from _walk(body, own, data, depth - 1)


def _unwrapped(node: Node) -> Node | None:
    """Return the definition that a node is, or holds behind `export`, decorators, `const f =` …"""
    while node.type in _WRAPPERS and node.named_children:  # a crafted file has thousands inside each other
        node = node.named_children[-1]
        if node.type in ("variable_declarator", "assignment_expression"):
            value = node.child_by_field_name("value") or node.child_by_field_name("right")
            return node if value and value.type in _FUNCTION_VALUES else None
    return node if node.type in _CONTAINERS or node.type in _LEAVES else None


def _with_comments(siblings: Sequence[Node], index: int, data: bytes) -> Node:
    """Return the first of the comments and decorators that stand right above a definition, or itself."""
    while index and siblings[index - 1].type in _LEADING and _leads(siblings, index - 1, data):
        index -= 1
    return siblings[index]


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
