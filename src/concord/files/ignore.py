"""Which files are left out? Those that git would ignore, and those that nobody wants to search."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from concord.files.opening import open_regular

IGNORE_FILES = (".gitignore", ".kbignore")  # both git's syntax; within a folder the later has the last word
MAX_IGNORE_BYTES = 1_000_000

_WILD = re.compile(r"[*?\[\\]")
_BRACKET = re.compile(r"\[([!^]?)(\]?(?:\\.|[^\]\\])*+)\]", re.DOTALL)
_BRACKET_ITEM = re.compile(r"(\\.|.)(?:-(\\.|[^\]]))?", re.DOTALL)  # a character or a range


class Pattern(NamedTuple):
    """One line of an ignore file."""

    ignores: bool  # False for a !line, which takes back
    folders_only: bool
    by_name: bool  # it has no slash, and is matched against the last part of a path
    last: str  # its own last part
    regex: str  # compiled when a path first comes near: most never are

    def speaks_of(self, name: str, path: str, is_folder: bool) -> bool:
        """Return whether the line is about this path."""
        if self.folders_only and not is_folder:
            return False
        return _compiled(self.regex).fullmatch(name if self.by_name else path) is not None


@lru_cache(maxsize=4096)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)


def parse(line: str) -> Pattern | None:
    """Return what a line says; None for a comment, an empty line and what makes no sense to git either."""
    body = _without_trailing_spaces(line)
    if body.startswith("#"):
        return None
    ignores = not body.startswith("!")
    body = body if ignores else body[1:]
    bare = body.removesuffix("/")
    parts = bare.removeprefix("/").split("/")
    if not any(parts):
        return None
    try:
        regex = _path_regex(parts) if "/" in bare else _part_regex(bare)
    except ValueError:
        return None
    return Pattern(ignores, body != bare, "/" not in bare, parts[-1], regex)


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    escaped = (len(kept) - len(kept.rstrip("\\"))) % 2 == 1
    return kept + " " if escaped and kept != line else kept


def _path_regex(parts: Sequence[str]) -> str:
    """Return a regular expression for a pattern with slashes.

    What stands between two ** may match at the first place where it can, for what follows can then match
    wherever it could have matched: the group is atomic, and a crafted pattern costs no more than its length.
    """
    runs: list[list[str]] = [[]]  # of parts, between the **
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_part_regex(part))
    first, *others = ("/".join(run) for run in runs)
    if not others:
        return first
    last = others.pop()
    between = "".join(rf"(?>(?:[^/]+/)*?{run}/)" for run in others if run)
    start = first + "/" if first else ""
    return start + between + (rf"(?:[^/]+/)*{last}" if last else ".+")


def _part_regex(part: str) -> str:
    """Return a regular expression for the pattern of one name; atomic between stars, as above."""
    if not _WILD.search(part):
        return re.escape(part)
    pieces = [""]  # between the stars
    at = 0
    while at < len(part):
        if part[at] == "*":
            pieces.append("")
            at += 1
        else:
            piece, at = _one_character(part, at)
            pieces[-1] += piece
    first, *others = pieces
    if not others:
        return first
    last = others.pop()
    return first + "".join(f"(?>[^/]*?{piece})" for piece in others if piece) + f"[^/]*{last}"


def _one_character(part: str, at: int) -> tuple[str, int]:
    """Return what matches the one character that a pattern asks for at this place, and the place after it."""
    if part[at] == "?":
        return "[^/]", at + 1
    if part[at] == "[":
        bracket = _BRACKET.match(part, at)
        if bracket is None:
            raise ValueError("a bracket without its end")
        return f"(?!/)[{'^' if bracket[1] else ''}{_bracket_inside(bracket[2])}]", bracket.end()
    if part[at] == "\\" and at + 1 == len(part):
        raise ValueError("a backslash with nothing after it")
    at += part[at] == "\\"
    return re.escape(part[at]), at + 1


def _bracket_inside(inside: str) -> str:
    return "".join(_bracket_item(*found.groups()) for found in _BRACKET_ITEM.finditer(inside))


def _bracket_item(low: str, high: str | None) -> str:
    ends = [end[-1] for end in (low, high) if end]  # the last character: a backslash may come before it
    if sorted(ends) != ends:
        raise ValueError("a range that ends before it begins")
    return "-".join(map(re.escape, ends))


class Rules:
    """What one folder's ignore files say of what lies below it."""

    def __init__(self, patterns: Sequence[Pattern], *, cut: int = 0, prefix: str = "") -> None:
        """Take patterns; their folder is `cut` characters below the walk's root, or above it by `prefix`."""
        self._cut = cut
        self._prefix = prefix
        self._patterns = tuple(reversed(patterns))  # the last one that speaks of a path decides
        lasts = {pattern.last for pattern in patterns if pattern.last.strip("*")}
        self._literals = frozenset(last for last in lasts if not _WILD.search(last))
        self._suffixes = tuple(last[1:] for last in lasts if last[0] == "*" and not _WILD.search(last[1:]))
        self._prefixes = tuple(last[:-1] for last in lasts if last[-1] == "*" and not _WILD.search(last[:-1]))
        known = {*self._literals, *("*" + s for s in self._suffixes), *(p + "*" for p in self._prefixes)}
        self._names = _any_of(_part_regex(last) for last in lasts - known)
        starry = [pattern for pattern in patterns if not pattern.last.strip("*")]
        self._paths = _any_of(".+" if pattern.by_name else pattern.regex for pattern in starry)

    def verdict(self, name: str, path: str, is_folder: bool) -> bool | None:
        """Return whether a path is ignored (True), taken back (False) or not spoken of (None).

        `path` is from the walk's root, `name` its last part.
        """
        if (
            name in self._literals
            or name.endswith(self._suffixes)
            or name.startswith(self._prefixes)
            or (self._names is not None and self._names.fullmatch(name))
            or (self._paths is not None and self._paths.fullmatch(self._prefix + path[self._cut :]))
        ):
            return self._decide(name, self._prefix + path[self._cut :], is_folder)
        return None

    def verdict_above(self, path: str, is_folder: bool) -> bool | None:
        """Return the verdict on a path, or that on the nearest folder above it that has one."""
        while path:
            above, _, name = path.rpartition("/")
            spoken = self.verdict(name, path, is_folder)
            if spoken is not None:
                return spoken
            path, is_folder = above, True
        return None

    def _decide(self, name: str, path: str, is_folder: bool) -> bool | None:
        for pattern in self._patterns:
            if pattern.speaks_of(name, path, is_folder):
                return pattern.ignores
        return None


