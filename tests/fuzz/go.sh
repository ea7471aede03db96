#!/bin/sh
# Runs the fuzz targets for a while on many processors: go.sh SECONDS PROCESSES OUT [BIN [SEEDS]]
#
# BIN (beside this script: bin) holds the programs: NAME_fuzz, which libFuzzer and sanitizers watch, and NAME_fast, the
# optimised build with random changes. SEEDS (seeds) has a folder for each NAME, NAME.dict, and perhaps pool/NAME.
# Writes OUT/fuzz-PROGRAM.json (runs, runs a second, failures) and OUT/fuzz-total.json, anew every ten seconds; inputs that
# fail are OUT/PROGRAM-*, with their report in OUT/PROGRAM-failure.*; inputs that found something new are OUT/corpus/NAME.
# An end signal ends it early with all of that written.
set -u
[ $# -ge 3 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
seconds=$1 processes=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
bin=${4:-$here/bin} seeds=${5:-$here/seeds}
mkdir -p "$out/logs"
out=$(cd "$out" && pwd)
began=$(date +%s)
deadline=$((began + seconds))
export UBSAN_OPTIONS="halt_on_error=1"

# In an order that few processes, too, are of all kinds.
programs=
count=0
for program in tileirbc_fast text_fuzz tilebc_fast roundtrip_fuzz text_fast tileirbc_fuzz roundtrip_fast tilebc_fuzz; do
  [ -x "$bin/$program" ] || continue
  programs="$programs $program"
  count=$((count + 1))
  mkdir -p "$out/corpus/${program%_*}"
done
[ "$count" -gt 0 ] || { echo "no targets in $bin" >&2; exit 2; }

# A machine without the C++ runtime takes the one beside the programs, where there is one.
printf x >"$out/logs/probe.input"
first=$bin/${programs##* }
if [ -d "$here/lib" ] && ! "$first" "$out/logs/probe.input" >"$out/logs/probe.log" 2>&1; then
  LD_LIBRARY_PATH=$here/lib
  export LD_LIBRARY_PATH
fi
# Leaks are looked for where this machine lets a process look at itself.
leaks=1
"$first" "$out/logs/probe.input" >"$out/logs/probe.log" 2>&1 || leaks=0

# One process after the other for one program: a failure ends a process, the next goes on. At most 20 failures each.
worker() {
  program=$1 number=$2 starts=0
  name=${program%_*}
  child=
  trap 'deadline=0; [ -z "$child" ] || kill -INT "$child" 2>/dev/null' TERM INT
  while [ "$starts" -lt 20 ]; do
    left=$((deadline - $(date +%s)))
    [ "$left" -gt 0 ] || break
    log=$out/logs/$program.$number.$starts.log
    set -- "$out/corpus/$name" "$seeds/$name"
    # libFuzzer runs all seeds before it looks at the clock, so the many of SEEDS/pool are for the fast programs.
    [ "$program" = "${name}_fuzz" ] || [ ! -d "$seeds/pool/$name" ] || set -- "$@" "$seeds/pool/$name"
    [ ! -f "$seeds/$name.dict" ] || set -- "-dict=$seeds/$name.dict" "$@"
    nice -n 19 "$bin/$program" -max_total_time="$left" -max_len=4096 -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
      -detect_leaks="$leaks" -print_final_stats=1 -verbosity=1 -reload=60 -print_funcs=0 \
      -artifact_prefix="$out/$program-$number.$starts-" "$@" >"$log" 2>&1 &
    child=$!
    # A signal ends the wait before the child has ended.
    status=0
    while wait "$child" || status=$?; kill -0 "$child" 2>/dev/null; do :; done
    grep -q '^Done ' "$log" || grep -q 'libFuzzer: run interrupted' "$log" || {
      cp "$log" "$out/$program-failure.$number.$starts.log"
      echo "$status" >>"$out/logs/$program.failures"
    }
    starts=$((starts + 1))
  done
  : >"$out/logs/ended.$number"
}

# A process that has not ended, or ended hard, says how far it came in its last line of progress, "#N ...".
summary() {
  took=$(($(date +%s) - began))
  total=0 failed=0
  for program in $programs; do
    runs=$(for log in "$out/logs/$program".*.log; do
      [ -f "$log" ] || continue
      tail -n 60 "$log" | awk '/^stat::number_of_executed_units:/ {n = $2}
                               /^#[0-9]+/ {sub("#", "", $1); if ($1 + 0 > m) m = $1 + 0} END {print (n > 0) ? n : m + 0}'
    done | awk '{s += $1} END {printf "%d", s}')
    failures=0
    [ ! -f "$out/logs/$program.failures" ] || failures=$(wc -l <"$out/logs/$program.failures" | tr -d ' ')
    printf '{"program": "%s", "runs": %s, "runs_per_second": %s, "failures": %s, "seconds": %s}\n' \
      "$program" "$runs" "$((runs / (took > 0 ? took : 1)))" "$failures" "$took" >"$out/fuzz-$program.json"
    total=$((total + runs))
    failed=$((failed + failures))
  done
  printf '{"runs": %s, "failures": %s, "processes": %s, "seconds": %s, "leaks_looked_for": %s, "ended": %s}\n' "$total" "$failed" \
    "$processes" "$took" "$([ "$leaks" = 1 ] && echo true || echo false)" "$1" >"$out/fuzz-total.json"
}

rm -f "$out"/logs/ended.*
workers=
# No new workers then, and those that run end their processes.
stop() { deadline=0; kill -TERM $workers 2>/dev/null; }
trap stop TERM INT
number=0
while [ "$number" -lt "$processes" ]; do
  program=$(echo "$programs" | awk -v n="$number" -v c="$count" '{print $(n % c + 1)}')
  worker "$program" "$number" &
  workers="$workers $!"
  number=$((number + 1))
done
ticks=0
while [ "$(ls "$out"/logs/ended.* 2>/dev/null | wc -l)" -lt "$processes" ]; do
  sleep 1
  ticks=$((ticks + 1))
  [ $((ticks % 10)) -ne 0 ] || summary false
done
wait
summary true
cat "$out"/fuzz-*.json
[ "$failed" -eq 0 ]
