#!/bin/sh
# compile executes small programs by itself and says so, in the summary and in result.json; --verify asks for all or none.
set -eu
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
printf '%%a : f16[65,100] = input\n%%b : f16[100,70] = input\n%%y : f16[65,70] = aten.mm.default(%%a, %%b)\nreturn %%y\n' >"$d/mm.graph"
printf '%%a : f16[512,512] = input\n%%y : f16[512,512] = aten.mm.default(%%a, %%a)\nreturn %%y\n' >"$d/big.graph"
printf '%%a : f16[64,64] = input\n%%w : f16[64,64] = parameter\n%%y : f16[64,64] = aten.mm.default(%%a, %%w)\nreturn %%y\n' >"$d/weights.graph"
want() {
  text=$1
  shift
  "$SW" compile "$@" >"$d/out" 2>&1 || true
  grep -qF -e "$text" "$d/out" || { echo "FAIL compile $*: no \"$text\" in:"; cat "$d/out"; exit 1; }
}
agree='executed on the simulated card with made-up inputs: all 1 outputs agree with the graph'
want "verify      $agree" "$d/mm.graph"
want '"outcome": "agrees"' "$d/mm.graph" --json
want "not executed: 134" "$d/big.graph"
want "more than the 4000000 that auto executes" "$d/big.graph"
want "$agree" "$d/big.graph" --verify=always
want 'executed on the simulated card with made-up inputs and weights: all 1 outputs agree' "$d/weights.graph"
want '"weights_made_up": true' "$d/weights.graph" --json
want '"outcome": "not executed"' "$d/mm.graph" --json --verify never
"$SW" compile "$d/mm.graph" --verify=never | grep '^verify' && exit 1
rc=0
"$SW" compile "$d/mm.graph" --verify=sometimes 2>/dev/null || rc=$?
[ $rc = 64 ]
# the same bytes, whatever is executed twice
"$SW" compile "$d/mm.graph" --json >"$d/1"
"$SW" compile "$d/mm.graph" --json >"$d/2"
cmp "$d/1" "$d/2"
