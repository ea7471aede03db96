#!/bin/sh
# Sets up, builds and runs all tests; ends with a line "N passed, N failed" and a status that says the same.
#
#   tools/test.sh          the optimised build with all tests, then a build under AddressSanitizer and
#                          UndefinedBehaviorSanitizer with unit tests, filetests and two million fuzz inputs
#   tools/test.sh --quick  the optimised build only
#
# TILEVM_JOBS          parallel jobs (number of processors)
# TILEVM_FUZZ_RUNS     inputs of all fuzz targets together (2000000), 0 for none
# TILEVM_BUILD_ROOT    where the build folders go (build)
set -eu
cd "$(dirname "$0")/.."

quick=no
case "${1:-}" in
  "") ;;
  --quick) quick=yes ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
jobs=${TILEVM_JOBS:-$(nproc 2>/dev/null || echo 2)}
TILEVM_FUZZ_RUNS=${TILEVM_FUZZ_RUNS:-2000000}
export TILEVM_FUZZ_RUNS
root=${TILEVM_BUILD_ROOT:-build}
passed=0
failed=0
started=$(date +%s)

say() { echo "== $* ($(($(date +%s) - started)) s)"; }

finish() {
  say "end"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

# build PRESET [cmake arguments]: a failing build counts as one failure and ends the script.
build() {
  preset=$1
  shift
  say "configure $preset"
  cmake --preset "$preset" -B "$root/$preset" "$@" || { failed=$((failed + 1)); finish; exit 1; }
  say "build $preset with $jobs jobs"
  cmake --build "$root/$preset" -j "$jobs" -- -k 0 || { failed=$((failed + 1)); finish; exit 1; }
}

# tests PRESET ctest-arguments: adds what the summary of ctest says to the counts.
tests() {
  preset=$1
  shift
  say "test $preset"
  log=$root/$preset/test.log
  # ctest's own status is lost in the pipe; the counts below decide, and a missing summary counts as a failure.
  ctest --test-dir "$root/$preset" --output-on-failure --no-tests=error -j "$jobs" "$@" 2>&1 | tee "$log"
  summary=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 \2/p' "$log" | tail -n 1)
  if [ -z "$summary" ]; then
    failed=$((failed + 1))
    return
  fi
  failed=$((failed + ${summary% *}))
  passed=$((passed + ${summary#* } - ${summary% *}))
}

# Some tests show PTX to NVIDIA's assembler, and say that they are skipped without it. Where there is none, the Python package brings it.
assembler() {
  [ -z "${TILEVM_PTXAS:-}" ] && ! command -v ptxas >/dev/null 2>&1 || return 0
  folder=$PWD/$root/ptxas
  case $root in /*) folder=$root/ptxas ;; esac
  found() { find "$folder" -path '*/bin/ptxas' 2>/dev/null | head -n 1; }
  if [ -z "$(found)" ]; then
    say "pip install nvidia-cuda-nvcc"
    timeout 300 python3 -m pip install -q --no-deps --disable-pip-version-check --target "$folder" "nvidia-cuda-nvcc>=13,<14" || say "going on without ptxas"
  fi
  if [ -n "$(found)" ]; then
    TILEVM_PTXAS=$(found)
    export TILEVM_PTXAS
  fi
}

say "setup"
tools/setup.sh test
assembler

build ci
if [ "$TILEVM_FUZZ_RUNS" = 0 ]; then tests ci -LE '^fuzz$'; else tests ci; fi

if [ "$quick" = no ]; then
  # One build serves the sanitized tests and the fuzz targets; libFuzzer comes with clang.
  compiler=
  for name in clang++-14 clang++; do
    if command -v "$name" >/dev/null 2>&1; then
      compiler=$name
      break
    fi
  done
  # A build folder keeps its compiler: start afresh when clang has come since.
  if [ -n "$compiler" ] && [ -f "$root/asan/CMakeCache.txt" ] &&
     ! grep -q '^CMAKE_CXX_COMPILER:.*clang' "$root/asan/CMakeCache.txt"; then
    rm -rf "$root/asan"
  fi
  build asan ${compiler:+-DCMAKE_CXX_COMPILER="$(command -v "$compiler")"}
  labels='unit|files'
  [ "$TILEVM_FUZZ_RUNS" = 0 ] || labels="$labels|fuzz"
  # Only reports of ours: memory that is still reachable when a program ends is freed by the system.
  export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
  tests asan -L "^($labels)\$"
fi
finish
