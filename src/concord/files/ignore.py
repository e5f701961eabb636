"""Which files are left out? Those that git would ignore, and those that nobody wants to search."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from concord.files.opening import open_regular

IGNORE_FILES = (".gitignore", ".kbignore")  # both git's syntax; within a folder the later has the last word
MAX_IGNORE_BYTES = 1_000_000

_WILD = re.compile(r"[*?\[\\]")
# A star, a question mark, a bracket, or one character, with a backslash before it or not.
_TOKEN = re.compile(r"\*+|\?|\[([!^]?)(\]?(?:\\.|[^\]\\])*+)\]|\\?(.)", re.DOTALL)
_BRACKET_ITEM = re.compile(r"\\?(.)(?:-\\?([^\]]))?", re.DOTALL)  # a character or a range


class Pattern(NamedTuple):
    """One line of an ignore file."""

    ignores: bool  # False for a !line, which takes back
    by_name: bool  # it has no slash, and is matched against the last part of a path
    last: str  # its own last part
    regex: str  # of a name or a path; that of a folder ends with a slash


def parse(line: str) -> Pattern | None:
    """Return what a line says; None for a comment, an empty line and what makes no sense to git either."""
    body = line.rstrip(" ")
    if body != line and (len(body) - len(body.rstrip("\\"))) % 2:
        body += " "  # the backslash before it keeps it
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
    return Pattern(ignores, "/" not in bare, parts[-1], regex + ("/" if body != bare else "/?"))


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
    """Return a regular expression for the pattern of one name; atomic between stars, as above.

    Raises:
        ValueError: it makes no sense.
    """
    if not part.strip("*"):
        return "[^/]+"
    pieces = [""]  # between the stars
    for token in _TOKEN.finditer(part):
        negation, inside, character = token.groups()
        if token[0][0] == "*":
            pieces.append("")
        elif token[0] == "?":
            pieces[-1] += "[^/]"
        elif inside is not None:
            items = "".join(_bracket_item(*item.groups()) for item in _BRACKET_ITEM.finditer(inside))
            pieces[-1] += f"(?!/)[{'^' if negation else ''}{items}]"
        elif token[0] in ("[", "\\"):
            raise ValueError("a bracket without its end, or a backslash with nothing after it")
        else:
            pieces[-1] += re.escape(character)
    first, *others = pieces
    if not others:
        return first
    last = others.pop()
    return first + "".join(f"(?>[^/]*?{piece})" for piece in others if piece) + f"[^/]*{last}"


def _bracket_item(low: str, high: str | None) -> str:
    if high is None:
        return re.escape(low)
    if high < low:
        raise ValueError("a range that ends before it begins")
    return f"{re.escape(low)}-{re.escape(high)}"


class Rules:
    """What one folder's ignore files say of what lies below it; of several lines, the last one decides."""

    def __init__(self, patterns: Sequence[Pattern], *, cut: int = 0, prefix: str = "") -> None:
        """Take patterns; their folder is `cut` characters below the walk's root, or above it by `prefix`."""
        self._cut, self._prefix, self._patterns = cut, prefix, patterns
        self._literals: dict[str, int] = {}  # most names are not wild: the number of a line by what it names
        for at, found in enumerate(patterns):
            if found.by_name and not _WILD.search(found.last):
                ends = ("/",) if found.regex.endswith("/") else ("", "/")
                self._literals |= {found.last + end: at for end in ends}
        self._names, self._named = self._wild(by_name=True)
        self._paths, self._pathed = self._wild(by_name=False)

    def _wild(self, *, by_name: bool) -> tuple[re.Pattern[str], list[int]]:
        """Return an expression with a group for each line that is no literal, the last line first."""
        numbers = [
            at
            for at, found in reversed([*enumerate(self._patterns)])
            if found.by_name == by_name and (_WILD.search(found.last) or not by_name)
        ]
        return re.compile("|".join(f"{self._patterns[at].regex}()" for at in numbers) or "(?!)"), numbers

    def verdict(self, name: str, path: str, is_folder: bool) -> bool | None:
        """Return whether a path is ignored (True), taken back (False) or not spoken of (None).

        `path` is from the walk's root, `name` its last part.
        """
        end = "/" if is_folder else ""
        line = self._literals.get(name + end, -1)
        if (found := self._names.fullmatch(name + end)) and found.lastindex:
            line = max(line, self._named[found.lastindex - 1])
        if self._pathed:
            found = self._paths.fullmatch(f"{self._prefix}{path[self._cut :]}{end}")
            line = max(line, self._pathed[found.lastindex - 1]) if found and found.lastindex else line
        return self._patterns[line].ignores if line >= 0 else None

    def verdict_above(self, path: str, is_folder: bool) -> bool | None:
        """Return the verdict on a path, or that on the nearest folder above it that has one."""
        while path:
            above, _, name = path.rpartition("/")
            spoken = self.verdict(name, path, is_folder)
            if spoken is not None:
                return spoken
            path, is_folder = above, True
        return None


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


# What is almost never worth finding: what tools install, cache, lock or minify, but no name that may be
# somebody's own (build, vendor …). A .kbignore takes one back with !name, a --pattern by naming it.
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
*.min.js *.min.css *.js.map *.css.map *~ *.swp *.swo *.tmp *.part *.crdownload .#* ~$*
"""

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
    _, dot, ending = name.rpartition(".")
    return bool(dot) and ending in NO_TEXT


def unwanted_rules(patterns: Sequence[str]) -> Rules:
    """Return the rules for useless names, but for those that an include pattern names."""
    return Rules(parse_all(line for line in UNWANTED.split() if not _is_named(line.strip("/"), patterns)))


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    parts = [part for pattern in patterns for part in pattern.split("/")]
    return any(part.endswith(name[1:]) for part in parts) if name[0] == "*" else name in parts
