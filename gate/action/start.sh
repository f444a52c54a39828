#!/usr/bin/env bash
# Find the interpreter that the input `python` names, and hand over to it.
set -euo pipefail
python="${INPUT_PYTHON:-python3}"
if ! command -v -- "$python" >/dev/null; then
  echo "::error title=compile-gate::input python: there is no interpreter \"${python//[^A-Za-z0-9_.\/ -]/?}\" here." \
    "Name the one that has torch, or add actions/setup-python before this step."
  [[ -z "${GITHUB_OUTPUT:-}" ]] || echo "exit-code=2" >>"$GITHUB_OUTPUT" || true
  exit 2
fi
# -I, -S: neither a variable nor a file of the workspace decides what the interpreter imports.
exec "$python" -I -S "$GITHUB_ACTION_PATH/gate/action/start.py"
