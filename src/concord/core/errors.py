"""Every error a user can meet: a class, a sentence, a hint. Faces print both; nobody parses text.

KBError
├─ UsageError                   the request cannot be carried out as asked
│  ├─ BadValue                  a value outside what is allowed
│  ├─ UnknownSetting            a configuration key that does not exist
│  ├─ UnknownName               no embedder, backend, extractor … of that name
│  └─ NotFound                  no such source, document, citation or path
├─ MissingExtra                 an optional package is not installed
├─ StoreError                   the store cannot be used as it is
│  ├─ SchemaTooNew              written by a newer program
│  ├─ CorruptStore              damaged, or not a Concord database
│  ├─ ModelMismatch             the index was built with another embedding model
│  ├─ VectorsElsewhere          its vectors are kept in another place than `vectors.url` says
│  └─ StoreBusy                 another process holds it for too long
├─ ExtractionError              one file cannot be turned into text
│  ├─ NotIndexable              there is nothing to index in it: skipped and counted, not a failure
│  ├─ Unreadable                missing, forbidden or changing while it is read
│  ├─ Encrypted                 needs a password
│  ├─ Damaged                   truncated, malformed or dangerous
│  └─ TooLarge                  over a size, time or memory limit
└─ Unavailable                  a part that may work again later
   ├─ EmbedderDown
   │  └─ TextsRefused           it works, but not for some of the texts
   ├─ BackendDown
   │  └─ ReadOnlyStore          it can be read, and not written
   └─ DeadlinePassed
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concord.types import Identity


class KBError(Exception):
    """A fault with a sentence for people and a hint that says what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(KBError):
    """The request cannot be carried out as asked."""


class BadValue(UsageError):
    """A value outside what is allowed."""


class UnknownSetting(UsageError):
    """A configuration key that does not exist."""


class UnknownName(UsageError):
    """No part of that name is known."""


class NotFound(UsageError):
    """No such source, document, citation or path."""


class MissingExtra(KBError):
    """An optional package is not installed."""


class StoreError(KBError):
    """The store cannot be used as it is."""


class SchemaTooNew(StoreError):
    """The store was written by a newer program."""


class CorruptStore(StoreError):
    """The store is damaged, or is not a Concord database."""


class ModelMismatch(StoreError):
    """The index was built with another embedding model."""


class VectorsElsewhere(StoreError):
    """The store's vectors are kept in another place than `vectors.url` says."""


class StoreBusy(StoreError):
    """Another process holds the store for too long."""


class ExtractionError(KBError):
    """One file cannot be turned into text."""


class NotIndexable(ExtractionError):
    """There is no text in the file (an image, a scan, nothing at all): skipped and counted, not a failure."""


class Unreadable(ExtractionError):
    """The file is missing, forbidden or changing while it is read."""


class Encrypted(ExtractionError):
    """The file needs a password."""


class Damaged(ExtractionError):
    """The file is truncated, malformed or dangerous to open."""


class TooLarge(ExtractionError):
    """The file is over a size, time or memory limit."""


class Unavailable(KBError):
    """A part that does not answer now and may work again later."""


class EmbedderDown(Unavailable):
    """The embedding provider does not answer, or answers nonsense."""


class TextsRefused(EmbedderDown):
    """The embedding provider refuses some texts; the vectors of the others come with the refusal."""

    def __init__(
        self, message: str, *, hint: str | None = None, vectors: Sequence[bytes | None] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.vectors = vectors  # one a text, in order; None for those that were refused


class BackendDown(Unavailable):
    """The store's server does not answer, or its disk refuses."""


class ReadOnlyStore(BackendDown):
    """The store can be read, but this process may not write it."""


class DeadlinePassed(Unavailable):
    """The time allowed for a piece of work ran out."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was likely meant by one that nobody knows; None if there is none."""
    import difflib  # late: it takes longer than most commands spend on their arguments

    return next(iter(difflib.get_close_matches(word, list(known), n=1)), None)


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the hint for a word that nobody knows: the one that was likely meant, if there is any."""
    meant = nearest(word, known)
    return f"did you mean {meant}?" if meant else otherwise


def shown(value: object, most: int = 60) -> str:
    """Return what somebody gave, quoted, for a sentence that has to stay readable."""
    if isinstance(value, str):
        return repr(value if len(value) <= most else value[:most] + "…")
    text = repr(value)
    return text if len(text) <= most else text[:most] + "…"


def wrong_dimension(identity: Identity, got: int) -> EmbedderDown:
    """Return the error for a model whose vectors have another dimension than it is known for."""
    return EmbedderDown(
        f"{identity.model} answers with {got} dimensions, not with {identity.dimension}",
        hint="see which model the provider has loaded",
    )


def reason_of(fault: Exception) -> str:
    """Return what an answer says of a fault."""
    return fault.message if isinstance(fault, KBError) else f"{type(fault).__name__}: {fault}"
