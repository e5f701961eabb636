"""The engine: knowledge bases that are open once, and a thread for each client.

A client is an MCP session, or calls of operations. What it starts is its own: it alone sees it running, and
when it goes away, that is cancelled.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from contextlib import nullcontext, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from concord import __version__
from concord.core.arguments import Arguments, NoteFields, Search
from concord.core.config import Settings, load_settings
from concord.core.errors import KBError
from concord.core.leaving import leave
from concord.core.memory import share_between_threads
from concord.core.places import working_in
from concord.core.protocols import Progress
from concord.core.values import check_org
from concord.engine.place import Channel, Listener, place_of
from concord.knowledge import KnowledgeBase
from concord.mcp.jobs import Cancelled, Extent, Jobs, Plan
from concord.mcp.server_state import Bases, RecentNotes, ServerState, allowed_roots
from concord.operations import OPERATIONS
from concord.parts import check_places

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5  # whether it is time to end
PROGRESS_EVERY_S = 0.1  # a client is told no more often
CLOSING_S = 2.0  # how long work may take to stop when the engine ends
READ_AT_ONCE = 16  # calls that read: more would all be late, and nobody could be greeted meanwhile


def main(lock: int, tell: int) -> None:
    """Serve until nobody needs us; the settings come from stdin, and `lock` is held as long as we live."""
    os.set_inheritable(lock, False)
    os.set_inheritable(tell, False)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    share_between_threads()
    settings = load_settings(json.load(sys.stdin))
    check_places(settings)
    place = place_of(settings)
    assert place is not None
    engine = Engine(settings, Listener(place), place.address)
    signal.signal(signal.SIGTERM, lambda *_: engine.stop())
    with suppress(BrokenPipeError):  # nobody waits for it
        os.write(tell, b"1")
    os.close(tell)
    engine.serve()
    with suppress(OSError):
        if os.path.samestat(os.stat(place.file("lock")), os.fstat(lock)):
            if not os.path.getsize(place.file("log")):
                os.unlink(place.file("log"))
            os.unlink(place.file("lock"))  # while we hold it: whoever waits for it sees that it is gone
    leave()


class Engine:
    """What all clients share, and how many there are."""

    def __init__(self, settings: Settings, listener: Listener, address: str) -> None:
        self._settings = settings
        self._listener = listener
        self._address = address
        self._bases = Bases(settings)
        self._notes = RecentNotes()
        self._jobs = Jobs()  # of its own: what it does without a client
        self._clients: dict[Channel, str] = {}  # and what each is here for
        self._began = self._used = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._reading = threading.BoundedSemaphore(READ_AT_ONCE)

    def serve(self) -> None:
        """Let clients in until told to stop, or until there has been nothing to do for long enough."""
        self._expect(self._settings["org"])
        while not (self._ended.is_set() or self._is_idle()) and self._listener.is_reachable:
            if connection := self._listener.accept(LOOK_EVERY_S):
                threading.Thread(target=self._attend, args=(connection,), daemon=True).start()
        self._listener.close()
        for channel in list(self._clients):
            channel.close()
        if self._jobs.close(CLOSING_S):
            self._bases.close()

    def stop(self) -> None:
        """End soon."""
        self._ended.set()

    def _is_idle(self) -> bool:
        with self._lock:
            if self._clients or self._jobs.running():
                self._used = time.monotonic()
            return time.monotonic() - self._used > float(self._settings["engine.idle_s"])

    def _expect(self, org: str) -> None:
        """Make ready for searches of an organisation, and watch its sources if that is wanted."""
        self._bases.warm_in_background(org)
        if self._settings["engine.watch"]:
            knowledge = self._bases.of(org)

            def watch(progress: Progress) -> dict[str, Any]:
                try:
                    for report in knowledge.watch(stop=self._ended, progress=progress):
                        for failure in report.failed:
                            log.warning("%s: %s", failure.path, failure.reason)
                except KBError as fault:  # the next client has it begun again
                    log.warning("sources are not watched: %s", fault.message)
                return {}

            self._jobs.start_or_join(
                Plan(("watch", org), f"watching {org}", watch, Extent(org), is_once=True)
            )

    def _attend(self, connection: Any) -> None:
        """Work for a client until it goes away."""
        channel = self._listener.welcome(connection)
        if channel is None:
            return
        try:
            hello = channel.receive()
            with self._lock:
                self._clients[channel] = hello["service"]
            self._serve(channel, hello["service"], hello["org"], hello["cwd"], hello.get("roots", ""))
        except (OSError, ValueError, Cancelled):
            pass  # it has gone
        except Exception:
            log.exception("a client was left")
        finally:
            channel.close()
            with self._lock:
                self._clients.pop(channel, None)
                self._used = time.monotonic()

    def _serve(self, channel: Channel, service: str, org: str, cwd: str, configured: str) -> None:
        try:
            check_org(org)
            check_places(self._settings)
            with working_in(cwd):
                roots = allowed_roots(configured, Path(cwd), org)
        except KBError as fault:
            channel.send({"error": _error(fault)})
            return
        channel.send({"ok": True})
        channel.socket.settimeout(None)
        if service in ("status", "stop"):
            channel.send(self._state())
            if service == "stop":
                self.stop()
            return
        self._expect(org)
        with working_in(cwd):
            if service == "mcp":
                self._serve_mcp(
                    channel, ServerState(self._bases, roots, org, owns_bases=False, notes=self._notes)
                )
            else:
                self._carry_out(channel, self._bases.of(org))

    def _state(self) -> dict[str, Any]:
        jobs = self._jobs.running()
        with self._lock:
            clients = sum(service in ("mcp", "call") for service in self._clients.values())
        return {
            "running": True,
            "version": __version__,
            "pid": os.getpid(),
            "socket": self._address,
            "running_s": round(time.monotonic() - self._began, 1),
            "clients": clients,
            "jobs": [{"label": j.plan.label, "stage": j.step.stage, "done": j.step.done} for j in jobs],
        }

    def _serve_mcp(self, channel: Channel, state: ServerState) -> None:
        import anyio  # late, with the SDK: 60 MB, which the command line can do without

        from concord.mcp import stdio
        from concord.mcp.server import KnowledgeServer

        lines = TextIOWrapper(channel.lines, encoding="utf-8", errors="replace")
        out = channel.socket.makefile("w", encoding="utf-8")

        async def session() -> None:
            await stdio.serve(
                KnowledgeServer(state), anyio.wrap_file(lines), anyio.wrap_file(out), channel.close
            )

        try:
            anyio.run(session)
        except* OSError:  # it went away in the middle of an answer
            pass

    def _carry_out(self, channel: Channel, knowledge: KnowledgeBase) -> None:
        """Carry out one call after another."""
        while not self._ended.is_set():
            asked = channel.receive()
            if channel.is_gone:  # it did not wait for us, and does its own work
                return
            channel.send(self._answer(asked, knowledge, _Teller(channel)))

    def _answer(self, asked: dict[str, Any], knowledge: KnowledgeBase, progress: Progress) -> dict[str, Any]:
        operation = OPERATIONS[asked["call"]]
        args = _arguments(operation.arguments, asked["args"])
        try:
            if asked["must_exist"] and not knowledge.store.place.is_begun:
                return {}  # the client knows why it is asked for: it may be a slip, or a new user
            if isinstance(args, Search) and args.deadline_ms is None and args.mode != "fts5":
                self._bases.wait_while_warming(knowledge.org)
            with self._reading if operation.effect == "read" else nullcontext():
                return {"result": operation.run(knowledge, args, progress)}
        except Cancelled:
            raise
        except Exception as fault:
            if not isinstance(fault, KBError):
                log.exception("%s failed", operation.name)
            return {"error": _error(fault)}


class _Teller:
    """Tells a client how far its call is, and stops the work when it has hung up."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._told = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if self._channel.is_gone:
            raise Cancelled
        if time.monotonic() - self._told > PROGRESS_EVERY_S:
            self._told = time.monotonic()
            with suppress(OSError):  # the next call sees that it has gone
                self._channel.send({"progress": [stage, done, total]})


def _arguments(kind: type[Arguments], given: dict[str, Any]) -> Arguments:
    """Return arguments as the client had them, who has checked what it wants checked."""
    if fields := given.get("fields"):
        given = {**given, "fields": _arguments(NoteFields, fields)}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})


def _error(fault: Exception) -> dict[str, Any]:
    message, hint = getattr(fault, "message", str(fault)), getattr(fault, "hint", None)
    return {"type": type(fault).__name__, "message": message, "hint": hint}
