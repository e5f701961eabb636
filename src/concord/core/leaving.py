"""Ending the process at once: a tidy end takes time, and threads that still work do not survive it."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn


def leave(status: int = 0) -> NoReturn:
    """End the process without taking Python down piece by piece; all that must be closed has been."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # there are none where the caller has closed them
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(status)


def leave_if_busy() -> None:
    """End the process if a thread of ours is still at work, such as one that loads a model.

    The model's runtime aborts the process when the interpreter is taken down under it.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        leave()
