# What quickstart.sh, test.sh and .ci/run share: the list of packages, installing those that are missing, and quiet stages.
# To be sourced by bash under `set -euo pipefail`; changes nothing by itself.
# shellcheck shell=bash

# All that CMake looks for, of Debian 12 or a newer Debian or Ubuntu; together some 5 MB beside the compiler.
# shellcheck disable=SC2034  # for the scripts that source this file
build_packages=(g++ cmake ninja-build libhwy-dev libtbb-dev libcli11-dev nlohmann-json3-dev libfmt-dev
                libgtest-dev libbenchmark-dev librandom123-dev pkg-config binutils qemu-user-static)
# Only the tests of the Python tools need PyTorch, some 400 MB. Without an OpenBLAS it multiplies matrices very slowly; the one with OpenMP shares
# PyTorch's threads, with libopenblas0-pthread two sets of them get in each other's way and a step of `small` takes 1.7 times as long.
# shellcheck disable=SC2034
torch_packages=(python3-numpy python3-torch libopenblas0-openmp)
# For the sanitizers and the fuzz target. `clang` brings the plain name clang++, which the presets asan and tsan ask for.
# shellcheck disable=SC2034
clang_packages=(clang libclang-rt-dev)
# For the preset arm64 on x86-64, beside the native ones: headers without machine code are shared. Debian only; Ubuntu has them elsewhere.
# shellcheck disable=SC2034
arm64_packages=(g++-aarch64-linux-gnu libhwy-dev:arm64 libtbb-dev:arm64 libfmt-dev:arm64 libgtest-dev:arm64)

# For the test of the page that `octavo attend --html` writes: a browser, and what drives it. The version of the driver runs on Debian 12's node.
browser_packages=(chromium fonts-dejavu-core)
playwright_version=1.60.0

# stage TITLE COMMAND…: one line, the title and in the end the seconds; the command's output only when it fails, which ends the script.
# The output of the last stage stays in $stage_log.
stage() {
  local title=$1 began=$SECONDS status=0
  shift
  if [[ -z ${stage_log:-} ]]; then
    stage_log=$(mktemp)
    trap 'rm -f "$stage_log"' EXIT
  fi
  printf '%-60s ' "$title"
  "$@" >"$stage_log" 2>&1 </dev/null || status=$?
  if ((status == 0)); then
    printf '%4d s\n' $((SECONDS - began))
    return
  fi
  printf 'failed after %d s\n' $((SECONDS - began))
  cat "$stage_log" >&2
  printf '\n%s: failed with status %d: %s\n' "${0##*/}" "$status" "$*" >&2
  exit 1
}

# The packages among the arguments that are not installed, one a line. A name without an architecture stands for this machine's.
missing_packages() {
  local package native architecture
  native=$(dpkg --print-architecture)
  for package; do
    architecture=$native
    [[ $package != *:* ]] || architecture=${package#*:}
    if ! grep -Eqx "installed (all|$architecture)" < <(dpkg-query -W -f='${db:Status-Status} ${Architecture}\n' "$package" 2>/dev/null); then
      printf '%s\n' "$package"
    fi
  done
}

apt_install() {
  local become=(env DEBIAN_FRONTEND=noninteractive)
  local package
  ((EUID == 0)) || become=(sudo "${become[@]}")
  for package; do
    [[ $package != *:* ]] || "${become[@]}" dpkg --add-architecture "${package#*:}"
  done
  # Waits when another apt is at work, as one often is on a machine that has just started.
  "${become[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update &&
    "${become[@]}" apt-get -q -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "$@"
}

# install_missing PACKAGE…: touches the network only when something is missing.
install_missing() {
  local missing
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    printf '%s\n' "${0##*/}: this system has no apt-get. Install what corresponds to these packages of Debian 12 or newer:" \
      "    $*" "then run this again with --no-install." >&2
    exit 1
  fi
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    printf '%s\n' "${0##*/}: packages are missing and there is no sudo. As root, run" "    apt-get install ${missing[*]}" \
      "then this again." >&2
    exit 1
  fi
  stage "install ${#missing[@]} packages: ${missing[*]}" apt_install "${missing[@]}"
}

# try TITLE COMMAND…: as stage, but goes on when the command fails.
try() {
  local title=$1 began=$SECONDS log
  shift
  log=$(mktemp)
  printf '%-60s ' "$title"
  if "$@" >"$log" 2>&1 </dev/null; then
    printf '%4d s\n' $((SECONDS - began))
  else
    printf 'failed after %d s; going on without\n' $((SECONDS - began))
    tail -n 5 "$log" >&2
  fi
  rm -f "$log"
}

# A browser and its driver, as far as they are to be had: the test that needs them says what is missing.
install_browser() {
  local missing=()
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || missing+=("${browser_packages[@]}")
  # Others than Debian's node bring npm along.
  command -v npm >/dev/null || missing+=(nodejs npm)
  ((${#missing[@]} == 0)) || try "install ${missing[*]}" apt_install "${missing[@]}"
  local installed=build/node/node_modules/playwright-core/package.json
  if [[ ! -f $installed ]] || ! grep -qF "\"version\": \"$playwright_version\"" "$installed"; then
    try "install playwright-core $playwright_version" npm install --no-audit --no-fund --no-save --no-package-lock --prefix build/node \
      "playwright-core@$playwright_version"
  fi
}

# build PRESET [ARGUMENT OF THE BUILD…]: configures and builds.
build() {
  local preset=$1
  shift
  stage "configure $preset" cmake --preset "$preset"
  stage "build $preset" cmake --build --preset "$preset" "$@"
}

# run_tests PRESET: every test but the slow ones; prints ctest's closing lines, which name skipped tests.
run_tests() {
  export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$(nproc)}"
  stage "test $1" ctest --preset "$1"
  sed -n '/tests passed/p; /did not run/,$p' "$stage_log"
}
