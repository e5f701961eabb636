"""The operators of the query language: upper-case AND, OR and NOT, -term, prefix* and parentheses.

expression   one conjunction, or several with OR between them
conjunction  operands with AND between them or nothing; NOT or - may stand before each
operand      word, prefix*, "a phrase" or (expression)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from concord.text.terms import all_of, any_of, exclusion_match, phrase_match, word_match
from concord.text.tokens import pattern
from concord.types import AnyOf, Match, Without

OPERATORS = ("AND", "OR", "NOT")
_MAX_DEPTH = 16  # of parentheses; deeper ones are no query
_PIECE = pattern(r'(?P<minus>(?<![^\s(])-)?"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)')
# After NOT, these are said: IF NOT EXISTS, NOT NULL, FILE NOT FOUND.
_SAID = ("NULL", "EXISTS", "EXIST", "IN", "LIKE", "BETWEEN", "FOUND", "ALLOWED", "SUPPORTED")
_AROUND = "'“”„‘’«»[]{}<>=,;:!?¿¡…。，、！？；：「」『』（）"  # what a sentence puts around its words


class Token(Struct, frozen=True):
    """One piece of a query; a word or phrase always has a letter or digit."""

    kind: str  # word, phrase, AND, OR, NOT, ( or )
    text: str = ""
    is_excluded: bool = False
    is_prefix: bool = False
    is_stop_word: bool = False  # left out unless a written AND holds it, or nothing else is there


class Node(Struct, frozen=True):
    """An expression, read."""

    match: Match
    asked: tuple[Token, ...]  # the words and phrases that it asks for
    dropped: Match | None = None  # what no hit may match
    excluded: tuple[str, ...] = ()  # the same as texts, where it can be written so
    texts: tuple[str, ...] = ()  # where it matches any text with one of some words or phrases: these


class DoesNotParse(Exception):
    """The operators make no sense where they stand."""


class NothingWanted(DoesNotParse):
    """The query only excludes: there is nothing to exclude from."""


class _Item(Struct, frozen=True):
    node: Node
    is_negative: bool
    is_joined: bool  # by a written AND to the item before it


def tokens_of(text: str) -> list[Token]:
    """Take a query apart; what has no letter, digit or operator in it is left out."""
    found: list[Token] = []
    for piece in _PIECE.finditer(text):
        if piece["word"] is None:
            found.append(Token("phrase", piece["phrase"].strip(), is_excluded=bool(piece["minus"])))
        else:  # what is joined to a quotation, as in "Model C"-schools, excludes nothing
            is_joined = text[piece.start() - 1 : piece.start()] == '"'
            found += _tokens_of_piece(piece["word"].lstrip("-") if is_joined else piece["word"])
    for at, (token, following) in enumerate(pairwise(found)):
        if token == Token("NOT") and following.text in _SAID:
            found[at] = Token("word", "NOT")
    return [t for t in found if t.kind not in ("word", "phrase") or any(map(str.isalnum, t.text))]


def read(tokens: Sequence[Token]) -> Node:
    """Return the expression that the tokens write.

    Raises:
        DoesNotParse: they write none.
        NothingWanted: they only exclude.
    """
    node, at = _expression(tokens, 0, 0)
    if at < len(tokens):
        raise DoesNotParse
    return node


def match_of(token: Token, *, is_negative: bool = False) -> Match | None:
    """Return what a word or phrase looks for."""
    if token.kind == "phrase":
        return phrase_match(token.text)
    if is_negative and not token.is_prefix:
        return exclusion_match(token.text)
    return word_match(token.text, prefix=token.is_prefix)


def _tokens_of_piece(piece: str) -> list[Token]:
    """Return a word and the parentheses around it, except those that close within it as in f(x)."""
    if piece.isalnum() and piece not in OPERATORS:  # most words
        return [Token("word", piece)]
    piece = piece.rstrip(_AROUND)
    inner = piece.removeprefix("-") if piece.startswith("-(") else piece
    body = inner.lstrip("(")
    opening = len(inner) - len(body)
    unmatched = max(0, body.count(")") - body.count("("))
    closing = min(unmatched, len(body) - len(body.rstrip(")")))
    body = body[: len(body) - closing]
    return [
        *[Token("NOT", "-")] * (inner is not piece),
        *[Token("(")] * opening,
        Token(body) if body in OPERATORS else _word(body),
        *[Token(")")] * closing,
    ]


def _word(body: str) -> Token:
    bare = body.strip(_AROUND)
    is_excluded = bare[:1] == "-" and bare[1:2] != "-" and not _is_option_or_number(bare[1:])
    bare = bare[is_excluded:].lstrip("*")
    is_prefix = bare.endswith("*") and bare.count("*") == 1 and bare[-2:-1].isalnum()
    return Token("word", bare.rstrip(".*"), is_excluded, is_prefix)


def _is_option_or_number(dashed: str) -> bool:
    """Whether nobody would exclude it: `git commit -m`, `exit code -1`."""
    return dashed[:1].isdigit() or (dashed.isascii() and len(dashed.rstrip(".")) == 1)


def _kind_at(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].kind if at < len(tokens) else "end"


def _expression(tokens: Sequence[Token], at: int, depth: int) -> tuple[Node, int]:
    node, at = _conjunction(tokens, at, depth)
    branches = [node]
    while _kind_at(tokens, at) == "OR":
        node, at = _conjunction(tokens, at + 1, depth)
        branches.append(node)
    return _either(branches) if len(branches) > 1 else node, at


def _conjunction(tokens: Sequence[Token], at: int, depth: int) -> tuple[Node, int]:
    items: list[_Item] = []
    while _kind_at(tokens, at) not in (")", "OR", "end"):
        is_joined = _kind_at(tokens, at) == "AND"
        if is_joined and not items:
            raise DoesNotParse
        at += is_joined
        is_negative = _kind_at(tokens, at) == "NOT"
        at += is_negative
        is_negative |= at < len(tokens) and tokens[at].is_excluded
        node, at = _operand(tokens, at, depth, is_negative)
        items.append(_Item(node, is_negative, is_joined))
    return _all(items), at


def _operand(tokens: Sequence[Token], at: int, depth: int, is_negative: bool) -> tuple[Node, int]:
    kind = _kind_at(tokens, at)
    if kind == "(" and depth < _MAX_DEPTH:
        node, at = _expression(tokens, at + 1, depth + 1)
        if _kind_at(tokens, at) != ")":
            raise DoesNotParse
        return node, at + 1
    match = match_of(tokens[at], is_negative=is_negative) if kind in ("word", "phrase") else None
    if match is None:
        raise DoesNotParse
    return Node(match, (tokens[at],), texts=(tokens[at].text + "*" * tokens[at].is_prefix,)), at + 1


def _either(branches: Sequence[Node]) -> Node:
    """Join alternatives by OR; a word that one of them excludes is not excluded from the others."""
    return Node(
        AnyOf(tuple(branch.match for branch in branches)),
        tuple(token for branch in branches for token in branch.asked),
        texts=_texts(branches) if all(branch.texts for branch in branches) else (),
    )


def _all(items: Sequence[_Item]) -> Node:
    """Join operands by AND; if all of them only exclude, there is nothing to find."""
    wanted = [item.node for item in items if not item.is_negative]
    unwanted = [item.node for item in items if item.is_negative]
    match = all_of([node.match for node in _telling(items) or wanted])
    if match is None:
        raise NothingWanted if unwanted else DoesNotParse
    drop = any_of([node.match for node in unwanted])
    inherited = [node.dropped for node in wanted if node.dropped is not None]
    return Node(
        match if drop is None else Without(match, drop),
        tuple(token for node in wanted for token in node.asked),
        any_of([*inherited, *(node.match for node in unwanted)]),
        (*(text for node in wanted for text in node.excluded), *_texts(unwanted)),
        wanted[0].texts if len(items) == 1 else (),
    )


def _telling(items: Sequence[_Item]) -> list[Node]:
    """Return the wanted operands without stop words, except those that stand next to an AND."""
    joined = [*(item.is_joined for item in items), False]
    return [
        item.node
        for number, item in enumerate(items)
        if not item.is_negative
        if joined[number] or joined[number + 1] or not all(token.is_stop_word for token in item.node.asked)
    ]


def _texts(nodes: Iterable[Node]) -> tuple[str, ...]:
    return tuple(text for node in nodes for text in node.texts)
