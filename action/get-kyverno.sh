#!/usr/bin/env bash
# Downloads the Kyverno program whose digest kyverno.sha256 names, and hands its path on as the output program.
set -euo pipefail

sums="$GITHUB_ACTION_PATH/action/kyverno.sha256"

fail() {
  echo "::error title=htrflow-campaigns::$1"
  exit 1
}

if [ "$INPUT_POLICIES" = none ]; then
  exit 0
fi
if [ -n "$INPUT_KYVERNO" ]; then
  echo "program=$INPUT_KYVERNO" >>"$GITHUB_OUTPUT"
  exit 0
fi

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) platform=linux_x86_64 ;;
  Linux-aarch64 | Linux-arm64) platform=linux_arm64 ;;
  Darwin-x86_64) platform=darwin_x86_64 ;;
  Darwin-arm64) platform=darwin_arm64 ;;
  *) fail "Kyverno is not downloaded for this runner — run on Linux or macOS, or give the path of the program in kyverno:" ;;
esac
line=$(grep -- "_$platform\.tar\.gz$" "$sums")
archive="${line#*  }"
version="${archive#*_}"
version="${version%%_*}"

folder=$(mktemp -d -- "$RUNNER_TEMP/kyverno-XXXXXX")
curl --fail --silent --show-error --location --retry 3 --max-time 600 --output "$folder/$archive" -- \
  "${INPUT_KYVERNO_RELEASES%/}/$version/$archive" ||
  fail "Kyverno $version cannot be downloaded — run the check again, or give the path of the program in kyverno:"
cd -- "$folder"
if command -v sha256sum >/dev/null; then
  digest=$(sha256sum -- "$archive")
else
  digest=$(shasum -a 256 -- "$archive")
fi
if [ "${digest%% *}" != "${line%% *}" ]; then
  fail "what was downloaded for Kyverno $version has the digest ${digest%% *} and not ${line%% *} — it is not that release"
fi
tar -xzf "$archive" kyverno
rm -- "$archive"
echo "program=$folder/kyverno" >>"$GITHUB_OUTPUT"
