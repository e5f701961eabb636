"""Errors for people: a sentence, a hint and an exit status, and no traceback for a user's mistake."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

from concord.cli import output
from concord.cli.words import in_words
from concord.core.errors import KBError, nearest

NOTHING_FOUND = 1
ERROR = 2
SOME_FAILED = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

SHOWS_HOW = "`{} --help` shows how"
GOES_ON = "interrupted; what was stored stays, `kb sync` goes on from there"


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
        if isinstance(fault, BrokenPipeError) and output.reader_is_gone():
            output.silence(sys.stdout)  # whoever reads our output has seen enough
            return 0
        if _asked("--debug", args):
            raise
        return _report(fault, as_json=_asked("--json", args))


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
        return in_words(fault.message), in_words(fault.hint)
    if isinstance(fault, click.NoSuchOption):
        return f"there is no option {fault.option_name!r}", _meant(fault)
    if isinstance(fault, click.UsageError):
        where = fault.ctx.command_path if fault.ctx else "kb"
        return _lower(fault.format_message()), SHOWS_HOW.format(where)
    if isinstance(fault, click.ClickException):
        return _lower(fault.format_message()), None
    if isinstance(fault, OSError):
        return _of_system(fault), "check the disk, the path and its permissions"
    return (
        f"unexpected {type(fault).__name__}: {fault}",
        "this is our mistake: please report it with the output of `kb --debug …`",
    )


def _of_system(fault: OSError) -> str:
    """Return what the system says, and of what, without its number."""
    said = _lower(fault.strerror or str(fault))
    return f"{fault.filename}: {said}" if fault.filename else said


def _meant(fault: click.NoSuchOption) -> str:
    """Return the option that was likely meant, compared without the dashes that all of them have."""
    where = fault.ctx.command_path if fault.ctx else "kb"
    parameters = fault.ctx.command.get_params(fault.ctx) if fault.ctx else ()
    root = fault.ctx.find_root() if fault.ctx else None
    if root and root is not fault.ctx and fault.option_name in _long_options(root).values():
        command = where.removeprefix(root.command_path).strip()
        return f"it goes before the command: `{root.command_path} {fault.option_name} … {command} …`"
    known = _long_options(fault.ctx) if fault.ctx else {}
    if meant := nearest(fault.option_name.lstrip("-"), known):
        return f"did you mean {known[meant]}?"
    takes_text = any(isinstance(parameter, click.Argument) for parameter in parameters)
    as_text = f"; put -- before text that begins with a dash: `{where} -- {fault.option_name}`"
    return SHOWS_HOW.format(where) + (as_text if takes_text else "")


def _long_options(context: click.Context) -> dict[str, str]:
    """Return the options of a command by their names without dashes."""
    parameters = context.command.get_params(context)
    return {name.lstrip("-"): name for one in parameters for name in one.opts if name.startswith("--")}


def _lower(message: str) -> str:
    """Return click's sentence in the shape of ours."""
    return message[:1].lower() + message[1:].rstrip(".")


def _asked(flag: str, args: Sequence[str]) -> bool:
    """Whether a flag was given, even on a command line that could not be parsed."""
    return flag in (args[: args.index("--")] if "--" in args else args)
