#!/bin/sh
# Fuzzes the readers under AddressSanitizer and UBSan: sh tools/fuzz.sh [SECONDS [TARGET...]]
# Targets are tests/fuzz/fuzz_*.c, by default all, one after the other, 60 seconds each. Inputs that are found to reach
# new code stay in build/fuzz/corpus, an input that breaks something in build/fuzz/found. Needs clang and its
# libclang-rt. Exit 0: nothing was found.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- $(cd tests/fuzz && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')

cmake --preset fuzz >/dev/null
code=0
for target in "$@"; do
  cmake --build --preset fuzz --target "fuzz_$target" >/dev/null
  mkdir -p "build/fuzz/corpus/$target" "build/fuzz/found"
  log=build/fuzz/$target.log
  if "build/fuzz/tests/fuzz_$target" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$target-" "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    result="nothing found"
  else
    result="FOUND: see $log"
    code=1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  printf '%-10s %12s runs   %s\n' "$target" "${runs:-?}" "$result"
done
exit $code
