#!/bin/sh
# show: recorded files of the reference in plain words.
set -eu
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
cat >"$d/want" <<'P'
sdsc_0.json: max on 4 cores
  dim mb: 64, 4 slices of 16
  dim out: 128, -inf in place of elements from 100 on
  tensor 0 (input): fp16 in HBM, argument 0 at bytes 0 to 6144 by core, sticks of 64 along out; innermost first: mb, out
  tensor 1 (output): fp16 in HBM, argument 1 at bytes 0 to 6144 by core, sticks of 64 along out; innermost first: mb, out (one value a stick)
  constant samv-maskvalue: -inf
P
golden="$SW_SOURCE/tests/data/superdsc"
"$SW" show "$golden/33_max_stick_padded/sdsc_0.json" >"$d/got"
diff "$d/want" "$d/got"
# alone, without its bundle, it has symbols
cp "$golden/33_max_stick_padded/sdsc_0.json" "$d"
"$SW" show "$d/sdsc_0.json" | grep -q 'tensor 1 (output): fp16 in HBM at symbols -5 to -8, sticks of 64 along out'
"$SW" show "$golden/90_loop_nested_2x4" >"$d/got"
[ "$(grep -c '^loop' "$d/got")" = 2 ] && [ "$(grep -c '^end of the loop' "$d/got")" = 2 ]
grep -q '^loop 1 (%i_1), 4 times:' "$d/got"
# 512 rows of a [1024, 4096] tensor on, 16 sticks of 1024 rows on
[ "$(grep -c '+65536 bytes a round of loop 0; +2097152 bytes a round of loop 1$' "$d/got")" = 4 ]
[ "$(grep -c '^sdsc' "$d/got")" = 6 ]
rc=0
"$SW" show "$golden/36_mean_stick_padded" 2>"$d/err" || rc=$?
[ $rc = 1 ]
grep -q 'sdsc_0.json: /0_mean/dscs_/0/mean/maskingConstId_: the masking constant is not neutral' "$d/err"
