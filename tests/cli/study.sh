# A study gives the same tables when it is interrupted and resumed, and when shards share it; and its numbers are right.
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
bad=0
complain() { echo "$1"; bad=1; }

# One conversion of a 128 x 256 tensor: 32768 elements, whoever chooses. The second graph needs none.
cat >"$t/turn.txt" <<'END'
%a : f16[128,256] = input
%t : f16[256,128] = aten.t.default(%a)
%b : f16[256,128] = input
%y : f16[256,128] = aten.add.Tensor(%t, %b)
return %y
END
printf '%%a : f16[64,64] = input\n%%b : f16[64,64] = aten.exp.default(%%a)\nreturn %%b\n' >"$t/exp.txt"
printf '%%a : f16[64,64] = input\n%%b : f16[64,64] = my.op.default(%%a)\nreturn %%b\n' >"$t/no,op.txt"
cat >"$t/spec.json" <<'END'
{"format": "stickwright.study/1", "models": ["turn.txt", "exp.txt", "no,op.txt"], "profiles": ["torch-spyre"],
 "solvers": ["ilp", "greedy"], "options": [{"name": "default"}, {"name": "one core", "set": {"cores": 1}}]}
END

"$SW" study "$t/spec.json" -o "$t/whole" >"$t/whole.md"
cmp "$t/whole.md" "$t/whole/study.md" || complain "what is printed is not study.md"
[ "$(wc -l <"$t/whole/study.csv")" = 13 ] || complain "3 models x 4 variants are not 12 rows"
grep -q '^turn.txt,torch-spyre,ilp,default,optimal,elements,32768,32768,1,32768,' "$t/whole/study.csv" || complain "cost of turn.txt"
grep -q '^exp.txt,torch-spyre,ilp,one core,optimal,elements,0,0,0,0,' "$t/whole/study.csv" || complain "cost of exp.txt"
grep -q '^"no,op.txt",torch-spyre,greedy,default,unsupported,,' "$t/whole/study.csv" || complain "a graph without a plan"
grep -q '^| torch-spyre | ilp | default | 2 of 3 | 2 | ' "$t/whole/study.md" || complain "summary"
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert len(d["runs"]) == 12 and d["runs"][0]["value"] == 32768' \
  "$t/whole/study.json" || complain "study.json"

# killed in the middle of the sixth line
mkdir "$t/cut"
head -n 5 "$t/whole/runs-0.jsonl" >"$t/cut/runs-0.jsonl"
sed -n 6p "$t/whole/runs-0.jsonl" | head -c 40 >>"$t/cut/runs-0.jsonl"
"$SW" study "$t/spec.json" -o "$t/cut" >/dev/null
# three shards, one of them twice, then the tables
for k in 2 0 1 0; do "$SW" study "$t/spec.json" -o "$t/shards" --shard $k/3; done
[ "$(cat "$t"/shards/runs-?.jsonl | wc -l)" = 12 ] || complain "shards do not share the work"
"$SW" study "$t/spec.json" -o "$t/shards" >/dev/null
for f in study.json study.csv study.md; do
  cmp "$t/whole/$f" "$t/cut/$f" || complain "$f after an interruption"
  cmp "$t/whole/$f" "$t/shards/$f" || complain "$f of shards"
done

# a model that changed is done again, the others are not
sed -i 's/64,64/64,128/g' "$t/exp.txt"
"$SW" study "$t/spec.json" -o "$t/cut" >/dev/null
[ "$(wc -l <"$t/cut/runs-0.jsonl")" = 16 ] || complain "4 of 12 runs should be new"

expect() { # exit code, arguments
  want=$1
  shift
  "$SW" study "$@" >/dev/null 2>&1 && got=0 || got=$?
  [ "$got" = "$want" ] || complain "study $*: exit code $got, expected $want"
}
expect 64 "$t/spec.json"
expect 64 "$t/spec.json" -o "$t/x" --shard 3/3
expect 66 "$t/nothing.json" -o "$t/x"
echo '{"format": "stickwright.study/1", "models": []}' >"$t/bad.json"
expect 65 "$t/bad.json" -o "$t/x"
echo '{"format": "stickwright.study/1", "models": ["exp.txt"], "solvers": ["magic"]}' >"$t/bad.json"
expect 64 "$t/bad.json" -o "$t/x"
exit $bad
