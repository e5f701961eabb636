"""What all commands share: the global flags, `--json`, examples in the help, an open knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from concord.core.arguments import Arguments
    from concord.core.config import Settings
    from concord.core.protocols import Progress
    from concord.knowledge import KnowledgeBase
    from concord.operations import JsonObject, Operation


NOTHING_FOUND = 1  # exit statuses, beside 0 and 2 for an error
SOME_FAILED = 3

OWN_WORK = {
    "doctor",
    "backup",
    "recover",
    "backfill",
    "migrate",
}  # care of a store: for the process of whoever sees to it


class Flags:
    """The global flags: which knowledge base is meant."""

    def __init__(self, store: str | None = None, org: str | None = None) -> None:
        self.store, self.org = store, org


class ExampleCommand(click.Command):
    """A command whose help ends with examples."""

    examples: tuple[str, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; where an option lacks its value, click forgets to tell of which command."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as fault:
            fault.ctx = fault.ctx or ctx
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, never wrapped: they are there to be copied."""
        with formatter.section("Examples"):
            formatter.write("".join(f"  {example}\n" for example in self.examples))


class ExampleGroup(ExampleCommand, click.Group):
    """A command with commands of its own, whose help ends with examples."""


def group(name: str, *examples: str) -> Callable[[Callable[..., Any]], ExampleGroup]:
    """Make a function a group of commands; without a subcommand, it is a command itself, with `--json`."""

    def decorate(function: Callable[..., Any]) -> ExampleGroup:
        made = click.group(name, cls=ExampleGroup, invoke_without_command=True)(click.pass_context(function))
        made.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."))
        made.examples = examples
        return made

    return decorate


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command with `--json`; it is called with the global flags first."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        made = click.command(name, cls=ExampleCommand)(click.pass_obj(function))
        made.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."))
        made.examples = examples
        return made

    return decorate


def tags_option(purpose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--tags a,b`, which may also be given several times."""
    return click.option("--tags", metavar="A,B", multiple=True, callback=_split, help=purpose)


def refuse(sentence: str) -> NoReturn:
    """End the running command with an error: its flags do not go together."""
    click.get_current_context().fail(sentence)


def settings_of(flags: Flags) -> Settings:
    """Resolve the settings under the global flags; what is odd about them is said on stderr."""
    from concord.cli import output
    from concord.cli.words import in_words
    from concord.core.config import load_settings

    settings = load_settings({"store.url": flags.store, "org": flags.org})
    for warning in settings.warnings:
        output.talk(f"warning: {in_words(warning)}")
    return settings


@contextmanager
def opened(flags: Flags, *, must_exist: bool = True) -> Iterator[KnowledgeBase]:
    """Open the knowledge base that the global flags mean; `must_exist` refuses one named by mistake."""
    from concord.knowledge import KnowledgeBase

    with KnowledgeBase(settings_of(flags), must_exist=must_exist) as knowledge:
        yield knowledge


def run(flags: Flags, name: str, args: Arguments, *, must_exist: bool = True) -> JsonObject:
    """Run an operation on the knowledge base that the global flags mean, and return its JSON."""
    wire: JsonObject = run_with(settings_of(flags), name, args, must_exist=must_exist)
    return wire


def run_with(
    settings: Settings, name: str, args: Arguments, *, must_exist: bool = True, value: type[Any] | None = None
) -> Any:
    """Run an operation, in the engine if there is one; return its JSON, or a `value` that holds more."""
    from concord.operations import OPERATIONS

    operation = OPERATIONS[name]
    with _progress(operation, args) as progress:
        if name not in OWN_WORK and settings["engine.start"] != "never":
            from concord.engine import client

            with suppress(client.NoEngine):
                return client.call(settings, operation, args, progress, must_exist=must_exist, wants=value)
        from concord.knowledge import KnowledgeBase

        with KnowledgeBase(settings, must_exist=must_exist) as knowledge:
            return ((value and operation.value) or operation.run)(knowledge, args, progress)


def start_engine(settings: Settings) -> None:
    """Start an engine for the next search, unless there is one or is to be none; this one does not wait."""
    if settings["engine.start"] != "never":
        from concord.engine import client

        client.start(settings, wait_s=0)


def _progress(operation: Operation, args: Arguments) -> AbstractContextManager[Progress]:
    """Return what shows the progress of long work; a search is long if it begins with indexing."""
    if not operation.is_long and getattr(args, "within", None) is None:
        from concord.types import silent

        return nullcontext(silent)
    from concord.cli.progress import progress_shown

    return progress_shown()


def run_on(knowledge: KnowledgeBase, operation: Operation, args: Arguments, *, value: bool = False) -> Any:
    """Run an operation, for its JSON or its `value`; a long one shows its progress."""
    with _progress(operation, args) as progress:
        return ((value and operation.value) or operation.run)(knowledge, args, progress)


def _split(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    tags = (tag.strip() for several in given for tag in several.split(","))
    return tuple(dict.fromkeys(tag for tag in tags if tag))
