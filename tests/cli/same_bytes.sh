# Two runs give equal folders, stats.json apart; a second run replaces the first's folder.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for m in softmax_block attention_sdpa.core llama_tiny; do
  "$SW" compile "$SW_SOURCE/data/models/$m.pt2" -o "$tmp/a" >"$tmp/a.out"
  "$SW" compile "$SW_SOURCE/data/models/$m.pt2" -o "$tmp/b" >"$tmp/b.out"
  cmp "$tmp/a.out" "$tmp/b.out"
  rm "$tmp/a/stats.json" "$tmp/b/stats.json"
  diff -r "$tmp/a" "$tmp/b"
done
