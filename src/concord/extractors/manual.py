"""Manual pages in roff, with the macros of man(7) or mdoc(7), as the text that `man` shows of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from concord.extractors.decode import decode
from concord.extractors.manual_man import ManPage
from concord.extractors.manual_mdoc import MdocPage
from concord.extractors.manual_requests import Requests
from concord.extractors.plain import MAX_TITLE, with_plain_newlines
from concord.text.clean import clean, without_encoded
from concord.types import Extracted

_MDOC = re.compile(r"^\.[ \t]*(?:Dd|Dt|Sh)\b", re.MULTILINE)
_MAN = re.compile(r"^[.'][ \t]*(?:TH|SH)\b", re.MULTILINE)
_SUMMARY = re.compile(r"(\S[^\n]*?)[ \t]+[-–—][ \t]+(\S[^\n]*)")


class ManualExtractor:
    """Reads manual pages."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the page as Markdown; its title is its name, with what it says of itself."""
        source = with_plain_newlines(decode(data))
        page = _dialect(source)
        page.read()
        lines, numbers = page.page.lines, page.page.numbers
        while lines and not lines[-1]:
            del lines[-1], numbers[-1]
        if not lines:
            return Extracted("", "markdown")
        title = _title(page.names, lines)
        if title:
            lines[:0], numbers[:0] = [f"# {title}", ""], [numbers[0]] * 2
        text = clean(without_encoded("\n".join(lines)))
        return Extracted(text, "markdown", title or None, file_lines=tuple(numbers))


def _dialect(source: str) -> Requests:
    mdoc, man = _MDOC.search(source), _MAN.search(source)
    is_mdoc = mdoc is not None and (man is None or mdoc.start() < man.start())
    return MdocPage(source) if is_mdoc else ManPage(source)


def _title(names: tuple[str, str], lines: Sequence[str]) -> str:
    """Return `logrotate(8) - rotates logs`; the name is spelt as the page's first section does."""
    name, section = (" ".join(one.split()) for one in names)
    summary = _summary(lines)
    listed = [one.strip() for one in summary[0].split(",")]
    same = next((one for one in listed if one.casefold() == name.casefold()), None)
    called = same or (name.lower() if name.isupper() else name) or listed[0]
    numbered = f"{called}({section.lower()})" if section and called else called
    return " - ".join(filter(None, (numbered, summary[1])))[:MAX_TITLE].rstrip()


def _summary(lines: Sequence[str]) -> tuple[str, str]:
    """Return the names and the summary that stand below the first heading."""
    heading = next((at for at, line in enumerate(lines[:200]) if line.startswith("#")), None)
    if heading is None:
        return "", ""
    paragraph = takewhile(
        bool, lines[heading + 2 : heading + 200]
    )  # which a blank line parts from its heading
    found = _SUMMARY.match(" ".join(paragraph).replace("```", "").strip()[:2_000])
    return (found[1], " ".join(found[2].split())) if found else ("", "")
