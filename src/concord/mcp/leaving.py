"""Ending the process while threads still work: at once, because what they do does not survive a tidy end."""

from __future__ import annotations

import os
import sys
import threading
from typing import NoReturn


def leave_if_busy() -> None:
    """End the process if a thread of ours is still at work, such as one that loads a model.

    The model's runtime aborts the process when the interpreter is taken down under it.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        leave()


def leave() -> NoReturn:
    """End the process; everything that must be closed has been."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    os._exit(0)