def _any_of(expressions: Iterable[str]) -> re.Pattern[str] | None:
    joined = "|".join(f"(?:{expression})" for expression in expressions)
    return re.compile(joined) if joined else None


def parse_all(lines: Iterable[str]) -> list[Pattern]:
    """Return the lines that say something."""
    return [pattern for line in lines if (pattern := parse(line)) is not None]


class FolderRules(NamedTuple):
    """The rules of one folder, and what its .kbignore asks for although it would be left out."""

    ignored: Rules
    wanted: Rules | None


def rules_in(folder: str, names: Collection[str], *, cut: int = 0, prefix: str = "") -> FolderRules | None:
    """Return the rules that a folder's ignore files set, if any; `names` is what is in the folder."""
    found = {name: parse_all(_lines(folder, name)) for name in IGNORE_FILES if name in names}
    if ".git" in names:
        found = {"exclude": parse_all(_lines(folder, ".git/info/exclude")), **found}
    patterns = [pattern for group in found.values() for pattern in group]
    if not patterns:
        return None
    # `!*` takes back everything that this file ignores, and names nothing that nobody ever wants.
    taken_back = [p for p in found.get(".kbignore", ()) if not p.ignores and p.last.strip("*")]
    asked = [pattern._replace(ignores=True) for pattern in taken_back]
    wanted = Rules(asked, cut=cut, prefix=prefix) if asked else None
    return FolderRules(Rules(patterns, cut=cut, prefix=prefix), wanted)


def rules_above(root: str) -> tuple[FolderRules, ...]:
    """Return the rules of the git repository that a folder lies in, nearest first.

    None of them, if they ignore the folder itself: who names it wants it.
    """
    found: list[FolderRules] = []
    folder, prefix = root, ""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above, name = os.path.split(folder)
        if above == folder:
            return ()  # no repository
        folder, prefix = above, f"{name}/{prefix}"
        names = (*IGNORE_FILES, ".git")
        if own := rules_in(folder, names):
            if own.ignored.verdict_above(prefix[:-1], is_folder=True):
                return ()
            found.append(rules_in(folder, names, prefix=prefix) or own)
    return tuple(found)


def _lines(folder: str, name: str) -> Sequence[str]:
    """Return the lines of an ignore file; none, if it is not a regular file that can be read."""
    try:
        with open(os.path.join(folder, name), "rb", opener=open_regular) as file:
            data = file.read(MAX_IGNORE_BYTES)
    except OSError:
        return ()
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")


