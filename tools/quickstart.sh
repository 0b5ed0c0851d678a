#!/usr/bin/env bash
# From a fresh clone to text: installs what is missing (Debian and Ubuntu), builds octavo and writes four passages.
#
#     tools/quickstart.sh [--no-install]
#
# --no-install: build with what is there, for other systems and for those without the right to install.
set -euo pipefail
cd -- "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source-path=SCRIPTDIR/..
source tools/setup.sh

install=1
for argument; do
  case $argument in
    --no-install) install=0 ;;
    *) printf 'quickstart.sh: unknown argument %s; there is only --no-install\n' "$argument" >&2 && exit 2 ;;
  esac
done

if ((install)); then install_missing "${build_packages[@]}"; fi
build release --target octavo

command=(build/release/octavo generate --model small --samples 4 --max-chars 300 --seed 1 --prompt ROMEO:)
printf '\n$ %s\n\n' "${command[*]}"
"${command[@]}"
