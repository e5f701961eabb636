"""How words reach the user: stdout is data, stderr is talk, and no pipe or locale is a reason to fail."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import click

from concord.cli.words import in_words
from concord.text.visible import one_line


def prepare_streams() -> None:
    """Make characters that the locale cannot spell a question mark, not a crash."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def emit(text: str) -> None:
    """Write data to stdout, exactly as it is."""
    _write(sys.stdout, text if text.endswith("\n") else text + "\n")


def talk(text: str, *, bold: str = "") -> None:
    """Say something on stderr; control characters in it are spelt out, `bold` is how it begins."""
    safe = one_line(text)
    if bold and colourful(sys.stderr):
        safe = click.style(bold, bold=True) + safe.removeprefix(bold)
    _write(sys.stderr, safe + "\n")


def emit_json(value: Any) -> None:
    """Write JSON, or a report as JSON: indented for eyes, one line for programs, ASCII for such a locale."""
    from concord.text.json_safe import to_text

    if not isinstance(value, dict):
        from concord.ops.reports import report_to_json

        value = report_to_json(value)
    text = to_text(in_words(value), indent=2 if is_terminal(sys.stdout) else None)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    emit(text if encoding.lower().replace("-", "") == "utf8" else _ascii_json(text))


def silence(stream: TextIO | None) -> None:
    """Let whatever is still written there go nowhere: the reader is gone."""
    if isinstance(stream, io.TextIOWrapper):
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def reader_is_gone() -> bool:
    """Whether nobody reads our stdout any more."""
    import select

    watch = select.poll()
    watch.register(sys.stdout, 0)
    return bool(watch.poll(0))  # errors and hang-ups are always reported, whatever is asked for


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody is looking."""
    return stream is not None and stream.isatty()


def colourful(stream: TextIO | None) -> bool:
    """Whether to use colours: at a terminal that can, for a user who has not said no (no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows in columns, columns of numbers to the right."""
    cells = [[one_line(cell) for cell in row] for row in (heads, *rows)]
    return "\n".join(
        "  ".join(row).rstrip() for row in zip(*map(_column, zip(*cells, strict=True)), strict=True)
    )


def _column(cells: Sequence[str]) -> list[str]:
    width = max(map(len, cells))
    numeric = all(cell.replace(",", "").isdecimal() for cell in cells[1:])
    return [cell.rjust(width) if numeric else cell.ljust(width) for cell in cells]


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # the caller closed it
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as fault:
        fault.filename = fault.filename or "the output"  # which a write does not tell
        raise


def _ascii_json(text: str) -> str:
    import json

    return json.dumps(json.loads(text))
