"""Files that a walk leaves out unasked: the useless, the generated, the secret, those that hold no text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from concord.files.gitignore import Rules, parse_all

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
    "build": (
        "setup.py",
        "pyproject.toml",
        "package.json",
        "build.gradle",
        "build.gradle.kts",
        "CMakeLists.txt",
    ),
    "dist": ("setup.py", "pyproject.toml", "package.json"),
    "target": ("Cargo.toml", "pom.xml", "build.sbt"),
    "vendor": ("composer.json", "go.mod", "Gemfile"),
    "deps": ("mix.exs",),
    "_build": ("conf.py", "mix.exs", "dune-project"),
    "_site": ("_config.yml",),
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
png jpg jpeg jpe gif bmp tif tiff webp ico icns heic heif avif psd xcf ai eps cr2 nef dng
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
    return {name: markers for name, markers in GENERATED.items() if not _is_named(name, patterns)}


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    parts = [part for pattern in patterns for part in pattern.split("/")]
    return any(part.endswith(name[1:]) for part in parts) if name[0] == "*" else name in parts
