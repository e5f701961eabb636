"""What holds for every test."""

from __future__ import annotations

import signal

# A shell starts what runs in the background with Ctrl-C ignored, and every child inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
