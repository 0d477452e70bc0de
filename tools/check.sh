#!/bin/sh
# Installs what the tests need, builds with warnings as errors and with sanitizers, and runs all tests. Safe to repeat.
# Ends with one line: N passed, N failed.
set -eu
cd "$(dirname "$0")/.."
say() { printf '\n== %s\n' "$1"; }

say "packages"
sh tools/packages.sh gcc clang cmake ninja-build pkg-config libc6-dev libglpk-dev libjansson-dev libmicrohttpd-dev \
  libzip-dev libssl-dev libsqlite3-dev zlib1g-dev libzstd-dev libcmocka-dev curl python3 groff zsh fish lintian munge slurm-wlm faketime

passed=0 failed=0
# Builds a preset and runs its tests; ctest's own closing line is "N% tests passed, F tests failed out of T".
run() {
  preset=$1
  shift
  say "$preset: build"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" >"build/$preset.log" 2>&1 || { tail -n 40 "build/$preset.log"; exit 1; }
  say "$preset: tests"
  ctest --test-dir "build/$preset" --output-on-failure -j2 "$@" >"build/$preset.tests" 2>&1 || true
  grep -vE 'Passed|^ *Start ' "build/$preset.tests" | tail -n 60
  line=$(grep -E 'tests failed out of' "build/$preset.tests" || true)
  if [ -z "$line" ]; then
    echo "no tests ran"
    failed=$((failed + 1))
    return
  fi
  f=$(echo "$line" | sed -E 's/.*, ([0-9]+) tests failed out of ([0-9]+).*/\1/')
  t=$(echo "$line" | sed -E 's/.*tests failed out of ([0-9]+).*/\1/')
  failed=$((failed + f))
  passed=$((passed + t - f))
}
mkdir -p build
run release
run asan
say "clang: build without warnings"
cmake --preset clang >/dev/null
if cmake --build --preset clang >build/clang.log 2>&1; then
  passed=$((passed + 1))
else
  tail -n 40 build/clang.log
  failed=$((failed + 1))
fi
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
