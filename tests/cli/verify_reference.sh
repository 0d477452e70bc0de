# verify --reference: its exit codes and what it says.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
# expect CODE PATTERN arguments of verify...
expect() {
  code=$1 pattern=$2
  shift 2
  "$SW" verify "$@" >"$tmp/out" 2>&1
  got=$?
  [ "$got" = "$code" ] || { echo "FAIL verify $*: exit $got, $code expected: $(cat "$tmp/out")"; bad=1; }
  grep -qE -e "$pattern" "$tmp/out" || { echo "FAIL verify $*: no \"$pattern\" in: $(cat "$tmp/out")"; bad=1; }
}
values=$SW_SOURCE/tests/data/values
cp -r "$values"/input_mutation.* "$tmp"
model=$tmp/input_mutation.pt2 io=$tmp/input_mutation.io.json

expect 0 'output 0: agrees, 1024 elements' --reference "$model" --inputs "$io"
expect 0 'changed input args_1: agrees' --reference "$model" --inputs "$io" --round
expect 0 '"agrees": true' --reference "$model" --inputs "$io" --json
expect 64 'needs --inputs' --reference "$model"
expect 66 'No such file' --reference "$model" --inputs "$tmp/none.json"
expect 65 'inputs are given' --reference "$values/dyn_item.pt2" --inputs "$values/while_graph.io.json"

# One wrong element: 9 instead of what is right (the bytes of 9.0 as float32).
printf '\000\000\020\101' | dd of="$tmp/input_mutation.outputs/00.bin" bs=4 seek=5 conv=notrunc 2>/dev/null
expect 1 'output 0: differs in 1 of 1024 elements, .* worst element 5 ' --reference "$model" --inputs "$io"
expect 1 '"outside": 1' --reference "$model" --inputs "$io" --json

# A file of values that is too short, a document that is none.
printf 'x' >"$tmp/input_mutation.inputs/00.bin"
expect 65 '1 bytes, but /inputs/0 says 2048' --reference "$model" --inputs "$io"
printf '{"inputs": [{"name": "a", "dtype": "f99", "shape": []}]}' >"$tmp/bad.json"
expect 65 'there is no dtype f99' --reference "$model" --inputs "$tmp/bad.json"
exit $bad
