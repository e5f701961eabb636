"""`kb ui`: the page, for the user who asks and nobody else on the machine.

The server's address and secret are in a file that only its user can read, locked while the server runs: so a
second call finds it. A browser is started with the name of such a file, since others see command lines.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from concord.core.config import Settings
from concord.core.errors import StoreBusy
from concord.core.filesystem import CLOSED_IN_CHILDREN, try_lock
from concord.mcp.server_state import Root, allowed_roots
from concord.parts import check_places
from concord.web.sessions import Keys, new_code
from concord.web.start import serve
from concord.web.tokens import Grant, digest_of

HOST = "127.0.0.1"
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
STARTING_S = 10.0  # how long another call may take to start its server
_REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={}">\n'

Show = Callable[[str, Path], None]  # takes the page's address, and a file that leads there


def open_page(settings: Settings, port: int, started_in: Path, show: Show) -> bool:
    """Show the page of the server that runs; without one, serve it until told to end. Return whether we did.

    Raises:
        Unavailable: the port is taken.
        StoreBusy: another call is starting a server and does not get there.
    """
    check_places(settings)
    record = _record_of(settings)
    record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | NO_LINKS | CLOSED_IN_CHILDREN
    with os.fdopen(os.open(record, flags, 0o600), "r+", encoding="utf-8") as file:
        if not try_lock(file.fileno()):
            _show(record, *_known(record), show)
            return False
        file.truncate()
        secret = secrets.token_urlsafe(32)

        def announce(url: str) -> None:
            file.write(json.dumps({"url": url, "secret": secret}))
            file.flush()
            _show(record, url, secret, show)

        keys = Keys((Grant(settings["org"], digest_of(secret)),), secret)
        try:
            serve(settings, (HOST, port), _roots(settings, started_in), keys, announce)
        finally:
            file.truncate(0)
    return True


def in_browser(url: str, file: Path) -> bool:
    """Start the user's browser; return whether there is one that leaves the terminal alone."""
    with suppress(webbrowser.Error, OSError):
        browser = webbrowser.get()
        is_background = isinstance(browser, webbrowser.BackgroundBrowser)  # which may have ended by now
        if is_background or not isinstance(browser, webbrowser.GenericBrowser):
            return browser.open(file.as_uri()) or is_background
    return False


def _roots(settings: Settings, started_in: Path) -> tuple[Root, ...]:
    """Return what the user may add from the page: where they are and all that is theirs, and what is set."""
    roots, home = allowed_roots(settings["mcp.roots"], started_in, settings["org"]), Path.home().resolve()
    return roots if home == Path(home.anchor) else (*roots, Root(home, settings["org"]))


def _record_of(settings: Settings) -> Path:
    """Return where the server of a store and an organisation is known."""
    which = hashlib.sha256(f"{settings.store_url}\n{settings['org']}".encode()).hexdigest()[:16]
    return Path(settings.paths.cache, "ui", f"{which}.json")


def _known(record: Path) -> tuple[str, str]:
    """Return the address and the secret of a server that runs, or is just starting."""
    until = time.monotonic() + STARTING_S
    while time.monotonic() < until:
        if text := record.read_text(encoding="utf-8"):
            known = json.loads(text)
            return known["url"], known["secret"]
        time.sleep(0.05)
    raise StoreBusy(
        "another process is starting the page and does not get there", hint="end it, then try again"
    )


def _show(record: Path, url: str, secret: str, show: Show) -> None:
    address = f"{url}/#code={new_code(secret)}"
    leading = record.with_suffix(".html")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_LINKS
    with open(os.open(leading, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(_REDIRECT.format(address))
    show(address, leading)
