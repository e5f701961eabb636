"""The query language: what was typed becomes two questions, an exact and a loose one.

expression   one conjunction, or several with OR between them
conjunction  operands with AND between them or nothing; NOT or - may stand before each
operand      word, prefix*, "a phrase" or (expression)

Operators are in upper case. What does not parse (a dangling AND, parentheses or quotes that do not close,
nothing but exclusions) is read as words and phrases, so that no text is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from concord.text.terms import (
    all_of,
    any_of,
    exclusion_match,
    is_version,
    joined_names,
    loose_match,
    loose_words,
    phrase_match,
    word_match,
)
from concord.text.tokens import pattern
from concord.text.word_lists import is_stop_word, significant
from concord.types import AnyOf, Match, Without

MAX_TERMS = 64  # that one query looks for: a pasted page is told apart by its longest words, and stays fast
MAX_NAMES = 16  # that are looked for as a whole among loose words: a phrase takes longer than a word
MAX_DASHED = 4  # words that are looked up for being options: each takes a search
_MAX_DEPTH = 16  # of parentheses; deeper ones are no query
_LONGEST_WORD = 30  # longer ones are data, and come last when terms are chosen
_MAX_COMPOSED = 256  # composing takes quadratic time in a run of combining marks, so no longer word is
_OPERATORS = ("AND", "OR", "NOT")
# After NOT, these are said: IF NOT EXISTS, NOT NULL, FILE NOT FOUND.
_SAID = ("NULL", "EXISTS", "EXIST", "IN", "LIKE", "BETWEEN", "FOUND", "ALLOWED", "SUPPORTED")
_AROUND = "'“”„‘’«»[]{}<>=,;:!?¿¡…。，、！？；：「」『』（）"  # what a sentence puts around its words
_CONTROL = pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_CURLY = pattern('[“„]([^“„”"]*)[”“]')
_PIECE = pattern(r'(?P<minus>(?<![^\s(])-)?"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)')


class Parsed(Struct, frozen=True):
    """A query taken apart."""

    terms: tuple[str, ...]  # as typed, operators and stop words taken out (never to nothing)
    phrases: tuple[str, ...]
    excluded: tuple[str, ...]  # words, phrases or prefix*, none of which a hit may contain
    exact: Match | None  # None when nothing in the query can be searched by words
    loose: Match | None
    words: tuple[str, ...] = ()  # the tokens `loose` looks for one by one: ask for the frequencies of these
    kept: tuple[Match, ...] = ()  # what `loose` looks for besides, however frequent: phrases, prefixes, names
    dropped: Match | None = None  # what `loose` excludes
    nothing_wanted: bool = False  # it only excludes (-word), so its words are looked for instead


class _Token(Struct, frozen=True):
    """One piece of a query; a word or phrase always has a letter or digit."""

    kind: str  # word, phrase, AND, OR, NOT, ( or )
    text: str = ""
    is_excluded: bool = False
    is_prefix: bool = False
    is_stop_word: bool = False  # left out unless nothing else is there

    def match(self, *, is_negative: bool = False) -> Match | None:
        """Return what a word or phrase looks for."""
        if self.kind == "phrase":
            return phrase_match(self.text)
        if is_negative and not self.is_prefix:
            return exclusion_match(self.text)
        return word_match(self.text, prefix=self.is_prefix)


class _Node(Struct, frozen=True):
    """An expression, read."""

    match: Match
    asked: tuple[_Token, ...]  # the words and phrases that it asks for
    dropped: Match | None = None  # what no hit may match
    excluded: tuple[str, ...] = ()  # the same as texts, where it can be written so
    texts: tuple[str, ...] = ()  # where it matches any text with one of some words or phrases: these


class _DoesNotParse(Exception):
    """The operators make no sense where they stand."""


class _NothingWanted(_DoesNotParse):
    """The query only excludes: there is nothing to exclude from."""


def parse(text: str, options: Collection[str] = ()) -> Parsed:
    """Return what a query asks for; `options` are words that are not excluded by their dash.

    Never raises, whatever the text.
    """
    cleaned = _cleaned(text)
    is_paired = cleaned.count('"') % 2 == 0
    tokens = _tokens_of(cleaned if is_paired else cleaned.replace('"', " "))
    tokens = [replace(t, is_excluded=False) if t.is_excluded and t.text in options else t for t in tokens]
    has_operators = any(t.kind in _OPERATORS or t.is_excluded or t.is_prefix for t in tokens)
    nothing_wanted = False
    if has_operators and is_paired and len(tokens) <= MAX_TERMS:
        try:
            return _parsed(_Parser(_marked(tokens)).whole())
        except _DoesNotParse as fault:
            nothing_wanted = isinstance(fault, _NothingWanted)
    return replace(_parsed(_literals(tokens)), nothing_wanted=nothing_wanted)


def dashed(text: str) -> list[str]:
    """Return the words that may be options: each excluded by a dash."""
    tokens = _tokens_of(_cleaned(text))
    return [token.text for token in tokens if token.kind == "word" and token.is_excluded][:MAX_DASHED]


def prune(parsed: Parsed, keep: Callable[[str], bool]) -> Match | None:
    """Return the loose match without the words that are not to be kept; whole when nothing would be left."""
    words = [word for word in parsed.words if keep(word)]
    return _loose(words, parsed.kept, parsed.dropped) if words or parsed.kept else parsed.loose


def _cleaned(text: str) -> str:
    """Return a text without control characters and lone surrogates, composed, its quotes straight."""
    words = (text if text.isprintable() else _CONTROL.sub(" ", text)).split()
    composed = " ".join(normalize("NFC", word) if len(word) <= _MAX_COMPOSED else word for word in words)
    return composed if composed.isascii() else _CURLY.sub(r'"\1"', composed)


def _marked(tokens: Iterable[_Token]) -> list[_Token]:
    """Return the tokens with stop words marked; a prefix or an excluded word is never one."""
    words = [token.text for token in tokens if token.kind == "word"]
    stop_words = set(words).difference(significant(words))
    return [
        replace(token, is_stop_word=True)
        if token.text in stop_words and not token.is_prefix and not token.is_excluded
        else token
        for token in tokens
    ]


def _literals(tokens: Sequence[_Token]) -> _Node | None:
    """Read everything as words and phrases."""
    words = [token.text or token.kind for token in tokens if token.kind in ("word", *_OPERATORS)]
    phrases = list(dict.fromkeys(token.text for token in tokens if token.kind == "phrase"))[:MAX_TERMS]
    asked = [_Token("word", term) for term in _limited(significant(words))]
    asked += [_Token("phrase", text) for text in phrases]
    matches = {token: match for token in asked if (match := token.match())}
    match = all_of([*matches.values()])
    return _Node(match, tuple(matches)) if match else None


def _parsed(node: _Node | None) -> Parsed:
    if node is None:
        return Parsed((), (), (), None, None)
    phrases = [token.text for token in node.asked if token.kind == "phrase"]
    begun = {token.text for token in node.asked if token.is_prefix}
    terms = _limited(significant([token.text for token in node.asked if token.kind == "word"]))
    spoken = [word for word in significant(" ".join(phrases).split()) if not is_stop_word(word)]
    asked = [*(term for term in terms if term not in begun), *spoken]
    tokens = dict.fromkeys(token for word in asked for token in loose_words(word))
    words = tuple(significant([*tokens]))[:MAX_TERMS]
    # The numbers of 8.32 say little apart.
    whole = [t for t in node.asked if t.kind == "phrase" or t.is_prefix or is_version(t.text)]
    # Identifiers count as a whole, too: many texts have the words of wait_for, but apart.
    names = dict.fromkeys(name for term in terms if term not in begun for name in joined_names(term))
    kept = [match for token in whole if (match := token.match())]
    kept += filter(None, map(phrase_match, [*names][:MAX_NAMES]))
    return Parsed(
        terms=tuple(terms),
        phrases=tuple(phrases),
        excluded=tuple(dict.fromkeys(node.excluded)),
        exact=node.match,
        loose=_loose(words, kept, node.dropped),
        words=words,
        kept=tuple(kept),
        dropped=node.dropped,
    )


def _limited(words: Iterable[str]) -> list[str]:
    """Return the distinct words in order; if they are too many, the longest, because these are rare."""
    distinct = list(dict.fromkeys(words))
    chosen = sorted(distinct, key=lambda word: len(word) if len(word) <= _LONGEST_WORD else 0)[-MAX_TERMS:]
    return distinct if len(distinct) <= MAX_TERMS else [word for word in distinct if word in chosen]


def _loose(words: Iterable[str], kept: Iterable[Match], dropped: Match | None) -> Match | None:
    match = any_of([*kept, *map(loose_match, words)])
    return Without(match, dropped) if match and dropped else match


def _tokens_of(text: str) -> list[_Token]:
    """Take a query apart; what has no letter, digit or operator in it is left out."""
    found: list[_Token] = []
    for piece in _PIECE.finditer(text):
        if piece["word"] is None:
            found.append(_Token("phrase", piece["phrase"].strip(), is_excluded=bool(piece["minus"])))
        else:  # what is joined to a quotation, as in "Model C"-schools, excludes nothing
            is_joined = text[piece.start() - 1 : piece.start()] == '"'
            found += _tokens_of_piece(piece["word"].lstrip("-") if is_joined else piece["word"])
    for at, (token, following) in enumerate(pairwise(found)):
        if token == _Token("NOT") and following.text in _SAID:
            found[at] = _Token("word", "NOT")
    return [t for t in found if t.kind not in ("word", "phrase") or any(map(str.isalnum, t.text))]


def _tokens_of_piece(piece: str) -> list[_Token]:
    """Return a word and the parentheses around it, except those that close within it as in f(x)."""
    if piece.isalnum() and piece not in _OPERATORS:  # most words
        return [_Token("word", piece)]
    piece = piece.rstrip(_AROUND)
    inner = piece.removeprefix("-") if piece.startswith("-(") else piece
    body = inner.lstrip("(")
    opening = len(inner) - len(body)
    unmatched = max(0, body.count(")") - body.count("("))
    closing = min(unmatched, len(body) - len(body.rstrip(")")))
    body = body[: len(body) - closing]
    return [
        *[_Token("NOT", "-")] * (inner is not piece),
        *[_Token("(")] * opening,
        _Token(body) if body in _OPERATORS else _word(body),
        *[_Token(")")] * closing,
    ]


def _word(body: str) -> _Token:
    bare = body.strip(_AROUND)
    is_excluded = bare[:1] == "-" and bare[1:2] != "-" and not bare[1:2].isdigit()
    if bare.isascii() and len(bare.rstrip(".")) == 2:  # nobody excludes an option: `git commit -m`
        is_excluded = False
    bare = bare[is_excluded:].lstrip("*")
    is_prefix = bare.endswith("*") and bare.count("*") == 1 and bare[-2:-1].isalnum()
    return _Token("word", bare.rstrip(".*"), is_excluded, is_prefix)


class _Parser:
    """Reads tokens as an expression by recursive descent."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def whole(self) -> _Node:
        """Return the expression that all of the tokens write.

        Raises:
            _DoesNotParse: they write none.
            _NothingWanted: they only exclude.
        """
        node = self._expression()
        if self._kind() != "end":
            raise _DoesNotParse
        return node

    def _kind(self) -> str:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else "end"

    def _takes(self, kind: str) -> bool:
        """Whether the next token is of this kind; if it is, it has been read."""
        is_next = self._kind() == kind
        self._at += is_next
        return is_next

    def _expression(self) -> _Node:
        branches = [self._conjunction()]
        while self._takes("OR"):
            branches.append(self._conjunction())
        if len(branches) == 1:
            return branches[0]
        return _Node(  # a word that one of them excludes is not excluded from the others
            AnyOf(tuple(branch.match for branch in branches)),
            tuple(token for branch in branches for token in branch.asked),
            texts=_texts(branches) if all(branch.texts for branch in branches) else (),
        )

    def _conjunction(self) -> _Node:
        wanted: list[_Node] = []
        unwanted: list[_Node] = []
        while self._kind() not in (")", "OR", "end"):
            if self._takes("AND") and not (wanted or unwanted):
                raise _DoesNotParse
            is_negative = self._takes("NOT")
            is_negative |= self._kind() != "end" and self._tokens[self._at].is_excluded
            (unwanted if is_negative else wanted).append(self._operand(is_negative))
        return _all(wanted, unwanted)

    def _operand(self, is_negative: bool) -> _Node:
        if self._depth < _MAX_DEPTH and self._takes("("):
            self._depth += 1
            node = self._expression()
            self._depth -= 1
            if not self._takes(")"):
                raise _DoesNotParse
            return node
        token = self._tokens[self._at] if self._kind() in ("word", "phrase") else None
        match = token.match(is_negative=is_negative) if token else None
        if token is None or match is None:
            raise _DoesNotParse
        self._at += 1
        return _Node(match, (token,), texts=(token.text + "*" * token.is_prefix,))


def _all(wanted: Sequence[_Node], unwanted: Sequence[_Node]) -> _Node:
    """Join operands by AND; if all of them only exclude, there is nothing to find."""
    telling = [node for node in wanted if not all(token.is_stop_word for token in node.asked)]
    match = all_of([node.match for node in telling or wanted])
    if match is None:
        raise _NothingWanted if unwanted else _DoesNotParse
    drop = any_of([node.match for node in unwanted])
    inherited = [node.dropped for node in wanted if node.dropped is not None]
    return _Node(
        match if drop is None else Without(match, drop),
        tuple(token for node in wanted for token in node.asked),
        any_of([*inherited, *(node.match for node in unwanted)]),
        (*(text for node in wanted for text in node.excluded), *_texts(unwanted)),
        wanted[0].texts if len(wanted) == 1 and not unwanted else (),
    )


def _texts(nodes: Iterable[_Node]) -> tuple[str, ...]:
    return tuple(text for node in nodes for text in node.texts)
