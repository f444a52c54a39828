#!/usr/bin/env bash
# Build the distributions of the version named, and check that it is the one the sources say.
#     tools/build_release.sh 0.1.0
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?name the version}
grep --fixed-strings --line-regexp --quiet "__version__ = \"$version\"" gate/version.py || {
  echo "gate/version.py does not say $version" >&2
  exit 2
}
grep --fixed-strings --quiet "## $version" CHANGELOG.md || {
  echo "CHANGELOG.md has no section $version" >&2
  exit 2
}
rm -rf dist
python -m venv "${RUNNER_TEMP:-/tmp}/build"
"${RUNNER_TEMP:-/tmp}/build/bin/pip" install --quiet "build==1.3.0" "twine==6.2.0"
"${RUNNER_TEMP:-/tmp}/build/bin/python" -m build
"${RUNNER_TEMP:-/tmp}/build/bin/twine" check --strict dist/*
