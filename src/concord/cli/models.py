"""`kb models` and `kb backfill`: which model's vectors there are, which is used, and making them anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from concord.cli import output
from concord.cli.command import SOME_FAILED, Flags, command, group, opened
from concord.cli.progress import progress_shown
from concord.cli.words import in_words
from concord.text.visible import one_line

if TYPE_CHECKING:
    from concord.index.embedding import EmbeddingReport
    from concord.ops.models import ModelState


@group("models", "kb models", "kb models add ollama nomic-embed-text", "kb models use nomic-embed-text")
def models(ctx: click.Context, as_json: bool) -> None:
    """List, add, use and remove embedding models.

    A new model's vectors are built beside those that are there, while searches go on with the old ones; an
    interrupted `kb models add` goes on where it was. `kb models use` switches at once, for every process;
    going back is as quick. `kb eval --auto` tells how much is found. Without a command, lists the models.
    """
    if ctx.invoked_subcommand is None:
        _list(ctx.obj, as_json=as_json)


@command("list", "kb models list", "kb models list --json")
def list_models(flags: Flags, as_json: bool) -> None:
    """List the models whose vectors are kept."""
    _list(flags, as_json=as_json)


@command(
    "add",
    "kb models add multilingual",
    "kb models add ollama nomic-embed-text",
    "kb models add openai bge-m3 --url http://127.0.0.1:8080/v1",
    "kb models add onnx ./my-model",
)
@click.argument("provider")
@click.argument("model", required=False, default="")
@click.option("--url", metavar="URL", default="", help="Where its server is.")
def add(flags: Flags, provider: str, model: str, url: str, as_json: bool) -> int:
    """Add a model: build its vectors beside those that are there.

    PROVIDER is bundled, multilingual, onnx, ollama, openai or hashing. What the store remembers is how to
    open the model, never a key.
    """
    with opened(flags, must_exist=False) as knowledge, progress_shown() as progress:
        built = knowledge.models.add(provider, model, url, progress)
    if as_json:
        output.emit_json(built)
    else:
        output.emit(f"{one_line(built.identity.name)}: {_made(built.embedding)} in {built.took_s:.1f} s")
        if not built.is_active and not built.embedding.pending:
            output.talk(f"searches still use the other model: `kb models use {built.identity.model}`")
    return SOME_FAILED if built.embedding.pending > built.embedding.refused else 0


@command("use", "kb models use nomic-embed-text", "kb models use 2 --force", "kb models use 1 --json")
@click.argument("model")
@click.option("--force", is_flag=True, help="Switch though chunks wait for a vector.")
def use(flags: Flags, model: str, force: bool, as_json: bool) -> None:
    """Use a model from now on.

    MODEL is a name, a part of one, or its number in `kb models list`. What has no vector of it yet is
    embedded first.
    """
    with opened(flags) as knowledge, progress_shown() as progress:
        switch = knowledge.models.use(model, force=force, progress=progress)
    if as_json:
        output.emit_json(switch)
    else:
        how = "already" if switch.outcome == "already" else "now"
        output.emit(f"searches use {one_line(switch.identity.name)} {how}")


@command("remove", "kb models remove nomic-embed-text", "kb models remove 1 --json")
@click.argument("model")
def remove(flags: Flags, model: str, as_json: bool) -> None:
    """Remove a model's vectors; the one that searches use cannot be removed.

    MODEL is a whole name, or its number in `kb models list`.
    """
    with opened(flags) as knowledge:
        identity, vectors = knowledge.models.remove(model)
    if as_json:
        from concord.text.json_safe import json_object

        output.emit_json(json_object({"name": identity.name, "vectors_deleted": vectors}))
    else:
        output.emit(f"✓ Removed model: {one_line(identity.name)} ({vectors:,} vectors)")


for _command in (list_models, add, use, remove):
    models.add_command(_command)


def _list(flags: Flags, *, as_json: bool) -> None:
    with opened(flags) as knowledge:
        states = knowledge.models.list()
    if as_json:
        from concord.ops.reports import report_to_json

        output.emit_json({"models": [report_to_json(state) for state in states]})
    elif not states:
        output.talk("there are no vectors yet: `kb add PATH` indexes a folder")
    else:
        heads = ("#", "model", "dimensions", "vectors", "pending", "used", "url")
        output.emit(output.table(heads, _rows(states)))


def _rows(states: list[ModelState]) -> Iterator[tuple[str, ...]]:
    for number, state in enumerate(states, 1):
        identity = state.model.identity
        used = "active" if state.model.is_active else "before" if state.model.was_active else "never"
        url = str(state.model.recipe.get("embed.url", ""))
        counts = (f"{identity.dimension:,}", f"{state.vectors:,}", f"{state.pending:,}")
        yield (str(number), identity.name, *counts, used, url)


def _made(done: EmbeddingReport) -> str:
    made = f"embedded {done.embedded:,} chunks, {done.reused:,} more were known already"
    if not done.pending:
        return made
    why = f" ({one_line(in_words(done.degraded))})" if done.degraded else ""
    return f"{made}; {done.pending:,} left{why}: run it again"
