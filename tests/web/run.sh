#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/web/run.sh PROGRAM [FILE…]
#
# The tests of the report page in a real browser. Exits with 77 and a sentence where something they need is not there.
set -euo pipefail
program=$(realpath "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")"

skip() {
  echo "tests/web: skipped: $1" >&2
  exit 77
}
command -v node >/dev/null || skip "there is no Node.js ('script/setup web' gets it)"
node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' || skip "Node.js $(node --version) is older than 20"
[[ -d node_modules/playwright-core && -d node_modules/axe-core ]] ||
  skip "the packages of tests/web/package-lock.json are not there ('script/setup web', or 'npm ci' in tests/web)"
node -e 'import("./page.mjs").then((m) => process.exit(m.findChromium() ? 0 : 1))' ||
  skip "there is no Chromium (the package chromium, or CHROMIUM=PATH)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! "$program" profile zoo:tiny_mlp -q -n 1 -o "$folder/x.html" 2>"$folder/said"; then
  grep -q "has no report page" "$folder/said" && skip "this build has no report page"
  cat "$folder/said" >&2
  exit 1
fi
(($#)) || set -- ./*.test.mjs
SONDE_PROGRAM=$program node --test --test-concurrency=1 --test-reporter=spec "$@"
