"""Which of the seeds' five types is a query, and which names does it hold?

First match wins: a quotation, a name, a question, a value, else exploratory. A name is two capitalised words
in a row, or one word that is an identifier, code, file name, version or number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from concord.text.scripts import has_unspaced
from concord.text.tokens import pattern
from concord.text.word_lists import word_list
from concord.types import QueryType

READ_CHARS = 4000  # a query shows its type early; the rest of a pasted page would only cost time
MAX_ENTITIES = 16  # a pasted page holds hundreds, and each is looked for in each chunk that is read
HEADLINE_WORDS = 4  # this many capitalised words and no others: a headline, whose capitals say nothing
NAMED_NUMBER_DIGITS = 3  # "top 10" counts something; 386, 404 and 8080 name something

_AROUND = "\"'`“”„‟«»‹›「」『』＂‘’([{¿¡*,;:!?….。，！？、；：)]}–—（）"
_BEFORE = _AROUND.replace(".", "")  # .gitignore is a name
_BREAK = frozenset('()[]{},;:!?….。，！？、；：（）–—"“”„«»「」`')
_QUOTED = pattern(  # an inch sign (5" disk) opens no quote: a word touches it
    r"(?<!\w)[\"＂][^\"＂\w]*\w[^\"＂]*[\"＂](?!\w)|“[^“”„\w]*\w[^“”„]*”|[„‟][^“”„‟\w]*\w[^“”„‟]*[“”]"
    r"|«[^«»\w]*\w[^«»]*»|»[^«»\w]*\w[^«»]*«|「[^「」\w]*\w[^「」]*」|『[^『』\w]*\w[^『』]*』"
)
# Every pattern is used with fullmatch on one word and has no two ways to match the same text, so that a word
# of 100,000 characters costs time in proportion to its length.
IDENTIFIER = pattern(
    r"_*[^\W_]+(?:_+[^\W_]+)+_*|__[^\W_]+__"  # snake_case
    r"|[a-z]+[0-9]*(?:[A-Z]+[a-z0-9]+)+[A-Z]*|[a-z]{4,}[A-Z]{2,}"  # getUserName, userID
    r"|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[A-Z]{2,}[a-z][a-z0-9]+(?:[A-Z][a-z0-9]+)*"  # HTTPServer
)
_SURE = pattern(
    r"\w+(?:(?:\.|::|->|#)\w+)*\(\)|\w+(?:::\w+)+|[A-Za-z_]\w*(?:->[A-Za-z_]\w*)+"  # std::vector
    r"|--[A-Za-z][\w-]*(?:=\S*)?|\$\{?[A-Za-z_]\w*\}?|@[A-Za-z_][\w.]*|#[0-9]+|0[xX][0-9A-Fa-f]+"
    r"|\.?[^\W\d][\w-]*(?:\.[\w-]+)+|\.[a-z][\w-]*"  # a.b.c, config.yaml, .gitignore
    r"|[A-Za-z][A-Za-z0-9+.-]*://\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # addresses
    r"|(?:/[\w.@+-]+){2,}/?|(?:~|\.{1,2})(?:/[\w.@+-]+)+/?|[\w.@+-]+/(?:[\w.@+-]+/)+[\w.@+-]*"  # paths
    r"|[\w.@+-]+/[\w@+-]*\.[A-Za-z]\w*|[A-Za-z]:[\\/]\S*"
    r"|[vV][0-9]+(?:\.[0-9]+)*(?:[-+.]?[a-z]+\.?[0-9]*)?"  # versions
    r"|[0-9]+(?:\.[0-9]+){2,}(?:[-+.:]?[a-z0-9]+)?"
    r"|[0-9]+\.[0-9]+[-+]?(?:alpha|beta|rc|dev)\.?[0-9]*"
    r"|[A-Z]{2}[A-Z0-9]*(?:-[0-9]{2,}){2,}|[A-Z]{2,}-[0-9]{2,}"  # CVE-2024-1234, BUG-89
)
_ABBREVIATION = pattern(r"[A-Za-z]\.[A-Za-z]?|[A-Za-z]{1,2}\.[A-Za-z]{1,2}", re.IGNORECASE)  # e.g, Ph.D
_ACRONYM = pattern(
    r"[a-z]{0,3}[A-Z]{2,}(?:s|ed|ing)?|(?:Mc|Mac|De|Le|La|Van|Di)[A-Z][a-z]+"
)  # APIs, McKinley
_MIXED = pattern(r"(?=[^\W_]*\d)(?=[^\W_]*[^\W\d_])[^\W_]+(?:[-.][^\W_]+)*")  # mp3, x86-64, COVID-19
_COMPOUND = pattern(r"\d+(?:[.,]\d+)?-[^\W\d_]{2,}\S*|\d+[dDxXkKG]\d*|\d+(?:st|nd|rd|th)")  # 24-hour, 3D, 5th
_RUNS = pattern(r"[0-9]+|[^\W\d_]+")
_NUMBER = pattern(r"[+-]?\d+(?:,\d+)*(?:\.\d+)?")
_TIME = pattern(  # a year from 1000 to 2099, a decade, a date, a quarter
    r"(?:1\d|20)\d\d(?:s|er)?|'?\d0s|(?:1\d|20)\d\d[-/.]\d{1,2}(?:[-/.]\d{1,2})?(?:T[\d:.]+Z?)?"
    r"|\d{1,2}[-/]\d{1,2}[-/](?:1\d|20)?\d\d|\d{1,2}\.\d{1,2}\.(?:1\d|20)\d\d"  # 3.11.10 is a version
    r"|(?:1\d|20)\d\d[-–/](?:\d\d){1,2}|\d{1,2}:\d\d(?::\d\d)?(?:am|pm)?"
    r"|Q[1-4]|H[12]|FY'?(?:\d\d){1,2}",
    re.IGNORECASE,
)
_MEASURE = pattern(r"[$€£¥₹]?\d+(?:[.,]\d+)*([^\W\d_]*(?:/[^\W\d_]+)?|[%‰°][A-Z]?)", re.IGNORECASE)
# In scripts without spaces a question word stands anywhere; each is long enough to be part of no other word.
_UNSPACED_QUESTION = pattern(
    "什么|什麼|甚麼|怎么|怎麼|怎样|怎樣|如何|为什么|為什麼|为何|為何|哪(?!吒)|谁|誰|多[少久快远遠大高长長重]|何[时時处處地]|几个|幾個"
    "|なぜ|どうやって|どのよう|どう|どれ|どの|いつ|どこ|だれ|何[がをので人年]|とは|ですか|ますか"
    "|어떻게|무엇|언제|어디|누가|얼마나|ทำไม|อย่างไร|อะไร|เมื่อไร|ที่ไหน|ใคร"
    "|解释|解釋|区别|區別|差异|差異|比较|比較|说明|説明|違い|차이|설명|비교"
)
_UNSPACED_METRIC = pattern(
    "价格|價格|成本|收入|营收|營收|利润|利潤|预算|預算|人口|版本|発売|売上|価格|가격|매출|인구|버전"
)


def classify(text: str) -> QueryType:
    """Return the type of a query."""
    read = text[:READ_CHARS]
    if _QUOTED.search(read):
        return "exact_quote"
    if entities(read):
        return "entity"
    words = _words(read)
    if asks(words) or any(word in word_list("concept") for word in map(plain, words)):
        return "conceptual"
    if has_unspaced(read) and _UNSPACED_QUESTION.search(read):
        return "conceptual"
    return "factual" if _wants_a_value(read, words) else "exploratory"


@lru_cache(maxsize=16)
def entities(text: str) -> tuple[str, ...]:
    """Return the names in a query, in order, each once."""
    typed = text[:READ_CHARS].split()
    words = [_bare(part) for part in typed]
    asked = asks([word for word in words if word])
    runs = {} if _is_headline(words) else _runs(typed, words)
    names: dict[str, None] = {}
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if at in runs:
            names |= dict.fromkeys(runs[at])
        elif _is_name(word, following, "".join(words[at - 1 : at]), asked, is_alone=len(words) == 1):
            names.setdefault(word)
    return tuple(names)[:MAX_ENTITIES]


def _bare(part: str) -> str:
    """Return a word without the signs around it; a call keeps its parentheses."""
    return part.rstrip(_AROUND).lstrip(_BEFORE) + "()" * part.rstrip(".,;:!?").endswith("()")


def mentions(names: Collection[str], text: str) -> bool:
    """Whether one of the names stands in a text as whole words, in any case."""
    folded = " ".join(text.casefold().split()) if names else ""
    return any(_stands_in(" ".join(name.casefold().split()), folded) for name in names)


def asks(words: Sequence[str]) -> bool:
    """Whether a query opens with a question word, or with an auxiliary before its subject."""
    if not words:
        return False
    first, second = plain(words[0]), plain(words[1]) if len(words) > 1 else ""
    if first in word_list("question"):
        return words[0] != "WHO"
    return first in word_list("auxiliary") and second in word_list("subject")


def is_question(text: str) -> bool:
    """Whether a query is put as a question."""
    return text.rstrip().endswith(("?", "？")) or asks(text.split())


def plain(word: str) -> str:
    """Return a word in lower case without its clitic: What's → what, l'accès → l."""
    head, mark, tail = word.lower().replace("’", "'").partition("'")
    return (
        head if not mark or tail in ("s", "re", "ve", "ll", "d", "m") or len(head) < 3 else head + mark + tail
    )


def is_time(word: str) -> bool:
    """Whether a word is a year, a decade, a date or a quarter."""
    return _TIME.fullmatch(word) is not None


def _words(text: str) -> list[str]:
    stripped = (part.strip(_AROUND) for part in text.split())
    return [word for word in stripped if word]


def _wants_a_value(text: str, words: Sequence[str]) -> bool:
    following = [*words[1:], ""]
    if any(plain(word) in word_list("metric") or is_time(word) for word in words):
        return True
    if any(_is_measure(word, after) for word, after in zip(words, following, strict=False)):
        return True
    return has_unspaced(text) and _UNSPACED_METRIC.search(text) is not None


def _is_measure(word: str, following: str) -> bool:
    """Whether a word is a number with its unit, in it or after it: 10kg, $5, 5 GB."""
    match = _MEASURE.fullmatch(word)
    if match is None:
        return False
    if unit := match[1]:  # single letters in their own case: 5g is a weight, 5G a network
        return unit.lower() in word_list("unit") or unit in word_list("touching_unit") or unit[0] in "%‰°"
    return word[0] in "$€£¥₹" or following.lower() in word_list("unit")


def _is_name(word: str, following: str, before: str, asked: bool, *, is_alone: bool) -> bool:
    """Whether one word names something; what may be an ordinary word does so only outside a question."""
    if not word or word.isalpha() and (word.islower() or word.istitle()):
        return False  # most words, recognised without a regular expression
    if _NUMBER.fullmatch(word):
        return is_alone or _is_named_number(word, following, before, asked)
    if is_time(word) or _is_measure(word, following) or _ABBREVIATION.fullmatch(word):
        return False
    if _ACRONYM.fullmatch(word):
        return False
    return is_sure_name(word) or not asked and word.isascii() and _is_likely(word)


def is_sure_name(word: str) -> bool:
    """Whether nobody writes such a word by accident: snake_case, a.b.c, CVE-2024-1234, 386DX33."""
    if IDENTIFIER.fullmatch(word) or _SURE.fullmatch(word):
        return not _ACRONYM.fullmatch(word) and not _ABBREVIATION.fullmatch(word)
    return len(word) >= 5 and word.isascii() and word.isalnum() and len(_RUNS.findall(word)) >= 3


def _is_likely(word: str) -> bool:
    return bool(_MIXED.fullmatch(word)) and not _COMPOUND.fullmatch(word)


def _is_named_number(word: str, following: str, before: str, asked: bool) -> bool:
    """Whether a number inside a longer query names something: error 404, Windows 11, intel 386."""
    if is_time(word) or _is_measure(word, following):
        return False
    if plain(before) in word_list("designator"):
        return True
    if asked or plain(before) in word_list("counted") or plain(before) in word_list("metric"):
        return False
    is_long = "," not in word and sum(map(str.isdigit, word)) >= NAMED_NUMBER_DIGITS
    return is_long or before[:1].isupper() and plain(before) not in word_list("function")


def _runs(typed: Sequence[str], words: Sequence[str]) -> dict[int, list[str]]:
    """Return each run of two or more capitalised words at the place of its first word, nothing at the others.

    Words all in capitals are shouted or acronyms (REST API): they join a run but cannot make one.
    """
    runs: dict[int, list[str]] = {}
    for number, group in groupby(enumerate(_run_numbers(typed, words)), key=lambda pair: pair[1]):
        places = [at for at, _ in group]
        run = [words[at] for at in places]
        if number and len(run) > 1 and not all(map(str.isupper, run)):
            runs |= {at: [] for at in places}
            runs[places[0]] = [re.sub(r"['’]s\Z", "", " ".join(run))]
    return runs


def _run_numbers(typed: Sequence[str], words: Sequence[str]) -> Iterator[int]:
    """Yield for each word which run of capitalised words it is in, from 1; 0 for none."""
    current, is_joined = 0, False
    for at, (raw, word) in enumerate(zip(typed, words, strict=True)):
        is_capital = word[:1].isupper() and (word[1:2].isalpha() or word[1:2] in {"'", "’", "-"})
        barred = is_capital and _is_barred(plain(word), is_first=at == 0)
        if is_capital and not barred:
            current += not is_joined or raw[0] in _BREAK
            yield current
            is_joined = raw[-1] not in _BREAK or raw.endswith(("Dr.", "St.", "Mr.", "Mt."))
        else:
            yield 0
            is_joined = False


def _is_barred(word: str, *, is_first: bool) -> bool:
    lists = ("function", "question", "concept", *(["opener"] if is_first else []))
    return word != "vs" and any(word in word_list(name) for name in lists)


def _is_headline(words: Sequence[str]) -> bool:
    """Whether every word but the small ones is capitalised, and four or more are."""
    capitals = [word for word in words if word[:1].isupper()]
    others = (word for word in words if not word[:1].isupper())
    return len(capitals) >= HEADLINE_WORDS and all(
        plain(word) in word_list("function") or _NUMBER.fullmatch(word) for word in others
    )


def _stands_in(name: str, folded: str) -> bool:
    at = folded.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = folded[at - 1 : at] if at else "", folded[end : end + 1]
        if not (_goes_on(name[0], before) or _goes_on(name[-1], after)):
            return True
        at = folded.find(name, end)
    return False


def _goes_on(edge: str, neighbour: str) -> bool:
    """Whether a word goes on beyond its edge: in MP3ファイル, MP3 is a word of its own."""
    return neighbour.isalnum() and (has_unspaced(edge) or not has_unspaced(neighbour))
