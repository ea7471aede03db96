#!/bin/sh
# Runs one fuzz target for TILEVM_FUZZ_SECONDS (60): run.sh PROGRAM NAME SEED_DIR WORK_DIR
# Inputs found in earlier runs are kept in WORK_DIR/corpus_NAME and continued from; a failing input is left in WORK_DIR.
set -eu
program=$1 name=$2 seeds=$3 work=$4
seconds=${TILEVM_FUZZ_SECONDS:-60}
mkdir -p "$work/corpus_$name"
set -- "$work/corpus_$name"
if [ -d "$seeds" ]; then
  set -- "$@" "$seeds"
fi
dictionary=$(dirname "$0")/$name.dict
if [ -f "$dictionary" ]; then
  set -- "-dict=$dictionary" "$@"
fi
# Memory out of proportion and time out of proportion are failures too: 2 GiB in all, 1 GiB at once, 20 s for one input.
exec "$program" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 -malloc_limit_mb=1024 -timeout=20 \
  -print_final_stats=1 -verbosity=1 -artifact_prefix="$work/$name-" "$@"
