"""Where the clients and the engine of one user and configuration meet, and who else may not.

The name has the version and the fingerprint of the settings in it, so different ones never meet. The socket
is in a folder that nobody else may enter, and both sides look at the other's user. Where there are no Unix
sockets, there are no engines either.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import to_builtins

from concord import __version__
from concord.core.config import Settings, fingerprint

LONGEST = 107  # bytes of a Unix socket's path
HELLO_S = 2.0  # how long the other side may take for its first word; a client does its own work then
WAITING = 1024  # clients that come at the same moment; one that finds no room does its own work
_FLEETING = ("memory:", "qdrant-local")  # gone with the process, or no other process may use it meanwhile


class Place(NamedTuple):
    """A private folder, and what our files in it are called."""

    folder: str
    name: str

    def file(self, ending: str) -> str:
        """Return the path of the lock or the log."""
        return os.path.join(self.folder, f"{self.name}.{ending}")

    @property
    def address(self) -> str:
        """The socket."""
        return self.file("sock")


def place_of(settings: Settings) -> Place | None:
    """Return where an engine with these settings is met; None where there may be none."""
    urls = (settings.store_url, settings["vectors.url"])
    if not hasattr(socket, "AF_UNIX") or any(url.startswith(_FLEETING) for url in urls):
        return None
    model = settings["embed.model"]
    if model and not os.path.isabs(model) and os.path.exists(model):
        return None  # a folder that is found from where this process is, and from nowhere else
    name = f"{__version__}-{fingerprint(settings)}"
    places = (
        Place(os.path.join(settings.paths.cache, "engine"), name),
        Place(f"/tmp/concord-{os.getuid()}", name),  # a name that is short enough for any user
    )
    return next((place for place in places if len(os.fsencode(place.address)) <= LONGEST), None)


def is_private(folder: str) -> bool:
    """Whether a folder is ours, and nobody else may enter it."""
    with suppress(OSError):
        status = os.lstat(folder)
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return False


class Channel:
    """One line of JSON at a time, either way."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.lines = connection.makefile("rb")

    def send(self, message: Any) -> None:
        """Send a message."""
        plain = to_builtins(message, enc_hook=str)
        self.socket.sendall(json.dumps(plain).encode() + b"\n")

    def receive(self) -> Any:
        """Return the next message.

        Raises:
            ConnectionError: there is none, the other side has gone.
        """
        line = self.lines.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the other side has gone")
        return json.loads(line)

    @property
    def is_gone(self) -> bool:
        """Whether the other side has hung up."""
        try:
            return not self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Hang up, also for a thread that still waits for a line."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.lines.close()
        self.socket.close()


def connect(place: Place) -> Channel | None:
    """Return a channel to the engine; None where there is none, or somebody else's."""
    if not os.path.exists(place.address) or not is_private(place.folder):
        return None
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(HELLO_S)
    with suppress(OSError):
        connection.connect(place.address)
        if is_same_user(connection):
            return Channel(connection)
    connection.close()
    return None


class Listener:
    """The engine's end of a place: only the process that holds the place's lock may have it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.socket = socket.socket(socket.AF_UNIX)
        with suppress(FileNotFoundError):
            os.unlink(place.address)  # of an engine that was killed
        self.socket.bind(place.address)
        os.chmod(place.address, 0o600)
        self._known = os.stat(place.address).st_ino
        self.socket.listen(WAITING)

    def accept(self, wait_s: float) -> socket.socket | None:
        """Return a connection, or None if there is none within that time."""
        self.socket.settimeout(wait_s)
        with suppress(TimeoutError):
            return self.socket.accept()[0]
        return None

    def welcome(self, connection: socket.socket) -> Channel | None:
        """Return a channel to a client of the same user; None for anybody else."""
        connection.settimeout(HELLO_S)
        if is_same_user(connection):
            return Channel(connection)
        connection.close()
        return None

    @property
    def is_reachable(self) -> bool:
        """Whether the way to it is still there: somebody may have deleted the folder."""
        try:
            return os.stat(self._place.address).st_ino == self._known
        except OSError:
            return False

    def close(self) -> None:
        """Let nobody in any more."""
        self.socket.close()
        if self.is_reachable:
            os.unlink(self._place.address)


def is_same_user(connection: socket.socket) -> bool:
    """Whether the other side runs as our user, where the system tells; the folder keeps others out anyway."""
    if wanted := getattr(socket, "SO_PEERCRED", None):  # Linux: process, user, group
        _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, wanted, 12))
    elif wanted := getattr(socket, "LOCAL_PEERCRED", None):  # BSD and macOS: version, user
        _, user = struct.unpack("2I", connection.getsockopt(0, wanted, 8))
    else:
        return True
    return bool(user == os.getuid())
