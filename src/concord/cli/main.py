"""`kb`: the table of commands, each imported when it is used, and errors as a sentence, a hint, a status."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from concord import __version__
from concord.cli import output
from concord.cli.command import Flags
from concord.core.errors import KBError, nearest

ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

SHOWS_HOW = "`{} --help` shows how"
GOES_ON = "interrupted; what was stored stays, `kb sync` goes on from there"

# Command → where it lives in this package, and what it does in a line.
COMMANDS: dict[str, tuple[str, str]] = {
    "add": ("sources:add", "Index a folder or a file."),
    "search": ("search:search", "Search by words and by meaning."),
    "explain": ("search:explain", "Tell why a passage ranks where it does, or does not."),
    "get": ("reading:get", "Read a passage, its neighbours or a whole document."),
    "links": ("reading:links", "List what a document links to and what links to it, or all broken links."),
    "related": ("reading:related", "List the documents nearest to one, and why."),
    "note": ("notes:note", "Keep a note."),
    "list": ("sources:list_sources", "List the sources, or the documents of one."),
    "sync": ("sources:sync", "Bring sources up to date with their files."),
    "remove": ("sources:remove", "Remove a source from the index; its files stay."),
    "models": ("quality:models", "List, add, use and remove embedding models."),
    "backfill": ("upkeep:backfill", "Index again what is stored, with vectors from the cache."),
    "stats": ("upkeep:stats", "Show how much is stored, and where."),
    "doctor": ("upkeep:doctor", "Look for what is wrong, and repair what can be."),
    "migrate": ("upkeep:migrate", "Move everything to another store, or the vectors to another place."),
    "backup": ("upkeep:backup", "Copy everything to one file while it is in use."),
    "recover": ("upkeep:recover", "Bring notes back from a damaged store, or into it."),
    "config": ("upkeep:config", "Show the settings, their values and their reasons."),
    "eval": ("quality:evaluate", "Evaluate search on your own documents, or on a judged collection."),
    "calibrate": ("quality:calibrate", "Calibrate confidence to your own documents."),
    "feedback": ("reading:feedback", "Record whether a result was good or bad."),
    "mcp": ("serving:mcp", "Speak MCP over stdin and stdout."),
    "ui": ("serving:ui", "Open the page in the browser: search, read, add and look after sources."),
    "serve": ("serving:serve", "Serve MCP, a JSON API and the page over HTTP."),
    "engine": ("serving:engine", "Look at the process that works for all clients, or end it."),
    "install": ("serving:install", "Write an AI client's configuration."),
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
        _import_structs()
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
            meant = nearest(args[0], COMMANDS)
            guess = f"; did you mean `kb {meant}`?" if meant else ""
            ctx.fail(f"there is no command {args[0]!r}{guess}")
        return super().resolve_command(ctx, args)


def _import_structs() -> None:
    """Import msgspec without typing_extensions, which older Pythons need: a tenth of a quick search."""
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # an import of it fails
        import_module("msgspec")
        del sys.modules["typing_extensions"]


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
    status = guarded(lambda: _run(list(given)), given)  # click takes its own options out
    if args is None and not _is_watched():
        from concord.core.leaving import leave

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


def guarded(run: Callable[[], Any], args: Sequence[str]) -> int:
    """Run a command and return its exit status, whatever happens."""
    try:
        return int(run() or 0)
    except KeyboardInterrupt:
        output.talk(GOES_ON)
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as fault:
        fault.show()
        return ERROR
    except Exception as fault:  # the outermost line: nothing beyond it could tell the user
        flags = args[: args.index("--")] if "--" in args else args  # known also of a line that does not parse
        if isinstance(fault, BrokenPipeError) and output.reader_is_gone():
            output.silence(sys.stdout)  # whoever reads our output has seen enough
            return 0
        if "--debug" in flags:
            raise
        return _report(fault, as_json="--json" in flags)


def _report(fault: Exception, *, as_json: bool) -> int:
    message, hint = _sentence(fault)
    if as_json:
        kind = "UsageError" if isinstance(fault, click.ClickException) else type(fault).__name__
        with suppress(OSError):  # the fault may be that stdout takes nothing more
            output.emit_json({"error": {"type": kind, "message": message, "hint": hint}})
    output.talk(f"error: {message}", bold="error:")
    if hint:
        output.talk(f"hint: {hint}", bold="hint:")
    return ERROR


def _sentence(fault: Exception) -> tuple[str, str | None]:
    """Return what happened and what to do about it."""
    if isinstance(fault, KBError):
        return fault.message, fault.hint
    if isinstance(fault, click.NoSuchOption):
        return f"there is no option {fault.option_name!r}", _meant(fault)
    if isinstance(fault, click.ClickException):
        context = getattr(fault, "ctx", None)
        hint = SHOWS_HOW.format(context.command_path if context else "kb")
        return _lower(fault.format_message()), hint if isinstance(fault, click.UsageError) else None
    if isinstance(fault, OSError):  # what the system says, and of what, without its number
        said = _lower(fault.strerror or str(fault))
        message = f"{fault.filename}: {said}" if fault.filename else said
        return message, "check the disk, the path and its permissions"
    return (
        f"unexpected {type(fault).__name__}: {fault}",
        "this is our mistake: please report it with the output of `kb --debug …`",
    )


def _meant(fault: click.NoSuchOption) -> str:
    """Return the option that was likely meant, compared without the dashes that all of them have."""
    command = fault.ctx.command_path if fault.ctx else "kb"
    parameters = fault.ctx.command.params if fault.ctx else []
    known = [name[2:] for parameter in parameters for name in parameter.opts if name.startswith("--")]
    if fault.option_name in ("--store", "--org"):
        return f"it goes before the command: `kb {fault.option_name} … {command.removeprefix('kb ')} …`"
    meant = nearest(fault.option_name.lstrip("-"), known)
    if meant:
        return f"did you mean --{meant}?"
    takes_text = any(isinstance(parameter, click.Argument) for parameter in parameters)
    as_text = f"; put -- before text that begins with a dash: `{command} -- {fault.option_name}`"
    return SHOWS_HOW.format(command) + (as_text if takes_text else "")


def _lower(message: str) -> str:
    """Return click's sentence in the shape of ours."""
    return message[:1].lower() + message[1:].rstrip(".")
