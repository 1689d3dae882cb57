#!/usr/bin/env bash
# Installs the converter and the action into an environment of their own, and hands its Python on as the output python.
# Nothing of the checkout that is checked is read: it may be anybody's.
set -euo pipefail

action="$GITHUB_ACTION_PATH"
environment="$RUNNER_TEMP/htrflow-campaigns-python"
lock="$action/requirements/action.lock"

usable() {
  command -v -- "$1" >/dev/null &&
    "$1" -I -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if ! cmp -s -- "$lock" "$environment/installed.lock"; then
  python=
  for name in python3 python python3.14 python3.13 python3.12 python3.11; do
    if usable "$name"; then
      python="$name"
      break
    fi
  done
  if [ -z "$python" ]; then
    echo '::error title=htrflow-campaigns::there is no Python 3.11 or newer with the module venv — put actions/setup-python before this step'
    exit 1
  fi
  "$python" -I -m venv --clear -- "$environment"
  "$environment/bin/python" -I -m pip install --quiet --disable-pip-version-check --no-input --only-binary :all: \
    --require-hashes --requirement "$lock"
  cp -- "$lock" "$environment/installed.lock"
fi

# The packages themselves stay where they are. Another step of this job may have run another version of them.
site=$("$environment/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$action/cmp-plugin" "$action/wrapper" "$action/action" >"$site/htrflow-campaigns.pth"
# What asks an archive for a manifest says which version it is of, and takes it from here.
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$action/cmp-plugin/htrflow_campaigns/__init__.py")
rm -rf -- "$site"/htrflow_campaigns-*.dist-info
mkdir -- "$site/htrflow_campaigns-$version.dist-info"
printf 'Metadata-Version: 2.1\nName: htrflow-campaigns\nVersion: %s\n' "$version" \
  >"$site/htrflow_campaigns-$version.dist-info/METADATA"
echo "python=$environment/bin/python" >>"$GITHUB_OUTPUT"
