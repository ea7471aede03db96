#!/bin/sh
# Runs the fuzz targets for a while on many processors: go.sh SECONDS PROCESSES OUT [BIN [SEEDS]]
#
# BIN (beside this script: bin) holds the programs NAME_fuzz, SEEDS (seeds) a folder for each of them and NAME.dict.
# Writes OUT/fuzz-NAME.json (runs, runs a second, failures) and OUT/fuzz-total.json; inputs that fail are OUT/NAME-*,
# with their report in OUT/NAME-*.log; inputs that found something new are OUT/corpus/NAME. An end signal ends it early
# with all of that written.
set -u
[ $# -ge 3 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
seconds=$1 processes=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
bin=${4:-$here/bin} seeds=${5:-$here/seeds}
mkdir -p "$out/logs"
out=$(cd "$out" && pwd)
began=$(date +%s)
deadline=$((began + seconds))
export UBSAN_OPTIONS="halt_on_error=1"

names=
count=0
for program in "$bin"/*_fuzz; do
  name=$(basename "$program" _fuzz)
  names="$names $name"
  count=$((count + 1))
  mkdir -p "$out/corpus/$name"
done
[ "$count" -gt 0 ] || { echo "no targets in $bin" >&2; exit 2; }

# A machine without the C++ runtime takes the one beside the programs, where there is one.
if [ -d "$here/lib" ] && ! "$bin/${names##* }_fuzz" -help=1 >/dev/null 2>&1; then
  LD_LIBRARY_PATH=$here/lib
  export LD_LIBRARY_PATH
fi

# Leaks are looked for where this machine lets a process look at itself.
leaks=1
first=$(echo "$names" | awk '{print $1}')
printf x >"$out/logs/probe.input"
"$bin/${first}_fuzz" "$out/logs/probe.input" >"$out/logs/probe.log" 2>&1 || leaks=0

# One process after the other for one target: a failure ends a process, the next goes on. At most 20 failures each.
worker() {
  name=$1 number=$2 starts=0
  child=
  trap 'deadline=0; [ -z "$child" ] || kill -INT "$child" 2>/dev/null' TERM INT
  while [ "$starts" -lt 20 ]; do
    left=$((deadline - $(date +%s)))
    [ "$left" -gt 0 ] || break
    log=$out/logs/$name.$number.$starts.log
    set -- "$out/corpus/$name" "$seeds/$name"
    [ ! -f "$seeds/$name.dict" ] || set -- "-dict=$seeds/$name.dict" "$@"
    nice -n 19 "$bin/${name}_fuzz" -max_total_time="$left" -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
      -malloc_limit_mb=1024 -detect_leaks="$leaks" -print_final_stats=1 -verbosity=1 -reload=60 -print_funcs=0 \
      -artifact_prefix="$out/$name-" "$@" >"$log" 2>&1 &
    child=$!
    # A signal ends the wait before the child has ended.
    status=0
    while wait "$child" || status=$?; kill -0 "$child" 2>/dev/null; do :; done
    grep -q '^Done ' "$log" || grep -q 'libFuzzer: run interrupted' "$log" || {
      cp "$log" "$out/$name-failure.$number.$starts.log"
      echo "$status" >>"$out/logs/$name.failures"
    }
    starts=$((starts + 1))
  done
}

workers=
stop() { kill -TERM $workers 2>/dev/null; }
trap stop TERM INT
number=0
while [ "$number" -lt "$processes" ]; do
  name=$(echo "$names" | awk -v n="$number" -v c="$count" '{print $(n % c + 1)}')
  worker "$name" "$number" &
  workers="$workers $!"
  number=$((number + 1))
done
for w in $workers; do
  while kill -0 "$w" 2>/dev/null; do wait "$w"; done
done

took=$(($(date +%s) - began))
total=0 failed=0
for name in $names; do
  # A process that ended hard says how far it came in its last line of progress, "#N ...".
  runs=$(for log in "$out/logs/$name".*.log; do
    [ -f "$log" ] || continue
    awk '/^stat::number_of_executed_units:/ {n = $2} /^#[0-9]+/ {sub("#", "", $1); if ($1 + 0 > m) m = $1 + 0}
         END {print (n > 0) ? n : m + 0}' "$log"
  done | awk '{s += $1} END {print s + 0}')
  failures=0
  [ ! -f "$out/logs/$name.failures" ] || failures=$(wc -l <"$out/logs/$name.failures" | tr -d ' ')
  new=$(ls "$out/corpus/$name" | wc -l | tr -d ' ')
  printf '{"target": "%s", "runs": %s, "runs_per_second": %s, "failures": %s, "new_inputs": %s, "seconds": %s}\n' \
    "$name" "$runs" "$((runs / (took > 0 ? took : 1)))" "$failures" "$new" "$took" | tee "$out/fuzz-$name.json"
  total=$((total + runs))
  failed=$((failed + failures))
done
printf '{"runs": %s, "failures": %s, "processes": %s, "seconds": %s, "leaks_looked_for": %s}\n' \
  "$total" "$failed" "$processes" "$took" "$([ "$leaks" = 1 ] && echo true || echo false)" | tee "$out/fuzz-total.json"
[ "$failed" -eq 0 ]
