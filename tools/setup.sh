#!/bin/sh
# Installs what the build and the tests need as Debian packages, and nothing when all of it is there.
#
#   tools/setup.sh         for building and testing
#   tools/setup.sh build   for building and running the programs only
#
# Debian 12 or newer, or Ubuntu 23.04 or newer. Elsewhere it installs nothing; CMake then says what it does not find.
set -eu

say() { echo "setup: $*"; }

# Lines "package test": the package is wanted when the test fails. `-` as test: ask dpkg.
needed='
g++ command -v c++
cmake command -v cmake
ninja-build command -v ninja
python3 command -v python3
python3-numpy python3 -c "import numpy"
libflatbuffers-dev -
flatbuffers-compiler -
flatbuffers-compiler-dev -
nlohmann-json3-dev -
libcli11-dev -
libspdlog-dev -
libfmt-dev -
libxxhash-dev -
libzstd-dev -
'
needed_for_tests='
doctest-dev -
'
# Without LLVM 19 and Boost.Context the GPU part is left out; without the others the fuzz targets use a small driver of our own and gcc's
# sanitizers.
wanted_for_tests='
llvm-19-dev -
libboost-context-dev -
zlib1g-dev -
clang-14 command -v clang++-14
libclang-rt-14-dev -
llvm-14 command -v llvm-symbolizer-14
'

missing_of() {
  echo "$1" | while read -r package check; do
    [ -n "$package" ] || continue
    if [ "$check" = - ]; then
      dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || echo "$package"
    else
      sh -c "$check" >/dev/null 2>&1 || echo "$package"
    fi
  done
}

install_packages() {
  if [ "$(id -u)" = 0 ]; then
    root=
  elif command -v sudo >/dev/null 2>&1; then
    root=sudo
  else
    say "not root and no sudo. As root, run: apt-get install $*"
    return 1
  fi
  say "installing $*"
  export DEBIAN_FRONTEND=noninteractive
  if ! $root apt-get install -y -q --no-install-recommends "$@" >"$log" 2>&1; then
    say "refreshing the package lists"
    $root apt-get update -q >"$log" 2>&1 && $root apt-get install -y -q --no-install-recommends "$@" >>"$log" 2>&1 || {
      tail -n 20 "$log"
      say "apt-get failed for: $*"
      return 1
    }
  fi
}

case "${1:-test}" in
  build) wanted_for_tests= ;;
  test) needed="$needed$needed_for_tests" ;;
  *) echo "usage: tools/setup.sh [build|test]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  say "no Debian package manager here, nothing installed"
  exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
missing=$(missing_of "$needed")
optional=$(missing_of "$wanted_for_tests")
if [ -z "$missing$optional" ]; then
  say "all packages are installed"
  exit 0
fi
# shellcheck disable=SC2086  # lists of words
if [ -n "$missing" ]; then
  install_packages $missing || exit 1
fi
# shellcheck disable=SC2086
if [ -n "$optional" ] && ! install_packages $optional; then
  say "going on without: $(echo $optional)"
fi
say "done"
