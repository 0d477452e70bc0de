# `cmake --install` and the Debian package: what is there runs, and what describes it is true.
set -eu
build=$(dirname "$SW")
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
bad=0
complain() { echo "$1"; bad=1; }

cmake --install "$build" --prefix "$t/usr" >"$t/log" || { tail "$t/log"; exit 1; }
for f in bin/stickwright bin/stickwrightd share/man/man1/stickwright.1 share/man/man8/stickwrightd.8 \
  lib/systemd/system/stickwrightd.service share/bash-completion/completions/stickwright share/stickwright/openapi.yaml \
  share/stickwright/superdsc.schema.json share/stickwright/result.schema.json; do
  [ -s "$t/usr/$f" ] || complain "$f is not installed"
done
"$t/usr/bin/stickwright" compile "$SW_SOURCE/data/models/softmax_block.pt2" >/dev/null || complain "the installed program fails"

# every option of the help is in the man page, and the page is good roff
for o in $("$SW" help compile | grep -oE '^  --[a-z-]+'); do
  grep -q "^\.B $(echo "$o" | sed 's/-/\\\\-/g')" "$t/usr/share/man/man1/stickwright.1" || complain "no $o in stickwright.1"
done
for o in $("$t/usr/bin/stickwrightd" --help | grep -oE '^  --[a-z-]+'); do
  grep -q "^\.B $(echo "$o" | sed 's/-/\\\\-/g')" "$t/usr/share/man/man8/stickwrightd.8" || complain "no $o in stickwrightd.8"
done
if command -v groff >/dev/null; then
  for page in man1/stickwright.1 man8/stickwrightd.8; do
    groff -man -Tascii -ww "$t/usr/share/man/$page" 2>"$t/roff" >/dev/null
    [ ! -s "$t/roff" ] || { complain "$page:"; cat "$t/roff"; }
  done
fi

# completion
complete_line() {
  bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stickwright; echo "${COMPREPLY[*]}"' _ \
    "$t/usr/share/bash-completion/completions/stickwright" "$@"
}
if command -v bash >/dev/null; then
  [ "$(complete_line "$SW" comp)" = "compile compare" ] || complain "completing a verb: $(complete_line "$SW" comp)"
  [ "$(complete_line "$SW" compile --so)" = "--solver" ] || complain "completing an option: $(complete_line "$SW" compile --so)"
  [ "$(complete_line "$SW" compile --solver ilp)" = "ilp ilp-full" ] || complain "completing a value: $(complete_line "$SW" compile --solver ilp)"
fi

# the unit, where systemd can judge it: every line is understood
if command -v systemd-analyze >/dev/null; then
  sed "s#^ExecStart=.*#ExecStart=$t/usr/bin/stickwrightd#" "$t/usr/lib/systemd/system/stickwrightd.service" >"$t/stickwrightd.service"
  SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$t/stickwrightd.service" 2>"$t/unit" || true
  if grep -E 'stickwrightd\.service:.*(Unknown|Failed to parse|Invalid)' "$t/unit"; then complain "the unit"; fi
fi

if command -v cpack >/dev/null && command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null; then
  cpack --config "$build/CPackConfig.cmake" -B "$t/deb" >"$t/log" 2>&1 || { tail "$t/log"; exit 1; }
  deb=$(ls "$t"/deb/*.deb)
  dpkg-deb -c "$deb" >"$t/list"
  for f in usr/bin/stickwright usr/bin/stickwrightd usr/lib/systemd/system/stickwrightd.service usr/share/man/man1/stickwright.1; do
    grep -q " \./$f" "$t/list" || complain "$f is not in the package"
  done
  for lib in libglpk libjansson libmicrohttpd libsqlite3 libzip; do
    dpkg-deb -f "$deb" Depends | grep -q "$lib" || complain "the package does not depend on $lib"
  done
else
  echo "skipped: cpack, dpkg-deb or dpkg-shlibdeps is not there"
fi
exit $bad
