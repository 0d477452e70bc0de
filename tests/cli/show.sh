#!/bin/sh
# show: recorded files of the reference in plain words.
set -eu
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
cat >"$d/want" <<'P'
sdsc_0.json: max on 4 cores
  dim mb: 64, 4 slices of 16
  dim out: 128, -inf in place of elements from 100 on
  tensor 0 (input): fp16 in HBM at symbols -1 to -4, sticks of 64 along out; innermost first: mb, out
  tensor 1 (output): fp16 in HBM at symbols -5 to -8, sticks of 64 along out; innermost first: mb, out (one value a stick)
  constant samv-maskvalue: -inf
P
golden="$SW_SOURCE/tests/data/superdsc"
"$SW" show "$golden/33_max_stick_padded/sdsc_0.json" >"$d/got"
diff "$d/want" "$d/got"
"$SW" show "$golden/90_loop_nested_2x4" >"$d/got"
[ "$(grep -c '^loop' "$d/got")" = 2 ] && [ "$(grep -c '^end of the loop' "$d/got")" = 2 ]
grep -q '^loop %i_1, 4 times:' "$d/got"
[ "$(grep -c '^sdsc' "$d/got")" = 6 ]
[ "$(grep -c 'moves on by 65536 bytes with %i_0, 2097152 bytes with %i_1$' "$d/got")" = 4 ]
rc=0
"$SW" show "$golden/36_mean_stick_padded" 2>"$d/err" || rc=$?
[ $rc = 1 ]
grep -q 'sdsc_0.json: /0_mean/dscs_/0/mean/maskingConstId_: the masking constant is not neutral' "$d/err"
