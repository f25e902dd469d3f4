#!/usr/bin/env bash
# Tests the trainer's side: its style and types, the client against the embedded service, and, where there are any,
# training runs (which need the extra `train`: PyTorch, some gigabytes).
#
#   trainer/test.sh [--client] [arguments of pytest]
#
#   --client   leave the training runs out
#
# Needs Node.js with the packages of `npm ci`, and Python 3.11 to 3.13 with pip. uv is installed beside the project
# when the machine has none; nothing is installed outside this folder and uv's cache.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v uv >/dev/null; then
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --upgrade --target .uv 'uv>=0.13,<0.14'
  export PATH="$PWD/.uv/bin:$PATH"
fi

with_training=yes
if [[ "${1:-}" == "--client" ]]; then
  with_training=no
  shift
fi

# Without it each start of PyTorch's packages compiles them anew.
unset PYTHONDONTWRITEBYTECODE
# A project of its own, whatever environment this was started from.
unset VIRTUAL_ENV

export UV_PROJECT_ENVIRONMENT=.venv
uv sync --quiet --locked
uv run --no-sync ruff check .
uv run --no-sync ruff format --check .
uv run --no-sync mypy
uv run --no-sync pytest --ignore tests/train "$@"

if [[ "$with_training" == yes && -d tests/train ]]; then
  export UV_PROJECT_ENVIRONMENT=.venv-train
  uv sync --quiet --locked --extra train
  uv run --no-sync pytest tests/train "$@"
fi
