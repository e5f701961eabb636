"""Writes the reference pages of `docs/` from what they describe: the commands, the settings, the errors.

    python scripts/make_docs.py

A test fails while a page says something else than the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from concord.cli.main import COMMANDS, kb
from concord.core import errors
from concord.core.errors import KBError
from concord.core.settings import SETTINGS, Setting

DOCS = Path(__file__).resolve().parent.parent / "docs"
WIDTH = 100

CLI_INTRODUCTION = """\
# The command line

Results go to stdout; progress, remarks and errors go to stderr. With `--json` every command prints one JSON
document on stdout: indented at a terminal, on one line in a pipe. What `kb search --json` prints is described
by [answer.schema.json](answer.schema.json).

| exit status | means |
|---|---|
| 0 | found, or done |
| 1 | nothing found; of `kb doctor`: something is wrong |
| 2 | error: one line says what, one says what to do ([errors](errors.md)) |
| 3 | finished, but some files failed, each named with its reason; of `kb models add`, `kb backfill` and \
`kb migrate`: chunks are left without a vector |
| 130 | interrupted; what was stored stays, and `kb sync` goes on from there |

A reader that closes the pipe early (`kb search … | head -1`) is no error. Colours appear at a terminal only,
and not when `NO_COLOR` is set. Control characters in documents are never sent to a terminal: they are spelt
out, as `\\x1b`.

Completion for bash: `eval "$(_KB_COMPLETE=bash_source kb)"`; for zsh and fish, put their name for `bash`.
"""

SETTINGS_INTRODUCTION = """\
# Settings

Each setting has one key, one environment variable and one default. A value comes from, weakest first: the
default, the configuration file, the environment, a flag. `kb config` shows each value and where it came from.

The file is `config.toml` in the user's configuration directory (`kb config` names it; `KB_HOME` moves it and
everything else). A dot in a key is a table in the file:

```toml
[search]
default_top = 5
```

An unknown key in the file is an error; an unknown `KB_` variable is a warning. A configuration file inside a
folder that is indexed is never obeyed.

A folder that has to be made for a SQLite or JSON store is open to its owner alone, because what is indexed
can be read there; one that exists stays as it is, so a folder for several users is made beforehand.
"""

ERRORS_INTRODUCTION = """\
# Errors

Every error is a `KBError` with a `message` (one sentence) and a `hint` (what to do). The command line prints
both on stderr and exits with 2; with `--json` it also prints
`{"error": {"type": …, "message": …, "hint": …}}` on stdout, where `type` is a name from this
page (or the class of a fault that nobody expected).
"""


def cli_page() -> str:
    """Return the page of the command line."""
    commands = [("kb", kb), *(pair for name in COMMANDS for pair in _with_own(f"kb {name}", _command(name)))]
    parts = [f"## {name}\n\n```text\n{_help(name, command)}\n```\n" for name, command in commands]
    return "\n".join([CLI_INTRODUCTION, *parts])


def settings_page() -> str:
    """Return the page of the settings."""
    return "\n".join([SETTINGS_INTRODUCTION, *map(_setting, SETTINGS)])


def errors_page() -> str:
    """Return the page of the errors."""
    tree = (errors.__doc__ or "").partition("\n\n")[2].strip()
    return "\n".join([ERRORS_INTRODUCTION, f"```text\n{tree}\n```\n", *_errors(KBError)])


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
}


def _command(name: str) -> click.Command:
    command = kb.get_command(click.Context(kb), name)
    assert command is not None
    return command


def _with_own(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command, then those that it has of its own."""
    yield name, command
    if isinstance(command, click.Group):
        yield from ((f"{name} {own}", one) for own, one in command.commands.items())


def _help(name: str, command: click.Command) -> str:
    settings = {**kb.context_settings, "terminal_width": WIDTH}
    return command.get_help(click.Context(command, info_name=name, **settings)).rstrip()


def _setting(setting: Setting) -> str:
    lines = [f"## {setting.key}", "", f"{setting.doc[0].upper()}{setting.doc[1:]}.", ""]
    lines.append(f"- environment: `{setting.environment_name}`")
    shown = f"`{setting.default}`" if setting.default != "" else "empty"
    lines.append(f"- default: {shown}, because {setting.why}")
    if setting.choices:
        lines.append("- one of: " + ", ".join(f"`{choice}`" for choice in setting.choices))
    if setting.minimum is not None:
        lines.append(f"- at least {setting.minimum:g}")
    if setting.maximum is not None:
        lines.append(f"- at most {setting.maximum:g}")
    return "\n".join(lines) + "\n"


def _errors(error: type[KBError]) -> Iterator[str]:
    parent = "" if error is KBError else f" A kind of `{error.__mro__[1].__name__}`."
    yield f"## {error.__name__}\n\n{error.__doc__}{parent}\n"
    for kind in error.__subclasses__():
        yield from _errors(kind)


def main() -> None:
    """Write every page that is not as it should be."""
    for name, page in PAGES.items():
        path, text = DOCS / name, page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path.name}\n")


if __name__ == "__main__":
    main()
