"""`kb stats` and `kb config`: how much there is, and what everything is set to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened, settings_of
from concord.cli.words import in_words
from concord.visible import one_line

if TYPE_CHECKING:
    from concord.core.config import Settings
    from concord.core.reports import Stats, VectorIndexState
    from concord.core.settings import Setting


@command("stats", "kb stats", "kb stats --json", "kb --org team stats")
def stats(flags: Flags, as_json: bool) -> None:
    """Show how much is stored, and where."""
    with opened(flags) as knowledge:
        state = knowledge.stats()
    if as_json:
        from concord.wire_reports import report_to_json

        output.emit_json(report_to_json(state))
    else:
        output.emit("\n".join(f"{name:<11} {one_line(value)}" for name, value in _facts(state)))


@command("config", "kb config", "kb config search.default_top", "KB_SEARCH_DEFAULT_TOP=5 kb config --json")
@click.argument("key", required=False)
def config(flags: Flags, key: str | None, as_json: bool) -> None:
    """Show the settings, their values and their reasons; with KEY one of them, or those of a table (search).

    A value comes from its default, the configuration file, the environment or a flag; the later one wins. In
    the file, `search.default_top` is `default_top` in the table [search].
    """
    settings = settings_of(flags)
    chosen = _chosen(key)
    rows = [_row(setting, settings) for setting in chosen]
    if as_json:
        is_one = [setting.key for setting in chosen] == [key]
        output.emit_json(rows[0] if is_one else {"file": settings.paths.config_file, "settings": rows})
        return
    output.emit("\n\n".join(map(_paragraph, rows)))
    there = "" if os.path.exists(settings.paths.config_file) else " (not there)"
    output.talk(f"configuration file: {settings.paths.config_file}{there}")


def _chosen(key: str | None) -> Sequence[Setting]:
    """Return the setting of a key, those of a table, or all."""
    from concord.core.config import find_setting
    from concord.core.settings import SETTINGS

    table = [setting for setting in SETTINGS if key is None or setting.key.startswith(f"{key}.")]
    return table or [find_setting(key or "")]


def _facts(state: Stats) -> Iterator[tuple[str, str]]:
    from concord.core.values import without_password

    counts, identity = state.counts, state.identity
    size = "" if state.size_bytes is None else f" ({_bytes(state.size_bytes)})"
    types = ", ".join(f"{count:,} {kind}" for kind, count in sorted(state.types.items()))
    yield "store", without_password(state.store) + size
    yield "org", state.org
    yield "sources", f"{counts.sources:,}"
    yield "documents", f"{counts.documents:,}" + (f" ({types})" if types else "")
    yield "chunks", f"{counts.chunks:,}"
    home = f" in {state.vectors_home}" if state.vectors_home else ""
    yield "vectors", f"{counts.vectors:,}{home}"
    if identity:
        yield "model", f"{identity.provider}/{identity.model} ({identity.dimension} dimensions)"
    else:
        yield "model", "none yet: nothing has been embedded"
    if state.index:
        yield "index", _index(state.index, counts.vectors)
    if state.cache:
        rate = "" if state.cache.hit_rate is None else f", {state.cache.hit_rate:.0%} of texts were in it"
        yield "cache", f"{state.cache.entries:,} embeddings ({_bytes(state.cache.size_bytes)}){rate}"
    yield "generation", f"{state.generation}"
    if state.feedback:
        said = ", ".join(f"{count:,} {opinion}" for opinion, count in state.feedback.items())
        yield "feedback", f"{said} (`kb calibrate` learns from it)"
    for problem in state.problems:
        yield "to do", in_words(problem)


def _index(state: VectorIndexState, vectors: int) -> str:
    if state.absent:
        return f"none ({in_words(state.absent)})"
    return f"{state.covered:,} of {vectors:,} vectors ({_bytes(state.size_bytes)})"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _row(setting: Setting, settings: Settings) -> dict[str, Any]:
    return {
        "key": setting.key,
        "value": _visible(setting, settings[setting.key]),
        "default": setting.default,
        "origin": settings.origin(setting.key),
        "environment": setting.environment_name,
        "doc": setting.doc,
        "why": setting.why,
        "choices": list(setting.choices) or None,
        "minimum": setting.minimum,
        "maximum": setting.maximum,
    }


def _visible(setting: Setting, value: Any) -> Any:
    from concord.core.values import without_password

    if setting.is_secret:
        return "(set)" if value else ""
    return without_password(value) if isinstance(value, str) else value


def _paragraph(row: dict[str, Any]) -> str:
    origin = row["environment"] if row["origin"] == "environment" else row["origin"]
    lines = [f"{row['key']} = {_shown(row['value'])}  [{origin}]", f"    {row['doc']}"]
    if row["choices"]:
        lines.append(f"    one of: {', '.join(row['choices'])}")
    lines.append(f"    default {_shown(row['default'])}: {row['why']}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return one_line(str(value)) if value != "" else '""'
