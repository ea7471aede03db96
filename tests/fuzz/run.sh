#!/bin/sh
# Runs one fuzz target until its share of TILEVM_FUZZ_RUNS inputs is through: run.sh PROGRAM NAME WORK_DIR SEED_DIR...
# Inputs found in earlier runs are kept in WORK_DIR/corpus_NAME and continued from; a failing input is left in WORK_DIR.
#
# TILEVM_FUZZ_RUNS     inputs of all targets together (2000000)
# TILEVM_FUZZ_SECONDS  the longest time (600); a target that is not through by then has failed
set -eu
program=$1 name=$2 work=$3
shift 3
# Shares in thousandths after what an input costs, most of them without sanitizers (NAME-fast): most changes of tilebc end
# at the verifier, most of text are read whole.
case "$name" in
  tilebc) share=120 ;;
  tileirbc) share=60 ;;
  text) share=25 ;;
  roundtrip) share=10 ;;
  tilebc-fast) share=500 ;;
  tileirbc-fast) share=200 ;;
  text-fast) share=60 ;;
  roundtrip-fast) share=25 ;;
  *) echo "run.sh: no share for $name" >&2; exit 2 ;;
esac
runs=$((${TILEVM_FUZZ_RUNS:-2000000} / 1000 * share))
seconds=${TILEVM_FUZZ_SECONDS:-600}
mkdir -p "$work/corpus_$name"
set -- "$work/corpus_$name" "$@"
dictionary=$(dirname "$0")/${name%-fast}.dict
if [ -f "$dictionary" ]; then
  set -- "-dict=$dictionary" "$@"
fi
log=$work/$name.log
export ASAN_OPTIONS="abort_on_error=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
# What one input may cost, the targets know (budget.h); these limits end what would not come back: 2 GiB in all, 1 GiB at
# once, 20 s. Longer inputs take longer and find little more.
"$program" -runs="$runs" -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=2048 -malloc_limit_mb=1024 -timeout=20 \
  -print_final_stats=1 -print_funcs=0 -verbosity=1 -artifact_prefix="$work/$name-" "$@" >"$log" 2>&1 || {
  status=$?
  tail -n 60 "$log"
  exit "$status"
}
done=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
echo "$name: ${done:-0} inputs, no failure"
if [ "${done:-0}" -lt "$runs" ]; then
  echo "$name: expected $runs inputs within $seconds s" >&2
  exit 1
fi
