"""Which files of a source are to be indexed: one pass, one stat a file, in the same order every time.

Nothing is opened but ignore files. Links are never followed: what they point to inside the source is found
under its own name, and what is outside stays outside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from concord.core.errors import Action, BadValue, Hint, NotFound, Unreadable, UsageError
from concord.files.ignore import (
    SECRET_FILES,
    SECRET_FOLDERS,
    FolderRules,
    Rules,
    holds_no_text,
    parse,
    parse_all,
    rules_above,
    rules_in,
    unwanted_rules,
)
from concord.files.opening import unlinked_folder
from concord.files.state import storable_ns
from concord.text.clean import encodable
from concord.types import Source


class Found(NamedTuple):
    """A file to index."""

    root: str  # the folder that the walk began in
    relative: str  # the path from there, with forward slashes
    size: int
    mtime_ns: int
    ctime_ns: int  # when the system last touched it: its time can be set, this one cannot

    @classmethod
    def of(cls, root: str, relative: str, status: os.stat_result) -> Found:
        """Return a file in a state."""
        return cls(root, relative, status.st_size, storable_ns(status.st_mtime_ns), status.st_ctime_ns)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return Path(self.root, self.relative)


class Skipped(NamedTuple):
    """A file or folder that is left out, and why; `failed` if it was wanted."""

    relative: str
    reason: str
    failed: bool = False


_by_name = attrgetter("name")
Inherited = tuple[FolderRules, ...]  # of a folder and of those above it, nearest first


def walk(root: Path, patterns: Sequence[str] = (), *, max_bytes: int) -> Iterator[Found | Skipped]:
    """Yield the files of a folder, or the one file that `root` is, and what was left out for a good reason.

    Files that ignore rules or include patterns exclude are not reported. Patterns have git's syntax: `*.md`
    matches at any depth, `docs/` everything below docs.
    """
    return _walk_unlinked(os.path.realpath(root), patterns, max_bytes)


def _walk_unlinked(root: str, patterns: Sequence[str], max_bytes: int) -> Iterator[Found | Skipped]:
    is_folder = _check_root(root)
    tree = _Tree(root if is_folder else os.path.dirname(root), patterns, max_bytes)
    return tree.entries() if is_folder else tree.single(os.path.basename(root))


def walk_source(source: Source, max_bytes: int) -> Iterator[Found | Skipped]:
    """Walk over a source: yield its files, and what was left out for a good reason.

    Raises:
        Unreadable: what it was is not there any more, or may not be indexed.
    """
    path = source.path or source.name
    try:
        real = os.path.realpath(path)
    except OSError as fault:  # a link was put there, or taken away, just now
        raise _unreadable(path, fault) from fault
    is_folder = os.path.isdir(path)
    if not os.path.lexists(path):
        message, hint = (
            f"{path} is not there any more",
            "put it back, or {remove}; its index is kept until then",
        )
    elif real != path:  # it had no links when it was added
        message = f"{path} is not what was added: a link leads from there to {real} now"
        hint = "put it back, or {remove}, then {add} with what is meant; its index is kept until then"
    elif is_folder != (source.kind == "directory"):
        was, now = ("file", "folder") if is_folder else ("folder", "file")
        message, hint = f"{path} was a {was} and is a {now} now", "{remove}, then add it anew"
    else:
        try:
            return _walk_unlinked(path, source.patterns, max_bytes)
        except UsageError as refused:
            raise Unreadable(refused.message, hint=refused.hint) from refused
    raise Unreadable(message, hint=Hint(Action.REMOVE, hint, source=source.name))


def count_unlike(root: Path, patterns: Sequence[str], max_bytes: int) -> int:
    """Return how many files of a folder include patterns leave out, where they leave out all; else 0."""
    is_included = _included(patterns)
    if any(is_included(entry.relative) for entry in walk(root, patterns, max_bytes=max_bytes)):
        return 0
    return sum(isinstance(entry, Found) for entry in walk(root, max_bytes=max_bytes))


def _check_root(root: str) -> bool:
    """Return whether the root is a folder; refuse what is none and no file, and where secrets are kept."""
    try:
        mode = os.stat(root).st_mode
        is_folder = stat.S_ISDIR(mode)
        if is_folder:
            with os.scandir(root) as scan:
                next(scan, None)  # a disk that fails may open a folder and still not list it
    except (FileNotFoundError, NotADirectoryError) as fault:
        raise NotFound(f"{root} does not exist", hint="check the spelling") from fault
    except OSError as fault:
        raise _unreadable(root, fault) from fault
    if not is_folder and not stat.S_ISREG(mode):
        raise UsageError(f"{root} is neither a folder nor a file", hint="devices and pipes cannot be indexed")
    path = root.strip("/").lower()
    name, folders, files = os.path.basename(path), _rules(SECRET_FOLDERS), _rules(SECRET_FILES)
    if folders.verdict_above(path, is_folder) or (not is_folder and files.verdict(name, path, False)):
        raise UsageError(
            f"{root} is where keys or passwords are kept; it is not indexed",
            hint="copy what is not secret to another folder and add that",
        )
    return is_folder


def _rules(lines: str, prefix: str = "") -> Rules:
    return Rules(parse_all(lines.split()), prefix=prefix)


class _Tree:
    """One walk: the rules that hold everywhere in it."""

    def __init__(self, root: str, patterns: Sequence[str], max_bytes: int) -> None:
        self._root, self._place, self._max_bytes = root, _place(root), max_bytes
        self._is_included = _included(patterns)
        self._unwanted = unwanted_rules(patterns)
        above = root.strip("/").lower() + "/"  # secrets are known by their whole path, in any case of letters
        self._secret_folders, self._secret_files = _rules(SECRET_FOLDERS, above), _rules(SECRET_FILES, above)

    def single(self, name: str) -> Iterator[Found | Skipped]:
        """Yield the one file that was asked for by name: no rule ignores it."""
        path = os.path.join(self._root, name)
        try:
            status = os.lstat(path)
        except OSError as fault:  # since it was found to be a file
            raise _unreadable(path, fault) from fault
        yield self._judged(name, name, status)

    def entries(self) -> Iterator[Found | Skipped]:
        """Yield a folder's files by name, then go into its folders by name."""
        pending: list[tuple[str, Inherited]] = [("", rules_above(self._root))]
        while pending:
            prefix, rules = pending.pop()
            folder = os.path.join(self._root, prefix)
            with ExitStack() as opened:
                try:
                    entries = opened.enter_context(_listing(folder))
                except OSError as fault:
                    yield from self._lost(prefix, fault)
                    continue
                names = {entry.name for entry in entries}
                if own := rules_in(folder, names, cut=len(prefix)):
                    rules = (own, *rules)
                folders: list[str] = []
                for entry in entries:
                    answer = self._look(entry, prefix, rules)
                    if isinstance(answer, str):
                        folders.append(answer)
                    elif answer is not None:
                        yield answer
            pending.extend((name, rules) for name in reversed(folders))
        self._check_not_lost()

    def _look(self, entry: os.DirEntry[str], prefix: str, rules: Inherited) -> Found | Skipped | str | None:
        """Return what to say of an entry: a file, why not, a folder to go into, or nothing."""
        name = entry.name
        relative = prefix + name
        if encodable(name) != name:  # the file system's bytes were no text
            return Skipped(os.fsencode(relative).decode("utf-8", "backslashreplace"), "undecodable name")
        try:
            if entry.is_dir(follow_symlinks=False):
                return self._look_at_folder(name, relative, rules)
            if not self._is_included(relative) or self._is_ignored(name, relative, False, rules):
                return None
            if not entry.is_file(follow_symlinks=False):
                # A pipe, a socket or a device is never opened.
                return Skipped(relative, "link" if entry.is_symlink() else "special file")
            return self._judged(name, relative, entry.stat(follow_symlinks=False))
        except FileNotFoundError:  # deleted since the folder was listed
            return None
        except OSError as fault:
            return Skipped(relative, _sentence(fault), failed=True)

    def _lost(self, prefix: str, fault: OSError) -> Iterator[Skipped]:
        """Tell of a folder that cannot be listed; one that was deleted meanwhile is nothing to tell of."""
        self._check_not_lost()
        if not prefix:
            raise _unreadable(self._root, fault) from fault
        if not isinstance(fault, FileNotFoundError):
            yield Skipped(prefix.rstrip("/"), _sentence(fault), failed=True)

    def _check_not_lost(self) -> None:
        """Check that the root is still the folder that the walk began in.

        Where a disk was unmounted an empty folder is left, and all that was in it looks deleted.
        """
        if self._place is None or _place(self._root) != self._place:
            raise Unreadable(f"{self._root} went away while it was read", hint="sync again when it is back")

    def _look_at_folder(self, name: str, relative: str, rules: Inherited) -> Skipped | str | None:
        if self._is_ignored(name, relative, True, rules):
            return None
        if self._secret_folders.verdict(name.lower(), relative.lower(), is_folder=True):
            return Skipped(relative, "secret")
        return relative + "/"

    def _is_ignored(
        self,
        name: str,
        relative: str,
        is_folder: bool,
        rules: Inherited,
    ) -> bool:
        """Return whether the nearest ignore file that speaks of a path, or else experience, leaves it out."""
        verdicts = (own.ignored.verdict(name, relative, is_folder) for own in rules)
        if next((spoken for spoken in verdicts if spoken is not None), False):
            return True
        if not self._unwanted.verdict(name, relative, is_folder):
            return False
        return not any(own.wanted and own.wanted.verdict(name, relative, is_folder) for own in rules)

    def _judged(self, name: str, relative: str, status: os.stat_result) -> Found | Skipped:
        lower = name.lower()
        if holds_no_text(lower):
            return Skipped(relative, "binary")
        if self._secret_files.verdict(lower, relative.lower(), is_folder=False):
            return Skipped(relative, "secret")
        if status.st_size > self._max_bytes:
            return Skipped(relative, "too large")
        return Found.of(self._root, relative, status) if status.st_size else Skipped(relative, "empty")


def _included(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for the include patterns; without any, everything passes."""
    if not patterns:
        return lambda relative: True
    for pattern in patterns:
        if parse(pattern) is None:
            raise BadValue(f"{pattern!r} is not a pattern", hint="for instance *.md, docs/ or src/**/*.py")
    rules = Rules(parse_all(patterns))
    return lambda relative: bool(rules.verdict_above(relative, is_folder=False))


@contextmanager
def _listing(folder: str) -> Iterator[list[os.DirEntry[str]]]:
    """Open a folder for the block and return what is in it, by name; a link to one is not followed."""
    with unlinked_folder(folder) as opened, os.scandir(opened) as scan:
        yield sorted(scan, key=_by_name)


def _place(folder: str) -> tuple[int, int] | None:
    """Return what tells a folder from another of the same name; None if it cannot be looked at."""
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _unreadable(root: str, fault: OSError) -> Unreadable:
    return Unreadable(
        f"{root} cannot be read: {_sentence(fault)}",
        hint="check its disk and its permissions; what is indexed of it is kept",
    )


def _sentence(fault: OSError) -> str:
    return (fault.strerror or str(fault)).lower()
