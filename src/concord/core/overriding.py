"""`override` marks a method that a protocol or a base class documents; Python 3.11 does not have it yet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

Method = TypeVar("Method")

if TYPE_CHECKING:
    from typing_extensions import override
elif sys.version_info >= (3, 12):
    from typing import override
else:

    def override(method: Method) -> Method:
        """Return the method: only type checkers read this."""
        return method


__all__ = ["override"]
