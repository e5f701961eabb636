#!/bin/sh
# Build a wheel and an sdist into dist/, check them, and search with each in a clean environment.
set -eu
python=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KB_HOME="$work/home" KB_ENGINE_START=never # nothing stays

"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check build twine
rm -rf "$root/dist"
"$work/tools/bin/python" -m build --outdir "$root/dist" "$root" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/tools/bin/twine" check --strict "$root"/dist/*.whl "$root"/dist/*.tar.gz

cd "$work" # away from the sources
mkdir notes
echo 'A session token is valid for 24 hours.' >notes/tokens.md
for built in "$root"/dist/*.whl "$root"/dist/*.tar.gz; do
    rm -rf clean
    "$python" -m venv clean
    clean/bin/pip install --quiet --disable-pip-version-check "$built"
    clean/bin/kb search 'how long is a token valid' --in notes
done
if command -v uvx >/dev/null; then
    uvx --from "$(ls "$root"/dist/*.whl)" kb search 'how long is a token valid' --in notes
fi
ls -l "$root/dist"
