"""Who may ask over HTTP: tokens, each of an organisation, and browsers that came with a token or a code.

A file holds the tokens; their digests are compared. A one-time code is for `#code=…` in an address that a
program opens: whoever reads the address later is too late. Either becomes a cookie that no script can read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from pathlib import Path

from msgspec import Struct
from starlette.requests import Request

from concord.core.config import Settings
from concord.core.errors import BadValue
from concord.core.values import is_org

OTHERS = 0o077  # permissions that nobody but the owner may have
SHORTEST = 16  # characters: shorter ones can be guessed
CODE_S = 120  # how long a browser may take to start
SESSION_S = 30 * 24 * 3600.0
MOST_SESSIONS = 200  # the oldest make way


class Grant(Struct, frozen=True):
    """A token's digest and the organisation that it stands for."""

    org: str
    digest: bytes

    @property
    def name(self) -> str:
        """What to call it without telling it."""
        return f"{self.org}:{self.digest.hex()[:8]}"


def token_file(settings: Settings) -> Path:
    """Return where the tokens are."""
    named: str = settings["serve.tokens"]
    return Path(named).expanduser() if named else Path(settings.paths.config, "tokens")


def grants_of(settings: Settings) -> tuple[Grant, ...]:
    """Return the tokens to serve with; none only where nobody asked for any.

    Raises:
        BadValue: a file has none. To serve without would open to everybody what was meant for a few.
    """
    path = token_file(settings)
    grants = read_grants(path)
    if not grants and os.path.lexists(path):  # also a link that leads nowhere: it may not be mounted
        hint = "`kb serve --new-token ORG` adds one; to serve this machine without tokens, remove the file"
        raise BadValue(f"there is no token in {path}", hint=hint)
    if not grants and settings["serve.tokens"]:
        hint = "correct serve.tokens (KB_SERVE_TOKENS), or make the file: `kb serve --new-token ORG`"
        raise BadValue(f"there is no file of tokens at {path}, which serve.tokens names", hint=hint)
    return grants


def read_grants(path: Path) -> tuple[Grant, ...]:
    """Return the tokens of a file; none when there is no file.

    Raises:
        BadValue: others can read it, or a line is wrong.
    """
    try:
        if path.stat().st_mode & OTHERS:
            raise BadValue(f"others can read the tokens in {path}", hint=f"chmod 600 {path}")
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="mend or remove the file") from fault
    return tuple(
        _grant(line, f"{path}:{number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    )


def _grant(line: str, where: str) -> Grant:
    org, _, token = line.strip().partition(" ")
    token = token.strip()
    if not is_org(org):
        raise BadValue(f"{where}: {org!r} cannot name an organisation", hint="write: ORGANISATION TOKEN")
    if len(token) < SHORTEST or not token.isascii() or any(character.isspace() for character in token):
        message = f"{where}: a token has at least {SHORTEST} characters and no blanks"
        raise BadValue(message, hint="`kb serve --new-token ORG` makes one")
    return Grant(org, digest_of(token))


def digest_of(token: str) -> bytes:
    """Return what is compared of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def add_token(path: Path, org: str) -> str:
    """Make a token for an organisation, store it and return it.

    Raises:
        BadValue: the name cannot name an organisation, or the file is not as it must be.
    """
    token = secrets.token_urlsafe(32)
    _grant(f"{org} {token}", "the new token")
    read_grants(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as file:
        file.write(f"{org} {token}\n")
    return token


def grant_for(authorization: str | None, grants: tuple[Grant, ...]) -> Grant | None:
    """Return the grant that an Authorization header presents the token of."""
    scheme, _, token = (authorization or "").partition(" ")
    digest = digest_of(token.strip())
    matching = [grant for grant in grants if hmac.compare_digest(grant.digest, digest)]
    return matching[0] if matching and scheme.lower() == "bearer" else None


class Keys:
    """The tokens of a server, and the browsers that came with one."""

    def __init__(self, grants: tuple[Grant, ...]) -> None:
        """Know the tokens."""
        self._grants = grants
        self._codes: dict[str, float] = {}  # and until when each works
        self._sessions: dict[str, tuple[Grant, float]] = {}  # by cookie, and when they end

    @property
    def is_open(self) -> bool:
        """Whether nobody needs a token."""
        return not self._grants

    def grant_of(self, request: Request) -> tuple[Grant | None, bool]:
        """Return the grant that a request has, and whether it has it by a cookie alone."""
        if grant := grant_for(request.headers.get("authorization"), self._grants):
            return grant, False
        grant, ends = self._sessions.get(request.cookies.get(cookie_name(request), ""), (None, 0.0))
        return (grant, True) if grant and time.time() < ends else (None, False)

    def new_code(self) -> str:
        """Return a code that stands for the first token, once and soon."""
        code = secrets.token_urlsafe(16)
        self._codes[code] = time.monotonic() + CODE_S
        return code

    def grant_for(self, code: str, token: str) -> Grant | None:
        """Return the grant of a code, which works once, or of a token."""
        if time.monotonic() < self._codes.pop(code, 0.0):
            return self._grants[0]
        return grant_for(f"Bearer {token}", self._grants)

    def begin(self, grant: Grant) -> str:
        """Begin a session, and return its cookie."""
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = (grant, time.time() + SESSION_S)
        for oldest in list(self._sessions)[:-MOST_SESSIONS]:
            del self._sessions[oldest]
        return cookie

    def end(self, request: Request) -> None:
        """End the session of a request, if it has one."""
        self._sessions.pop(request.cookies.get(cookie_name(request), ""), None)


def cookie_name(request: Request) -> str:
    """Return the cookie of a server: those of all ports of a machine are sent to each of them."""
    return f"concord_{request.headers.get('host', '').rpartition(':')[2]}"
