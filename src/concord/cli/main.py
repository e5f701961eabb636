"""`kb`: the table of commands, each imported when it is asked for, so that `kb --help` costs little."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from concord import __version__
from concord.cli import faults, output, quick_start
from concord.cli.command import Flags
from concord.core.errors import nearest

# Command → where it lives in this package, and what it does in a line.
COMMANDS: dict[str, tuple[str, str]] = {
    "add": ("sources:add", "Index a folder or a file."),
    "search": ("search:search", "Search by words and by meaning."),
    "explain": ("search:explain", "Tell why a passage ranks where it does, or does not."),
    "get": ("search:get", "Read a passage, its neighbours or a whole document."),
    "note": ("notes:note", "Keep a note."),
    "list": ("sources:list_sources", "List the sources, or the documents of one."),
    "sync": ("sources:sync", "Bring sources up to date with their files."),
    "remove": ("sources:remove", "Remove a source from the index; its files stay."),
    "models": ("models:models", "List, add, use, remove and compare embedding models."),
    "backfill": ("upkeep:backfill", "Index again what is stored, with vectors from the cache."),
    "stats": ("upkeep:stats", "Show how much is stored, and where."),
    "doctor": ("upkeep:doctor", "Look for what is wrong, and repair what can be."),
    "migrate": ("upkeep:migrate", "Move everything to another store, or the vectors to another place."),
    "backup": ("upkeep:backup", "Copy everything to one file while it is in use."),
    "config": ("upkeep:config", "Show the settings, their values and their reasons."),
    "eval": ("evaluation:evaluate", "Evaluate search on a judged collection."),
    "calibrate": ("evaluation:calibrate", "Calibrate confidence to your own documents."),
    "feedback": ("search:feedback", "Record whether a result was good or bad."),
    "mcp": ("upkeep:mcp", "Speak MCP over stdin and stdout."),
    "serve": ("upkeep:serve", "Serve MCP over HTTP."),
    "install": ("install:install", "Write an AI client's configuration."),
}


class Commands(click.Group):
    """A group that knows its commands by a table and imports the one that is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        quick_start.import_structs()
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"concord.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, without importing what it names."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that does not exist is answered with the nearest that does."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{_suggestion(args[0])}")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--store", metavar="URL", help="Use the knowledge base kept there (sqlite:///… or postgresql://…)."
)
@click.option("--org", metavar="ORG", help="Use this organisation's knowledge base.")
@click.option("--debug", is_flag=True, help="Show where an unexpected fault came from.")
@click.version_option(__version__, prog_name="kb", message="%(prog)s %(version)s")
@click.pass_context
def kb(ctx: click.Context, store: str | None, org: str | None, debug: bool) -> None:
    """Index folders, files and notes; search them by words and by meaning.

    `kb search "how does login work" --in ./docs` indexes what is new or changed under ./docs and answers with
    cited passages: one command, nothing to set up.

    Results go to stdout, everything else to stderr. Exit status: 0 found or done, 1 nothing found, 2 error,
    3 finished but some files failed or chunks are left to embed.
    """
    ctx.obj = Flags(store, org)


def main(args: Sequence[str] | None = None) -> int:
    """Run `kb` and return its exit status."""
    given = list(sys.argv[1:] if args is None else args)
    output.prepare_streams()
    if "_KB_COMPLETE" in os.environ:  # a shell asks how a line may go on
        kb.main(given, prog_name="kb")
    status = faults.guarded(lambda: _run(list(given)), given)  # click takes its own options out
    if args is None and not _is_watched():
        from concord.leaving import leave

        atexit._run_exitfuncs()
        leave(status)  # to take Python down piece by piece is a twentieth of what a quick search takes
    return status


def _is_watched() -> bool:
    """Whether a debugger or profiler has a report to make at the end, or a thread has work to finish."""
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    return bool(sys.gettrace() or sys.getprofile()) or not all(thread.daemon for thread in others)


def _run(given: list[str]) -> Any:
    """Run a command without click's own way of ending: it takes a broken pipe for a failure."""
    try:
        with kb.make_context("kb", given) as ctx:
            return kb.invoke(ctx)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code


def _suggestion(name: str) -> str:
    meant = nearest(name, COMMANDS)
    return f"; did you mean `kb {meant}`?" if meant else ""
