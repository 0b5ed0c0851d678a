#!/usr/bin/env bash
# Builds octavo with warnings as errors and runs every test but the slow ones. Installs what they need, also a browser for the page of
# `octavo attend`; where there is none to be had, its test is named as skipped.
#
#     tools/test.sh [--torch] [--no-install]
#
# --torch: installs PyTorch too, for the tests of train.py and convert_nanogpt.py; then no test may be skipped. Without it they
# run where PyTorch is there and are named as skipped where it is not.
# --no-install: test with what is there, for other systems and for those without the right to install.
set -euo pipefail
cd -- "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source-path=SCRIPTDIR/..
source tools/setup.sh

install=1 packages=("${build_packages[@]}")
for argument; do
  case $argument in
    --torch)
      packages+=("${torch_packages[@]}")
      export OCTAVO_TEST_NO_SKIP=1
      ;;
    --no-install) install=0 ;;
    *) printf 'test.sh: unknown argument %s; there are --torch and --no-install\n' "$argument" >&2 && exit 2 ;;
  esac
done

if ((install)); then
  install_missing "${packages[@]}"
  install_browser
fi
build dev
run_tests dev
