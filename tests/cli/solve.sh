# stickwright solve: the worked examples of docs/solver.md, exit codes, the refusal as a result, the LP file.
set -e
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
fail() { echo "solve: $1"; exit 1; }

cat > "$d/c.json" <<'X'
{"format":"stickwright.assign/1","name":"C","variables":[{"name":"p","labels":["k","s"],"cost":[0,15]},
 {"name":"m1","labels":["o"]},{"name":"m2","labels":["o"]},{"name":"m3","labels":["o"]},{"name":"m4","labels":["o"]}],
 "sharing":[{"producer":0,"classes":["k","s"],"conv":[[0,10],[10,0]],
             "readers":[[1,[1]],[2,[1]],[3,[1]],[4,[0]]]}]}
X
"$SW" solve "$d/c.json" | grep -q '^C: optimal, cost 25$' || fail "C per-edge"
"$SW" solve --mode shared "$d/c.json" > "$d/out"
grep -q '^C: optimal, cost 10$' "$d/out" || fail "C shared"
grep -q 'copy of p in s: cost 10, for m1 m2 m3$' "$d/out" || fail "C's copy"
"$SW" solve --json --mode shared - < "$d/c.json" | grep -q '"cost":10,"bound":10,"labels":\[0,0,0,0,0\]' || fail "C as JSON"
"$SW" solve --lp "$d/c.lp" "$d/c.json" > /dev/null
grep -q '^Binary' "$d/c.lp" || fail "LP file"

code() { want=$1; shift; got=0; "$SW" "$@" > "$d/out" 2> "$d/err" || got=$?; [ "$got" = "$want" ] || fail "$* gives $got, not $want"; }
echo '{"format":"stickwright.assign/1","variables":[{"name":"a","labels":["x"]},{"name":"b","labels":["x"]}],"edges":[[0,1,[["inf"]]]]}' > "$d/i.json"
code 3 solve "$d/i.json"
grep -q 'edge 0: a - b' "$d/out" || fail "conflict"
echo '{"format":"stickwright.assign/1","variables":[{"labels":["x"],"cost":[-1]}]}' > "$d/r.json"
code 65 solve --json "$d/r.json"
grep -q '"status":"invalid","error":{"pointer":"/variables/0/cost/0"' "$d/out" || fail "refusal as a result"
grep -q '/variables/0/cost/0: cost -1' "$d/err" || fail "refusal on stderr"
printf '{"format":' > "$d/j.json"
code 65 solve "$d/j.json"
code 64 solve
code 64 solve --mode both "$d/c.json"
code 66 solve "$d/none.json"
