"""Every error a user can meet: a class, a sentence, a hint. Interfaces print both; nobody parses text.

A hint that names something to do is a Hint: each interface has its own words for an action.

KBError
├─ UsageError       BadValue (NotAllowed), UnknownSetting, UnknownName, NotFound
├─ MissingExtra
├─ StoreError       SchemaTooNew, CorruptStore, ModelMismatch, VectorsElsewhere, StoreBusy
├─ ExtractionError  NotIndexable, Unreadable, Encrypted, Damaged, TooLarge
└─ Unavailable      EmbedderDown (TextsRefused), BackendDown (ReadOnlyStore), DeadlinePassed
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concord.types import Identity


class Action(StrEnum):
    """What a hint may name: something to do, or an argument to give, as the command line has it.

    Other interfaces have words of their own for some. A text has the name of an action in braces.
    """

    ADD = "`kb add PATH`"
    ADD_ALL_FILES = "`kb add PATH --pattern '**'`"
    BEGIN = "index a folder with `kb add PATH`, or search one with `--in PATH`"
    SEARCH = "`kb search`"
    SYNC = "`kb sync`"
    REMOVE = "`kb remove {source}`"
    REMOVE_WITH_NOTES = "`kb remove {source} --force`"
    LIST = "`kb list SOURCE`"
    LIST_NOTES = "`kb list notes --json`"
    NOTE = "`kb note`"
    NOTE_REMOVE = "`kb note --remove ID`"
    NOTE_EXPORT = "`kb note --export notes.jsonl`"
    STATS = "`kb stats`"
    DOCTOR = "`kb doctor`"
    REPAIR = "`kb doctor --fix`"
    BACKUP = "`kb backup`"
    RECOVER = "`kb recover`"
    MIGRATE = "`kb migrate`"
    MIGRATE_TO = "`kb migrate --to {url}`"
    MODELS_LIST = "`kb models list`"
    MODELS_ADD = "`kb models add`"
    MODELS_USE = "`kb models use`"
    EVALUATE = "`kb eval`"
    CALIBRATE = "`kb calibrate`"
    FEEDBACK = "`kb feedback`"
    CONFIG = "`kb config`"
    UPGRADE = "pip install --upgrade {package}"
    REINSTALL = "pip install --force-reinstall {package}"
    STORE = "--store"
    ORG = "--org, or KB_ORG"
    HOME = "KB_HOME"
    NAME = "another --name"
    LIMIT = "a larger --top"
    MODE = "--mode auto"
    WORDS_ONLY = "--fts-only"
    DEADLINE = "--deadline-ms"
    EF_SEARCH = "--ef-search"
    INCLUDE_SUPERSEDED = "--include-superseded"
    FORCE = "--force"


_PLACE = re.compile(r"\{(\w+)\}")
_NAMES = {action.name.lower(): action for action in Action}


class Hint(str):
    """Text that names actions, such as "{sync} embeds them, and so does {repair}".

    As a string it names them as the command line does; `worded` puts them in the words of another interface.
    An f-string makes plain text of it: `joined` does not.
    """

    action: Action  # the first thing to do
    args: Mapping[str, str]  # what it is to be done to
    text: str  # with a placeholder for each action

    def __new__(cls, action: Action, text: str = "", **args: str) -> Hint:
        """Return a hint; without text it is the name of the action alone."""
        text = text or f"{{{action.name.lower()}}}"
        hint = super().__new__(cls, _filled(text, {}, args))
        hint.action, hint.args, hint.text = action, args, text
        return hint


def worded(value: Any, words: Mapping[Action, str]) -> Any:
    """Return a text that may be a hint, or JSON that may hold some, in the words of an interface."""
    if isinstance(value, Hint):
        return _filled(value.text, words, value.args)
    if isinstance(value, dict):
        return {key: worded(item, words) for key, item in value.items()}
    return [worded(item, words) for item in value] if isinstance(value, list) else value


def joined(separator: str, *texts: str) -> str:
    """Return texts as one, which is a hint if one of them is."""
    hints = [text for text in texts if isinstance(text, Hint)]
    whole = separator.join(text.text if isinstance(text, Hint) else text for text in texts)
    if not hints:
        return whole
    return Hint(hints[0].action, whole, **{name: arg for hint in hints for name, arg in hint.args.items()})


def _filled(text: str, words: Mapping[Action, str], args: Mapping[str, str]) -> str:
    """Return a text with words in its placeholders; other braces, as in a file's name, stay as they are."""

    def word(place: re.Match[str]) -> str:
        action = _NAMES.get(place[1])
        return str(words.get(action, action)).format_map(args) if action else place[0]

    return _PLACE.sub(word, text)


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


class NotAllowed(BadValue):
    """A path outside the folders that may be indexed."""


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
