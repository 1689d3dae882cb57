#!/usr/bin/env bash
# Runs the check in the environment that install.sh made. -I keeps Python from the folder that it is started in.
set -euo pipefail

exec "$PYTHON" -I -m htrflow_action
