# explain and compare on a graph whose numbers a person can check: a[128,256] transposed plus b[256,128] converts one
# tensor of 32,768 elements whichever of the two sticks the sum gets; a 1-core card changes nothing about that.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
graph=$SW_SOURCE/data/graphs/add_transposed.graph
want() { grep -qF "$2" "$1" || { echo "FAIL no \"$2\" in:"; cat "$1"; exit 1; }; }

"$SW" compile "$graph" --profile torch-spyre -o "$tmp/d" >/dev/null
"$SW" explain "$tmp/d" y a >"$tmp/out"
want "$tmp/out" "chosen      device_size:2,256,64/stride_map:64,128,1: best plan costs 32768 elements (+0), 0 copies of it, 1 in all"
want "$tmp/out" "candidate   device_size:4,128,64/stride_map:8192,1,128: best plan costs 32768 elements (+0), 0 copies of it, 1 in all"
want "$tmp/out" "converted   to device_size:2,256,64/stride_map:16384,1,256, 32768 elements"
want "$tmp/out" "op          y: add, model.py:7"
"$SW" explain "$tmp/d" y --json | python3 -c 'import json,sys; d=json.load(sys.stdin); assert [c["cost"] for c in d["candidates"]] == [32768, 32768], d'
# source line, node, op and file, from each end
for name in model.py:7 y bundle_0/sdsc_1.json sdsc_1.json; do
  "$SW" explain "$tmp/d" $name >"$tmp/out"
  want "$tmp/out" "op          y: add, model.py:7"
  want "$tmp/out" "nodes       y"
  want "$tmp/out" "file        bundle_0/sdsc_1.json"
done
"$SW" show "$tmp/d/bundle_0/sdsc_1.json" >"$tmp/out"
want "$tmp/out" "from model.py:7, node y (aten.add.Tensor), op y"
want "$tmp/out" "tensor 2 (output): fp16 in HBM, argument 2 (y) at bytes 0 to 31744 by core"
want "$tmp/out" "tensor 0 (input): fp16 in the pool at bytes 0 to 31744 by core"
if "$SW" explain "$tmp/d" nobody 2>"$tmp/err"; then exit 1; fi
want "$tmp/err" "no storage, op, node, source line or file of this result is called nobody"

"$SW" compare "$graph" --profile torch-spyre --baseline "$tmp/base" >/dev/null
"$SW" compare "$graph" --profile torch-spyre --baseline "$tmp/base" >/dev/null
sed -i 's/"value": 32768/"value": 32767/' "$tmp/base"
if "$SW" compare "$graph" --profile torch-spyre --baseline "$tmp/base" >/dev/null 2>"$tmp/err"; then exit 1; fi
want "$tmp/err" "worse: add_transposed.graph torch-spyre ilp: 32767 before, 32768 now"
