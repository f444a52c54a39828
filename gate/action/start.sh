#!/usr/bin/env bash
# Find the interpreter that the input `python` names, and hand over to it.
set -euo pipefail
if ! command -v -- "$INPUT_PYTHON" >/dev/null; then
  echo "::error title=compile-gate::input python: there is no interpreter \"${INPUT_PYTHON//[^A-Za-z0-9_.\/ -]/?}\" here." \
    "Name the one that has torch, or add actions/setup-python before this step."
  exit 2
fi
exec "$INPUT_PYTHON" "$GITHUB_ACTION_PATH/gate/action/start.py"
