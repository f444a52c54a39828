#!/usr/bin/env bash
# Build the distributions into dist/ and check them: their metadata, their files, and the wheel installed in
# an empty environment. With a version, the sources and the changelog must name it.
#     tools/build_release.sh [0.1.0]
set -euo pipefail
cd "$(dirname "$0")/.."
sources=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' gate/version.py)
version=${1:-$sources}
[ "$version" = "$sources" ] || {
  echo "gate/version.py says $sources, not $version" >&2
  exit 2
}
grep --fixed-strings --quiet "## $version" CHANGELOG.md || {
  echo "CHANGELOG.md has no section $version" >&2
  exit 2
}
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
rm -rf dist
python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet --disable-pip-version-check "build==1.3.0" "twine==6.2.0"
"$work/build/bin/python" -m build
"$work/build/bin/twine" check --strict dist/*

python3 -m venv "$work/fresh"
"$work/fresh/bin/pip" install --quiet --disable-pip-version-check dist/*.whl
cd "$work" # away from the sources
[ "$(fresh/bin/compile-gate --version)" = "compile-gate $version" ]
fresh/bin/compile-gate schema config >/dev/null
fresh/bin/compile-gate completion bash >/dev/null
printf 'version: 1\nreference_models: true\n' >gate.yml
fresh/bin/compile-gate models >/dev/null
fresh/bin/python -c 'import gate; gate.render'
if fresh/bin/compile-gate check >check.txt 2>&1; then
  echo "a check without torch ended well" >&2
  exit 1
fi
grep --quiet torch check.txt
echo "dist/ has compile-gate $version; its wheel works in an empty environment."
