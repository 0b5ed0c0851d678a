#!/usr/bin/env bash
# Runs attend_page_test.mjs where its three needs are met; else says which is missing and exits with 77 (ctest: skipped), or with 1 when
# OCTAVO_TEST_NO_SKIP is set.
#
#     tests/attend_page_test.sh OCTAVO MODULES SCREENSHOTS
#
# MODULES: the folder where npm put playwright-core (tools/setup.sh). SCREENSHOTS: a folder for pictures of the page.
set -euo pipefail
export OCTAVO=$1 MODULES=$2 SCREENSHOTS=$3

missing() {
  printf 'SKIPPED: %s; tools/test.sh installs it\n' "$1"
  [[ -z ${OCTAVO_TEST_NO_SKIP:-} ]] || exit 1
  exit 77
}
command -v node >/dev/null || missing 'node is missing'
[[ -d $MODULES/playwright-core ]] || missing "playwright-core is missing in $MODULES"
CHROMIUM=$(command -v chromium || command -v chromium-browser) || missing 'chromium is missing'
export CHROMIUM
mkdir -p "$SCREENSHOTS"
exec node --test "$(dirname -- "${BASH_SOURCE[0]}")/attend_page_test.mjs"
