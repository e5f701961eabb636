"""`kb stats`, `doctor`, `backup`, `backfill`, `migrate`, `config`, `mcp`, `serve`: state and care."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from concord.cli import output
from concord.cli.command import NOTHING_FOUND, SOME_FAILED, Flags, command, refuse, run, settings_of
from concord.cli.words import in_words
from concord.core.arguments import Backup, Doctor, Migrate, Nothing
from concord.text.visible import one_line

if TYPE_CHECKING:
    from concord.core.config import Settings
    from concord.core.settings import Setting
    from concord.operations import JsonObject

UNWELL = NOTHING_FOUND  # 1: what it found is for the user to see to, and no error of the command's own


@command("stats", "kb stats", "kb stats --json", "kb --org team stats")
def stats(flags: Flags, as_json: bool) -> None:
    """Show how much is stored, and where."""
    state = run(flags, "stats", Nothing())
    problems = state.pop("problems")
    if as_json:
        output.emit_json(state)
    else:
        measured = _quality(run(flags, "eval_report", Nothing())["report"])
        facts = [*_facts(state), *measured, *(("to do", in_words(problem)) for problem in problems)]
        output.emit("\n".join(f"{name:<11} {one_line(value)}" for name, value in facts))


def _facts(state: JsonObject) -> Iterator[tuple[str, str]]:
    model, index, cache = state["model"], state["vector_index"], state["cache"]
    size = "" if state["size_bytes"] is None else f" ({_bytes(state['size_bytes'])})"
    types = ", ".join(f"{count:,} {kind}" for kind, count in sorted(state["types"].items()))
    yield "store", state["store"] + size
    yield "org", state["org"]
    yield "sources", f"{state['sources']:,}"
    yield "documents", f"{state['documents']:,}" + (f" ({types})" if types else "")
    yield "chunks", f"{state['chunks']:,}"
    home = f" in {state['vectors_home']}" if state["vectors_home"] else ""
    yield "vectors", f"{state['vectors']:,}{home}"
    if model:
        yield "model", f"{model['provider']}/{model['model']} ({model['dimension']} dimensions)"
    else:
        yield "model", "none yet: nothing has been embedded"
    if index:
        yield "index", _index(index, state["vectors"])
    if cache:
        rate = "" if cache["hit_rate"] is None else f", {cache['hit_rate']:.0%} of texts were in it"
        yield "cache", f"{cache['entries']:,} embeddings ({_bytes(cache['size_bytes'])}){rate}"
    yield "generation", f"{state['generation']}"
    if any(state["feedback"].values()):
        opinions = ", ".join(f"{count:,} {opinion}" for opinion, count in state["feedback"].items() if count)
        yield "feedback", f"{opinions} (`kb calibrate` learns from it)"


def _quality(report: JsonObject | None) -> Iterator[tuple[str, str]]:
    """Yield how good search was when it was measured last."""
    if report:
        ndcg, error = report["measures"]["auto"]["nDCG@10"], report["calibration"]["score"]["ece"]
        figures = f"nDCG@10 {ndcg:.3f}, ECE {error:.3f}"
        yield "quality", f"{figures} on {report['collection']}, {report['measured_at'][:10]}"


def _index(index: JsonObject, vectors: int) -> str:
    if index["absent"]:
        return f"none ({in_words(index['absent'])})"
    return f"{index['covered']:,} of {vectors:,} vectors ({_bytes(index['size_bytes'])})"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


@command("doctor", "kb doctor", "kb doctor --fix", "kb doctor --json")
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
def doctor(flags: Flags, fix: bool, as_json: bool) -> int:
    """Look for what is wrong: the store, its files, its vectors, the model, the machine.

    Checks that the database is whole, words and vectors are in step with the chunks, nothing is left over,
    every source can be read, no file has gone, the embedding provider answers and there is room to work.
    --fix rebuilds indexes, deletes what is left over, embeds what has no vector, forgets deleted files and
    gives free space in the store's file back to the disk, where that is much.
    Exit status: 0 all is well, 1 something is not.
    """
    found = in_words(run(flags, "doctor", Doctor(fix)))
    if as_json:
        output.emit_json(found)
    else:
        for finding in found["fixed"]:
            output.emit(f"fixed: {finding['message']}")
        for finding in found["findings"]:
            output.emit(f"{finding['check']}: {finding['message']}\n  {finding['hint']}")
        if broken := found["broken_links"]:
            output.talk(f"links that lead to no document: {broken:,} (`kb links` lists them)")
        if not found["findings"]:
            output.talk(f"all is well: {', '.join(found['checks'])}")
    return UNWELL if found["findings"] else 0


@command("backup", "kb backup ~/backups/kb.db", "kb backup kb-$(date +%F).db --json")
@click.argument("file")
def backup(flags: Flags, file: str, as_json: bool) -> None:
    """Copy everything to one file, while others may use the knowledge base.

    An older copy of that name is replaced when the new one is complete and sound. To look into it, name it:
    `kb --store sqlite:///home/me/backups/kb.db search …`. Stores in SQLite can do this.
    """
    done = run(flags, "backup", Backup(file))
    size = f"{done['size_bytes'] / 1e6:,.1f} MB in {done['took_s']:.1f} s"
    output.emit_json(done) if as_json else output.emit(
        f"✓ {one_line(done['path'])}: {_counted(done)}, {size}"
    )


def _counted(done: JsonObject) -> str:
    return ", ".join(f"{done[name]:,} {name}" for name in ("sources", "documents", "chunks"))


@command("recover", "kb recover", "kb recover --json")
def recover(flags: Flags, as_json: bool) -> None:
    """Bring back what exists nowhere else: notes, and which folders were indexed.

    Notes are read from the damaged file itself and from the copy that is kept beside it. A store that cannot
    be mended is moved away, never deleted, and a new one takes its place; `kb sync` fills it from your files.
    A store that is well gets the notes that it has lost, as after an older copy was put back.
    """
    done = run(flags, "recover", Nothing(), must_exist=False)
    if as_json:
        output.emit_json(done)
        return
    if done["moved_to"]:
        output.emit(f"the damaged store is {one_line(done['moved_to'])} now")
    uncertain = f", {done['uncertain']:,} of them perhaps damaged" if done["uncertain"] else ""
    output.emit(f"✓ {done['notes']:,} notes brought back{uncertain}")
    if done["sources"]:
        output.talk(f"`kb sync` reads the files of {', '.join(map(one_line, done['sources']))} again")


@command("backfill", "kb backfill", "kb backfill --json")
def backfill(flags: Flags, as_json: bool) -> int:
    """Index anew what is stored, without reading a file.

    Words are extracted as this version does it, vectors come from the cache, and only what the cache does not
    know is embedded. Searches go on meanwhile; an interrupted run has less to do the next time.
    """
    done = run(flags, "backfill", Nothing())
    if as_json:
        output.emit_json(done)
        return SOME_FAILED if done["pending"] else 0
    if done["notes"]:
        output.emit(f"{done['notes']:,} notes were put together anew")
    output.emit(
        f"{done['documents']:,} documents, {done['chunks']:,} chunks:"
        f" words of {done['reworded']:,} indexed anew; vectors of {done['unchanged']:,} right,"
        f" {done['reused']:,} from the cache, {done['embedded']:,} made in {done['took_s']:.1f} s"
    )
    if done["pending"]:
        output.talk(f"{done['pending']:,} chunks are left without a vector: {in_words(done['degraded'])}")
    return SOME_FAILED if done["pending"] else 0


@command(
    "migrate",
    "kb migrate --to postgresql://kb@db.example.com/kb",
    "kb migrate --to postgresql://kb@db.example.com/kb --to-org team",
    "KB_VECTORS_URL=http://localhost:6333 kb migrate",
)
@click.option("--to", metavar="URL", help="The store that everything is copied to; it must be empty.")
@click.option("--to-org", metavar="ORG", help="The organisation to copy to (default: the same).")
@click.option("--vectors", metavar="URL", help="Where that store keeps its vectors (default: inside).")
def migrate(flags: Flags, to: str | None, to_org: str | None, vectors: str | None, as_json: bool) -> int:
    """Move everything to another store; without --to, only the vectors, to where `vectors.url` says.

    Vectors that are known are not made again. With --to the old store is only read, and stays as it is: set
    `store.url` once you are content with the copy. If a run is interrupted, the next one goes on from there.
    At the end every document, chunk and vector is compared.
    """
    if to is None and vectors is not None:
        refuse("--vectors goes with --to; without it, set vectors.url")
    if to is None and to_org is not None:
        refuse("--to-org goes with --to; to another organisation of the same store, give its URL")
    done = run(flags, "migrate", Migrate(to, to_org, vectors))
    places = [(left.pop("anothers"), left) for left in done.get("left", ())]
    if as_json:
        output.emit_json(done)
    elif to is not None:
        _show_migration(done, to_org, vectors)
    else:
        _show_move(done)
    _show_left(places)
    return SOME_FAILED if to is None and done["pending"] else 0


def _show_migration(done: JsonObject, org: str | None, vectors: str | None) -> None:
    from concord.core.values import without_password

    output.emit(
        f"✓ {done['store']}: {_counted(done)}, {done['vectors']:,} vectors,"
        f" {done['cached']:,} more remembered, in {done['took_s']:.1f} s\n"
        f"  compared, all the same (checksum {done['checksum'][:16]})"
    )
    named = "store.url and vectors.url" if vectors else "store.url"
    variables = [f"KB_STORE_URL={done['store']}"]
    variables += [f"KB_VECTORS_URL={without_password(vectors)}"] if vectors else []
    variables += [f"KB_ORG={org}"] if org else []
    output.talk(f"to use it: {' '.join(variables)}, or {named} in the configuration file")
    if done["vectors_left"]:
        output.talk(
            f"the old store's vectors stay in {done['vectors_left']}, with their texts: when you need"
            " it no more, `KB_VECTORS_URL= kb migrate` on the old store brings them back to it and"
            " deletes them there"
        )


def _show_move(done: JsonObject) -> None:
    output.emit(
        f"✓ vectors are kept in {done['vectors']}: {done['reused']:,} sent again,"
        f" {done['embedded']:,} embedded anew"
    )
    if done["pending"]:
        why = in_words(done["degraded"]) or "no model"
        output.talk(f"{done['pending']:,} chunks are left ({why}): `kb sync`")


def _show_left(places: Sequence[tuple[bool, JsonObject]]) -> None:
    for is_anothers, left in places:
        output.talk(
            f"what was sent to {left['vectors']} is still there, with its texts: {in_words(left['why'])}"
        )
        again = "the next `kb migrate` tries again to delete it; by hand,"
        when = "where that is gone," if is_anothers else again
        output.talk(f"  {when} delete the points there whose `store` is {left['store']}")


@command("config", "kb config", "kb config search.default_top", "kb config set search.default_top 5")
@click.argument("words", nargs=-1, metavar="[KEY | set KEY VALUE]")
def config(flags: Flags, words: tuple[str, ...], as_json: bool) -> None:
    """Show the settings, their values and their reasons; with KEY one of them, or those of a table (search).

    A value comes from its default, the configuration file, the environment or a flag; the later one wins. In
    the file, `search.default_top` is `default_top` in the table [search]. `kb config set KEY VALUE` writes it
    there.
    """
    if words[:1] == ("set",) and len(words) == 3:
        _assign(flags, *words[1:])
        words = words[1:2]
    if len(words) > 1 or words == ("set",):
        refuse("give a KEY, or set KEY VALUE")
    key = words[0] if words else None
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


def _assign(flags: Flags, key: str, value: str) -> None:
    """Write a setting to the configuration file, if it may have that value."""
    from concord.core.config import write_setting

    write_setting(settings_of(flags).paths.config_file, key, value)


def _chosen(key: str | None) -> Sequence[Setting]:
    """Return the setting of a key, those of a table, or all."""
    from concord.core.config import find_setting
    from concord.core.settings import SETTINGS

    table = [setting for setting in SETTINGS if key is None or setting.key.startswith(f"{key}.")]
    return table or [find_setting(key or "")]


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


@command("mcp", "kb mcp", "kb --org team mcp")
def mcp(flags: Flags, as_json: bool) -> None:
    """Speak MCP over stdin and stdout, for the AI client that starts it.

    `kb install` tells a client how. stdout carries the protocol alone, which is JSON with or without --json.
    """
    from concord.engine import relay

    settings = settings_of(flags)
    if output.is_terminal(sys.stdin):
        output.talk("waiting for an MCP client on stdin; `kb install CLIENT` makes one start this by itself")
    if relay.run(settings):
        return
    from concord.mcp import start

    start.over_stdio(settings, Path.cwd())


@command("serve", "kb serve", "kb serve --port 8421", "kb serve --new-token team")
@click.option(
    "--host", metavar="ADDRESS", help="The address to listen on; only a loopback one needs no token."
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), help="The port to listen on; 0 is any free one."
)
@click.option("--new-token", metavar="ORG", help="Make a token for an organisation, print it, serve nothing.")
def serve(flags: Flags, host: str | None, port: int | None, new_token: str | None, as_json: bool) -> None:
    """Serve MCP over streamable HTTP at /mcp, a JSON API at /api/v1 and the page at /.

    Without tokens anybody on this machine may ask, and nobody else. With them, each request needs one, and it
    sees the knowledge base of the token's organisation alone. With --json, the address is printed as soon as
    it is served.
    """
    from concord.web import start, tokens

    settings = settings_of(flags)
    if new_token is not None:
        token = tokens.new_token(settings, new_token)
        output.emit_json({"org": new_token, "token": token}) if as_json else output.emit(token)
        output.talk(f"stored in {tokens.token_file(settings)}; a running server takes it after a restart")
        return
    port = settings["serve.port"] if port is None else port
    try:
        start.over_http(
            settings, host or settings["serve.host"], port, Path.cwd(), partial(_announce, as_json)
        )
    except KeyboardInterrupt:  # how a server is ended at a terminal
        output.talk("stopped serving")


def _announce(as_json: bool, address: str, needs_token: bool) -> None:
    if as_json:
        output.emit_json({"url": address, "needs_token": needs_token})
    who = "with tokens: each request needs one" if needs_token else "without tokens, for this machine alone"
    output.talk(f"serving MCP at {address} {who}")
