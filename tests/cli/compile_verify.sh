#!/bin/sh
# compile --verify: executes what was emitted; auto leaves large programs alone.
set -eu
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
printf '%%a : f16[65,100] = input\n%%b : f16[100,70] = input\n%%y : f16[65,70] = aten.mm.default(%%a, %%b)\nreturn %%y\n' >"$d/mm.graph"
printf '%%a : f16[512,512] = input\n%%y : f16[512,512] = aten.mm.default(%%a, %%a)\nreturn %%y\n' >"$d/big.graph"
printf '%%a : f16[64,64] = input\n%%w : f16[64,64] = parameter\n%%y : f16[64,64] = aten.mm.default(%%a, %%w)\nreturn %%y\n' >"$d/weights.graph"
"$SW" compile "$d/mm.graph" --verify=auto | grep -q 'simulated card: all 1 outputs agree'
"$SW" compile "$d/mm.graph" | grep -q verify && exit 1
"$SW" compile "$d/big.graph" --verify=auto | grep -q 'not executed: too large'
"$SW" compile "$d/big.graph" --verify=always | grep -q 'simulated card: all 1 outputs agree'
"$SW" compile "$d/weights.graph" --verify=auto | grep -q 'not executed: weights without values'
"$SW" compile "$d/weights.graph" --verify=always 2>/dev/null | grep -q 'simulated card: all 1 outputs agree'
rc=0
"$SW" compile "$d/mm.graph" --verify=sometimes 2>/dev/null || rc=$?
[ $rc = 64 ]
