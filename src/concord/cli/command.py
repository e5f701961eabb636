"""What all commands share: the global flags, `--json`, examples in the help, an open knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, NoReturn

import click

from concord.cli import output

if TYPE_CHECKING:
    from concord.core.arguments import Arguments
    from concord.core.config import Settings
    from concord.core.protocols import Progress
    from concord.knowledge import KnowledgeBase
    from concord.operations import Operation

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

NOTHING_FOUND = 1  # exit statuses, beside 0 and 2 for an error
SOME_FAILED = 3

# Care of a store is for the process of whoever sees to it.
OWN_WORK = {"doctor", "backup", "recover", "backfill", "migrate"}


class Flags:
    """What may be given with every command: which knowledge base is meant, and whether JSON is wanted."""

    def __init__(self, store: str | None = None, org: str | None = None) -> None:
        self.store, self.org = store, org
        self.as_json = False

    @cached_property
    def settings(self) -> Settings:
        """The settings under these flags; what is odd about them is said on stderr."""
        from concord.core.config import load_settings

        settings = load_settings({"store.url": self.store, "org": self.org})
        for warning in settings.warnings:
            output.talk(f"warning: {warning}")
        return settings

    def show(self, found: Any, print_it: Callable[[Any], None]) -> None:
        """Print what an operation returned: as JSON, or as people read it."""
        output.emit_json(found) if self.as_json else print_it(found)


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

    def own(self, name: str, *examples: str) -> Callable[[Callable[..., Any]], ExampleCommand]:
        """Make a function one of its commands."""

        def decorate(function: Callable[..., Any]) -> ExampleCommand:
            made = command(name, *examples)(function)
            self.add_command(made)
            return made

        return decorate


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], ExampleCommand]:
    """Make a function a command with `--json`; it is called with the flags first."""
    return lambda function: _with_examples(click.command(name, cls=ExampleCommand)(function), examples)


def group(name: str, *examples: str) -> Callable[[Callable[..., Any]], ExampleGroup]:
    """Make a function a group of commands; without a subcommand, it is a command itself, with `--json`."""

    def decorate(function: Callable[..., Any]) -> ExampleGroup:
        def unless_another(flags: Flags) -> Any:
            return None if click.get_current_context().invoked_subcommand else function(flags)

        unless_another.__doc__ = function.__doc__
        made = click.group(name, cls=ExampleGroup, invoke_without_command=True)(unless_another)
        _with_examples(made, examples)
        return made

    return decorate


def _with_examples(made: Any, examples: tuple[str, ...]) -> Any:
    made.callback = click.pass_obj(made.callback)
    made.examples = examples
    option = click.Option(
        ["--json", "as_json"], is_flag=True, expose_value=False, callback=_take_json, help="Print JSON."
    )
    made.params.append(option)
    return made


def _take_json(ctx: click.Context, parameter: click.Parameter, is_wanted: bool) -> None:
    ctx.ensure_object(Flags).as_json |= is_wanted


def together(*decorators: Decorator) -> Decorator:
    """Return several decorators as one, as if they stood above a function one by one."""
    return lambda function: reduce(lambda made, decorator: decorator(made), reversed(decorators), function)


def tags_option(purpose: str) -> Decorator:
    """Return the option `--tags a,b`, which may also be given several times."""
    return click.option("--tags", metavar="A,B", multiple=True, callback=_split, help=purpose)


def _split(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    tags = (tag.strip() for several in given for tag in several.split(","))
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def refuse(sentence: str) -> NoReturn:
    """End the running command with an error: its flags do not go together."""
    click.get_current_context().fail(sentence)


@contextmanager
def opened(flags: Flags, *, must_exist: bool = True) -> Iterator[KnowledgeBase]:
    """Open the knowledge base that the global flags mean; `must_exist` refuses one named by mistake."""
    from concord.knowledge import KnowledgeBase

    with KnowledgeBase(flags.settings, must_exist=must_exist) as knowledge:
        yield knowledge


def run(flags: Flags, name: str, args: Arguments, *, must_exist: bool = True) -> Any:
    """Run an operation, in the engine if there is one, and return its JSON."""
    from concord.operations import OPERATIONS

    if name not in OWN_WORK and flags.settings["engine.start"] != "never":
        from concord.engine import client

        operation = OPERATIONS[name]
        with suppress(client.NoEngine), _progress(operation, args) as progress:
            return client.call(flags.settings, operation, args, progress, must_exist=must_exist)
    with opened(flags, must_exist=must_exist) as knowledge:
        return run_on(knowledge, name, args)


def run_on(knowledge: KnowledgeBase, name: str, args: Arguments) -> Any:
    """Run an operation for its JSON; a long one shows its progress."""
    from concord.operations import OPERATIONS

    operation = OPERATIONS[name]
    with _progress(operation, args) as progress:
        return operation.run(knowledge, args, progress)


def _progress(operation: Operation, args: Arguments) -> AbstractContextManager[Progress]:
    """Return what shows the progress of long work; a search is long if it begins with indexing."""
    if operation.is_long or getattr(args, "within", None) is not None:
        return output.progress_shown()
    from concord.types import silent

    return nullcontext(silent)
