"""URLs as they may be shown: whoever reads a log or a terminal need not learn a password."""

from __future__ import annotations

import re

# What follows the first colon is a password unless it is a port. One in which somebody forgot to encode a
# slash or an @ is no less secret, so all is hidden up to the last @ before the options.
_PASSWORD = re.compile(r"(?<=://)([^/@:?]*):(?!\d+(?:[/?]|$))[^?]*@")
_OPTION = re.compile(r"([?&](?:ssl)?password=)[^&]*")
_LAST_OPTION = re.compile(r"[?&](?:ssl)?password=[^&]*$")
_EARLIER_OPTION = re.compile(r"(?<=[?&])(?:ssl)?password=[^&]*&")


def without_password(url: str, instead: str = "***") -> str:
    """Return a URL with `instead` in the place of its password; if that is empty, as if it never had one.

    An empty password is not the same: libpq would take it, and not what PGPASSWORD says.
    """
    if instead:
        return _OPTION.sub(rf"\1{instead}", _PASSWORD.sub(rf"\1:{instead}@", url))
    return _LAST_OPTION.sub("", _EARLIER_OPTION.sub("", _PASSWORD.sub(r"\1@", url)))
