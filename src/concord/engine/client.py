"""The client's half: find the engine, start it, let it carry out an operation.

Whatever it cannot do, its client does itself: `NoEngine` says so, and is no error that anybody sees.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from concord.core import errors
from concord.core.config import Settings
from concord.core.filesystem import try_lock
from concord.engine.place import HELLO_S, Channel, Place, connect, is_private, place_of

if TYPE_CHECKING:
    from concord.core.arguments import Arguments
    from concord.core.protocols import Progress
    from concord.operations import Operation

START_S = 5.0  # until an engine that was started can be asked
POLL_S = 0.02


class NoEngine(Exception):
    """There is no engine, or it leaves this to its client."""


def call(
    settings: Settings, operation: Operation, args: Arguments, progress: Progress, *, must_exist: bool
) -> Any:
    """Let a running engine carry out an operation; return its JSON.

    Raises:
        NoEngine: there is none, or none that can do this.
        KBError: what the operation raised.
        Unavailable: the engine ended in the middle of something that writes.
    """
    asked = {"call": operation.name, "args": args, "must_exist": must_exist}
    channel = greeted(settings, service="call")
    if channel is None:
        raise NoEngine
    try:
        channel.send(asked)
        return _reply(channel, progress)
    except (OSError, ValueError) as fault:
        if operation.effect == "read":
            raise NoEngine from fault
        raise errors.Unavailable(
            "the engine ended before it had answered; what was stored until then stays",
            hint="look whether it was done, and ask again",
        ) from fault
    finally:
        channel.close()


def greeted(settings: Settings, *, wait_s: float = HELLO_S, **hello: Any) -> Channel | None:
    """Return a channel to the engine, which has said in time that it will serve us; else None.

    Raises:
        KBError: it will not, as the settings cannot be carried out.
    """
    place = place_of(settings)
    channel = connect(place) if place else None
    if channel is None:
        return None
    try:
        channel.socket.settimeout(wait_s)
        channel.send({"org": settings["org"], "cwd": os.getcwd(), **hello})
        answer = channel.receive()
        channel.socket.settimeout(None)
    except (OSError, ValueError):  # it hangs, or is about to end
        channel.close()
        return None
    if "error" in answer:
        channel.close()
        raise fault_of(answer["error"])
    return channel


def _reply(channel: Channel, progress: Progress) -> Any:
    while "progress" in (reply := channel.receive()):
        progress(*reply["progress"])
    if "error" in reply:
        raise fault_of(reply["error"])
    if "result" not in reply:
        raise NoEngine
    return reply["result"]


def fault_of(error: dict[str, Any]) -> errors.KBError:
    """Return the fault that the engine met, of the same class.

    Raises:
        NoEngine: it was a mistake of ours, which the client will meet in its own process; or the store has
            been deleted or damaged under the engine, and whoever opens it anew knows more.
    """
    kind = getattr(errors, error["type"], None)
    if kind is None or issubclass(kind, (errors.BackendDown, errors.CorruptStore)):
        raise NoEngine
    fault: errors.KBError = kind(error["message"], hint=error["hint"])
    return fault


def start(settings: Settings, *, wait_s: float = START_S) -> bool:
    """Start an engine unless there is one; return whether it can be asked within `wait_s`."""
    place = place_of(settings)
    if place is None:
        return False
    until = time.monotonic() + wait_s
    try:
        os.makedirs(place.folder, mode=0o700, exist_ok=True)
        while is_private(place.folder):
            if (lock := _lock(place)) is not None:
                return _spawned(place, lock, settings, wait_s)
            if time.monotonic() >= until:
                break
            if channel := connect(place):
                channel.close()
                return True
            time.sleep(POLL_S)
    except OSError:  # no such folder can be made, or no process: everybody works alone, as without engines
        pass
    return False


def _lock(place: Place) -> int | None:
    """Return the lock of a place, which its engine keeps for life; None while somebody else has it."""
    lock = os.open(place.file("lock"), os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(OSError):  # somebody has it, or it has just been deleted by an engine that ended
        if try_lock(lock) and os.path.samestat(os.stat(place.file("lock")), os.fstat(lock)):
            return lock
    os.close(lock)
    return None


def _spawned(place: Place, lock: int, settings: Settings, wait_s: float) -> bool:
    """Start the process, which inherits the lock; return whether it was ready within `wait_s`."""
    import select
    import subprocess

    ready, tell = os.pipe()
    log = os.open(place.file("log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, _PACKAGE_HOME, str(lock), str(tell)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=(lock, tell),
            cwd=place.folder,
            start_new_session=True,
        )
    finally:
        for opened in (lock, tell, log):
            os.close(opened)
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(json.dumps(dict(settings)).encode())
    if wait_s:
        process.wait()
    else:
        process.returncode = 0  # whoever does not wait for it has done its work, and ends
    is_ready = bool(select.select([ready], [], [], wait_s)[0] and os.read(ready, 1))
    os.close(ready)
    return is_ready


# It becomes nobody's child, so that nobody has to wait for its end.
_BOOT = """
import os, sys
if os.fork():
    os._exit(0)
sys.path.insert(0, sys.argv[1])
from concord.engine.server import main
main(*map(int, sys.argv[2:]))
"""
_PACKAGE_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def ask(settings: Settings, service: str) -> dict[str, Any] | None:
    """Return what a running engine says of itself, `stop` before it ends; None where there is none."""
    try:
        if channel := greeted(settings, service=service):
            state: dict[str, Any] = channel.receive()
            channel.close()
            return state
    except (OSError, ValueError):
        pass
    return None
