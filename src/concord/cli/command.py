"""What all commands share: the global flags, `--json`, examples in the help, an open knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from concord.core.arguments import Arguments
    from concord.core.config import Settings
    from concord.knowledge import KnowledgeBase
    from concord.operations import JsonObject, Operation


NOTHING_FOUND = 1  # exit statuses, beside 0 and 2 for an error
SOME_FAILED = 3


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
    from concord.operations import OPERATIONS

    with opened(flags, must_exist=must_exist) as knowledge:
        return run_on(knowledge, OPERATIONS[name], args)


def run_on(knowledge: KnowledgeBase, operation: Operation, args: Arguments) -> JsonObject:
    """Run an operation; a long one shows its progress."""
    from concord.types import silent

    if not operation.is_long:
        return operation.run(knowledge, args, silent)
    from concord.cli.progress import progress_shown

    with progress_shown() as progress:
        return operation.run(knowledge, args, progress)


def _split(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    tags = (tag.strip() for several in given for tag in several.split(","))
    return tuple(dict.fromkeys(tag for tag in tags if tag))
