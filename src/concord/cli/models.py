"""`kb models`: which models' vectors there are, and which are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from concord.cli import output
from concord.cli.command import SOME_FAILED, Flags, group, opened, run
from concord.core.arguments import Nothing
from concord.ops.reports import report_to_json
from concord.text.json_safe import JsonObject, json_object
from concord.text.visible import one_line

if TYPE_CHECKING:
    from concord.ops.models import Switch


@group("models", "kb models", "kb models add ollama nomic-embed-text", "kb models use nomic-embed-text")
def models(flags: Flags) -> None:
    """List, add, use and remove embedding models.

    A new model's vectors are built beside those that are there, while searches go on with the old ones; an
    interrupted `kb models add` goes on where it was. `kb models use` switches at once, for every process;
    going back is as quick. `kb eval --auto` tells how much is found. Without a command, lists the models.
    """
    _list(flags)


@models.own("list", "kb models list", "kb models list --json")
def list_models(flags: Flags) -> None:
    """List the models whose vectors are kept."""
    _list(flags)


def _list(flags: Flags) -> None:
    flags.show(run(flags, "models", Nothing()), _show_list)


def _show_list(listed: JsonObject) -> None:
    rows = [
        (
            str(number),
            model["name"],
            *(f"{model[count]:,}" for count in ("dimension", "vectors", "pending")),
            "active" if model["active"] else "",
            model["url"] or "",
        )
        for number, model in enumerate(listed["models"], 1)
    ]
    if rows:
        heads = ("#", "model", "dimensions", "vectors", "pending", "used", "url")
        output.emit(output.table(heads, rows))
    else:
        output.talk("there are no vectors yet: `kb add PATH` indexes a folder")


@models.own(
    "add",
    "kb models add multilingual",
    "kb models add ollama nomic-embed-text",
    "kb models add openai bge-m3 --url http://127.0.0.1:8080/v1",
    "kb models add onnx ./my-model",
)
@click.argument("provider")
@click.argument("model", required=False, default="")
@click.option("--url", metavar="URL", default="", help="Where its server is.")
def add(flags: Flags, provider: str, model: str, url: str) -> int:
    """Add a model: build its vectors beside those that are there.

    PROVIDER is bundled, multilingual, onnx, ollama, openai or hashing. What the store remembers is how to
    open the model, never a key.
    """
    with opened(flags, must_exist=False) as knowledge, output.progress_shown() as progress:
        built = knowledge.models.add(provider, model, url, progress)
    flags.show(report_to_json(built), output.facts)
    if not built.is_active and not built.embedding.pending and not flags.as_json:
        output.talk(f"searches still use the other model: `kb models use {built.identity.model}`")
    return SOME_FAILED if built.embedding.pending > built.embedding.refused else 0


@models.own("use", "kb models use nomic-embed-text", "kb models use 2 --force", "kb models use 1 --json")
@click.argument("model")
@click.option("--force", is_flag=True, help="Switch though chunks wait for a vector.")
def use(flags: Flags, model: str, force: bool) -> None:
    """Use a model from now on.

    MODEL is a name, a part of one, or its number in `kb models list`. What has no vector of it yet is
    embedded first.
    """
    with opened(flags) as knowledge, output.progress_shown() as progress:
        switch = knowledge.models.use(model, force=force, progress=progress)
    flags.show(switch, _show_switch)


def _show_switch(switch: Switch) -> None:
    how = "already" if switch.outcome == "already" else "now"
    output.emit(f"searches use {one_line(switch.identity.name)} {how}")


@models.own("remove", "kb models remove nomic-embed-text", "kb models remove 1 --json")
@click.argument("model")
def remove(flags: Flags, model: str) -> None:
    """Remove a model's vectors; the one that searches use cannot be removed.

    MODEL is a whole name, or its number in `kb models list`.
    """
    with opened(flags) as knowledge:
        identity, vectors = knowledge.models.remove(model)
    gone = json_object({"name": identity.name, "vectors_deleted": vectors})
    line = f"✓ Removed model: {one_line(identity.name)} ({vectors:,} vectors)"
    flags.show(gone, lambda _: output.emit(line))
