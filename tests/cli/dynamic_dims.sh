# Dynamic dims: what is compiled is for one size, says so, and verify holds inputs against it.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
# expect CODE PATTERN arguments of stickwright...
expect() {
  code=$1 pattern=$2
  shift 2
  "$SW" "$@" >"$tmp/out" 2>&1
  got=$?
  [ "$got" = "$code" ] || { echo "FAIL $*: exit $got, $code expected: $(cat "$tmp/out")"; bad=1; }
  grep -qE -e "$pattern" "$tmp/out" || { echo "FAIL $*: no \"$pattern\" in: $(cat "$tmp/out")"; bad=1; }
}
values=$SW_SOURCE/tests/data/values
softmax=$values/strict_dyn_softmax.pt2 # x : [4, s11], s11 in 2..4096; the values are for s11 = 100
slices=$values/dyn_scalar_int.pt2      # the export assumed that s33 - 1 is not 1

expect 0 's11 \(range 2..4096\) is compiled for exactly 4096' compile "$softmax" -o "$tmp/most"
grep -q '"s11": 4096' "$tmp/most/result.json" || { echo "FAIL: result.json does not say s11"; bad=1; }
expect 65 's11 is 100 here, .* exactly 4096; compile with --dim-max s11=100' \
  verify "$tmp/most" --model "$softmax" --inputs "$values/strict_dyn_softmax.io.json"
expect 0 'agrees, 16384 elements' verify "$tmp/most" --model "$softmax"
expect 0 'exactly 100' compile "$softmax" -o "$tmp/some" --dim-max s11=100
expect 0 'agrees, 400 elements' verify "$tmp/some" --model "$softmax" --inputs "$values/strict_dyn_softmax.io.json"

expect 64 's11 = 5000 is above its declared maximum, 4096' compile "$softmax" -o "$tmp/x" --dim-max s11=5000
expect 64 'no dynamic dim s9; its dynamic dims: s11 \(2..4096\)' compile "$softmax" -o "$tmp/x" --dim-max s9=3
expect 64 's33 - 1 != 1, which is false at s33 = 2' compile "$slices" -o "$tmp/x" --dim-max s33=2
expect 0 'exactly 8' compile "$slices" -o "$tmp/slices"
expect 0 'agrees, 448' verify "$tmp/slices" --model "$slices" --inputs "$values/dyn_scalar_int.io.json"
expect 0 'agrees, 448' verify "$tmp/slices" --model "$slices"
expect 65 'depend on data are known at run time only' compile "$values/dyn_item.pt2" -o "$tmp/x"
expect 0 's11 in 2..4096' inspect "$softmax"
exit $bad
