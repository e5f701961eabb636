"""When the vectors of a store are kept in memory: if they are few, and searched more than once.

Derived, exact and never stale: they are read anew when their space has another version. Searching 10,000
vectors takes 1.2 ms then where sqlite-vec takes 7, and reading a hundred of them 0.1 ms where it takes 2.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from concord.backends.sqlite.connections import Connection
from concord.backends.sqlite.vec_table import SpaceRow

if TYPE_CHECKING:
    from concord.backends.sqlite.matrix import Matrix

MOST = 50_000  # vectors: 77 MB of 384 dimensions. A server with its model loaded stays under 300 MB.
# Reading them takes as long as this many searches by sqlite-vec: so many have to be asked for before it pays.
WORTH_READING = 6


class Resident:
    """Keeps the matrix of the present version, once that version has been searched a few times.

    A command that searches once, or a store that is being filled, would read it all for nothing.
    """

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._space: SpaceRow | None = None
        self._searches = 0  # of that space in that version
        self._kept: Matrix | None = None

    def kept(self, space: SpaceRow) -> Matrix | None:
        """Return the vectors of a space, as it is now, if they have been read."""
        kept = self._kept
        return kept if kept is not None and kept.space == space else None

    def read(self, connection: Connection, space: SpaceRow) -> Matrix | None:
        """Return the vectors of a space; None while it is not worth reading them.

        The connection is at the moment at which the space was looked up.
        """
        if kept := self.kept(space):
            return kept
        if space != self._space:
            self._space, self._searches, self._kept = space, 0, None
        self._searches += 1
        if self._searches <= WORTH_READING or not self._reading.acquire(blocking=False):
            return None
        from concord.backends.sqlite.matrix import read_matrix  # late, for it imports numpy

        try:
            self._kept = read_matrix(connection, space)
        finally:
            self._reading.release()
        return self.kept(space)
