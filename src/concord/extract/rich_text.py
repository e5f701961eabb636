"""Rich Text (.rtf) as paragraphs, in whatever code pages its fonts have; its headings and tables are text.

Programs break its lines where they like: citations count those of the text, which is what `kb get` shows.
"""

from __future__ import annotations

import re

from striprtf.striprtf import rtf_to_text

from concord.extract.markdown_writer import escaped
from concord.extract.package import checked
from concord.extract.plain import MAX_TITLE
from concord.text.clean import clean
from concord.types import Extracted

_INFORMATION = re.compile(r"\{\\(title|author)[ ]([^{}]{1,1000})\}")


class RichTextExtractor:
    """Reads .rtf."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the text.

        Raises:
            TooLarge: there is too much of it.
        """
        source = data.decode("latin-1")
        information = {found[1]: _text(f"{{{found[2]}}}") for found in _INFORMATION.finditer(source)}
        paragraphs = (
            " ".join(line.rstrip("|").replace("|", " | ").split()) for line in _text(source).split("\n")
        )
        text = "\n\n".join(escaped(paragraph) for paragraph in paragraphs if paragraph)
        title = information.pop("title", "")[:MAX_TITLE] or None
        return Extracted(checked(clean(text)), "office", title=title, details=information)


def _text(rtf: str) -> str:
    shown: str = rtf_to_text(rtf, errors="replace")  # type: ignore[no-untyped-call]
    return shown.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # pairs are written by halves
