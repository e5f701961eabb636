"""`kb stats`, `doctor`, `backup`, `recover`, `backfill`, `migrate` and `config`: state and care."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from concord.cli import output
from concord.cli.command import NOTHING_FOUND, SOME_FAILED, Flags, command, refuse, run
from concord.core.arguments import Backup, Doctor, Migrate, Nothing
from concord.core.values import without_password
from concord.text.json_safe import JsonObject
from concord.text.visible import one_line

if TYPE_CHECKING:
    from concord.core.config import Settings
    from concord.core.settings import Setting

UNWELL = NOTHING_FOUND  # 1: what it found is for the user to see to, and no error of the command's own


@command("stats", "kb stats", "kb stats --json", "kb --org team stats")
def stats(flags: Flags) -> None:
    """Show how much is stored, and where."""
    state = run(flags, "stats", Nothing())
    problems = state.pop("problems")
    index = state["vector_index"]
    if flags.as_json:
        output.emit_json(state)
        return
    if index and index["absent"]:
        state["vector_index"] = f"none: {index['absent']}"
    output.facts({**state, "to do": problems})


@command("doctor", "kb doctor", "kb doctor --fix", "kb doctor --json")
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
def doctor(flags: Flags, fix: bool) -> int:
    """Look for what is wrong: the store, its files, its vectors, the model, the machine.

    Checks that the database is whole, words and vectors are in step with the chunks, nothing is left over,
    every source can be read, no file has gone, the embedding provider answers and there is room to work.
    --fix rebuilds indexes, deletes what is left over, embeds what has no vector and forgets deleted files.
    Exit status: 0 all is well, 1 something is not.
    """
    found = run(flags, "doctor", Doctor(fix))
    flags.show(found, _show_findings)
    return UNWELL if found["findings"] else 0


def _show_findings(found: JsonObject) -> None:
    for finding in found["fixed"]:
        output.emit(f"fixed: {finding['message']}")
    for finding in found["findings"]:
        output.emit(f"{finding['check']}: {finding['message']}\n  {finding['hint']}")
    if broken := found["broken_links"]:
        output.talk(f"links that lead to no document: {broken:,} (`kb links` lists them)")
    if not found["findings"]:
        output.talk(f"all is well: {', '.join(found['checks'])}")


@command("backup", "kb backup ~/backups/kb.db", "kb backup kb-$(date +%F).db --json")
@click.argument("file")
def backup(flags: Flags, file: str) -> None:
    """Copy everything to one file, while others may use the knowledge base.

    An older copy of that name is replaced when the new one is complete and sound. To look into it, name it:
    `kb --store sqlite:///home/me/backups/kb.db search …`. Stores in SQLite can do this.
    """
    flags.show(run(flags, "backup", Backup(file)), output.facts)


@command("recover", "kb recover", "kb recover --json")
def recover(flags: Flags) -> None:
    """Bring back what exists nowhere else: notes, and which folders were indexed.

    Notes and sources are read from the copies that are kept beside it. A store that cannot
    be mended is moved away, never deleted, and a new one takes its place; `kb sync` fills it from your files.
    A store that is well gets the notes that it has lost, as after an older copy was put back.
    """
    done = run(flags, "recover", Nothing(), must_exist=False)
    names = {"notes": "notes brought back", "uncertain": "perhaps damaged", "moved_to": "the damaged store"}
    flags.show(done, lambda done: output.facts({names.get(name, name): done[name] for name in done}))
    if done["sources"] and not flags.as_json:
        output.talk("`kb sync` reads the files of these sources again")


@command("backfill", "kb backfill", "kb backfill --json")
def backfill(flags: Flags) -> int:
    """Index anew what is stored, without reading a file.

    Words are extracted as this version does it, vectors come from the cache, and only what the cache does not
    know is embedded. Searches go on meanwhile; an interrupted run has less to do the next time.
    """
    done = run(flags, "backfill", Nothing())
    flags.show(done, output.facts)
    return SOME_FAILED if done["pending"] else 0


@command(
    "migrate",
    "kb migrate --to postgresql://kb@db.example.com/kb",
    "kb migrate --to postgresql://kb@db.example.com/kb --to-org team",
    "KB_VECTORS_URL=http://localhost:6333 kb migrate",
)
@click.option("--to", metavar="URL", help="The store that everything is copied to; it must be empty.")
@click.option("--to-org", metavar="ORG", help="The organisation to copy to (default: the same).")
def migrate(flags: Flags, to: str | None, to_org: str | None) -> int:
    """Move everything to another store; without --to, only the vectors, to where `vectors.url` says.

    Vectors that are known are not made again. With --to the old store is only read, and stays as it is: set
    `store.url` once you are content with the copy. A run that is interrupted leaves nothing there. At the end
    every document, chunk and vector is compared.
    """
    if to is None and to_org is not None:
        refuse("--to-org goes with --to; to another organisation of the same store, give its URL")
    done = run(flags, "migrate", Migrate(to, to_org))
    flags.show(done, output.facts)
    if to is not None and not flags.as_json:
        given = {"KB_STORE_URL": done["store"], "KB_ORG": to_org}
        variables = [f"{name}={value}" for name, value in given.items() if value]
        output.talk(f"all was compared and is the same; to use it: {' '.join(variables)}, or in the settings")
        if done["vectors_left"]:
            output.talk(
                "the old store's vectors stay where they are, with their texts: when you need it no more,"
                " `KB_VECTORS_URL= kb migrate` on it brings them back to it and deletes them there"
            )
    for left in done.get("left", ()):
        told = f"what was sent to {left['vectors']} is still there, with its texts"
        output.talk(f"{told}: {left['why']}")
        output.talk(f"  delete the points there whose `store` is {left['store']}: docs/qdrant.md")
    return SOME_FAILED if to is None and done["pending"] else 0


@command("config", "kb config", "kb config search.default_top", "kb config set search.default_top 5")
@click.argument("words", nargs=-1, metavar="[KEY | set KEY VALUE]")
def config(flags: Flags, words: tuple[str, ...]) -> None:
    """Show the settings, their values and their reasons; with KEY one of them, or those of a table (search).

    A value comes from its default, the configuration file, the environment or a flag; the later one wins. In
    the file, `search.default_top` is `default_top` in the table [search]. `kb config set KEY VALUE` writes it
    there.
    """
    from concord.core.config import find_setting, write_setting
    from concord.core.settings import SETTINGS

    if words[:1] == ("set",) and len(words) == 3:
        write_setting(flags.settings.paths.config_file, *words[1:])
        del flags.settings  # they are others now
        words = words[1:2]
    if len(words) > 1 or words == ("set",):
        refuse("give a KEY, or set KEY VALUE")
    key = words[0] if words else None
    settings, file = flags.settings, flags.settings.paths.config_file
    of_table = [setting for setting in SETTINGS if key is None or setting.key.startswith(f"{key}.")]
    rows = [_row(setting, settings) for setting in of_table or [find_setting(key or "")]]
    if flags.as_json:
        output.emit_json(rows[0] if not of_table else {"file": file, "settings": rows})
        return
    output.emit("\n\n".join(map(_paragraph, rows)))
    output.talk(f"configuration file: {file}{'' if os.path.exists(file) else ' (not there)'}")


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
    if setting.is_secret:
        return "(set)" if value else ""
    return without_password(value) if isinstance(value, str) else value


def _paragraph(row: dict[str, Any]) -> str:
    origin = row["environment"] if row["origin"] == "environment" else row["origin"]
    choices = f"    one of: {', '.join(row['choices'])}\n" if row["choices"] else ""
    head = f"{row['key']} = {_shown(row['value'])}  [{origin}]\n    {row['doc']}\n"
    return f"{head}{choices}    default {_shown(row['default'])}: {row['why']}"


def _shown(value: Any) -> str:
    return one_line(str(value)) if value != "" else '""'
