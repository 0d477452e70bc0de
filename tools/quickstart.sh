#!/bin/sh
# From a fresh clone to a compiled model, on the command line and over HTTP. Safe to repeat.
set -eu
cd "$(dirname "$0")/.."
say() { printf '\n== %s\n' "$1"; }

say "packages"
sh tools/packages.sh gcc cmake ninja-build pkg-config libc6-dev libglpk-dev libjansson-dev libmicrohttpd-dev libzip-dev \
  libssl-dev libsqlite3-dev zlib1g-dev libzstd-dev curl

say "release build (build/release)"
cmake --preset release >/dev/null
cmake --build --preset release --target stickwright stickwrightd | tail -n 1

model=data/models/llama_tiny.pt2
out=build/quickstart
mkdir -p "$out"
say "compile $model on the command line"
build/release/stickwright compile "$model" -o "$out/llama_tiny"

say "start the daemon on a free port"
: >"$out/daemon.out" # it is looked into before the daemon has written
build/release/stickwrightd --listen 127.0.0.1:0 >"$out/daemon.out" 2>"$out/daemon.log" &
daemon=$!
trap 'kill $daemon 2>/dev/null || true' EXIT
for i in 1 2 3 4 5 6 7 8 9 10; do
  port=$(sed -n 's/.*port //p' "$out/daemon.out")
  [ -n "$port" ] && break
  sleep 0.1
done
echo "stickwrightd listens on port $port"

say "post the same file with curl"
status=$(curl -s -o "$out/http.result.json" -D "$out/http.headers" -w '%{http_code}' \
  -H 'Content-Type: application/zip' --data-binary @"$model" "http://127.0.0.1:$port/compile")
echo "HTTP $status, $(grep -i '^location' "$out/http.headers" | tr -d '\r')"
sed -n '2,4p' "$out/http.result.json"
sed -n '/"objective"/,/}/p' "$out/http.result.json" | tail -n 8

say "stop the daemon"
kill "$daemon"
wait "$daemon"
trap - EXIT
cmp "$out/llama_tiny/result.json" "$out/http.result.json"
echo "result.json of the command line and of HTTP are equal, byte for byte; all files are in $out/llama_tiny"
