"""Who a browser is: a token or a one-time code becomes a cookie that no script can read.

The code is for `#code=…` in an address that a program opens: whoever reads the address later is too late.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

from starlette.requests import Request

from concord.web.tokens import Grant, grant_for

CODE_S = 120  # how long a browser may take to start
SESSION_S = 30 * 24 * 3600.0
MOST_SESSIONS = 200  # the oldest make way


def new_code(secret: str) -> str:
    """Return a code that whoever has the secret takes once, soon."""
    return _signed(f"{int(time.time()) + CODE_S}.{secrets.token_urlsafe(16)}", secret)


def _signed(text: str, secret: str) -> str:
    return f"{text}.{hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()}"


class Keys:
    """The tokens of a server, and the browsers that came with one."""

    def __init__(self, grants: tuple[Grant, ...], secret: str = "") -> None:
        """Know the tokens; with a secret, codes made with it stand for the first token."""
        self._grants = grants
        self._secret = secret
        self._used: dict[str, float] = {}  # codes, and when they would have ended
        self._sessions: dict[str, tuple[Grant, float]] = {}

    @property
    def is_open(self) -> bool:
        """Whether nobody needs a token."""
        return not self._grants

    def grant_of(self, request: Request) -> tuple[Grant | None, bool]:
        """Return the grant that a request has, and whether it has it by a cookie alone."""
        if grant := self.grant_for_token(request.headers.get("authorization")):
            return grant, False
        cookie = request.cookies.get(cookie_name(request), "")
        grant, ends = self._sessions.get(_digest(cookie), (None, 0.0))
        return (grant, True) if grant and time.time() < ends else (None, False)

    def grant_for_token(self, authorization: str | None) -> Grant | None:
        """Return the grant that an Authorization header presents the token of."""
        return grant_for(authorization, self._grants)

    def grant_for_code(self, code: str) -> Grant | None:
        """Return the grant of a code, once."""
        text, _, _ = code.rpartition(".")
        ends, now = text.partition(".")[0], time.time()
        is_ours = bool(self._secret) and hmac.compare_digest(
            _signed(text, self._secret).encode(), code.encode("utf-8", "replace")
        )
        if not is_ours or code in self._used or now > int(ends):
            return None
        self._used = {used: end for used, end in self._used.items() if end > now} | {code: int(ends)}
        return self._grants[0]

    def begin(self, grant: Grant) -> str:
        """Begin a session, and return its cookie."""
        cookie = secrets.token_urlsafe(32)
        self._sessions[_digest(cookie)] = (grant, time.time() + SESSION_S)
        for oldest in list(self._sessions)[:-MOST_SESSIONS]:
            del self._sessions[oldest]
        return cookie

    def end(self, request: Request) -> None:
        """End the session of a request, if it has one."""
        self._sessions.pop(_digest(request.cookies.get(cookie_name(request), "")), None)


def cookie_name(request: Request) -> str:
    """Return the cookie of a server: those of all ports of a machine are sent to each of them."""
    return f"concord_{request.headers.get('host', '').rpartition(':')[2]}"


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()
