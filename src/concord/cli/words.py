"""What a hint names, in the words of the command line: commands, options and variables."""

from __future__ import annotations

from typing import Any

from concord.core.errors import Action, worded

WORDS: dict[Action, str] = {
    Action.ADD: "`kb add PATH`",
    Action.ADD_ALL_FILES: "`kb add PATH --pattern '**'`",
    Action.BEGIN: "index a folder with `kb add PATH`, or search one with `--in PATH`",
    Action.SEARCH: "`kb search`",
    Action.SYNC: "`kb sync`",
    Action.REMOVE: "`kb remove {source}`",
    Action.REMOVE_WITH_NOTES: "`kb remove {source} --force`",
    Action.LIST: "`kb list SOURCE`",
    Action.LIST_NOTES: "`kb list notes --json`",
    Action.NOTE: "`kb note`",
    Action.NOTE_REMOVE: "`kb note --remove ID`",
    Action.NOTE_EXPORT: "`kb note --export notes.jsonl`",
    Action.STATS: "`kb stats`",
    Action.DOCTOR: "`kb doctor`",
    Action.REPAIR: "`kb doctor --fix`",
    Action.BACKUP: "`kb backup`",
    Action.RECOVER: "`kb recover`",
    Action.MIGRATE: "`kb migrate`",
    Action.MIGRATE_TO: "`kb migrate --to {url}`",
    Action.MODELS_LIST: "`kb models list`",
    Action.MODELS_ADD: "`kb models add`",
    Action.MODELS_USE: "`kb models use`",
    Action.EVALUATE: "`kb eval`",
    Action.CALIBRATE: "`kb calibrate`",
    Action.FEEDBACK: "`kb feedback`",
    Action.CONFIG: "`kb config`",
    Action.UPGRADE: "pip install --upgrade {package}",
    Action.REINSTALL: "pip install --force-reinstall {package}",
    Action.STORE: "--store",
    Action.ORG: "--org, or KB_ORG",
    Action.HOME: "KB_HOME",
    Action.NAME: "another --name",
    Action.LIMIT: "a larger --top",
    Action.MODE: "--mode auto",
    Action.WORDS_ONLY: "--fts-only",
    Action.DEADLINE: "--deadline-ms",
    Action.EF_SEARCH: "--ef-search",
    Action.INCLUDE_SUPERSEDED: "--include-superseded",
    Action.FORCE: "--force",
}


def in_words(value: Any) -> Any:
    """Return a text, or JSON with texts in it, in which hints name commands."""
    return worded(value, WORDS)
