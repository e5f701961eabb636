"""Pictures and files that are written in letters: base64 and `data:` addresses, which no reader can read.

Indexed, they would be most of a file's chunks, and their letters would be found as words.
"""

from __future__ import annotations

import re

LEFT_OUT = "…"
MIN_CHARACTERS = 1_000  # of base64; a public key of 4,096 bits has 716, and somebody may want to read it
MIN_ADDRESS = 200  # characters of a `data:` address, which is never anything else

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_AS_RUNS = bytes(ord("x") if byte in _LETTERS else ord(" ") for byte in range(256))
_RUN = b"x" * 60  # encoders fill their lines with 60 letters or more, and no word is as long

_ADDRESS = re.compile(
    rf"(data:[\w.+-]+/[\w.+-]+(?:;[\w.=-]+)*+,)[^\s\"'<>()\\]{{{MIN_ADDRESS},}}+",
)
# Lines of it, one after another, the last maybe short; in JSON and in code \n may stand for a line's end.
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{60,}+(?:(?:\\n|\n[ \t]*+)[A-Za-z0-9+/]{20,}+)*+={0,2}")
_SIGNS = tuple(map(re.compile, ("[A-Z]", "[a-z]", "[0-9]")))


def without_encoded(text: str) -> str:
    """Return a text with an ellipsis for all that is base64; no line comes or goes."""
    if "data:" in text:
        text = _ADDRESS.sub(rf"\1{LEFT_OUT}", text)
    return _BASE64.sub(_left_out, text) if _has_long_run(text) else text


def _has_long_run(text: str) -> bool:
    """Whether there may be base64: seven times faster than looking for it, and most files have none."""
    return _RUN in text.encode("utf-8", "replace").translate(_AS_RUNS)


def _left_out(run: re.Match[str]) -> str:
    """Return what stands for a run; one without a mix of letters and digits, as a gene, stays."""
    if len(run[0]) < MIN_CHARACTERS or not all(sign.search(run[0]) for sign in _SIGNS):
        return run[0]
    return LEFT_OUT + "\n" * run[0].count("\n")
