"""How words reach the user: stdout is data, stderr is talk, and no pipe or locale is a reason to fail."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import click

from concord.text.visible import one_line

LINE_EVERY_S = 10.0  # of progress, where nothing can be drawn over
DRAW_EVERY_S = 0.1
PATIENCE_S = 0.5  # work that is done sooner needs no progress

# What the stages of long work are called; "waiting" is in seconds.
STAGES = {
    "waiting": "waiting for another sync of this source, seconds",
    "index": "reading files",
    "embed": "embedding chunks",
    "copy": "copying documents",
    "moving": "copying vectors",
    "verify": "comparing",
    "timing": "timing each mode",
    "asking": "asking queries",
    "pictures": "reading pictures",
    "links": "finding links",
    "words": "indexing words",
    "vectors": "checking vectors",
}


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
    text = to_text(value, indent=2 if is_terminal(sys.stdout) else None)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if encoding.lower().replace("-", "") != "utf8":
        import json

        text = json.dumps(json.loads(text))
    emit(text)


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


def styled(text: str, **style: Any) -> str:
    """Return a text for stdout, in colours where there are any."""
    return click.style(text, **style) if colourful(sys.stdout) else text


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows in columns, columns of numbers to the right."""
    columns = []
    for head, *cells in zip(heads, *rows, strict=True):
        shown = [one_line(cell) for cell in (head, *cells)]
        width = max(map(len, shown))
        is_numeric = all(cell.replace(",", "").isdecimal() for cell in cells)
        columns.append([cell.rjust(width) if is_numeric else cell.ljust(width) for cell in shown])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def columns(rows: Sequence[Mapping[str, Any]], heads: Mapping[str, str] | None = None) -> str:
    """Return objects as a table of the values that have a head, or of all; without empty columns."""
    heads = heads or {key: key for key in rows[0]}
    shown = [(head, *(_fact(key, row[key]) for row in rows)) for key, head in heads.items()]
    names, *cells = zip(*(column for column in shown if any(column[1:])), strict=True)
    return table(names, cells)


def listed(rows: Sequence[Mapping[str, Any]], heads: Mapping[str, str], none: str) -> None:
    """Print objects as a table, or say that there are none."""
    emit(columns(rows, heads)) if rows else talk(none)


def facts(wire: Mapping[str, Any]) -> None:
    """Print an object as lines of names and values, without those that say nothing."""
    emit("\n".join(fact_lines(wire)))


def fact_lines(wire: Mapping[str, Any]) -> list[str]:
    """Return an object as lines of names and values, without those that say nothing."""
    lines = {_label(name): text for name, value in wire.items() if (text := _fact(name, value))}
    width = max(map(len, lines), default=0)
    return [f"{name:<{width}}  {one_line(text)}" for name, text in lines.items()]


def _label(name: str) -> str:
    return name.removesuffix("_bytes").removesuffix("_s").replace("_", " ")


def _fact(name: str, value: Any) -> str:
    """Return a value as people read it; its name tells what its unit is."""
    if isinstance(value, dict):
        return ", ".join(f"{_label(key)} {text}" for key, item in value.items() if (text := _fact(key, item)))
    if isinstance(value, (list, tuple)):
        return "; ".join(_fact("", item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_bytes") and value is not None:
        return f"{value / 1e6:,.1f} MB"
    if isinstance(value, float):
        return f"{value:.1f} s" if name.endswith("_s") else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value or "")


def counted(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


class Meter:
    """How far long work has come, on stderr: a line drawn over itself, or one now and then."""

    def __init__(self, *, draws: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._draws, self._clock = draws, clock
        self._next = clock() + (PATIENCE_S if draws else LINE_EVERY_S)
        self._is_drawn = False

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Say how far it is, unless that was said a moment ago."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + (DRAW_EVERY_S if self._draws else LINE_EVERY_S)
        of = f" of {total:,}" if total else ""
        line = one_line(f"{STAGES.get(stage, stage)}: {done:,}{of}")
        _write(sys.stderr, f"\r\x1b[K{line}" if self._draws else f"{line}\n")
        self._is_drawn = self._draws

    def close(self) -> None:
        """Wipe the line that was drawn."""
        if self._is_drawn:
            _write(sys.stderr, "\r\x1b[K")


@contextmanager
def progress_shown() -> Iterator[Meter]:
    """Show the progress of the work in this block."""
    meter = Meter(draws=is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb")
    try:
        yield meter
    finally:
        meter.close()


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
