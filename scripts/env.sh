# Sourced by the other scripts: `use_environment VENV PYTHON EXTRAS` makes a virtual environment in the clone, installs
# graphmem into it (editable) and does nothing when both were done for this pyproject.toml before.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Print the first Python of 3.11 or later among the arguments that runs.
suitable_python() {
  local candidate
  for candidate in "$@"; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
  echo "graphmem needs Python 3.11 or later: install one, or name it: PYTHON=/path/to/python $0" >&2
  exit 1
}

use_environment() {
  local venv=$1 python=$2 extras=$3
  local stamp="$venv/graphmem-$extras.stamp" now
  now=$(cksum < pyproject.toml)
  if [ "$(cat "$stamp" 2>/dev/null)" != "$now" ]; then
    echo "setting up $venv" >&2
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$extras]"
    echo "$now" > "$stamp"
  fi
}

PYTHON=$(suitable_python ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11)
