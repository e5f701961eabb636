"""`kb engine`: the process that works for all clients of these settings."""

from __future__ import annotations

import click

from concord.cli import output
from concord.cli.command import NOTHING_FOUND, Flags, command, group, settings_of
from concord.operations import JsonObject
from concord.text.visible import one_line


@group("engine", "kb engine status", "kb engine stop", "kb engine status --json")
def engine(ctx: click.Context, as_json: bool) -> int | None:
    """Look at the process that works for all clients of these settings, or end it.

    `kb search` starts it after its answer, `kb mcp` at once, and it ends by itself when nobody has needed it
    for a while (engine.idle_s). With engine.start never there is none.
    """
    return None if ctx.invoked_subcommand else _show(ctx.obj, "status", as_json=as_json)


@command("status", "kb engine status", "kb engine status --json")
def status(flags: Flags, as_json: bool) -> int:
    """Tell whether an engine runs, for how many clients, and what it is doing.

    Exit status: 0 it runs, 1 it does not.
    """
    return _show(flags, "status", as_json=as_json)


@command("stop", "kb engine stop", "kb engine stop --json")
def stop(flags: Flags, as_json: bool) -> int:
    """End the engine; clients that still need one start another.

    Exit status: 0 it ends, 1 there was none.
    """
    return _show(flags, "stop", as_json=as_json)


def _show(flags: Flags, service: str, *, as_json: bool) -> int:
    from concord.engine.client import ask

    state = ask(settings_of(flags), service)
    if as_json:
        output.emit_json(state or {"running": False})
    elif state is None:
        output.talk("no engine is running for these settings")
    else:
        output.emit(("ended: " if service == "stop" else "") + "\n".join(_lines(state)))
    return NOTHING_FOUND if state is None else 0


def _lines(state: JsonObject) -> list[str]:
    clients = f"{state['clients']} client{'s' * (state['clients'] != 1)}"
    lines = [f"engine {state['version']}, process {state['pid']}, {clients}, for {state['running_s']:.0f} s"]
    lines += [f"  {one_line(job['label'])}: {job['stage']} {job['done']}" for job in state["jobs"]]
    return [*lines, f"  {one_line(state['socket'])}"]


engine.add_command(status)
engine.add_command(stop)
