"""Who may ask over the network, and for whom: a file of tokens, each tied to one organisation.

One line a token, the organisation first: `team 4f1c…`. Nobody but its owner may read the file. Tokens are
compared by their digests in constant time, all of them each time, so that the time taken tells nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from msgspec import Struct

from concord.core.errors import BadValue
from concord.core.values import is_org

OTHERS = 0o077  # permissions that nobody but the owner may have
SHORTEST = 16  # characters: shorter ones can be guessed


class Grant(Struct, frozen=True):
    """A token's digest and the organisation that it stands for."""

    org: str
    digest: bytes

    @property
    def name(self) -> str:
        """What to call it without telling it."""
        return f"{self.org}:{self.digest.hex()[:8]}"


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
    digest = _digest(token.strip())
    matching = [grant for grant in grants if hmac.compare_digest(grant.digest, digest)]
    return matching[0] if matching and scheme.lower() == "bearer" else None


def _grant(line: str, where: str) -> Grant:
    org, _, token = line.strip().partition(" ")
    token = token.strip()
    if not is_org(org):
        raise BadValue(f"{where}: {org!r} cannot name an organisation", hint="write: ORGANISATION TOKEN")
    if len(token) < SHORTEST or not token.isascii() or any(character.isspace() for character in token):
        raise BadValue(
            f"{where}: a token has at least {SHORTEST} characters and no blanks",
            hint="`kb serve --new-token ORG` makes one",
        )
    return Grant(org, _digest(token))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