# What is almost never worth finding: what tools install, cache, lock or minify. Names that may be somebody's
# own (build, vendor …) are below. A .kbignore takes one back with !name, a --pattern by naming it.
UNWANTED = """
.git .hg/ .svn/ .bzr/ .jj/ CVS/ _darcs/
node_modules/ bower_components/ jspm_packages/ .pnpm-store/ .yarn/ site-packages/ Pods/
__pycache__/ .venv/ venv/ .tox/ .nox/ .eggs/ *.egg-info/ .direnv/ .bundle/
.cache/ .mypy_cache/ .pytest_cache/ .ruff_cache/ .hypothesis/ .ipynb_checkpoints/ .sass-cache/ .parcel-cache/
.gradle/ .terraform/ .serverless/ .next/ .nuxt/ .svelte-kit/ .turbo/ .angular/ .dart_tool/ .stack-work/
.idea/ .vs/ htmlcov/ .nyc_output/ DerivedData/ elm-stuff/ .Trash/ $RECYCLE.BIN/ .Spotlight-V100/ .fseventsd/
.gitignore .gitattributes .gitmodules .gitkeep .kbignore .hgignore .dockerignore .npmignore .eslintignore
.prettierignore .DS_Store Thumbs.db desktop.ini
package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock deno.lock packages.lock.json
Cargo.lock poetry.lock uv.lock pdm.lock Pipfile.lock composer.lock
Gemfile.lock go.sum flake.lock mix.lock pubspec.lock
Podfile.lock gradle.lockfile .terraform.lock.hcl
*.min.js *.min.css *.js.map *.css.map *.svg *~ *.swp *.swo *.tmp *.part *.crdownload .#* ~$*
"""

# Folders that are output only beside the file that says so: elsewhere they may be documentation about builds.
GENERATED = {
    "build": "setup.py pyproject.toml package.json build.gradle build.gradle.kts CMakeLists.txt",
    "dist": "setup.py pyproject.toml package.json",
    "target": "Cargo.toml pom.xml build.sbt",
    "vendor": "composer.json go.mod Gemfile",
    "deps": "mix.exs",
    "_build": "conf.py mix.exs dune-project",
    "_site": "_config.yml",
}

SECRET_FOLDERS = """
.ssh/ .gnupg/ .aws/ .azure/ .kube/ .password-store/ **/.config/gcloud/
"""

SECRET_FILES = """
*.pem *.key *.p12 *.pfx *.kdbx *.keystore *.jks *.ppk id_rsa* id_dsa* id_ecdsa* id_ed25519*
.env .env.* !.env.example !.env.sample !.env.template !.env.dist .envrc
.netrc _netrc .npmrc .pypirc .pgpass .my.cnf .htpasswd .git-credentials .vault-token credentials
credentials.json secrets.json secrets.yaml secrets.yml secrets.toml client_secret*.json service-account*.json
terraform.tfstate terraform.tfstate.* wallet.dat **/.docker/config.json
"""

# Endings of the names of files without text. None that an extractor may read is among them.
_NO_TEXT = """
jpe ico icns heic heif avif psd xcf ai eps cr2 nef dng
mp3 m4a aac ogg oga opus flac wav wma aif aiff mid midi mp4 m4v mov avi mkv webm wmv flv mpg mpeg 3gp
zip tar gz tgz bz2 tbz2 xz txz zst lz4 lzma 7z rar jar war ear whl egg apk ipa deb rpm dmg iso img cab msi
ttf otf woff woff2 eot pfb fon
o a so dylib dll exe lib class pyc pyo pyd wasm elc beam bin pdb
db sqlite sqlite3 sqlite-wal sqlite-shm db-wal db-shm db-journal db-begun mdb accdb parquet feather arrow
avro orc npy npz pkl pickle h5 hdf5 pt pth ckpt onnx safetensors gguf tflite joblib rds rdata
blend fbx glb stl dwg skp swf fla pack idx lockb
"""
NO_TEXT = frozenset(_NO_TEXT.split())


def holds_no_text(name: str) -> bool:
    """Return whether a file of this name, in lower case, is not even looked at: nobody could read it."""
    name = name.removesuffix(".gz")  # what is packed may be a document: ls.1.gz, changelog.gz
    _, dot, ending = name.rpartition(".")
    return bool(dot) and ending in NO_TEXT


def unwanted_rules(patterns: Sequence[str]) -> Rules:
    """Return the rules for useless names, but for those that an include pattern names."""
    return Rules(parse_all(line for line in UNWANTED.split() if not _is_named(line.strip("/"), patterns)))


def generated_markers(patterns: Sequence[str]) -> dict[str, Collection[str]]:
    """Return which neighbours mark a folder as generated, but for folders that an include pattern names."""
    return {name: row.split() for name, row in GENERATED.items() if not _is_named(name, patterns)}


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    parts = [part for pattern in patterns for part in pattern.split("/")]
    return any(part.endswith(name[1:]) for part in parts) if name[0] == "*" else name in parts
