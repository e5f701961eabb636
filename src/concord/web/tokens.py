"""Tokens: who may ask over HTTP, and for which organisation. The file holds them; digests are compared."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from msgspec import Struct

from concord.core.config import Settings
from concord.core.errors import BadValue
from concord.core.values import is_org

OTHERS = 0o077  # permissions that nobody but the owner may have
SHORTEST = 16  # characters: shorter ones can be guessed


def new_token(settings: Settings, org: str) -> str:
    """Make a token for an organisation and return it.

    Raises:
        BadValue: the name cannot name an organisation, or the file of tokens is not as it must be.
    """
    return add_token(token_file(settings), org)


def grants_of(settings: Settings) -> tuple[Grant, ...]:
    """Return the tokens to serve with; none only where nobody asked for any.

    Raises:
        BadValue: the file that was named is not there, or a file has no token. To serve without tokens then
            would open to everybody what was meant for a few.
    """
    path = token_file(settings)
    if grants := read_grants(path):
        return grants
    if os.path.lexists(path):  # also a link that leads nowhere: what it led to may not be mounted
        raise BadValue(
            f"there is no token in {path}",
            hint="`kb serve --new-token ORG` adds one; to serve this machine without tokens, remove the file",
        )
    if settings["serve.tokens"]:
        raise BadValue(
            f"there is no file of tokens at {path}, which serve.tokens names",
            hint="correct serve.tokens (KB_SERVE_TOKENS), or make the file: `kb serve --new-token ORG`",
        )
    return ()


def token_file(settings: Settings) -> Path:
    """Return where the tokens are."""
    named: str = settings["serve.tokens"]
    return Path(named).expanduser() if named else Path(settings.paths.config, "tokens")


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
    digest = digest_of(token.strip())
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
    return Grant(org, digest_of(token))


def digest_of(token: str) -> bytes:
    """Return what is compared of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
