#!/bin/sh
# Fuzzes with all processors for a while, and says how much was run: what a recorded run of 100 million inputs takes.
#
#   tools/fuzz.sh SECONDS [PROCESSES [OUT]]   builds the targets and runs them (tests/fuzz/go.sh); OUT is build/fuzz/out
#   tools/fuzz.sh --pack FOLDER               writes programs, seeds and go.sh to FOLDER, for another computer
#
# Inputs that find something new go to OUT/corpus/NAME. TILEVM_FUZZ_CORPUS names such a folder of an earlier run to go on
# from. It takes clang, whose libFuzzer drives the targets.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
compiler=$(command -v clang++-14 || command -v clang++) || { echo "tools/fuzz.sh: no clang" >&2; exit 3; }
build=build/fuzz
jobs=${TILEVM_JOBS:-$(nproc 2>/dev/null || echo 2)}
# At a fixed address, because the allocator of AddressSanitizer 14 and programs at random ones get into each other's way
# on newer kernels.
cmake --preset asan -B "$build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -g1" \
  -DCMAKE_EXE_LINKER_FLAGS=-no-pie -DTILEVM_TESTS=OFF >/dev/null
targets=
for source in tests/fuzz/*_fuzz.cpp; do targets="$targets $(basename "$source" .cpp)"; done
cmake --build "$build" -j "$jobs" --target $targets
cmake --preset ci -B "$build-fast" -DTILEVM_GPU=OFF >/dev/null
cmake --build "$build-fast" -j "$jobs" --target $targets

pack=$build/pack
[ "$1" != --pack ] || pack=$2
rm -rf "$pack/bin" "$pack/seeds"
mkdir -p "$pack/bin" "$pack/seeds/roundtrip"
for target in $targets; do
  strip -o "$pack/bin/$target" "$build/fuzz/$target"
  strip -o "$pack/bin/${target%_fuzz}_fast" "$build-fast/fuzz/$target"
done
for form in text tilebc tileirbc; do
  cp -r "tests/corpus/$form" "$pack/seeds/$form"
  cp "tests/corpus/$form"/* "$pack/seeds/roundtrip/"
done
cp tests/fuzz/text.dict "$pack/seeds/"
cp tests/fuzz/text.dict "$pack/seeds/roundtrip.dict"
if [ -n "${TILEVM_FUZZ_CORPUS:-}" ]; then mkdir -p "$pack/seeds/pool"; cp -r "$TILEVM_FUZZ_CORPUS"/. "$pack/seeds/pool/"; fi
cp tests/fuzz/go.sh "$pack/"
[ "$1" != --pack ] || exit 0
exec sh "$pack/go.sh" "$1" "${2:-$jobs}" "${3:-$build/out}"
