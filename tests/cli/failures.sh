# Each way to fail: the right exit code, a message that helps, and no file left behind.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
# expect CODE PATTERN WHAT command...
expect() {
  code=$1 pattern=$2 what=$3
  shift 3
  "$@" >"$tmp/out" 2>"$tmp/err"
  got=$?
  [ "$got" = "$code" ] || { echo "FAIL $what: exit $got, $code expected: $(cat "$tmp/err")"; bad=1; }
  grep -qE "$pattern" "$tmp/err" || { echo "FAIL $what: no \"$pattern\" in: $(cat "$tmp/err")"; bad=1; }
  [ ! -e "$tmp/dir" ] || { echo "FAIL $what: left a folder"; bad=1; rm -rf "$tmp/dir"; }
}
model=$SW_SOURCE/data/models/softmax_block.pt2

expect 66 'No such file' "no input" "$SW" compile "$tmp/none" -o "$tmp/dir"
expect 64 'no verb' "no such verb" "$SW" conpile
expect 64 'one of ilp' "bad value" "$SW" compile "$model" --solver magic -o "$tmp/dir"
expect 64 'compile has no option --colour.*help compile' "bad option" "$SW" compile "$model" --colour red -o "$tmp/dir"
expect 64 'one of read, lower' "bad pass" "$SW" compile "$model" --dump-after lowered -o "$tmp/dir"
expect 64 'stdin' "no model" "$SW" compile -o "$tmp/dir"

head -c 3000 "$model" >"$tmp/cut.pt2"
expect 65 'zip|archive' "truncated zip" "$SW" compile "$tmp/cut.pt2" -o "$tmp/dir"
{ printf '{"a":'; head -c 10000 /dev/zero | tr '\0' '['; head -c 10000 /dev/zero | tr '\0' ']'; printf '}'; } >"$tmp/deep.json"
expect 4 'deeper than 64' "JSON of depth 10,000" "$SW" compile "$tmp/deep.json" -o "$tmp/dir"

cat >"$tmp/unknown.graph" <<'G'
%a : f16[64,64] = input
%b : f16[64,64] = my.op.default(%a)
%c : f16[64,64] = my.other.default(%b)
return %c
G
expect 65 'my.other' "unknown ops" "$SW" compile "$tmp/unknown.graph" -o "$tmp/dir"
grep -q 'my.op' "$tmp/err" || { echo "FAIL unknown ops: only one is named"; bad=1; }

printf '%%a : f16[64] = aten.exp.default(%%b)\n%%b : f16[64] = aten.exp.default(%%a)\nreturn %%b\n' >"$tmp/cycle.graph"
expect 65 'b' "cycle" "$SW" compile "$tmp/cycle.graph" -o "$tmp/dir"
printf '%%a : f16[4611686018427387904,4611686018427387904] = input\nreturn %%a\n' >"$tmp/huge.graph"
expect 65 '63 bits|overflow|too large' "shape beyond 64 bits" "$SW" compile "$tmp/huge.graph" -o "$tmp/dir"

mkdir "$tmp/ours"
touch "$tmp/ours/thesis.tex"
expect 74 'not an earlier result' "somebody's folder" "$SW" compile "$model" -o "$tmp/ours"
[ -e "$tmp/ours/thesis.tex" ] || { echo "FAIL it was overwritten"; bad=1; }
expect 74 'No such file|Not a directory' "unwritable output" "$SW" compile "$model" -o "$tmp/none/dir"
[ "$(ls "$tmp" | grep -c tmp)" = 0 ] || { echo "FAIL temporary folders left"; bad=1; }
exit $bad
