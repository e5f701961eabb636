"""Where tokens begin, roughly, for a model whose tokenizer is on another machine.

Subword tokenizers cut a long word into pieces of about five letters and write a Chinese or Japanese character
as one or two. On English prose this counts a tenth more than the tokenizers of BERT do, and on source code a
fifth more: a chunk that is cut by it fits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKEN = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
    r"|[A-Za-z]{1,6}|\d{1,3}|[^\W\d_]{1,3}|[^\w\s]|_+"
)


def token_starts(text: str) -> Sequence[int]:
    """Return the offset at which each token may begin."""
    return [match.start() for match in _TOKEN.finditer(text)]
