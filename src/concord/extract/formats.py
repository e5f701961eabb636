"""Which extractor reads a file, by its name and then by its first bytes. A new format is a row here."""

from __future__ import annotations

import re
from typing import NamedTuple

from concord.core.protocols import BINARY
from concord.extract.decode import looks_binary
from concord.text.word_lists import listed, paired
from concord.types import DocumentType


class Format(NamedTuple):
    """How a file is read."""

    extractor: str  # a name in the table of extractors
    type: DocumentType
    language: str | None = None  # of code, by tree-sitter's name; of data csv or json; of light markup org …


class Refusal(NamedTuple):
    """Why a file cannot be read."""

    reason: str


TEXT = Format("text", "text")
DATA = Format("text", "data")
HTML = Format("html", "html")
PDF = Format("pdf", "pdf")
RICH_TEXT = Format("rich_text", "office")
MANUAL = Format("manual", "markdown")

# Recognised by name alone, whatever the first bytes look like.
_BINARY = {
    PDF: "pdf",
    Format("word", "office"): "docx docm dotx",
    Format("sheets", "office"): "xlsx xlsm xltx xlsb xls ods ots",
    Format("slides", "office"): "pptx pptm ppsx ppsm potx",
    Format("open_document", "office"): "odt odp ott otp",
    Format("book", "office"): "epub",
}
_BY_FORMAT = {
    **_BINARY,
    Format("markdown", "markdown"): "md markdown mdown mkd mkdn mdx qmd rmd",
    Format("notebook", "notebook"): "ipynb",
    TEXT: "txt text log rst rest tex latex ltx bib diff patch man wiki mediawiki textile srt vtt",
    Format("text", "text", "asciidoc"): "adoc asciidoc asc",
    Format("text", "text", "org"): "org",
    DATA: "yaml yml toml ini cfg conf config properties xml xsd xsl xslt rss atom opml plist desktop service "
    "editorconfig cnf gitconfig ics ical vcf vcard",
    Format("text", "data", "csv"): "csv tsv",
    Format("text", "data", "json"): "json jsonl ndjson json5 jsonc geojson",
    HTML: "html htm xhtml shtml",
    RICH_TEXT: "rtf",
    Format("mail", "mail"): "eml",
    Format("drawing", "image"): "svg",
    Format(
        "code", "code"
    ): "groovy gradle m mm fs fsi fsx pl pm lua r jl swift dart ex exs erl hrl hs lhs ml "
    "mli clj cljs cljc edn el scm ss zig nim fish ps1 psm1 psd1 bat cmd sql ddl graphql gql proto thrift tf "
    "tfvars hcl nix cmake mk mak css scss sass less vue svelte asm s f f90 f95 f03 for vim",
}
# Languages whose structure is read, or what they import.
_BY_LANGUAGE = {
    "python": "py pyi pyw pyx",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "kotlin": "kt kts",
    "scala": "scala sc sbt",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl cu cuh",
    "c_sharp": "cs csx",
    "ruby": "rb rake gemspec ru",
    "php": "php phtml",
    "bash": "sh bash zsh ksh bats",
}
_EXTENSIONS = {
    extension: form
    for form, extensions in (
        *_BY_FORMAT.items(),
        *((Format("code", "code", language), extensions) for language, extensions in _BY_LANGUAGE.items()),
    )
    for extension in extensions.split()
}
_NAMES = {
    **dict.fromkeys(listed("sshd_config ssh_config gitconfig"), DATA),
    **dict.fromkeys(
        listed("dockerfile containerfile makefile gnumakefile justfile cmakelists.txt jenkinsfile"),
        Format("code", "code"),
    ),
    **dict.fromkeys(listed("rakefile gemfile vagrantfile"), Format("code", "code", "ruby")),
    **dict.fromkeys(listed("build.bazel sconstruct"), Format("code", "code", "python")),
}
# Known, and without an extractor of ours: an installed one whose name is the extension reads them.
_UNSUPPORTED = listed("doc ppt mobi azw3 msg pages numbers key ps eps")
_INTERPRETERS: dict[str, str | None] = {
    **paired("python python pypy python node javascript deno typescript bun typescript ruby ruby php php"),
    **dict.fromkeys(listed("sh bash zsh ksh dash"), "bash"),
    **dict.fromkeys(listed("fish perl lua rscript make")),
}

# Possessive: comments that could be grouped in many ways would be tried in all of them.
_HTML_HEAD = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
# Many files are numbered that are something else: a page begins with a request or a comment, and has a macro.
_MANUAL_EXTENSION = re.compile(r"[0-9][a-z]{0,9}|n|l|man|mdoc|mandoc|roff|nroff|troff")
_MANUAL = re.compile(rb"\s*(?:[.'].*\n(?:.*\n)*?)?[.'][ \t]*(?:TH|Dd|Dt|SH|Sh)[ \t]+\S")
_PDF_HEAD = b"%PDF-"  # Acrobat, and so everybody, allows rubbish before it in the first kilobyte
_PDF_HEAD_WITHIN = 1024


def detect(name: str, head: bytes) -> Format | Refusal:
    """Return how to read a file of this name that begins with these bytes (8 kB are enough), or why not."""
    known = by_name(name)
    if known in _BINARY:
        return known
    if known is None and _PDF_HEAD in head[:_PDF_HEAD_WITHIN]:
        return PDF
    if extension(name) in _UNSUPPORTED:
        return Refusal("unsupported format")
    if looks_binary(head):
        return Refusal(BINARY)
    if _MANUAL_EXTENSION.fullmatch(extension(name)) and _MANUAL.match(head):
        return MANUAL
    return known or _by_content(head)


def extension(name: str) -> str:
    """Return what follows the last dot of a file name, in lower case; nothing when there is no dot."""
    _, dot, after = name.rpartition("/")[2].rpartition(".")
    return after.lower() if dot else ""


def by_name(name: str) -> Format | None:
    """Return the format that a file name promises."""
    base = name.rpartition("/")[2].lower()
    base = "dockerfile" if base.startswith("dockerfile.") else base
    return _NAMES.get(base) or _EXTENSIONS.get(extension(base))


def _by_content(head: bytes) -> Format:
    if head.startswith(b"#!"):
        program = _interpreter(head.partition(b"\n")[0][:200].decode("latin-1"))
        return Format("code", "code", _INTERPRETERS[program]) if program else TEXT
    if _HTML_HEAD.match(head):
        return HTML
    return DATA if head.lstrip().startswith(b"<?xml") else TEXT


def _interpreter(shebang: str) -> str | None:
    """Return the interpreter of `#!/usr/bin/env -S python3.11 -u`: the first word that names one."""
    names = (word.rpartition("/")[2].rstrip("0123456789.").lower() for word in shebang[2:].split())
    return next(filter(_INTERPRETERS.__contains__, names), None)
