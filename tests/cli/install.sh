# `cmake --install` and the Debian package: what is there runs, and what describes it is true.
set -eu
build=$(dirname "$SW")
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
bad=0
complain() { echo "$1"; bad=1; }

cmake --install "$build" --prefix "$t/usr" >"$t/log" || { tail "$t/log"; exit 1; }
for f in bin/stickwright bin/stickwrightd share/man/man1/stickwright.1.gz share/man/man8/stickwrightd.8.gz \
  lib/systemd/system/stickwrightd.service share/bash-completion/completions/stickwright \
  share/bash-completion/completions/stickwrightd share/zsh/vendor-completions/_stickwright \
  share/fish/vendor_completions.d/stickwright.fish share/fish/vendor_completions.d/stickwrightd.fish share/stickwright/openapi.yaml \
  share/stickwright/superdsc.schema.json share/stickwright/result.schema.json; do
  [ -s "$t/usr/$f" ] || complain "$f is not installed"
done
"$t/usr/bin/stickwright" compile "$SW_SOURCE/data/models/softmax_block.pt2" >/dev/null || complain "the installed program fails"

# every verb, flag and option of the help is in the man page, and the page is good roff
gzip -dc "$t/usr/share/man/man1/stickwright.1.gz" >"$t/stickwright.1"
gzip -dc "$t/usr/share/man/man8/stickwrightd.8.gz" >"$t/stickwrightd.8"
roff() { echo "$1" | sed 's/-/\\\\-/g'; }
options_in() { # PAGE, help on stdin: "  -o, --output DIR   what" and the like
  sed -n 's/^  \(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\1\2/p' | while read -r o; do
    grep -q "^\.B $(roff "$o")" "$t/$1" || echo "no $o in $1"
  done
}
verbs=$("$SW" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ "$(echo "$verbs" | wc -l)" -ge 11 ] || complain "verbs: $verbs"
for v in $verbs; do
  grep -q "^\.SS stickwright $v" "$t/stickwright.1" || complain "no verb $v in stickwright.1"
  "$SW" help "$v" | options_in stickwright.1 >>"$t/left_out"
done
"$t/usr/bin/stickwrightd" --help | options_in stickwrightd.8 >>"$t/left_out"
[ ! -s "$t/left_out" ] || complain "$(cat "$t/left_out")"
for page in stickwright.1 stickwrightd.8; do
  if command -v groff >/dev/null; then
    groff -man -Tascii -ww "$t/$page" 2>"$t/roff" >/dev/null
    [ ! -s "$t/roff" ] || complain "$page: $(cat "$t/roff")"
  else
    echo "skipped: groff is not there"
  fi
done

# completion; each case is a line and what it may become
cases="$t/cases"
cat >"$cases" <<END
$SW comp|compile compare
$SW help stu|study
$SW compile --so|--solver
$SW compile --solver ilp|ilp ilp-full
$SW compile --verify a|auto always
$SW study --slurm|--slurm --slurm-script
$t/usr/bin/stickwrightd --study|--study-runs --study-mb
END
check_completion() { # SHELL COMMAND: the command gets a line's words and prints what they may become, a line each
  command -v "$1" >/dev/null || { echo "skipped: $1 is not there"; return 0; }
  while IFS='|' read -r line wanted; do
    # shellcheck disable=SC2086
    got=$("$2" $line | sort | tr '\n' ' ')
    [ "$got" = "$(echo "$wanted" | tr ' ' '\n' | sort | tr '\n' ' ')" ] || complain "$1 completes \"$line\" to $got"
  done <"$cases"
}
in_bash() {
  bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stickwright; printf "%s\n" "${COMPREPLY[@]}"' _ \
    "$t/usr/share/bash-completion/completions/stickwright" "$@"
}
# zsh filters what compadd and _describe are given; here we do
in_zsh() {
  zsh -f -c '_describe() { local x; for x in ${(P)2}; print -r -- ${x%%:*} }
    compadd() { print -l -- ${(P)2} }; _files() { }
    file=$1; shift; words=("$@"); CURRENT=$#; . $file' _ "$t/usr/share/zsh/vendor-completions/_stickwright" "$@" |
    while read -r x; do
      for last; do :; done
      case $x in "$last"*) echo "$x" ;; esac
    done
}
in_fish() {
  fish --no-config -c 'source $argv[1]; complete -C (string join -- " " (path basename $argv[2]) $argv[3..])' \
    "$t/usr/share/fish/vendor_completions.d/stickwright.fish" "$@" | cut -f1
}
check_completion bash in_bash
check_completion zsh in_zsh
PATH=$t/usr/bin:$PATH check_completion fish in_fish

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
  for f in usr/bin/stickwright usr/bin/stickwrightd usr/lib/systemd/system/stickwrightd.service usr/share/man/man1/stickwright.1.gz; do
    grep -q " \./$f" "$t/list" || complain "$f is not in the package"
  done
  if command -v lintian >/dev/null; then # the authors have no address that the world could write to
    lintian --no-cfg --allow-root --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$deb" >"$t/lint" 2>&1 || true
    if grep '^[EW]:' "$t/lint"; then complain "lintian"; fi
  else
    echo "skipped: lintian is not there"
  fi
  for lib in libglpk libjansson libmicrohttpd libsqlite3 libzip; do
    dpkg-deb -f "$deb" Depends | grep -q "$lib" || complain "the package does not depend on $lib"
  done
  # on this machine, where it is nobody's: install, run, remove, purge
  if [ "$(id -u)" = 0 ] && [ -n "${SW_INSTALL_HERE:-}" ] && ! dpkg -s stickwright >/dev/null 2>&1; then
    dpkg -i "$deb" >"$t/log" 2>&1 || complain "dpkg -i: $(cat "$t/log")"
    /usr/bin/stickwright compile "$SW_SOURCE/data/models/softmax_block.pt2" >/dev/null || complain "the package's program fails"
    [ "$(/usr/bin/stickwrightd --version)" = "$("$SW" --version | sed 's/stickwright/&d/')" ] || complain "the package's daemon"
    dpkg --purge stickwright >"$t/log" 2>&1 || complain "dpkg --purge: $(cat "$t/log")"
    [ ! -e /usr/bin/stickwright ] && [ ! -e /usr/share/stickwright ] || complain "something is left"
  else
    dpkg-deb -x "$deb" "$t/unpacked"
    "$t/unpacked/usr/bin/stickwright" compile "$SW_SOURCE/data/models/softmax_block.pt2" >/dev/null || complain "the package's program fails"
    echo "skipped: dpkg -i (as root, SW_INSTALL_HERE=1 does it on this machine)"
  fi
else
  echo "skipped: cpack, dpkg-deb or dpkg-shlibdeps is not there"
fi
exit $bad
