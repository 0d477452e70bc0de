# inspect: exit codes, and faults on stderr or as JSON.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$1"; exit 1; }
run() { # run WANTED ARGS..
  want=$1
  shift
  code=0
  "$SW" inspect "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
  [ "$code" = "$want" ] || fail "inspect $*: exit $code, expected $want"
}

cat >"$tmp/good.graph" <<'G'
%a : f16[128,256] = input
%w : f16[256,128] = parameter
%t : f16[256,128] = aten.t.default(%a)
%y : f16[256,128] = aten.add.Tensor(%t, %w)
%r : f16[256]     = aten.sum.dim_IntList(%y, [1], keepdim=False)
return %y, %r
G
run 0 "$tmp/good.graph"
grep -q '^parameters   1, 32768 elements, 65536 bytes, values unknown$' "$tmp/out" || fail "no line on parameters"
grep -q '^ops          3 nodes, 3 overloads$' "$tmp/out" || fail "no line on ops"
run 0 "$tmp/good.graph" --json
grep -q '"aten.sum.dim_IntList": 1' "$tmp/out" || fail "no op count"

# the example of docs/formats.md section 3
printf '%%a : f16[2,3] = input\n%%b : f16[2,3] = aten.t(%%a)\n%%c : f16[2,2] = aten.mm(%%b, %%a)\nreturn %%c\n' >"$tmp/case.graph"
run 65 "$tmp/case.graph"
grep -q 'b: aten.t.default gives size \[3,2\], but b is declared \[2,3\]' "$tmp/err" || fail "first fault"
grep -q 'c: aten.mm.default: inner sizes differ' "$tmp/err" || fail "second fault"
run 65 "$tmp/case.graph" --json
grep -q '"status": "bad-input"' "$tmp/out" || fail "no status"
grep -q '"node": "c"' "$tmp/out" || fail "no fault as JSON"

run 64
run 64 "$tmp/good.graph" "$tmp/case.graph"
run 66 "$tmp/none.graph"
printf 'PK\003\004cut off' >"$tmp/cut.pt2"
run 65 "$tmp/cut.pt2"
awk 'BEGIN { for (i = 0; i < 10000; i++) printf "{\"a\":" }' >"$tmp/deep.json"
run 4 "$tmp/deep.json"
run 0 "$SW_SOURCE/tests/data/models/two_models.pt2"
grep -q '^programs     encoder (this one)$' "$tmp/out" || fail "programs are not named"
run 0 "$SW_SOURCE/tests/data/models/two_models.pt2" --program decoder --text
run 65 "$SW_SOURCE/tests/data/models/two_models.pt2" --program other
