# place: the worked example of docs/scratchpad.md, in and out, and what is refused.
set -e
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
cat > "$d/p.json" <<'P'
{"format": "stickwright.place/1", "name": "example", "capacity": 2048, "alignment": 128, "buffers": [
 {"name": "x", "size": 1024, "start": 0, "end": 2, "value": 2048},
 {"name": "y", "size": 1024, "start": 1, "end": 4, "value": 3072, "parents": ["x"]},
 {"name": "tab", "size": 512, "start": 0, "end": 9, "value": 100, "address": 0},
 {"name": "out", "size": 256, "start": 3, "end": 4, "value": 0, "barred": "no consumer reads it from LX"}]}
P
"$SW" place "$d/p.json" > "$d/out"
cat > "$d/want" <<'P'
example: optimal, 3 of 4 buffers resident, value 5220, peak 1536 of 2048 bytes
  x                             512
  y                             512
  tab                             0
  out                             -  no consumer reads it from LX
P
diff "$d/want" "$d/out"
"$SW" place "$d/p.json" --json > "$d/a.json"
"$SW" place - --json < "$d/p.json" > "$d/b.json"
cmp "$d/a.json" "$d/b.json"
grep -q '"status": "optimal"' "$d/a.json"
for placer in greedy firstfit bestfit stack; do
  "$SW" place "$d/p.json" --json --placer "$placer" | grep -q '"status": "feasible"'
done

printf 'id,lower,upper,size\na,0,2,3\nb,1,3,4\n' > "$d/A.7.csv"
"$SW" place "$d/A.7.csv" --csv | head -1 | grep -qx 'id,lower,upper,size,offset'
code=0; "$SW" place "$d/A.7.csv" --capacity 6 > "$d/out" || code=$?
test $code = 3
grep -q "can't be resident together: a, b" "$d/out"

refused() { # exit code, arguments
  want=$1; shift
  code=0; "$SW" place "$@" > /dev/null 2> "$d/err" || code=$?
  test $code = "$want" && test -s "$d/err"
}
refused 66 "$d/none.json"
refused 64
refused 64 "$d/p.json" --placer best
refused 64 "$d/p.json" --budget x
echo '{"capacity": -1, "buffers": []}' > "$d/bad.json"
refused 65 "$d/bad.json"
